#pragma once
// The rank monitor beside a launcher: no threads, nothing that blocks.
//
//   running --launcher exits--> cleanup (TERM, 2 s, KILL to descendants) --> draining --> reported
//      |
//      +-- first failure: 50 ms, then grace; all ranks ended: grace; the user's signal: grace;
//          second Ctrl-C, nodes that do not start: at once --> one step of TerminationPolicy after the other
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/events.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/sys.h"
#include "sys/screen.h"
#include "sys/supervised/links.h"
#include "sys/supervised/rank_status.h"
#include "sys/supervised/record.h"

namespace hpclaunch::sys::supervised {

enum class Phase {
  running,   // the launcher lives
  cleanup,   // it has ended; its descendants on this machine are being ended
  draining,  // no process lives; the rest of its stderr is on its way
  reported,
};

/// The launcher, and what the loop needs to know of it apart from the plan.
struct Launcher {
  pid_t pid = 0;
  int errors = -1;            ///< its stderr; non-blocking
  double started = 0;         ///< UNIX time
  std::string key;            ///< of this job's records
  bool shares_group = false;  ///< our process group: a terminal's signals reach it without us
  bool alone = true;          ///< every child of this process belongs to this job
};

class Monitor {
 public:
  /// `signals`: those that are forwarded, and CHLD.
  Monitor(const Plan& plan, const Launcher& launcher, Signals& signals);
  Ending run();

 private:
  void wait_for_events();
  void take_signals();
  void forward(int signal, bool from_terminal);
  void reap();
  void read_errors();
  void take(Splitter::Sink& sink);
  void advance();
  void advance_running(long now);
  void await_nodes(long now);
  void next_step(long now);
  void find_lost_node();
  void finish();
  void write_screen();
  void say(const std::string& text);
  void signal_launcher(int signal);

  const Plan& plan_;
  Launcher launcher_;
  Signals& signals_;
  RankStatus ranks_;
  Links links_;
  Splitter splitter_;
  Screen screen_;
  Pieces pieces_;
  JobFacts facts_;
  Phase phase_ = Phase::running;
  std::optional<RankExit> launcher_exit_;
  Ending ending_;
  long settle_until_ = kNever;
  long end_at_ = kNever;           // until then the launcher may exit by itself
  long name_missing_at_ = kNever;  // nodes that have not reported
  long start_by_ = kNever;         // when it is too late for them
  int started_nodes_ = 0;
  std::size_t steps_ = 0;       // of TerminationPolicy::steps that were taken
  bool complete_seen_ = false;  // every node has started
  bool failure_seen_ = false;
  bool end_seen_ = false;
  bool int_seen_ = false;
  bool childless_ = false;
  bool drained_ = false;
  bool output_lost_ = false;
};

}  // namespace hpclaunch::sys::supervised
