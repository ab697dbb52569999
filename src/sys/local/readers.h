#pragma once
// hpclaunch-stacks for ranks that are our own children: a few at a time.
#include <sys/types.h>

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "hpclaunch/events.h"

namespace hpclaunch::sys::local {

class Readers {
 public:
  static constexpr int kAtOnce = 16;

  /// `reader`: the program; `hear`: pieces of what one writes, the last one empty.
  Readers(std::string reader,
          std::function<void(int number, int rank, std::string_view piece, bool last)> hear)
      : reader_(std::move(reader)), hear_(std::move(hear)) {}
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  ~Readers();

  /// A new question: ranks and process IDs of their programs. Readers at work on another one end.
  void ask(int number, bool all_threads, const std::map<pid_t, int>& ranks, int ras_port);
  int fd() const { return events_; }  ///< readable when turn() has something to do; -1: never
  void turn();
  void stop();  ///< those that are at work
  /// Of those that have been started: one that hangs in the kernel beside its rank is not to be waited for.
  const std::set<pid_t>& alive() const { return alive_; }
  void reaped(pid_t pid) { alive_.erase(pid); }

 private:
  struct Reader {
    pid_t pid;
    int rank;
  };
  void start_some();
  bool start(pid_t program, int rank);
  void end(int fd, bool at_work);

  std::string reader_;
  std::function<void(int, int, std::string_view, bool)> hear_;
  int events_ = -1;
  int number_ = 0;
  bool all_threads_ = false;
  int ras_port_ = 0;
  std::deque<std::pair<pid_t, int>> waiting_;  // program, rank
  std::map<int, pid_t> strays_;                // of ranks
  std::map<int, Reader> at_work_;              // by the end of its pipe
  std::set<pid_t> alive_;
};

}  // namespace hpclaunch::sys::local
