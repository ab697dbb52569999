#pragma once
// Diagnostics about a finished plan.
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/devices/units.h"

namespace hpclaunch {

/// Adds to plan.reports: cores of services that the job uses and ranks are bound to, a launcher's view without flags, more
/// nodes than the site has.
void report_placement(const PlanInput& input, const Facts& facts, const Units& units, Plan& plan);

}  // namespace hpclaunch
