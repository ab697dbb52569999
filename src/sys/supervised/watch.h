#pragma once
// The loop beside the launcher: one poll, no threads, nothing that blocks.
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/sys.h"
#include "sys/local/screen.h"
#include "sys/supervised/judge.h"
#include "sys/supervised/record.h"
#include "sys/supervised/start.h"

namespace hpclaunch::sys::supervised {

enum class Phase {
  running,      // the launcher lives
  conflicting,  // it has ended; what it left behind on this machine is being ended
  draining,     // nothing lives; the rest of its stderr is on its way
  reported,
};

/// What the loop needs to know, apart from the plan.
struct Setting {
  bool shares_group = false;  ///< with the launcher: a terminal's signals reach it without us
  bool alone = true;          ///< every child we have belongs to this job
  int signals = -1;           ///< signalfd of those that are passed on, and of CHLD
};

class Watch {
 public:
  Watch(const Plan& plan, const Setting& setting, Child child, double started);
  Ending run();

 private:
  void wait_for_something();
  void take_signals();
  void pass_on(int signal, bool from_terminal);
  void reap();
  void read_errors();
  void take(Splitter::Sink& sink);
  void advance();
  void advance_running(long now);
  void heed_beginnings(long now);
  void next_step(long now);
  void finish();
  void write_screen();
  void say(const std::string& text);
  void signal_launcher(int signal);

  const Plan& plan_;
  Setting setting_;
  Child child_;
  Ledger ledger_;
  Splitter splitter_;
  local::Screen screen_;
  local::Pieces pieces_;
  Circumstances facts_;
  Phase phase_ = Phase::running;
  std::optional<LauncherEnd> launcher_;
  Ending ending_;
  long settle_until_ = -1;  // clock_ms; -1 for never
  long end_at_ = -1;        // the launcher has until then to end by itself
  long begin_by_ = -1;      // the nodes of which nobody has spoken
  int begun_ = 0;           // nodes
  std::size_t steps_ = 0;   // of TerminationPolicy::steps that were taken
  bool failure_seen_ = false;
  bool end_seen_ = false;
  bool int_seen_ = false;
  bool childless_ = false;
  bool drained_ = false;
};

}  // namespace hpclaunch::sys::supervised
