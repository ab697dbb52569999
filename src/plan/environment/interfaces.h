#pragma once
// The interface over which NCCL and Gloo find one another.
#include "hpclaunch/make_plan.h"
#include "plan/environment/fold.h"

namespace hpclaunch {

/// NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME, on several nodes, where no profile speaks, neither of the two
/// was exported or typed, this node is one of the job's, and it has several interfaces with addresses
/// among which one kind is the fastest. Everything is stronger than this.
void add_interfaces(const PlanInput& input, const Plan& placed, Fold& fold);

}  // namespace hpclaunch
