#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"

namespace hpclaunch {

enum class Severity { note, warning, error };

std::string_view to_string(Severity severity);

struct Finding {
  std::string rule;  ///< kebab-case
  Severity severity = Severity::warning;
  std::string message;
  std::string fix;  ///< what to type; may be empty
};

/// Compares a finished plan with what the user exported. Empty: nothing to say.
std::vector<Finding> check_plan(const Plan& plan, const EnvSnapshot& env);

}  // namespace hpclaunch
