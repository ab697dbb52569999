#pragma once
#include <string>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"

namespace hpclaunch {

enum class Severity { note, warning, error };

struct Finding {
  std::string rule;  ///< kebab-case
  Severity severity = Severity::warning;
  std::string message;
  std::string fix;  ///< what to type; may be empty
};

/// Compares a finished plan with what the user exported. Empty: nothing to say.
std::vector<Finding> check_plan(const Plan& plan, const EnvSnapshot& env);

}  // namespace hpclaunch
