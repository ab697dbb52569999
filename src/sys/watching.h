#pragma once
// `hpclaunch stacks` and --stall, in a loop that waits for ranks.
#include <sys/signalfd.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sys/questions.h"
#include "sys/verdict.h"

namespace hpclaunch::sys {

/// Leads of LastLook, in ms, and its reasons.
inline constexpr long kBeforeTimeLimit = 30'000, kBeforeKill = 5000;
inline constexpr const char* kTimeLimit = "time-limit";

/// The sender is the batch system's: it signals all processes of the job, those of the ranks among them.
bool is_batch_system(const signalfd_siginfo& seen, const Asking& asking);

class Watching {
 public:
  /// `pid`: by which the launch is asked. `ask`: all ranks that live.
  Watching(const Verdict& verdict, const Asking& asking, int pid,
           std::function<void(int number, bool all_threads)> ask);

  void wait_for(Wait& wait) const;
  /// Ranks have written.
  void output() { quiet_since_ = clock_ms(); }
  /// Whole lines to say. Where the ranks are to end, because they stand still, `facts` has it.
  std::string turn(JobFacts& facts);
  /// The ranks are ended then (clock_ms), because of `why`: LastLook is due `lead` ms before, or half of the time that is
  /// left. Where several are said, the first one counts; where it has been, one for another reason.
  void ends(long at, long lead, const char* why);
  bool last_look_runs() const {
    return last_runs_;
  }  ///< the ranks are to live until it has answered
  Questions& questions() { return questions_; }

 private:
  void look(const std::vector<RankStacks>& ranks);
  void last_look(const std::vector<RankStacks>& ranks);
  void drop_last(long now);

  Questions questions_;
  const Verdict& verdict_;
  const Asking& asking_;
  const JobFacts* facts_ = nullptr;
  long quiet_since_;
  long look_at_ = kNever;
  bool looking_ = false;
  std::optional<StallStep> step_;
  long last_at_ = kNever, ends_at_ = kNever;
  const char* why_ = "";
  bool last_runs_ = false, news_ = false;
  std::string last_;                // what it has found,
  std::string_view last_for_ = "";  // because of this
};

}  // namespace hpclaunch::sys
