#pragma once
// A profile's rules applied: variables, launcher flags, limits, directories, reports.
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/devices/units.h"
#include "plan/environment/fold.h"

namespace hpclaunch {

/// Which stack holds, as a choice with its reason. nullopt when the profile has none.
/// Errors: `usage` for a stack that there is not.
Result<std::optional<Setting>> decide_stack(const PlanInput& input, const Facts& facts);

/// Whose rule a decision follows: which, under what condition, why, and who says so.
void cite(const std::string& id, const Origin& origin, std::string condition, Decision& decision);

/// Facts that are known before ranks are placed.
Facts early_facts(const PlanInput& input, const Units& units, int nodes, int ranks,
                  int ranks_per_node);

/// Rules that do not ask for value.NAME. Adds to `fold` and to everything in `plan` but its env.
void apply_rules(const PlanInput& input, const Facts& facts, const Units& units, Plan& plan,
                 Fold& fold);

/// The others, which see what every variable is in the end.
void apply_late_rules(const PlanInput& input, Facts facts, const Units& units, Plan& plan,
                      Fold& fold);

}  // namespace hpclaunch
