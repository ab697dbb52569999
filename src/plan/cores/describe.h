#pragma once
// What is to be said of the cores that ranks have.
#include <string>
#include <vector>

#include "hpclaunch/plan.h"
#include "plan/cores/share.h"

namespace hpclaunch {

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
