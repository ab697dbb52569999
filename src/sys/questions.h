#pragma once
// What the ranks do, asked while they run: by `hpclaunch stacks` over a local socket, and by --stall. One question is
// put to all ranks at a time; who has not answered in time is missing.
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::sys {

class Questions {
 public:
  /// How the ranks are reached.
  struct Ranks {
    int count = 0;
    std::function<std::string(int rank)> host;
    std::function<std::string(int rank)> missing;           ///< why it cannot be asked; "": it can
    std::function<void(int number, bool all_threads)> ask;  ///< all that can
  };

  explicit Questions(Ranks ranks) : ranks_(std::move(ranks)) {}
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;
  ~Questions();

  /// On the local socket of the launch with this process ID. Where that fails, nobody can ask from outside.
  void listen(int pid);
  int fd() const { return events_; }  ///< readable when turn() has something to do; -1: never
  long deadline() const { return limit_; }
  void turn();

  using Answer = std::function<void(const std::vector<RankStacks>&)>;
  void ask(bool all_threads, Answer answer) { ask(all_threads, std::move(answer), -1); }

  /// A piece of what a rank's reader has written; an empty one when it has been started.
  void hear(int number, int rank, std::string_view piece, bool last);
  /// It has ended, or is gone.
  void lose(int rank);
  /// Who asks NCCL's RAS: rank 0, or one of another node where the last one got no answer.
  int ras_rank() const { return ras_rank_; }

 private:
  struct Wanted {
    bool all_threads;
    Answer answer;
    int client;  // descriptor; -1: --stall
  };
  enum class Late : char { no, silent, slow };
  struct Client {
    std::string in, out;
    std::size_t sent = 0;  // of `out`
    bool asked = false;
  };
  void ask(bool all_threads, Answer answer, int client);
  void next();
  void settle(int rank, const std::string& missing);
  void shorten();
  void accept();
  void serve(int fd, unsigned what);
  void close_client(int fd);
  void choose_ras_rank();

  Ranks ranks_;
  int listening_ = -1, events_ = -1;
  std::map<int, Client> clients_;  // by descriptor
  std::deque<Wanted> wanted_;      // the first one is being asked
  int number_ = 0;                 // of it
  int ras_rank_ = 0;
  std::vector<RankStacks> answers_;
  std::vector<bool> open_;   // ranks that have not answered
  std::vector<bool> heard_;  // those of which a reader is at work
  std::vector<Late> late_;   // with the last question
  int left_ = 0;             // of those that are open
  int awaited_ = 0;          // of those that are open and not late
  int reading_ = 0;          // of those that are open and heard
  long asked_at_ = 0;
  long limit_ = kNever;
};

}  // namespace hpclaunch::sys
