#pragma once
// Ranks of one node: which cores and which device each gets (docs/placement.md).
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/devices/units.h"

namespace hpclaunch {

/// How to distribute ranks over the cores of one node.
struct PlaceRequest {
  int ranks = 1;               ///< on this node, >= 1
  int cores_per_rank = 0;      ///< exact number; 0: an even share
  bool oversubscribe = false;  ///< ranks may share cores when there are more ranks than cores
  bool use_idle = false;       ///< fewer ranks than devices get the cores that no rank is near, too
};

struct Matched {
  std::vector<RankPlan> ranks;       ///< in the order of their cores
  std::vector<int> assigned;         ///< position in Units::list, one per rank; -1 without units
  std::vector<std::string> remarks;  ///< idle cores, ranks on several NUMA nodes
};

/// Invariants: no core in two ranks (unless there are more ranks than cores and `oversubscribe`); all allowed hardware
/// threads of a core go together; equal input, equal output; renumbering PUs changes the numbers only.
/// Units are used evenly, give or take one rank; as many ranks as can be are near their units; of the cores near
/// the same units each rank gets as many as the others. Without units: a rank spans NUMA nodes or packages only
/// when there are fewer ranks than those, or when `cores_per_rank` leaves no other way; inside a NUMA node shares
/// differ by one core at most; the smallest share is as large as that allows.
/// Errors: `usage` when ranks do not fit; the message has both numbers.
Result<Matched> match_units(const Topology& node, const Units& units, const PlaceRequest& want);

/// Units that stay together in the order of ranks.
struct Stretch {
  std::vector<int> units;  ///< positions in Units::list, ascending
  std::vector<int> order;  ///< those of them that ranks get, in that order
};

/// A greedy ring (nearest neighbour): each unit is followed by the one of its stretch that has the most lanes to it.
/// Other orders only where more neighbours are linked then, or by more lanes; first and last are neighbours.
std::vector<Stretch> link_neighbours(const Topology& node, const Units& units,
                                     std::vector<Stretch> stretches);

/// The unit of each rank where the cores are bound already: even, and as near as swaps of two ranks make it.
std::vector<int> match_bound(const Topology& node, const Units& units,
                             const std::vector<RankPlan>& ranks);

}  // namespace hpclaunch
