// Checks of a finished plan against what the user exported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "hpclaunch/check.h"
#include "hpclaunch/device_vendor.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"
#include "lists.h"

namespace hpclaunch {

namespace {

const std::string* exported_value(const Setting& setting) {
  for (const Decision& decision : setting.history)
    if (decision.layer == Layer::environment) return std::get_if<std::string>(&decision.value);
  return nullptr;
}

// What a decision gives every rank; nullopt where ranks differ.
std::optional<std::string> for_all_ranks(const Plan& plan, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* fact = std::get_if<RankFact>(&value)) {
    const bool of_node = *fact == RankFact::node || *fact == RankFact::address;
    const int values = *fact == RankFact::rank ? plan.world_size()
                       : of_node               ? plan.nodes()
                                               : plan.max_local_size();
    return values > 1 ? std::nullopt : std::optional(value_on(value, {.local_size = values}));
  }
  const auto* each = std::get_if<PerRank>(&value);
  if (each == nullptr) return std::nullopt;
  std::set<std::string> texts;
  for (const auto& items : each->items) texts.insert(items.begin(), items.end());
  return texts.size() == 1 ? std::optional(*texts.begin()) : std::nullopt;
}

// Who gave the value that holds, where that is the user or a profile; "" otherwise.
std::string giver(const Decision& last) {
  if (last.layer == Layer::command_line) return "on the command line";
  const bool profile = last.layer == Layer::profile_default || last.layer == Layer::profile_require;
  return profile ? fmt::format("of rule {} of profile {}", last.rule, last.profile) : "";
}

// One value in place of a rank's identity, against what the plan or the launcher gives each rank.
void given_identity(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  for (const Setting& setting : plan.environment.settings) {
    const std::vector<Decision>& history = setting.history;
    const std::string how = giver(history.back());
    const auto* given = std::get_if<std::string>(&history.back().value);
    if (how.empty() || std::ranges::count(device_masks(), setting.name) > 0) continue;
    const Decision* before = history.size() < 2 ? nullptr : &history[history.size() - 2];
    const bool computed = before != nullptr && before->layer == Layer::computed &&
                          !std::holds_alternative<Unset>(before->value);
    const bool of_ranks = is_rank_variable(setting.name);
    const bool fact = computed && std::holds_alternative<RankFact>(before->value);
    const auto planned = computed ? for_all_ranks(plan, before->value) : std::nullopt;
    const auto report = [&](const char* id, const std::string& what, const std::string& fix) {
      diagnostics.push_back(
          {id, Severity::error, fmt::format("{} {} {}", setting.name, how, what), fix});
    };
    const std::string omit = fmt::format("omit {}: hpclaunch sets it", setting.name);
    if (computed && !planned && (fact || of_ranks))
      report("same-on-every-rank",
             fmt::format("would be the same for all {} ranks", plan.world_size()), omit);
    else if (planned && given != nullptr && *given != *planned &&
             (fact || of_ranks || setting.name.ends_with("_SIZE") || setting.name == "LOCAL_RANK"))
      report("identity-contradicts", fmt::format("contradicts the plan, which has {}", *planned),
             omit);
    else if (!computed && given != nullptr && of_ranks)
      report("identity-contradicts", "contradicts the identity that a launcher gives each rank",
             fmt::format("{} {}", history.back().layer == Layer::command_line ? "omit" : "--unset",
                         setting.name));
  }
}

// Addresses of this interface lead to the node itself.
void loopback_interface(const Plan& plan, const EnvSnapshot& env,
                        std::vector<Diagnostic>& diagnostics) {
  if (plan.nodes() < 2) return;
  for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME",
                           "UCX_NET_DEVICES", "FI_TCP_IFACE"}) {
    const std::string* value = everywhere(plan, env, name);
    if (value == nullptr || (trim(*value) != "lo" && trim(*value) != "=lo")) continue;
    diagnostics.push_back(
        {"interface-loopback", Severity::error,
         fmt::format("{}={} is loopback, but the job has {} nodes", name, *value, plan.nodes()),
         fmt::format("unset {}", name)});
  }
}

