#pragma once
// Lists in variables that libraries take for all ranks of a node: they must fit the plan and the node.
#include <string>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

/// CPUs of helper threads (oneCCL's workers, Horovod's thread) and engines of Intel GPUs (ZEX_NUMBER_OF_CCS).
void check_lists(const Plan& plan, const Topology& node, const EnvSnapshot& env,
                 std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch
