#pragma once
// Where the units of a node are near to: crowds of units, and the cores at each distance from them.
#include <vector>

#include "plan/domains.h"
#include "plan/quotas.h"
#include "plan/units.h"

namespace hpclaunch {

/// The units by the cores they are near to; each unit in one crowd, in ascending order there. Where nobody knows
/// what is near to a unit, all cores are.
std::vector<Crowd> crowds_of(const Topology& node, const std::vector<UsableCore>& cores,
                             const Units& units);

}  // namespace hpclaunch
