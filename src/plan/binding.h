#pragma once
// Ranks on cores: by a site's rule, near devices, or by the node alone.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/units.h"

namespace hpclaunch {

/// The cores that a rule gives `ranks` ranks of one node, in rank order; nullopt when it does not fit: a
/// count that its groups do not divide, cores that the node does not have, or one core for two ranks.
std::optional<std::vector<RankPlan>> apply_binding(const Binding& rule, const Topology& node,
                                                   int ranks);

/// One node's ranks with the cores nearest to their units, shared evenly by place(); nullopt when
/// nothing is known of where units are, or when the cores near them do not suffice.
std::optional<Placed> place_near(const Topology& node, const Units& units,
                                 const PlaceRequest& want);

/// What place() says of a set of PUs: cores, package, NUMA node.
void describe_cpus(const Topology& node, RankPlan& rank);

}  // namespace hpclaunch
