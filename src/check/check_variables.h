#pragma once
#include <vector>

#include "hpclaunch/check.h"

namespace hpclaunch {

/// Compares what was typed and exported with the catalogue of variables, and appends what is odd.
///
/// Typed values are judged in full. Exports are the user's own affair: of them only those that the plan
/// also decides about are judged, and known misspellings; none gets more than a warning.
void check_variables(const Plan& plan, const EnvSnapshot& env,
                     std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch
