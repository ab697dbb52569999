#pragma once
// Ranks with devices: which device each gets, and which cores (docs/placement.md).
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/devices/units.h"

namespace hpclaunch {

struct Matched {
  std::vector<RankPlan> ranks;       ///< in the order of their cores
  std::vector<int> assigned;         ///< position in Units::list, one per rank
  std::vector<std::string> remarks;  ///< idle cores, ranks on several NUMA nodes
};

/// Units are used evenly, give or take one rank; as many ranks as can be are near their units; of the cores near
/// the same units each rank gets as many as the others. nullopt when there are no units or the ranks do not
/// fit the cores.
std::optional<Matched> match_units(const Topology& node, const Units& units,
                                   const PlaceRequest& want);

/// The unit of each rank where the cores are bound already: even, and as near as swaps of two ranks make it.
std::vector<int> match_bound(const Topology& node, const Units& units,
                             const std::vector<RankPlan>& ranks);

}  // namespace hpclaunch
