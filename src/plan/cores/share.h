#pragma once
// Which cores each rank gets: numbers only, no PUs, no names, no devices.
#include <string>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

/// A core as placement sees it: its hardware threads in `allowed`.
struct UsableCore {
  CpuSet pus;        ///< never empty
  int position = 0;  ///< in Topology::cores
};

/// The cores of a topology with at least one allowed PU, in topology order.
std::vector<UsableCore> usable_cores(const Topology& node);

/// Positions in the vector of usable cores that one rank gets, ascending, never empty.
using Share = std::vector<int>;

/// Some usable cores of one node, to be shared by ranks.
struct CoreList {
  const Topology& node;
  const std::vector<UsableCore>& cores;
  std::vector<int> positions;  ///< in `cores`, ascending
};

/// As many shares as ranks, ordered by first core. A share is a run of cores of one NUMA node, or whole
/// neighbouring NUMA nodes; the smallest share is as large as that allows. 1 <= ranks <= cores.
std::vector<Share> even_shares(const CoreList& list, int ranks);

/// Exactly `width` cores each, spread as even shares are; across caches and NUMA nodes only where
/// nothing else fits. ranks * width <= cores.
std::vector<Share> exact_shares(const CoreList& list, int ranks, int width);

// ---- describe.cpp: what is to be said of the cores that ranks have ---------------------------------

/// Cores, package and NUMA node of a rank's CPUs; -1 where these lie in several.
void describe_cpus(const Topology& node, RankPlan& rank);

/// A rank with these of the usable cores, described.
RankPlan rank_on(const Topology& node, const std::vector<UsableCore>& cores, const Share& share);

/// More ranks than cores: ranks on one core get hardware threads of their own, as far as it has them.
void deal_threads(std::vector<RankPlan>& ranks);

/// That ranks share cores, cover several NUMA nodes, or leave cores idle.
std::vector<std::string> remarks_on(const Topology& node, const std::vector<UsableCore>& cores,
                                    const std::vector<RankPlan>& ranks, bool shared);

}  // namespace hpclaunch
