#pragma once
// Cores for groups of ranks, each as near as there is room. Numbers only, as plan/cores/share.h.
#include <vector>

#include "plan/cores/locality.h"

namespace hpclaunch {

/// Positions in the vector of usable cores.
using CoreSet = CpuSet;

/// Ranks whose devices are near the same cores.
struct LocalityGroup {
  std::vector<int> units;            ///< positions in Units::list, ascending
  std::vector<CoreSet> within = {};  ///< cores by Distance; each contains the one before
};

/// Ranks of one group that share the cores `from`, which are theirs alone.
struct Block {
  int group = 0;
  int distance = 0;
  int ranks = 0;
  CoreSet from;
};

/// As many ranks as near as can be, with `width` cores each (1 where that is 0). With width 0 all
/// cores near somebody are then given out, max-min fair: the ranks with the fewest cores have as many
/// as can be, then the next. Sets may overlap. `ranks`: of each group, in all times `width` no more than there
/// are cores. By distance, then by group.
std::vector<Block> allocate_cores(const std::vector<LocalityGroup>& groups, std::vector<int> ranks,
                                  int width);

}  // namespace hpclaunch
