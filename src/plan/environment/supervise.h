#pragma once
#include "hpclaunch/make_plan.h"

namespace hpclaunch {

/// Sets Plan::supervise and Plan::time_limit_signal, with the choices "supervise" and "signal".
/// Errors: `usage` when --no-supervise was typed and something needs it.
Status decide_supervise(const PlanInput& input, Plan& plan);

}  // namespace hpclaunch