// An interface that was named by the user where the node has a fabric that carries IP and is left out by it.
void slow_interface(const Plan& plan, const Topology& node, const EnvSnapshot& env,
                    std::vector<Diagnostic>& diagnostics) {
  if (plan.nodes() < 2) return;
  std::vector<Interface> fabric;
  for (const Nic& nic : node.nics)
    if (nic.kind == "slingshot" && !nic.name.empty() && nic.state != "down")
      fabric.push_back({nic.name, true, {"any"}});
  if (fabric.empty()) return;
  for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"}) {
    const Setting* const setting = plan.find_env(name);
    const Layer layer = setting == nullptr ? Layer::environment : setting->history.back().layer;
    const std::string* const value = everywhere(plan, env, name);
    if (value == nullptr || value->empty() || value->starts_with('^') ||
        (layer != Layer::environment && layer != Layer::command_line))
      continue;
    const bool exact = value->starts_with('=');
    const auto names_fabric = [&](std::string_view one) {
      return interface_problem(name, fmt::format("{}{}", exact ? "=" : "", trim(one)), fabric)
          .empty();
    };
    const bool meets = std::ranges::any_of(split(value->substr(exact ? 1 : 0), ','), names_fabric);
    if (meets) continue;
    std::vector<std::string> names;
    for (const Interface& one : fabric) names.push_back(one.name);
    diagnostics.push_back({"interface-slow", Severity::warning,
                           fmt::format("{}={} leaves out the node's Slingshot interfaces ({})",
                                       name, *value, fmt::join(names, ", ")),
                           fmt::format("unset {}", name)});
  }
}

// All of a list's items stand in another one.
bool contains_all(std::string_view list, std::string_view of) {
  const std::vector<std::string_view> items = split(list, ',');
  return std::ranges::all_of(split(of, ','), [&](std::string_view one) {
    return std::ranges::find(items, trim(one)) != items.end();
  });
}

void ignored_exports(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> names;
  for (const Setting& setting : plan.environment.settings)
    // Conflicting variables of the batch system are not the user's.
    if (setting.history.back().layer == Layer::computed &&
        setting.history.back().where.file != "launcher") {
      const std::string* was = exported_value(setting);
      const auto* now = std::get_if<std::string>(&setting.value());
      if (was != nullptr && (now == nullptr || !contains_all(*now, *was)))
        names.push_back(setting.name);
    }
  if (!names.empty())
    diagnostics.push_back({"export-overruled", Severity::warning,
                           fmt::format("ignoring your exported {}: hpclaunch sets {}",
                                       fmt::join(names, ", "), names.size() == 1 ? "it" : "them"),
                           fmt::format("hpclaunch explain {}", fmt::join(names, " "))});
}

