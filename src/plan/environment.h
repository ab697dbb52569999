#pragma once
// The environment fold: who wants which variable to be what, weakest first.
#include <vector>

#include "hpclaunch/make_plan.h"

namespace hpclaunch {

/// Every variable with an opinion about it, ascending name, each history in precedence order.
/// `placed` has its layout and classes decided already.
std::vector<Setting> fold_environment(const PlanInput& input, const Plan& placed);

}  // namespace hpclaunch
