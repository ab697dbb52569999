#pragma once
#include <vector>

#include "hpclaunch/check.h"

namespace hpclaunch {

/// Lists that a library wants as long as the ranks of a node, whoever has set them.
void check_lists(const Plan& plan, const EnvSnapshot& env, std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch
