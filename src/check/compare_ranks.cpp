// One rank: its CPUs, memory, devices, limits and environment.
#include <fmt/format.h>

#include <algorithm>

#include "compare.h"
#include "hpclaunch/device_vendor.h"
#include "hpclaunch/text.h"

namespace hpclaunch::check {

namespace {

std::string shown(const std::string& list) { return list.empty() ? "(unknown)" : list; }

void compare_local_rank(const Subject& at) {
  const int found = at.report.launcher_local_rank;
  if (found >= 0 && found != at.seat.local)
    at.rank_differs("local-rank", fmt::format("{}", at.seat.local), fmt::format("{}", found),
                    "the launcher distributes or numbers the ranks of a node in another way",
                    "remove presets of the distribution (--launcher-arg, the environment)");
}

// CPUs of the rank's node; empty: its first rank did not report them.
CpuSet online_at(const Subject& at) {
  const NodeFacts* const facts = at.job.facts_of[at.seat.node];
  const Result<CpuSet> online = CpuSet::parse(facts == nullptr ? "" : facts->online);
  return online ? *online : CpuSet{};
}

Reason reason_for(const Subject& at, const CpuSet& planned, const CpuSet& found) {
  const bool by_launcher = at.plan.placement.bind_via == BindVia::launcher;
  const Result<CpuSet> group = CpuSet::parse(at.report.cpuset);
  if (const CpuSet online = online_at(at); !online.empty() && !online.contains(planned))
    return {fmt::format("the node has CPUs {} only: it is of another kind than the planned one",
                        online.to_list()),
            "plan on a node of its kind (--node-type, --topology), or exclude the node"};
  if (group ? !group->contains(planned) : planned.contains(found))
    return {fmt::format("the job's control group (cpuset) allows only {}",
                        group ? "CPUs " + group->to_list() : std::string("these")),
            "request whole nodes, or plan with fewer CPUs (--cpus-per-rank)"};
  if (found.contains(planned))
    return {by_launcher ? "the launcher did not bind: it silently ignores what it cannot do"
                        : "the binding by the shim was undone",
            by_launcher ? "--bind-via shim"
                        : "check the wrappers between the launcher and the program"};
  for (std::size_t other = 0; other < at.ranks.size(); ++other)
    if (at.ranks[other].cpus == found)
      return {
          fmt::format("these are the CPUs of local rank {}: the launcher numbers the ranks of a "
                      "node in another order",
                      other),
          "--bind-via shim"};
  if (!found.intersects(planned))
    return {
        "none of the planned CPUs is available: the job has other CPUs, or the node is of "
        "another kind",
        "plan on a node of the job, or request whole nodes"};
  return {by_launcher ? "the launcher applied a binding of its own"
                      : "another program binds between the launcher and the rank",
          by_launcher ? "--bind-via shim; remove presets of the launcher's binding" : ""};
}

// An unbound rank has all CPUs of its control group, one with a part as many cores as planned.
void compare_unnamed(const Subject& at, const std::string& cpus) {
  const RankPlan& rank = at.planned();
  const Result<CpuSet> found = CpuSet::parse(cpus);
  if (!found) return;
  if (rank.part_first >= 0) {
    const int wanted = rank.part_last - rank.part_first + 1;
    const bool by_core = !at.job.plan.placement.counted.empty();
    const int got = by_core ? cores_of(at.job.node, *found).count() : found->count();
    if (got != wanted)
      at.rank_differs("cpus", counted(wanted, by_core ? "granted core" : "granted CPU"), cpus,
                      "the node granted another number of CPUs than planned",
                      "request the same number on each node");
    return;
  }
  const Result<CpuSet> group = CpuSet::parse(at.report.cpuset);
  if (group && *found != *group && group->contains(*found))
    at.rank_differs("cpus", "not bound: " + at.report.cpuset, cpus,
                    "the launcher, or a wrapper of the program, binds despite --bind-via none",
                    "omit --bind-via none, or remove presets of the launcher's binding");
}

// Before an import; what an import changes is compared below.
void compare_cpus(const Subject& at) {
  const CpuSet& planned = at.planned().cpus;
  const std::string& cpus = at.report.cpus_before.empty() ? at.report.cpus : at.report.cpus_before;
  if (planned.to_list() == cpus && !planned.empty()) return;
  if (planned.empty() || at.planned().part_first >= 0) return compare_unnamed(at, cpus);
  const Result<CpuSet> found = CpuSet::parse(cpus);
  const Reason reason = found
                            ? reason_for(at, planned, *found)
                            : Reason{"the CPU list is empty, or beyond the limit of hpclaunch", ""};
  at.rank_differs("cpus", planned.to_list(), shown(cpus), reason.cause, reason.fix);
}

// Where this machine allows some CPUs only, a mask is a grant on the other nodes as well; the shim can leave it, as no
// control group holds the rank there.
void compare_given(const Subject& at) {
  const Result<CpuSet> given = CpuSet::parse(at.report.cpus_given);
  const Topology& node = at.job.node;
  if (!given || node.allowed.contains(node.all_pus())) return;
  const CpuSet outside = at.planned().cpus - *given;
  if (outside.empty()) return;
  at.rank_differs(
      "granted-cpus", given->to_list(), at.planned().cpus.to_list(),
      fmt::format("the rank was started with CPUs {} only, and moved to {}: the job has "
                  "other CPUs on this node than planned, or the launcher binds",
                  given->to_list(), cpus_text(outside)),
      "request whole nodes, or use --bind-via none");
}

void compare_cpus_of_import(const Subject& at) {
  const RankReport& report = at.report;
  if (report.cpus == report.cpus_before) return;
  const auto [doing, fix] = openmp_binding(at);
  at.rank_differs(
      "import-cpus", report.cpus_before, shown(report.cpus),
      doing.empty()
          ? fmt::format("import {} binds its thread", at.job.seen.module)
          : fmt::format("import {} loads an OpenMP runtime that binds this thread to its first "
                        "place ({}); new threads inherit that",
                        at.job.seen.module, doing),
      fix);
}

void compare_import(const Subject& at) {
  const RankReport& report = at.report;
  const std::string& module = at.job.seen.module;
  if (!report.import_problem.empty())
    at.rank_differs(
        "import", "import " + module, report.import_problem,
        "this Python lacks the module there, or the module lacks a dependency",
        "name the program's own interpreter: hpclaunch verify --import MODULE -- PYTHON");
  if (!report.imported) return;
  compare_cpus_of_import(at);
  std::set<std::string> names;
  for (const auto* marks : {&report.variables_before, &report.variables})
    for (const auto& one : *marks) names.insert(one.first);
  const auto mark_in = [](const auto& marks, const std::string& name) {
    const auto found = marks.find(name);
    return found == marks.end() ? std::string_view() : std::string_view(found->second);
  };
  for (const std::string& name : names) {
    const std::string_view after = mark_in(report.variables, name);
    if (mark_in(report.variables_before, name) == after) continue;
    const Setting* const setting = at.plan.find_env(name);
    const bool removed = setting != nullptr && std::holds_alternative<Unset>(setting->value());
    const bool there = after.empty() ? !removed : after != kNoFingerprint;
    // Wrappers of an interpreter add to PATH and the like.
    if (setting == nullptr && (there || !is_search_path(name))) continue;
    at.rank_differs("import-variable", name + " unchanged",
                    name + (there ? " has another value" : " removed"),
                    fmt::format("import {} changes the environment of its process", module), "");
  }
}

void compare_memory(const Subject& at) {
  const RankReport& report = at.report;
  const auto binds_memory = [](const std::vector<std::string>& args) {
    return std::any_of(args.begin(), args.end(), [](const std::string& arg) {
      return arg.find("mem-bind") != std::string::npos ||
             arg.find("mem_bind") != std::string::npos || arg.find("membind") != std::string::npos;
    });
  };
  const std::string& mode = report.memory_policy;
  const bool local = mode.empty() || mode == "default" || mode == "local" ||
                     (mode == "preferred" && report.memory_nodes.empty());
  if (!local && !binds_memory(at.plan.launch.profile_args) &&
      !binds_memory(at.plan.launch.launcher_args))
    at.rank_differs("memory-policy", "default (local)",
                    mode + (report.memory_nodes.empty() ? "" : " " + report.memory_nodes),
                    "the launcher, or numactl before the program, sets a memory policy",
                    "remove the memory binding, or pass the wanted one with --launcher-arg");
  const int numa = at.planned().numa;
  const Result<CpuSet> allowed = CpuSet::parse(report.memory_allowed);
  if (numa >= 0 && allowed && !allowed->has(numa))
    at.rank_differs("memory-nodes", fmt::format("NUMA node {}", numa), report.memory_allowed,
                    "the job's control group excludes the memory nearest to this rank's CPUs",
                    "request whole nodes");
}

// How many devices the ranks of a node use. A control group renumbers them, so only the count is known.
int devices_used(const std::vector<RankPlan>& ranks, bool by_launcher) {
  std::set<std::pair<int, int>> used;  // the unit replaces an unknown device
  for (const RankPlan& rank : ranks)
    for (const Slot& one : rank.slots) used.insert({one.device, one.device >= 0 ? -1 : one.unit});
  return by_launcher ? std::min(1, static_cast<int>(used.size())) : static_cast<int>(used.size());
}

// Ranks use the devices of one vendor.
const std::string& vendor_used(const std::vector<RankPlan>& ranks, const Topology& node) {
  for (const RankPlan& rank : ranks)
    for (const Device& device : node.devices)
      if (device.index == rank.device()) return device.vendor;
  return node.devices.front().vendor;
}

void compare_core_limit(const Subject& at) {
  const auto& limits = at.report.limits;
  const auto found = limits.find("core");
  const std::string& planned = at.plan.environment.core_limit;
  if (planned.empty() || found == limits.end() || found->second.empty()) return;
  if (found->second == planned) return;
  const auto hard = limits.find("core-hard");
  const bool at_hard = hard != limits.end() && hard->second == found->second;
  at.rank_differs("core-limit", planned, found->second,
                  at_hard ? "the hard limit of the node or the batch system is lower"
                          : "it was changed after the shim",
                  at_hard ? "ask the site to allow core files, or plan without them" : "");
}

// `found`: the fingerprint of what the rank has, which is not what was planned.
void compare_variable(const Subject& at, const std::string& name, std::string_view found) {
  const Setting* const setting = at.plan.find_env(name);
  const bool exported = setting == nullptr;
  const bool there = found != kNoFingerprint;
  if (exported ? there || !is_search_path(name) : is_for_launcher(*setting)) return;
  const bool removed = !exported && std::holds_alternative<Unset>(setting->value());
  const bool open = is_placement_variable(name) && !is_secret(name);
  const std::string* shown = at.value(name);
  std::string cause = "the launcher, a start-up file of the node or the batch system changes it";
  std::string fix = fmt::format("check the node's start-up files for {}", name);
  if (!there) {
    cause = "the launcher does not pass this variable on to its ranks";
    fix = "name it to the launcher with --launcher-arg";
  } else if (removed) {
    cause = "the launcher, or a start-up file of the node, sets it again";
    fix = "remove it there, or set your value with --set";
  }
  at.rank_differs("variable",
                  name + (removed    ? " not set"
                          : exported ? " as exported"
                          : open     ? "=" + value_on(setting->value(), at.seat)
                                     : " as planned"),
                  name + (!there ? " not set"
                          : open ? "=" + (shown == nullptr ? "" : *shown)
                                 : " has another value"),
                  std::move(cause), std::move(fix));
}

}  // namespace

// Sources: GCC's libgomp manual, LLVM's and Intel's OpenMP runtime (KMP_AFFINITY), OpenMP 5.2 chapter 21:
// binding puts the first thread on the first place, as soon as the runtime is loaded.
OpenMpBinding openmp_binding(const Subject& at) {
  OpenMpBinding all;
  for (const char* name : {"GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND"}) {
    const std::string* value = at.value(name);
    const std::string word = value == nullptr ? "none" : to_lower(*value);
    if (word == "none" || word == "false" || word == "disabled") continue;
    all.settings += fmt::format("{}{}={}", all.settings.empty() ? "" : ", ", name, *value);
    all.fix += fmt::format("{}--unset {}", all.fix.empty() ? "" : " ", name);
  }
  return all;
}

void compare_devices(const Subject& at) {
  const Topology& node = at.job.node;
  const RankReport& report = at.report;
  if (node.devices.empty()) return;
  // Masks outside the plan; planned ones are compared with the variables.
  const bool by_launcher = at.plan.placement.gpu_view == "launcher";
  for (const std::string_view mask : device_masks()) {
    const std::string name(mask);
    const std::string* value = at.value(name);
    if (by_launcher || value == nullptr) continue;
    if (at.plan.find_env(name) != nullptr || at.job.seen.env.has(name)) continue;
    at.rank_differs(
        "device-mask", name + " not set", fmt::format("{}={}", name, *value),
        "the launcher hides devices from its ranks, while LOCAL_RANK counts all devices",
        "turn off the launcher's device binding, or use --gpu-view launcher");
  }
  const int needed = devices_used(at.ranks, by_launcher);
  const std::string& vendor = vendor_used(at.ranks, node);
  const auto counts = report.devices.find(vendor);
  const int usable = counts == report.devices.end() ? 0 : counts->second;
  if (usable >= needed) return;
  std::string found = fmt::format("{} of {}", usable, vendor);
  if (!report.refused.empty())
    found += fmt::format(", {} refused ({})", report.refused.size(), report.refused.front());
  at.rank_differs("devices", fmt::format("{} of {}", counted(needed, "device"), vendor),
                  std::move(found),
                  report.refused.empty()
                      ? "devices are missing on the node: broken, or their driver is not loaded"
                      : "the job's control group does not allow this rank to open them",
                  report.refused.empty() ? "exclude the node, and report it to the site"
                                         : "request the devices of whole nodes");
}

void compare_rank(const Subject& at) {
  compare_local_rank(at);
  compare_cpus(at);
  compare_given(at);
  compare_import(at);
  compare_memory(at);
  compare_devices(at);
  compare_core_limit(at);
  compare_running(at);
  // Before an import, as with CPUs.
  const auto& variables = at.report.imported ? at.report.variables_before : at.report.variables;
  for (const auto& [name, found] : variables) compare_variable(at, name, found);
}

}  // namespace hpclaunch::check
