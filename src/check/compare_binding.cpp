// CPUs, memory, devices and limits of one rank.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "differences.h"
#include "hpclaunch/device_vendor.h"
#include "hpclaunch/text.h"

namespace hpclaunch::check {

namespace {

std::optional<CpuSet> set_of(const std::string& list) {
  const Result<CpuSet> set = CpuSet::parse(list);
  return set ? std::optional<CpuSet>(*set) : std::nullopt;
}

std::string shown(const std::string& list) { return list.empty() ? "(unknown)" : list; }

struct Reason {
  std::string cause;
  std::string fix;
};

Reason reason_for(const Plan& plan, const Seat& seat, const CpuSet& planned, const CpuSet& found) {
  const bool by_launcher = plan.bind_via == BindVia::launcher;
  const auto& ranks = plan.classes[static_cast<std::size_t>(seat.node_class)].ranks;
  if (planned.contains(found))
    return {"the job's control group (cpuset) allows only these",
            "request whole nodes, or plan with fewer CPUs (--cpus-per-rank)"};
  if (found.contains(planned))
    return {by_launcher ? "the launcher did not bind: it silently ignores what it cannot do"
                        : "the binding by the shim was undone",
            by_launcher ? "--bind-via shim"
                        : "check the wrappers between the launcher and the program"};
  for (std::size_t other = 0; other < ranks.size(); ++other)
    if (ranks[other].cpus == found)
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

// How many devices the ranks of a node use. A control group renumbers them, so only the count is known.
int devices_used(const std::vector<RankPlan>& ranks, bool by_launcher) {
  std::set<std::pair<int, int>> used;  // the unit replaces an unknown device
  const auto add = [&](int device, int unit) {
    if (device >= 0 || unit >= 0) used.insert({device, device >= 0 ? -1 : unit});
  };
  for (const RankPlan& rank : ranks) {
    add(rank.device, rank.unit);
    for (const UnitRef& more : rank.more_units) add(more.device, more.unit);
  }
  return by_launcher ? std::min(1, static_cast<int>(used.size())) : static_cast<int>(used.size());
}

// Ranks use the devices of one vendor.
const std::string& vendor_used(const std::vector<RankPlan>& ranks, const Topology& node) {
  for (const RankPlan& rank : ranks)
    for (const Device& device : node.devices)
      if (device.index == rank.device) return device.vendor;
  return node.devices.front().vendor;
}

// An unbound rank has all CPUs of its control group.
void compare_unbound(const RankPlan& rank, const Seat& seat, const RankReport& report,
                     const std::string& cpus, Differences& out) {
  const std::optional<CpuSet> found = set_of(cpus);
  if (!found) return;
  if (rank.part_first >= 0) {
    const int wanted = rank.part_last - rank.part_first + 1;
    if (found->count() == wanted) return;
    out.of_rank(report.rank, seat.node,
                different("cpus", counted(wanted, "granted CPU"), cpus,
                          "the node granted another number of CPUs than planned",
                          "request the same number on each node"));
    return;
  }
  const std::optional<CpuSet> group = set_of(report.cpuset);
  if (!group || *found == *group || !group->contains(*found)) return;
  out.of_rank(report.rank, seat.node,
              different("cpus", "not bound: " + report.cpuset, cpus,
                        "the launcher, or a wrapper of the program, binds despite --bind-via none",
                        "omit --bind-via none, or remove presets of the launcher's binding"));
}

}  // namespace

void compare_cpus(const Plan& plan, const Seat& seat, const RankReport& report, Differences& out) {
  const RankPlan& rank = plan.classes[static_cast<std::size_t>(seat.node_class)]
                             .ranks[static_cast<std::size_t>(seat.local)];
  // The mask after an import is compared in compare_import.
  const std::string& cpus = report.cpus_before.empty() ? report.cpus : report.cpus_before;
  if (rank.cpus.empty()) {
    compare_unbound(rank, seat, report, cpus, out);
    return;
  }
  if (rank.cpus.to_list() == cpus) return;
  const std::optional<CpuSet> found = set_of(cpus);
  Reason reason{"the CPU list is empty, or beyond the limit of hpclaunch", ""};
  if (found) reason = reason_for(plan, seat, rank.cpus, *found);
  out.of_rank(report.rank, seat.node,
              different("cpus", rank.cpus.to_list(), shown(cpus), std::move(reason.cause),
                        std::move(reason.fix)));
}

void compare_import(const Plan& plan, const RankReport& report,
                    const std::vector<std::string>& names, int node, Differences& out) {
  if (!report.import_problem.empty())
    out.of_rank(
        report.rank, node,
        different(
            "import", "import " + report.module, report.import_problem,
            "this Python lacks the module there, or the module lacks a dependency",
            "name the program's own interpreter: hpclaunch verify --import MODULE -- PYTHON"));
  if (report.module.empty() || report.cpus_before.empty()) return;
  if (report.cpus != report.cpus_before) {
    // Sources: GCC's libgomp manual, LLVM's and Intel's OpenMP runtime (KMP_AFFINITY), OpenMP 5.2 chapter 21:
    // binding puts the first thread on the first place, as soon as the runtime is loaded.
    constexpr std::array<const char*, 4> kBinding = {"GOMP_CPU_AFFINITY", "KMP_AFFINITY",
                                                     "OMP_PLACES", "OMP_PROC_BIND"};
    std::string doing;
    std::string fix;
    for (const char* name : kBinding) {
      const auto at = report.values.find(name);
      if (at == report.values.end()) continue;
      doing += fmt::format("{}{}={}", doing.empty() ? "" : ", ", name, at->second);
      fix += fmt::format("{}--unset {}", fix.empty() ? "" : " ", name);
    }
    out.of_rank(
        report.rank, node,
        different("import-cpus", report.cpus_before, shown(report.cpus),
                  doing.empty()
                      ? fmt::format("import {} binds its thread", report.module)
                      : fmt::format(
                            "import {} loads an OpenMP runtime that binds this thread to its first "
                            "place ({}); new threads inherit that",
                            report.module, doing),
                  fix));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto piece = [&](const std::string& all) {
      return all.size() >= (i + 1) * kFingerprint ? all.substr(i * kFingerprint, kFingerprint) : "";
    };
    const std::string before = piece(report.fingerprints_before);
    const std::string after = piece(report.fingerprints);
    if (before.empty() || before == after) continue;
    // Wrappers of an interpreter add to PATH and the like.
    if (plan.find_env(names[i]) == nullptr && after != kNoFingerprint) continue;
    out.of_rank(
        report.rank, node,
        different("import-variable", names[i] + " unchanged",
                  after == kNoFingerprint ? names[i] + " removed" : names[i] + " has another value",
                  fmt::format("import {} changes the environment of its process", report.module),
                  ""));
  }
}

void compare_memory(const Plan& plan, const Seat& seat, const RankReport& report,
                    Differences& out) {
  const auto binds_memory = [](const std::vector<std::string>& args) {
    return std::any_of(args.begin(), args.end(), [](const std::string& arg) {
      return arg.find("mem-bind") != std::string::npos ||
             arg.find("mem_bind") != std::string::npos || arg.find("membind") != std::string::npos;
    });
  };
  const bool asked = binds_memory(plan.profile_args) || binds_memory(plan.launcher_args);
  const std::string& mode = report.memory_policy;
  const bool local = mode.empty() || mode == "default" || mode == "local" ||
                     (mode == "preferred" && report.memory_nodes.empty());
  if (!local && !asked)
    out.of_rank(report.rank, seat.node,
                different("memory-policy", "default (local)",
                          mode + (report.memory_nodes.empty() ? "" : " " + report.memory_nodes),
                          "the launcher, or numactl before the program, sets a memory policy",
                          "remove the memory binding, or pass the wanted one with --launcher-arg"));
  const RankPlan& rank = plan.classes[static_cast<std::size_t>(seat.node_class)]
                             .ranks[static_cast<std::size_t>(seat.local)];
  const std::optional<CpuSet> allowed = set_of(report.memory_allowed);
  if (rank.numa < 0 || !allowed || allowed->has(rank.numa)) return;
  out.of_rank(
      report.rank, seat.node,
      different("memory-nodes", fmt::format("NUMA node {}", rank.numa), report.memory_allowed,
                "the job's control group excludes the memory nearest to this rank's CPUs",
                "request whole nodes"));
}

void compare_devices(const Plan& plan, const Topology& node, const EnvSnapshot& env,
                     const Seat& seat, const RankReport& report, Differences& out) {
  if (node.devices.empty()) return;
  // Masks outside the plan; planned ones are compared with the variables.
  const bool by_launcher = plan.gpu_view == "launcher";
  for (const std::string_view mask : device_masks()) {
    const std::string name(mask);
    const auto at = report.values.find(name);
    if (by_launcher || at == report.values.end()) continue;
    if (plan.find_env(name) != nullptr || env.has(name)) continue;
    out.of_rank(
        report.rank, seat.node,
        different("device-mask", name + " not set", fmt::format("{}={}", name, at->second),
                  "the launcher hides devices from its ranks, while LOCAL_RANK counts all devices",
                  "turn off the launcher's device binding, or use --gpu-view launcher"));
  }
  const auto& ranks = plan.classes[static_cast<std::size_t>(seat.node_class)].ranks;
  const int needed = devices_used(ranks, by_launcher);
  const std::string& vendor = vendor_used(ranks, node);
  const auto at = report.devices.find(vendor);
  const int usable = at == report.devices.end() ? 0 : at->second;
  if (usable >= needed) return;
  std::string found = fmt::format("{} of {}", usable, vendor);
  if (!report.refused.empty())
    found += fmt::format(", {} refused ({})", report.refused.size(), report.refused.front());
  out.of_rank(
      report.rank, seat.node,
      different("devices", fmt::format("{} of {}", counted(needed, "device"), vendor),
                std::move(found),
                report.refused.empty()
                    ? "devices are missing on the node: broken, or their driver is not loaded"
                    : "the job's control group does not allow this rank to open them",
                report.refused.empty() ? "exclude the node, and report it to the site"
                                       : "request the devices of whole nodes"));
}

void compare_core_limit(const Plan& plan, const RankReport& report, int node, Differences& out) {
  if (plan.core_limit.empty()) return;
  const auto of = [&](const char* name) {
    const auto at = report.limits.find(name);
    return at == report.limits.end() ? std::string() : at->second;
  };
  const std::string found = of("core");
  if (found.empty() || found == plan.core_limit) return;
  const bool at_hard = found == of("core-hard");
  out.of_rank(report.rank, node,
              different("core-limit", plan.core_limit, found,
                        at_hard ? "the hard limit of the node or the batch system is lower"
                                : "it was changed after the shim",
                        at_hard ? "ask the site to allow core files, or plan without them" : ""));
}

}  // namespace hpclaunch::check
