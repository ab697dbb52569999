// Checks of a finished plan against what the user exported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/check.h"
#include "hpclaunch/device_vendor.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

const std::string* exported_value(const Setting& setting) {
  for (const Decision& decision : setting.history)
    if (decision.layer == Layer::environment) return std::get_if<std::string>(&decision.value);
  return nullptr;
}

// The value of a variable on every rank; nullptr where it differs or is not set.
const std::string* everywhere(const Plan& plan, const EnvSnapshot& env, const char* name) {
  const Setting* setting = plan.find_env(name);
  return setting == nullptr ? env.find(name) : std::get_if<std::string>(&setting->value());
}

// The last decision before the command line's; nullptr where the plan has none of its own or it holds.
const Decision* replaced_by_typed(const Setting& setting) {
  const std::vector<Decision>& history = setting.history;
  if (history.size() < 2 || history.back().layer != Layer::command_line) return nullptr;
  const Decision& before = history[history.size() - 2];
  const bool own = before.layer == Layer::computed && before.value != history.back().value;
  return own ? &before : nullptr;
}

// A typed value in place of a rank's identity: of what differs by rank it is the same for all.
void typed_identity(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  for (const Setting& setting : plan.env) {
    const Decision* before = replaced_by_typed(setting);
    if (before == nullptr || std::ranges::count(device_masks(), setting.name) > 0) continue;
    const auto* one = std::get_if<std::string>(&before->value);
    const auto* fact = std::get_if<RankFact>(&before->value);
    const int values = fact == nullptr || *fact == RankFact::rank ? plan.world_size()
                       : *fact == RankFact::node                  ? plan.nodes()
                                                                  : plan.max_local_size();
    if (fact != nullptr && values > 1)
      diagnostics.push_back(
          {"same-on-every-rank", Severity::error,
           fmt::format("{} on the command line would be the same for all {} ranks", setting.name,
                       plan.world_size()),
           fmt::format("omit {}: hpclaunch sets it", setting.name)});
    else if (one != nullptr && (setting.name.ends_with("_SIZE") || setting.name == "LOCAL_RANK"))
      diagnostics.push_back(
          {"identity-contradicts", Severity::error,
           fmt::format("{} on the command line contradicts the plan, which has {}", setting.name,
                       *one),
           fmt::format("omit {}: hpclaunch sets it", setting.name)});
  }
}

// A typed mask gives all ranks of a node the same devices.
void typed_mask(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  if (plan.gpu_view.empty() || plan.max_local_size() < 2) return;
  for (const std::string_view name : device_masks()) {
    const Setting* setting = plan.find_env(name);
    if (setting == nullptr || setting->history.back().layer != Layer::command_line) continue;
    if (std::holds_alternative<Unset>(setting->value()) && plan.gpu_view != "own") continue;
    diagnostics.push_back(
        {"mask-typed", Severity::error,
         fmt::format(
             "{} on the command line is the same for all ranks of a node: some would have no "
             "device of their own",
             name),
         fmt::format("omit it; export {} to plan for a part of the devices", name)});
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
    if (now != nullptr && !was->empty() &&
        (now->ends_with(":" + *was) || now->ends_with("," + *was)))
      continue;
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

// The CPUs of "1,4-7"; empty for text that is no such list.
std::vector<int> entries(std::string_view list) {
  std::vector<int> cpus;
  for (const std::string_view piece : split(list, ',')) {
    const Result<CpuSet> range = CpuSet::parse(trim(piece));
    if (!range || range->empty()) return {};
    for (const int cpu : range->to_vector()) cpus.push_back(cpu);
  }
  return cpus;
}

// A list with one entry for each helper thread of each rank of a node: its length, and whether threads are on cores
// of ranks. `own_core`: a thread shares a core with its own rank, as Horovod's does.
// Sources: oneCCL src/common/env/env.cpp, parse_affinity (a list of any other length is an exception);
// Horovod horovod/common/utils/env_parser.cc (an error in the log, and no affinity).
void check_helpers(const char* name, const char* library, bool own_core, const Plan& plan,
                   const EnvSnapshot& env, std::vector<Diagnostic>& diagnostics) {
  const std::string* text = everywhere(plan, env, name);
  const std::vector<int> cpus = text == nullptr ? std::vector<int>() : entries(*text);
  if (text != nullptr && cpus.empty() && !trim(*text).empty() && trim(*text) != "auto")
    diagnostics.push_back({"list-invalid", Severity::warning,
                           fmt::format("{}=\"{}\" is no list of CPUs", name, *text),
                           fmt::format("unset {}", name)});
  const std::string* count = own_core ? nullptr : everywhere(plan, env, "CCL_WORKER_COUNT");
  const std::size_t workers = count == nullptr ? 1 : parse_natural(trim(*count)).value_or(1);
  const auto report = [&](const char* id, Severity severity, std::string message) {
    diagnostics.push_back({id, severity, std::move(message), fmt::format("--unset {}", name)});
  };
  for (const NodeClass& node : plan.classes) {
    const std::size_t ranks = node.ranks.size();
    if (cpus.empty()) return;
    if (cpus.size() != ranks * workers)
      return report(
          "list-length", own_core ? Severity::warning : Severity::error,
          fmt::format("{} has {} {}, but {} needs {}: {} on a node with {} each", name, cpus.size(),
                      cpus.size() == 1 ? "entry" : "entries", library, ranks * workers,
                      counted(ranks, "rank"), counted(workers, "worker")));
    std::vector<int> once = cpus;
    std::ranges::sort(once);
    if (std::ranges::adjacent_find(once) != once.end())
      return report("list-repeats", Severity::warning,
                    fmt::format("{} puts several threads of {} on one CPU", name, library));
    int busy = 0;
    for (std::size_t i = 0; i < cpus.size(); ++i)
      for (std::size_t r = 0; r < ranks; ++r)
        busy += node.ranks[r].cpus.has(cpus[i]) && !(own_core && i == r) ? 1 : 0;
    if (busy > 0 && plan.bind_via != BindVia::none)
      return report("helper-cores", Severity::warning,
                    fmt::format("{} puts {} of {} threads of {} on cores of {}ranks", name, busy,
                                cpus.size(), library, own_core ? "other " : ""));
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
  typed_identity(plan, diagnostics);
  typed_mask(plan, diagnostics);
  loopback_interface(plan, env, diagnostics);
  ignored_exports(plan, diagnostics);
  exports_against_profile(plan, diagnostics);
  too_many_threads(plan, diagnostics);
  competing_binding(plan, env, diagnostics);
  check_variables(plan, env, diagnostics);
  check_helpers("CCL_WORKER_AFFINITY", "oneCCL", false, plan, env, diagnostics);
  check_helpers("HOROVOD_THREAD_AFFINITY", "Horovod", true, plan, env, diagnostics);
  return diagnostics;
}

}  // namespace hpclaunch
