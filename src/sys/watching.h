#pragma once
// `hpclaunch stacks` and --stall, in a loop that waits for ranks.
#include <functional>
#include <optional>
#include <vector>

#include "sys/questions.h"
#include "sys/verdict.h"

namespace hpclaunch::sys {

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
  Questions& questions() { return questions_; }

 private:
  void look(const std::vector<RankStacks>& ranks);

  Questions questions_;
  const std::optional<StallWatch>& watch_;
  long quiet_since_;
  long look_at_ = kNever;
  bool looking_ = false;
  std::optional<StallStep> step_;
};

}  // namespace hpclaunch::sys
