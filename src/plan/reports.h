#pragma once
// What the planner itself has to say about a plan that is made.
#include "hpclaunch/make_plan.h"
#include "plan/devices/units.h"

namespace hpclaunch {

/// Adds to plan.reports: cores of services that ranks are bound to, a launcher's view without flags, more
/// nodes than the site has.
void report_placement(const PlanInput& input, const Units& units, Plan& plan);

// What was typed and cannot be planned: each an error `usage` that says what would do, but where noted.

/// Names of --set and --unset.
Status check_names(const Request& options);

/// Several nodes under a launcher of one machine: `unsupported`.
Status check_launcher(const PlanInput& input, int nodes);

/// --ranks-per-device where a mask or a grant has left no device.
Status check_shared(const Request& typed, const Units& units);

/// More ranks than --ranks-per-device lets share the devices of a node, or than it has groups of devices.
Status check_groups(const Units& units, int ranks_per_node);

}  // namespace hpclaunch
