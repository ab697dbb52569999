#pragma once
// How many ranks on how many nodes: what was typed, what the allocation says, what the node suggests.
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/devices/units.h"

namespace hpclaunch {

struct Counts {
  std::vector<int> ranks_on;     ///< one entry per node used, in host order; each >= 1
  std::vector<Setting> choices;  ///< "nodes", "ranks-per-node", "ranks"

  int nodes() const { return static_cast<int>(ranks_on.size()); }
  int most() const;  ///< ranks on the fullest node
  int ranks() const;
  bool even() const;
};

/// Errors: `usage` when the counts contradict each other, or exceed the nodes or their devices; `unsupported`
/// for several nodes under a launcher of one machine.
Result<Counts> decide_counts(const PlanInput& input, const Units& units);

}  // namespace hpclaunch
