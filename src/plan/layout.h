#pragma once
// How many ranks on how many nodes: what was typed, what the allocation says, what the node suggests.
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/devices/units.h"

namespace hpclaunch {

struct Counts {
  std::vector<int> ranks_on;     ///< one entry per node used, in host order; each >= 1
  std::vector<Setting> choices;  ///< "nodes", "ranks", "ranks-per-node"
};

/// Errors: `usage` when the counts contradict each other or ask for more nodes than there are.
Result<Counts> decide_counts(const PlanInput& input, const Units& units);

}  // namespace hpclaunch
