#pragma once
// Which network interface is nearest to each rank.
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

/// Positions in Topology::nics of those for which idle_nics has nothing to say, by ascending PCI address.
std::vector<int> job_nics(const Topology& node);

/// RankPlan::nic: one that is nearest to the rank's devices (docs/reference/placement.md, "Interfaces"), or to its
/// cores where it has none or their locality is unknown. Ranks with the same nearest ones go to them in the order of PCI
/// addresses on both sides, since neighbours there hang below one switch.
void give_nics(const Topology& node, std::vector<RankPlan>& ranks);

/// Whether fewer interfaces are nearest to a rank than NUMA nodes alone would tell.
bool bridges_decide(const Topology& node, const RankPlan& rank);

}  // namespace hpclaunch
