#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/visibility.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

using Reports = std::vector<Diagnostic>;

// Cores that a service uses only while it runs may be bound, with a note in jobs that use it.
void report_services(const PlanInput& input, const Facts& facts, const Placement& placement,
                     Reports& reports) {
  if (input.model == nullptr || placement.bind_via == BindVia::none) return;
  CpuSet used;
  for (const NodeClass& one : placement.classes) used |= cpus_of(one.ranks);
  for (const ServiceCores& service : input.model->services) {
    const CpuSet both = used & service.pus;
    const bool used_here =
        service.when.empty() ||
        std::ranges::any_of(service.when, [&](const When& one) { return holds(one, facts); });
    if (both.empty() || !used_here) continue;
    reports.push_back(
        {"service-cores", Severity::note,
         fmt::format("ranks are bound to {}, where {} may run ({})", cpus_text(both), service.name,
                     service.why),
         fmt::format("move {} to other cores, or use fewer cores with --cpus-per-rank",
                     service.name)});
  }
}

// Flags for devices come from the profile; without any, every rank would get the first device.
void report_view(const PlanInput& input, const Slots& slots, const Plan& plan, Reports& reports) {
  if (slots.view != "launcher") return;
  if (!slots.shortage.mask.empty())
    return reports.push_back(
        {"launcher-view", Severity::error,
         fmt::format("--gpu-view launcher gives out all devices of the job, but {}",
                     slots.shortage.by),
         fmt::format("unset {}, or use --gpu-view own", slots.shortage.mask)});
  if (any_from(Severity::error, plan.explanation.reports)) return;  // a rule's own says why
  const auto& args = plan.launch.profile_args;
  if (std::ranges::any_of(
          args, [](const std::string& arg) { return arg.find("gpu") != std::string::npos; }))
    return;
  const bool typed = input.request->gpu_view == "launcher";
  reports.push_back({"launcher-view", Severity::error,
                     fmt::format("{}the profile has no flags by which {} gives each rank "
                                 "its device",
                                 typed ? "--gpu-view launcher: " : "", plan.launch.launcher),
                     "--gpu-view own, or all"});
}

// Devices of ranks whose locality is known, and without a CPU: the topology was cut by a cgroup.
void report_devices(const PlanInput& input, const Placement& placement, Reports& reports) {
  std::vector<std::string> names;
  std::set<int> used;  // without a CPU where ranks use them
  for (const NodeClass& one : placement.classes) {
    const Topology own = one.grant > 0 ? with_grant(input, one.grant).node : Topology();
    const Topology& node = one.grant > 0 ? own : input.node;
    for (const RankPlan& rank : one.ranks)
      for (const Slot& unit : rank.slots)
        for (const Device& device : node.devices)
          if (device.index == unit.device && lacks_cpus(node, device)) used.insert(unit.device);
  }
  for (const Device& device : input.node.devices)
    if (used.contains(device.index))
      names.push_back(device.numa < 0
                          ? std::to_string(device.index)
                          : fmt::format("{} (NUMA node {})", device.index, device.numa));
  if (names.empty()) return;
  reports.push_back(
      {"device-without-cpus", Severity::note,
       fmt::format("no usable CPU near device{} {}: {} ranks run on another NUMA node",
                   names.size() == 1 ? "" : "s", fmt::join(names, ", "),
                   names.size() == 1 ? "its" : "their"),
       "plan with the topology of the whole node, or request CPUs on these NUMA nodes"});
}

// NCCL knows a GPU by its PCI address and refuses a second rank on it.
// Source: NVIDIA MIG user guide: no peer-to-peer between instances; NCCL src/init.cc, "Duplicate GPU detected".
void report_instances(const Slots& slots, const Placement& placement, Reports& reports) {
  if (slots.instances() && two_have_the_same(placement, &RankPlan::device))
    reports.push_back({"mig-nccl", Severity::note,
                       "ranks use MIG instances of one GPU, which NCCL cannot connect",
                       "back end gloo or mpi, or one rank per GPU"});
}

void report_size(const PlanInput& input, int nodes, Reports& reports) {
  const int most = input.model == nullptr ? 0 : input.model->count;
  if (most > 0 && nodes > most)
    reports.push_back({"more-nodes-than-site", Severity::warning,
                       fmt::format("{} planned, but {} has {} of this kind", counted(nodes, "node"),
                                   input.profile->name, most),
                       fmt::format("--nodes {} or fewer", most)});
}

// "2 fast and 4 slow cores"
std::string kinds_text(const std::map<int, int>& cores) {
  std::string text;
  for (auto one = cores.rbegin(); one != cores.rend(); ++one)
    text += fmt::format("{}{} {}", text.empty() ? "" : " and ", one->second,
                        one->first > 0 ? "fast" : "slow");
  return text + (cores.size() == 1 && cores.begin()->second == 1 ? " core" : " cores");
}

