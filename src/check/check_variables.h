#pragma once
#include <vector>

#include "hpclaunch/check.h"

namespace hpclaunch {

/// Compares typed and exported variables with the catalogue. Typed values are checked in full; of exports
/// only those that the plan also sets, and known misspellings, with warnings at most.
void check_variables(const Plan& plan, const EnvSnapshot& env,
                     std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch
