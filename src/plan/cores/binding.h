#pragma once
// Ranks on cores by a site's rule.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"

namespace hpclaunch {

/// The cores that a rule gives `ranks` ranks of one node, in rank order; nullopt when it does not fit: a
/// count that its groups do not divide or its list does not have, cores that the node does not have, or one
/// core for two ranks. `facts` are for Binding::list.
std::optional<std::vector<RankPlan>> apply_binding(const Binding& rule, const Topology& node,
                                                   int ranks, const Facts& facts);

}  // namespace hpclaunch
