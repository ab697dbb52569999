#pragma once
// Goods from kinds of ranks to groups of places at the least cost.
#include <vector>

namespace hpclaunch {

struct Transport {
  std::vector<std::vector<int>> costs;  ///< [kind][group], >= 0
  std::vector<int> supply;              ///< of each kind; all of it is moved
  std::vector<int> least;  ///< what each group gets at least; the sum is <= the supply's
  std::vector<int> most;   ///< and at most; the sum is >= the supply's
};

/// [kind][group]: how many go there; the least sum of costs. Equal input, equal output.
std::vector<std::vector<int>> solve(const Transport& problem);

}  // namespace hpclaunch
