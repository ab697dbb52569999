#pragma once
// The environment fold: who wants which variable to be what, weakest first.
#include "hpclaunch/make_plan.h"
#include "plan/environment/fold.h"

namespace hpclaunch {

/// What hpclaunch itself and the command line have to say. `placed` has its layout and classes decided.
void add_own_opinions(const PlanInput& input, const Plan& placed, Fold& fold);

}  // namespace hpclaunch