// What the profile requires against what the user exported.
void exports_against_profile(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  for (const Setting& setting : plan.environment.settings) {
    const Decision& last = setting.history.back();
    const std::string* was = exported_value(setting);
    if (last.layer != Layer::profile_require || was == nullptr || last.value == Value(*was))
      continue;
    const auto* now = std::get_if<std::string>(&last.value);
    // The user's value is kept behind what was prepended.
    if (now != nullptr && !was->empty() &&
        (now->ends_with(":" + *was) || now->ends_with("," + *was)))
      continue;
    const bool secret = is_secret(setting.name, *was);
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
  for (const NodeClass& one : plan.placement.classes)
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
  if (plan.placement.bind_via == BindVia::none) return;
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

// The value of a secret is not checked, as messages would show it; its name is. A newer name is suggested
// without a value, which may have another meaning there.
Diagnostic check_assignment(const std::string& name, const std::string& value, const char* how,
                            const EnvSnapshot& env) {
  Diagnostic found = knowledge::check(name, is_secret(name, value) ? "" : value,
                                      knowledge::versions_of_modules(env.get("LOADEDMODULES")));
  if (!found.fix.empty())
    found.fix = fmt::format(
        "{} {}", found.id == knowledge::kOldVariable ? "hpclaunch explain" : how, found.fix);
  return found;
}

void check_typed(const Setting& setting, const EnvSnapshot& env,
                 std::vector<Diagnostic>& diagnostics) {
  const Decision& last = setting.history.back();
  const auto* value = std::get_if<std::string>(&last.value);
  if (last.layer != Layer::command_line || value == nullptr) return;
  Diagnostic found = check_assignment(setting.name, *value, "--set", env);
  if (found.id == knowledge::kBadValue && found.fix.empty())
    found.fix = fmt::format("omit --set {}", setting.name);
  if (!found.id.empty()) diagnostics.push_back(std::move(found));
}

void check_exported(const std::string& name, const std::string& value, const EnvSnapshot& env,
                    std::vector<Diagnostic>& diagnostics) {
  Diagnostic found = check_assignment(name, value, "export", env);
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
  for (const Setting& setting : plan.environment.settings) {
    check_typed(setting, env, diagnostics);
    if (setting.history.back().layer != Layer::environment) continue;
    if (const std::string* value = env.find(setting.name))
      check_exported(setting.name, *value, env, diagnostics);
  }
  for (std::size_t i = 0; i < knowledge::count_misspellings(); ++i) {
    const std::string_view wrong = knowledge::misspelling_at(i).wrong;
    const std::string* value = env.find(wrong);
    if (value != nullptr && plan.find_env(wrong) == nullptr)
      check_exported(std::string(wrong), *value, env, diagnostics);
  }
}

// What the ranks find for a name; nullopt: nothing; "\x01": a value of each rank's own.
std::optional<std::string> planned_value(const Plan& plan, const EnvSnapshot& env,
                                         std::string_view name) {
  if (const std::string* text = everywhere(plan, env, name)) return *text;
  const Setting* const setting = plan.find_env(name);
  const bool there = setting != nullptr && !std::holds_alternative<Unset>(setting->value());
  return there ? std::optional("\x01") : std::nullopt;
}

// The catalogue's cautions, about values that the user gave: those of a profile have their reasons there.
void user_cautions(const Plan& plan, const EnvSnapshot& env, std::vector<Diagnostic>& diagnostics) {
  const auto others = [&](std::string_view name) { return planned_value(plan, env, name); };
  std::string_view before;
  for (std::size_t i = 0; i < knowledge::count_cautions(); ++i) {
    const std::string_view name = knowledge::caution_at(i).name;
    if (name == before) continue;
    before = name;
    const Setting* const setting = plan.find_env(name);
    const Layer layer = setting == nullptr ? Layer::environment : setting->history.back().layer;
    const std::optional<std::string> value = others(name);
    if (!value || (layer != Layer::environment && layer != Layer::command_line)) continue;
    for (const knowledge::Caution& one : knowledge::cautions(name, *value, others)) {
      if (one.between_nodes && plan.nodes() < 2) continue;
      const bool harmful = one.kind == knowledge::Caution::Kind::harmful;
      diagnostics.push_back(
          {std::string(knowledge::code(one.kind)), harmful ? Severity::warning : Severity::note,
           knowledge::sentence(one, *value), fmt::format("hpclaunch explain {}", name)});
    }
  }
}

// Versions of loaded modules that are known not to work together.
void known_issues(const Plan& plan, const EnvSnapshot& env, std::vector<Diagnostic>& diagnostics) {
  knowledge::Versions versions;
  const std::string loaded = env.get("LOADEDMODULES");
  for (const std::string_view module : split(loaded, ':')) knowledge::add_module(module, versions);
  if (versions.empty()) return;
  const auto planned = [&](std::string_view name) { return planned_value(plan, env, name); };
  for (const knowledge::KnownIssue& one : knowledge::known_issues(versions, planned))
    diagnostics.push_back({knowledge::kKnownIssueId, knowledge::severity(one),
                           knowledge::sentence(one, versions), std::string(one.fix)});
}

}  // namespace

std::vector<Diagnostic> check_plan(const Plan& plan, const Topology& node, const EnvSnapshot& env) {
  std::vector<Diagnostic> diagnostics;
  given_identity(plan, diagnostics);
  loopback_interface(plan, env, diagnostics);
  slow_interface(plan, node, env, diagnostics);
  ignored_exports(plan, diagnostics);
  exports_against_profile(plan, diagnostics);
  too_many_threads(plan, diagnostics);
  competing_binding(plan, env, diagnostics);
  check_variables(plan, env, diagnostics);
  user_cautions(plan, env, diagnostics);
  known_issues(plan, env, diagnostics);
  check_lists(plan, node, env, diagnostics);
  return diagnostics;
}

}  // namespace hpclaunch
