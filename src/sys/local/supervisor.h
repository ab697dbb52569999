#pragma once
// The supervisor's loop: no threads, nothing that blocks. supervisor.cpp has the loop and the end of the
// job, ranks.cpp the start of the ranks and their output.
//
//            a rank fails      50 ms, or a crash            grace is over, second Ctrl-C
//   running -------------> settling -----------> stopping -------------------------> killed
//      |                       |                     |                                  |
//      +-----------------------+---- no rank lives --+----------------------------------+
//                                                    v
//                  cleanup (TERM, 2 s, KILL to other descendants) -> draining -> reported
#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/events.h"
#include "sys/local/job.h"
#include "sys/local/lines.h"
#include "sys/local/readers.h"
#include "sys/report.h"
#include "sys/screen.h"
#include "sys/start.h"
#include "sys/verdict.h"
#include "sys/watching.h"

namespace hpclaunch::sys::local {

struct Rank {
  int pipes[2] = {-1, -1};
  bool shown = true;  // its output
  Tail tail;
  Start start;
  std::string own_variable;  ///< HPCLAUNCH_LOCAL_RANK=...
  std::vector<char*> env;
};

enum class Phase {
  running,   // no failure, or the user has sent a signal that ends the ranks
  settling,  // a rank has failed; others may have died of the same cause
  stopping,  // the others have got TERM
  killed,    // and KILL
  cleanup,   // no rank lives; their other descendants are being ended
  draining,  // no process lives; the rest of the output is on its way
};

class Supervisor {
 public:
  Supervisor(const Job& job, int control);
  Status start();
  Result<Ending> run();

 private:
  int ranks() const { return static_cast<int>(ranks_.size()); }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank - first_)]; }
  Status start_rank(int local, const Start& common, char* stack_top);
  void kill_with_us(pid_t group);
  void wait_for_events();
  void take_control();
  void forward(int signal, bool from_batch);
  void ended_by(int signal);
  void reap();
  void note(const RankExit& end);
  void read_ranks();
  void read_pipe(int local, Stream stream);
  void close_pipe(int& pipe);
  void write_log(int local, std::string_view bytes);
  void write_screen();
  void advance();
  void look();
  void signal_ranks(int signal);
  void stop_ranks();
  void kill_ranks();
  void limit_grace();
  /// When KILL is due; not while LastLook asks the ranks.
  long end_of_grace() const {
    return phase_ == Phase::running && watching_.last_look_runs() ? kNever : kill_at_;
  }
  void report();
  void say(const std::string& text);
  void send_time_limit_signal();
  long until_time_limit_signal() const;

  const Job& job_;
  const int first_;  // the number of this node's first rank
  int control_;
  Signals children_;  // SIGCHLD
  int pipes_ = -1;    // epoll of the ranks' output
  Pipe death_pipe_;   // see kill_with_us
  Screen screen_;
  Lines lines_;
  Pieces pieces_;
  std::vector<Rank> ranks_;         // of this node
  std::unique_ptr<char[]> stacks_;  // of ranks before their exec
  std::vector<char*> argv_;
  std::map<pid_t, int> by_pid_;  // living ranks, by their numbers in the job
  std::vector<int> logs_;
  Phase phase_ = Phase::running;
  long settle_until_ = kNever;
  long kill_at_ = kNever;
  int open_pipes_ = 0;
  int oom_before_ = 0;
  bool childless_ = false;
  bool int_seen_ = false;
  bool log_failed_ = false;
  bool output_lost_ = false;
  bool reported_ = false;
  bool time_limit_signal_sent_ = false;
  bool clean_ = true;
  Verdict verdict_;
  JobFacts facts_;
  Readers readers_;
  Watching watching_;
  Ending ending_;
  std::optional<Error> not_started_;
};

}  // namespace hpclaunch::sys::local
