#pragma once
// Which cores each rank gets, on the tree of domains. Numbers only: no PUs, no names.
#include <vector>

#include "plan/domains.h"

namespace hpclaunch {

/// Positions of the usable cores that one rank gets, ascending, never empty.
using Share = std::vector<int>;

/// As many shares as ranks, ordered by first core. A share is part of one innermost domain, or whole
/// neighbouring domains; the smallest share is as large as that allows. 1 <= ranks <= cores.
std::vector<Share> even_shares(const Domain& tree, int ranks);

/// Exactly `width` cores each: cut from even shares where those are wide enough, else packed into
/// domains, and only what does not fit any domain put together from conflicting.
/// ranks * width <= cores.
std::vector<Share> exact_shares(const Domain& tree, int ranks, int width);

/// More ranks than cores: one core each, neighbouring ranks together, as many on each core give or
/// take one.
std::vector<Share> shared_cores(int cores, int ranks);

}  // namespace hpclaunch
