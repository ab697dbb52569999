#pragma once
// Which variables a launcher has to be told by name, so that ranks on other nodes get them.
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"

namespace hpclaunch {

/// Empty when the launcher passes everything on (LauncherTraits::names_variables) or there is one node, this one.
/// Else, ascending: what the plan sets to one value, HPCLAUNCH_PLAN, HPCLAUNCH_RECORDS under
/// Plan::supervise, and what was exported, apart from what belongs to the host, to the login session or
/// to a batch system or launcher (docs/launchers.md). Never what the plan removes or sets per rank.
std::vector<std::string> names_to_forward(const PlanInput& input, const Plan& plan);

}  // namespace hpclaunch
