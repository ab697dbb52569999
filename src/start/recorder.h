#pragma once
// PyTorch's flight recorder, of ranks on this machine: a byte written to a rank's pipe makes it write its dump.
#include <string>

#include "hpclaunch/plan.h"
#include "hpclaunch/progress.h"

namespace hpclaunch::job {

class Recorder {
 public:
  /// Where the plan's environment has pipes and dumps; else nothing is asked and nothing found.
  explicit Recorder(const Plan& plan);
  void ask();
  /// What the dumps have that were written since then.
  stacks::Sequences read() const;

 private:
  std::string pipes_, dumps_;  // how their paths begin
  int ranks_;
  double asked_ = 0;  // UNIX time; 0: not yet
};

}  // namespace hpclaunch::job
