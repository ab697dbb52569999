#pragma once
// The supervisor: one loop over poll, no threads, nothing that blocks. supervise.cpp has the loop
// and the end of the job, ranks.cpp the start of the ranks and their output.
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/local/job.h"
#include "sys/local/lines.h"
#include "sys/local/report.h"
#include "sys/local/screen.h"
#include "sys/local/spawn.h"

namespace hpclaunch::sys::local {

struct Rank {
  pid_t pid = 0;
  bool alive = false;
  int pipes[2] = {-1, -1};
  Tail tail;
  Start start;
  std::string own_variable;  ///< HPCLAUNCH_LOCAL_RANK=...
  std::vector<char*> env;
};

enum class Phase {
  running,      // all is well, or the user has sent a signal that ends the ranks
  settling,     // a rank has failed; others may have died of the same cause
  ending,       // the others have got TERM
  killed,       // and KILL
  conflicting,  // no rank lives; what they left behind is being ended
  draining,     // nothing lives; the rest of the output is on its way
};

class Supervisor {
 public:
  Supervisor(const Job& job, int control);
  Status start();
  Result<Outcome> run();

 private:
  Status start_rank(int rank, const Start& common, char* stack_top);
  Error start_error(int error) const;
  void wait_for_something();
  void take_control();
  void pass_on(int signal);
  void reap();
  void note(Death death);
  void read_ranks();
  void read_pipe(int rank, Stream stream);
  void close_pipe(int& pipe);
  void write_log(int rank, std::string_view bytes);
  void write_screen();
  void advance();
  void signal_ranks(int signal);
  void begin_end();
  void kill_ranks();
  void report();
  void say(const std::string& text);
  Story story() const;
  int exit_status() const;
  Ending ending() const;
  void send_notice();
  long until_notice() const;

  const Job& job_;
  int control_;
  int children_ = -1;  // signalfd for SIGCHLD
  int pipes_ = -1;     // epoll of the ranks' output
  long started_ = 0;
  Screen screen_;
  Lines lines_;
  Pieces pieces_;
  std::vector<Rank> ranks_;
  std::vector<char*> argv_;
  std::map<pid_t, int> by_pid_;
  std::vector<int> logs_;
  Phase phase_ = Phase::running;
  long settle_until_ = -1;
  long kill_at_ = -1;  // clock_ms; -1 for never
  int alive_ = 0;
  int open_pipes_ = 0;
  bool childless_ = false;
  bool interrupted_ = false;  // the user has sent something that ends programs
  bool int_seen_ = false;
  bool log_failed_ = false;
  bool reported_ = false;
  int passed_on_ = 0;
  int also_failed_ = 0;
  int ended_ = 0;
  int ok_ = 0;
  bool notice_sent_ = false;
  bool clean_ = true;
  std::optional<Death> first_;
  std::optional<Error> not_started_;
};

}  // namespace hpclaunch::sys::local
