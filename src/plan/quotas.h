#pragma once
// How many ranks the units near one set of cores get, and how many cores those.
#include <functional>
#include <vector>

#include "hpclaunch/cpuset.h"

namespace hpclaunch {

/// Positions in the vector of usable cores.
using CoreSet = CpuSet;

/// Units that are near to the same cores.
struct Crowd {
  std::vector<int> units;            ///< positions in Units::list, ascending
  std::vector<CoreSet> within = {};  ///< by Distance; growing
};

/// Ranks of one crowd that get cores of one set.
struct Quota {
  int crowd = 0;
  int distance = 0;
  CoreSet from;
  int ranks = 0;
  int cores = 0;  ///< for all of them together
};

struct Quotas {
  std::vector<Quota> list;  ///< by distance, then by crowd
  long far = 0;             ///< sum of the ranks' distances
};

/// The least sum of distances for these numbers of ranks (one for each crowd) that leaves everyone
/// `width` cores, or 1 where that is 0; then, with width 0, as many cores as there are, so that the
/// worst-off has the most. Near cores that crowds have in common without one's being all of the other's are
/// divided among them (plan/divide.h). The ranks must fit: their number times `width` <= cores.
Quotas quotas_for(const std::vector<Crowd>& crowds, const std::vector<int>& ranks, int width);

/// The cores that each rank gets once quotas are cut into shares.
using CoresOf = std::function<std::vector<int>(const Quotas&)>;

/// Ranks for each crowd, as many in all as in `start`, which has to be even, so that no two units differ by
/// more than one: the least sum of distances, then the most cores for the worst-off, then in all. `start` where
/// nothing is better.
std::vector<int> best_split(const std::vector<Crowd>& crowds, std::vector<int> start, int width,
                            const CoresOf& cores_of);

}  // namespace hpclaunch
