// Checks of a finished plan against what the user exported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/check.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

const std::string* exported_value(const Setting& setting) {
  for (const Decision& decision : setting.history)
    if (decision.layer == Layer::environment) return std::get_if<std::string>(&decision.value);
  return nullptr;
}

// Variables that differ by rank, with one value for all.
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
           fmt::format("{} on the command line would be the same for all {} ranks", name,
                       plan.world_size()),
           fmt::format("omit {}: hpclaunch sets it", name)});
  }
}

void ignored_exports(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> names;
  for (const Setting& setting : plan.env)
    // Conflicting variables of the batch system are not the user's.
    if (setting.history.back().layer == Layer::computed &&
        setting.history.back().where.file != "launcher") {
      const std::string* was = exported_value(setting);
      if (was != nullptr && setting.value() != Value(*was)) names.push_back(setting.name);
    }
  if (!names.empty())
    diagnostics.push_back({"export-overruled", Severity::warning,
                           fmt::format("ignoring your exported {}: hpclaunch sets {}",
                                       fmt::join(names, ", "), names.size() == 1 ? "it" : "them"),
                           fmt::format("hpclaunch explain {}", fmt::join(names, " "))});
}

// What the profile requires against what the user exported.
void exports_against_profile(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  for (const Setting& setting : plan.env) {
    const Decision& last = setting.history.back();
    const std::string* was = exported_value(setting);
    if (last.layer != Layer::profile_require || was == nullptr || last.value == Value(*was))
      continue;
    const auto* now = std::get_if<std::string>(&last.value);
    // The user's value is kept behind what was prepended.
    if (now != nullptr && !was->empty() && now->ends_with(":" + *was)) continue;
    const bool secret = is_secret(setting.name);
    const std::string after = std::holds_alternative<Unset>(last.value) ? "unsets it"
                              : now == nullptr
                                  ? "sets one value per rank"
                                  : fmt::format("sets \"{}\"", secret ? "<hidden>" : *now);
    diagnostics.push_back(
        {"export-against-profile", Severity::warning,
         fmt::format("ignoring your {}=\"{}\": profile {} (rule {}) {}: {}", setting.name,
                     secret ? "<hidden>" : *was, last.profile, last.rule, after, last.why),
         fmt::format("hpclaunch explain {}; --set {}=... overrides the profile", setting.name,
                     setting.name)});
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
         fmt::format("OMP_NUM_THREADS={} ({}) is more than the {} of a rank", *text,
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

// The value of a variable on every rank; nullptr where it differs or is not set.
const std::string* everywhere(const Plan& plan, const EnvSnapshot& env, const char* name) {
  const Setting* setting = plan.find_env(name);
  return setting == nullptr ? env.find(name) : std::get_if<std::string>(&setting->value());
}

// Entries of "1,4-7": 5. nullopt for text that is no such list.
std::optional<long> entries(std::string_view list) {
  long count = 0;
  for (const std::string_view piece : split(list, ',')) {
    const std::size_t dash = piece.find('-');
    const auto first = parse_natural(trim(piece.substr(0, dash)));
    const auto last =
        dash == std::string_view::npos ? first : parse_natural(trim(piece.substr(dash + 1)));
    if (!first || !last || *last < *first) return std::nullopt;
    count += *last - *first + 1;
  }
  return count;
}

// Source: oneCCL src/common/env/env.cpp, parse_affinity: a list of any other length is an exception.
void wrong_list_length(const Plan& plan, const EnvSnapshot& env,
                       std::vector<Diagnostic>& diagnostics) {
  constexpr const char* kName = "CCL_WORKER_AFFINITY";
  const std::string* list = everywhere(plan, env, kName);
  if (list == nullptr || list->empty()) return;
  const std::optional<long> have = entries(*list);
  if (!have) return;
  const std::string* count = everywhere(plan, env, "CCL_WORKER_COUNT");
  const long workers = count == nullptr ? 1 : parse_natural(trim(*count)).value_or(1);
  for (const NodeClass& node : plan.classes) {
    const long ranks = static_cast<long>(node.ranks.size());
    if (*have == ranks * workers) continue;
    diagnostics.push_back(
        {"list-length", Severity::error,
         fmt::format("{} has {}, but oneCCL needs {}: {} on a node with {} each", kName,
                     *have == 1 ? "1 entry" : fmt::format("{} entries", *have), ranks * workers,
                     counted(ranks, "rank"), counted(workers, "worker")),
         fmt::format("--unset {}", kName)});
    return;
  }
}

// The value of a secret is not checked, as messages would show it; its name is. A newer name is suggested
// without a value, which may have another meaning there.
Diagnostic check_assignment(const std::string& name, const std::string& value, const char* how) {
  Diagnostic found = knowledge::check(name, is_secret(name) ? "" : value);
  if (!found.fix.empty())
    found.fix = fmt::format(
        "{} {}", found.id == knowledge::kOldVariable ? "hpclaunch explain" : how, found.fix);
  return found;
}

void check_typed(const Setting& setting, std::vector<Diagnostic>& diagnostics) {
  const Decision& last = setting.history.back();
  const auto* value = std::get_if<std::string>(&last.value);
  if (last.layer != Layer::command_line || value == nullptr) return;
  Diagnostic found = check_assignment(setting.name, *value, "--set");
  if (!found.id.empty()) diagnostics.push_back(std::move(found));
}

void check_exported(const std::string& name, const std::string& value,
                    std::vector<Diagnostic>& diagnostics) {
  Diagnostic found = check_assignment(name, value, "export");
  if (found.id.empty() || found.severity == Severity::note) return;
  if (found.fix.empty()) found.fix = fmt::format("unset {}", name);
  found.severity = Severity::warning;
  found.message = "exported: " + found.message;
  diagnostics.push_back(std::move(found));
}

// Typed and exported variables against the catalogue. Typed values are checked in full; of exports only
// those that the plan also sets, and known misspellings, with warnings at most.
void check_variables(const Plan& plan, const EnvSnapshot& env,
                     std::vector<Diagnostic>& diagnostics) {
  for (const Setting& setting : plan.env) {
    check_typed(setting, diagnostics);
    if (setting.history.back().layer != Layer::environment) continue;
    if (const std::string* value = env.find(setting.name))
      check_exported(setting.name, *value, diagnostics);
  }
  for (std::size_t i = 0; i < knowledge::count_misspellings(); ++i) {
    const std::string_view wrong = knowledge::misspelling_at(i).wrong;
    const std::string* value = env.find(wrong);
    if (value != nullptr && plan.find_env(wrong) == nullptr)
      check_exported(std::string(wrong), *value, diagnostics);
  }
}

}  // namespace

std::vector<Diagnostic> check_plan(const Plan& plan, const EnvSnapshot& env) {
  std::vector<Diagnostic> diagnostics;
  one_value_for_all(plan, diagnostics);
  ignored_exports(plan, diagnostics);
  exports_against_profile(plan, diagnostics);
  too_many_threads(plan, diagnostics);
  competing_binding(plan, env, diagnostics);
  check_variables(plan, env, diagnostics);
  wrong_list_length(plan, env, diagnostics);
  return diagnostics;
}

}  // namespace hpclaunch
