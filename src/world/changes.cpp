// What a plan changes in the environment of its launcher.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "hpclaunch/prepared.h"

namespace hpclaunch::job {

std::vector<EnvChange> environment_changes(const Plan& plan) {
  std::vector<EnvChange> changes;
  const auto comment = [](const Decision& decision) {
    return fmt::format("{}: {}", to_string(decision.layer), decision.why);
  };
  for (const Setting& setting : plan.environment.settings) {
    const Decision& holds = setting.history.back();
    if (is_exported(holds)) continue;  // it is there already
    if (const auto* text = std::get_if<std::string>(&holds.value))
      changes.push_back({setting.name, *text, comment(holds)});
    else if (std::holds_alternative<Unset>(holds.value))
      changes.push_back({setting.name, std::nullopt, comment(holds)});
  }
  changes.push_back({"HPCLAUNCH_PLAN", plan.environment.wire,
                     "computed: what differs by rank; hpclaunch-shim reads it"});
  std::ranges::sort(changes, {}, &EnvChange::name);
  return changes;
}

EnvSnapshot launch_environment(const Plan& plan, const EnvSnapshot& env) {
  std::map<std::string, std::optional<std::string>> changes;
  for (EnvChange& change : environment_changes(plan))
    changes[std::move(change.name)] = std::move(change.value);
  return env.with(changes);
}

}  // namespace hpclaunch::job
