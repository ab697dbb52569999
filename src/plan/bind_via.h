#pragma once
// Who binds the ranks: the launcher, the shim, or nobody.
#include "hpclaunch/make_plan.h"
#include "plan/devices/units.h"

namespace hpclaunch {

/// Decides Plan::bind_via and adds the choice "bind-via"; `plan` has its classes.
/// Errors: `unsupported` for what was typed and cannot be had.
Status decide_via(const PlanInput& input, const Units& units, Plan& plan);

}  // namespace hpclaunch
