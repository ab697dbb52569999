#pragma once
// Devices that are linked, side by side.
#include <vector>

#include "plan/devices/units.h"

namespace hpclaunch {

/// Lanes between two units, all members of groups counted; parts of one device are nearer than any link.
int lanes_between(const Topology& node, const Unit& a, const Unit& b);

/// Units that stay together in the order of ranks.
struct Stretch {
  std::vector<int> units;  ///< positions in Units::list, ascending
  std::vector<int> order;  ///< those of them that ranks get, in that order
};

/// A greedy ring (nearest neighbour): each unit is followed by the one of its stretch that has the most lanes to it.
/// Changes the orders only where more neighbours are linked then, or by more lanes; first and last are neighbours.
void link_neighbours(const Topology& node, const Units& units, std::vector<Stretch>& stretches);

/// Groups of `size` out of units that are equally near, each filled with the unit that has the most lanes to it;
/// neighbours in the list where nothing is linked. What is left over comes last.
std::vector<Unit> linked_groups(const Topology& node, std::vector<Unit> units, std::size_t size);

}  // namespace hpclaunch
