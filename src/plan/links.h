#pragma once
// Devices that are linked, side by side.
#include <vector>

#include "hpclaunch/topology.h"
#include "plan/units.h"

namespace hpclaunch {

/// Lanes between two units, all members of groups counted; parts of one device are nearer than any link.
int lanes_between(const Topology& node, const Unit& a, const Unit& b);

/// Units that must stay together, and how many of them are used: all, or the best linked ones.
struct Stretch {
  std::vector<int> units;  ///< positions in Units::list
  int used = 0;            ///< 1..units.size()
};

/// The order in which ranks take units, stretch by stretch: as many neighbours linked as can be, the last
/// and the first among them, then the most lanes. `start` (one order that is allowed) where nothing is better.
/// Exact up to 12 units; beyond that each unit is followed by the one of its stretch that it is linked best to.
std::vector<std::vector<int>> linked_order(const Topology& node, const Units& units,
                                           const std::vector<Stretch>& stretches,
                                           const std::vector<std::vector<int>>& start);

/// Groups of `size` out of units that are equally near: as many linked pairs in groups as can be, then the
/// most lanes; neighbours in the list where nothing is better. What is left over comes last.
std::vector<Unit> linked_groups(const Topology& node, std::vector<Unit> units, std::size_t size);

}  // namespace hpclaunch
