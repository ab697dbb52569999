#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "check_lists.h"
#include "check_variables.h"
#include "hpclaunch/check.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

bool exported(const Setting& setting) {
  return std::any_of(setting.history.begin(), setting.history.end(),
                     [](const Decision& d) { return d.layer == Layer::environment; });
}

const std::string* exported_value(const Setting& setting) {
  for (const Decision& decision : setting.history)
    if (decision.layer == Layer::environment) return std::get_if<std::string>(&decision.value);
  return nullptr;
}

// Variables that differ by rank and were given one value for all.
void one_value_for_all(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  const struct {
    const char* name;
    int different_values;
  } kByRank[] = {{"RANK", plan.world_size()},
                 {"LOCAL_RANK", plan.max_local_size()},
                 {"GROUP_RANK", plan.nodes()},
                 {"NODE_RANK", plan.nodes()}};
  for (const auto& [name, different_values] : kByRank) {
    const Setting* setting = plan.find_env(name);
    const bool typed = setting != nullptr && setting->history.back().layer == Layer::command_line;
    if (typed && different_values > 1)
      diagnostics.push_back(
          {"same-on-every-rank", Severity::error,
           fmt::format("{} is set or unset on the command line, so {} ranks would share it", name,
                       plan.world_size()),
           fmt::format("leave {} to hpclaunch", name)});
  }
}

void overruled_exports(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> names;
  for (const Setting& setting : plan.env)
    // What the batch system has left behind for its launcher was nobody's wish.
    if (exported(setting) && setting.history.back().layer == Layer::computed &&
        setting.history.back().where.file != "launcher") {
      const std::string* was = exported_value(setting);
      if (was != nullptr && setting.value() != Value(*was)) names.push_back(setting.name);
    }
  if (!names.empty())
    diagnostics.push_back(
        {"export-overruled", Severity::warning,
         fmt::format("exported before the start and overruled: {}", fmt::join(names, ", ")),
         fmt::format("hpclaunch explain {}", fmt::join(names, " "))});
}

// What the site demands against what the user exported: both values, unless they are nobody's business.
void overruled_by_profile(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  for (const Setting& setting : plan.env) {
    const Decision& holds = setting.history.back();
    const std::string* was = exported_value(setting);
    if (holds.layer != Layer::profile_require || was == nullptr || holds.value == Value(*was))
      continue;
    const auto* now = std::get_if<std::string>(&holds.value);
    // What was put before the user's own value overrules nothing.
    if (now != nullptr && !was->empty() && now->ends_with(":" + *was)) continue;
    const bool secret = is_secret(setting.name);
    const std::string before = secret ? "<hidden>" : *was;
    const std::string after = std::holds_alternative<Unset>(holds.value) ? "unset"
                              : now == nullptr                           ? "one value per rank"
                              : secret                                   ? "<hidden>"
                                                                         : "\"" + *now + "\"";
    diagnostics.push_back(
        {"export-against-profile", Severity::warning,
         fmt::format("{}=\"{}\" was exported, and profile {} (rule {}) makes it {}: {}",
                     setting.name, before, holds.profile, holds.rule, after, holds.why),
         fmt::format("--set {}=... overrules the profile", setting.name)});
  }
}

void too_many_threads(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  const Setting* threads = plan.find_env("OMP_NUM_THREADS");
  if (threads == nullptr || threads->history.back().layer == Layer::builtin) return;
  const auto* text = std::get_if<std::string>(&threads->value());
  if (text == nullptr) return;
  const std::optional<long> count = parse_natural(trim(split(*text, ',').front()));
  int fewest = 0;
  for (const NodeClass& one : plan.classes)
    for (const RankPlan& rank : one.ranks)
      if (!rank.cpus.empty())
        fewest = fewest == 0 ? rank.cpus.count() : std::min(fewest, rank.cpus.count());
  if (count && fewest > 0 && *count > fewest)
    diagnostics.push_back(
        {"more-threads-than-cpus", Severity::warning,
         fmt::format("OMP_NUM_THREADS={} ({}), but a rank is bound to {}", *text,
                     to_string(threads->history.back().layer), counted(fewest, "CPU")),
         "unset OMP_NUM_THREADS to get one thread per core"});
}

// Source: GCC's libgomp manual (GOMP_CPU_AFFINITY) and LLVM's OpenMP runtime (KMP_AFFINITY=explicit).
void competing_binding(const Plan& plan, const EnvSnapshot& env,
                       std::vector<Diagnostic>& diagnostics) {
  if (plan.bind_via == BindVia::none) return;
  const bool explicit_list = env.get("KMP_AFFINITY").find("explicit") != std::string::npos;
  const char* name = env.has("GOMP_CPU_AFFINITY") ? "GOMP_CPU_AFFINITY"
                     : explicit_list              ? "KMP_AFFINITY"
                                                  : nullptr;
  if (name != nullptr)
    diagnostics.push_back(
        {"competing-binding", Severity::warning,
         fmt::format("{} is exported and gives the threads of every rank the same CPUs", name),
         fmt::format("unset {}", name)});
}

}  // namespace

std::vector<Diagnostic> check_plan(const Plan& plan, const EnvSnapshot& env) {
  std::vector<Diagnostic> diagnostics;
  one_value_for_all(plan, diagnostics);
  overruled_exports(plan, diagnostics);
  overruled_by_profile(plan, diagnostics);
  too_many_threads(plan, diagnostics);
  competing_binding(plan, env, diagnostics);
  check_variables(plan, env, diagnostics);
  check_lists(plan, env, diagnostics);
  return diagnostics;
}

}  // namespace hpclaunch