// Ranks wait for the one with the slowest cores.
void report_kinds(const PlanInput& input, const Placement& placement, Reports& reports) {
  const Topology& node = input.node;
  const auto kinds_of = [&](const CpuSet& cpus) {
    std::map<int, int> cores;
    for (const int core : cores_of(node, cpus).to_vector()) ++cores[node.cores[core].kind];
    return cores;
  };
  for (const NodeClass& one : placement.classes) {
    const auto other = std::ranges::find_if(one.ranks, [&](const RankPlan& rank) {
      return kinds_of(rank.cpus) != kinds_of(one.ranks.front().cpus);
    });
    if (other == one.ranks.end() || kinds_of(node.allowed).size() < 2) continue;
    CpuSet fast;
    for (const Core& core : node.cores)
      if (core.kind > 0) fast |= core.pus & node.allowed;
    return reports.push_back(
        {"uneven-kinds", Severity::note,
         fmt::format("ranks have cores of different speed: local rank 0 has {}, local rank {} {}",
                     kinds_text(kinds_of(one.ranks.front().cpus)), other - one.ranks.begin(),
                     kinds_text(kinds_of(other->cpus))),
         fmt::format("taskset -c {} hpclaunch ..., which leaves the slow cores out",
                     fast.to_list())});
  }
}

bool has_numbers(const std::string& mask) {
  return std::ranges::any_of(split(mask, ','), [](std::string_view entry) {
    return parse_natural(trim(entry)).has_value();
  });
}

// A rank's mask by numbers, or none, so that its program counts what the driver counts.
bool goes_by_number(const Plan& plan, const std::string& mask) {
  const Setting* setting = plan.find_env(mask);
  if (setting == nullptr) return true;
  if (const auto* text = std::get_if<std::string>(&setting->value())) return has_numbers(*text);
  const auto* items = std::get_if<PerRank>(&setting->value());
  return items == nullptr || std::ranges::any_of(items->items, [](const auto& ranks) {
           return std::ranges::any_of(ranks, has_numbers);
         });
}

// Source: CUDA programming guide, environment variables: CUDA_DEVICE_ORDER is FASTEST_FIRST by default.
void report_order(const PlanInput& input, const Slots& slots, const Plan& plan, Reports& reports) {
  const char* kOrder = "CUDA_DEVICE_ORDER";
  if (slots.vendor->pci_order.name.empty() || slots.list.empty() || !differing_models(input.node))
    return;
  const std::string* value = everywhere(plan, input.env, kOrder);
  const std::string order = value == nullptr ? "" : *value;
  const bool by_address = order == "PCI_BUS_ID";
  const auto report = [&](Severity severity, std::string message, std::string fix) {
    reports.push_back({"device-order", severity, std::move(message), std::move(fix)});
  };
  if (!by_address && slots.view != "launcher" && goes_by_number(plan, slots.mask))
    return report(Severity::warning,
                  fmt::format("{}: CUDA counts devices of several models fastest first, but the "
                              "plan by PCI address: ranks may get other devices",
                              order.empty() ? fmt::format("{} is not set", kOrder)
                                            : fmt::format("{}={}", kOrder, order)),
                  fmt::format("--set {}=PCI_BUS_ID", kOrder));
  // The batch system's list beside a mask is by address, as is what was exported to be.
  const std::string mask = input.env.get(slots.mask);
  const bool settled = input.env.get(kOrder) == "PCI_BUS_ID" || slots.given.starts_with("SLURM_") ||
                       std::ranges::any_of(kSlurmGpuLists, [&](const char* list) {
                         return !input.env.get(list).empty();
                       });
  if (settled || !has_numbers(mask) || slots.total == static_cast<int>(input.node.devices.size()))
    return;
  report(Severity::note,
         fmt::format("{}={} is read by PCI address; CUDA's default for devices of several models "
                     "is fastest first",
                     slots.mask, mask),
         fmt::format("export {}=PCI_BUS_ID if that is meant, or name devices by UUID "
                     "(nvidia-smi -L)",
                     kOrder));
}

}  // namespace

bool two_have_the_same(const Placement& placement, int (RankPlan::*number)() const) {
  return std::ranges::any_of(placement.classes, [&](const NodeClass& node) {
    std::set<int> seen;
    return std::ranges::any_of(node.ranks, [&](const RankPlan& rank) {
      return (rank.*number)() >= 0 && !seen.insert((rank.*number)()).second;
    });
  });
}

Reports report_placement(const PlanInput& input, const Facts& facts, const Slots& slots,
                         const Plan& plan) {
  Reports reports;
  report_devices(input, plan.placement, reports);
  report_services(input, facts, plan.placement, reports);
  report_kinds(input, plan.placement, reports);
  report_view(input, slots, plan, reports);
  report_order(input, slots, plan, reports);
  report_instances(slots, plan.placement, reports);
  report_size(input, plan.nodes(), reports);
  return reports;
}

}  // namespace hpclaunch
