#pragma once
// Ranks, their cores and their devices, matched on a node where no site's rule says how.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/units.h"

namespace hpclaunch {

struct Matched {
  std::vector<RankPlan> ranks;       ///< in the order of their cores
  std::vector<int> dealt;            ///< position in Units::list, one per rank
  std::vector<std::string> remarks;  ///< cores that nobody gets
};

/// Laws, the stronger first (docs/placement.md): units are used evenly, give or take one rank; the sum of
/// the ranks' distances from their units (plan/reach.h) is the least that leaves each rank
/// `cores_per_rank` cores, or one (where near sets cut one another, of the splits that moving one rank
/// from unit to unit leads to; of more than 32 kinds of near sets, or 8 that cut one another, the even
/// split); the worst-off rank has the most cores that this allows; linked
/// devices stand side by side. nullopt when there are no units or the ranks do not fit the cores.
std::optional<Matched> match_units(const Topology& node, const Units& units,
                                   const PlaceRequest& want);

/// The unit of each rank where the cores are settled already: even, and least in the sum of distances.
/// In block order where that is as good.
std::vector<int> match_bound(const Topology& node, const Units& units,
                             const std::vector<RankPlan>& ranks);

}  // namespace hpclaunch
