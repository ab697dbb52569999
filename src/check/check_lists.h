#pragma once
#include <vector>

#include "hpclaunch/check.h"

namespace hpclaunch {

/// Lists that need one entry for each rank of a node.
void check_lists(const Plan& plan, const EnvSnapshot& env, std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch
