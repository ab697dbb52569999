#include "plan/reports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "plan/cores/locality.h"
#include "plan/devices/visibility.h"

namespace hpclaunch {

namespace {

// Cores that a service uses only while it runs may be bound, with a note in jobs that use it.
void report_services(const PlanInput& input, const Facts& facts, Plan& plan) {
  if (input.model == nullptr || plan.bind_via == BindVia::none) return;
  CpuSet used;
  for (const NodeClass& one : plan.classes)
    for (const RankPlan& rank : one.ranks) used |= rank.cpus;
  for (const ServiceCores& service : input.model->services) {
    const CpuSet both = used & service.pus;
    const bool used_here =
        service.when.empty() ||
        std::ranges::any_of(service.when, [&](const When& one) { return holds(one, facts); });
    if (both.empty() || !used_here) continue;
    plan.reports.push_back(
        {"service-cores", Severity::note,
         fmt::format("ranks are bound to CPU{} {}, which {} uses while it runs ({})",
                     both.count() == 1 ? "" : "s", both.to_list(), service.name, service.why),
         fmt::format("move {} to other cores, or use fewer cores with --cpus-per-rank",
                     service.name)});
  }
}

// Flags for devices come from the profile; without any, every rank would get the first device.
void report_view(const Units& units, Plan& plan) {
  if (units.view != "launcher") return;
  const auto& args = plan.profile_args;
  if (std::any_of(args.begin(), args.end(),
                  [](const std::string& arg) { return arg.find("gpu") != std::string::npos; }))
    return;
  plan.reports.push_back(
      {"launcher-view", Severity::error,
       fmt::format("no flags known by which {} gives each rank its device", plan.launcher),
       "--gpu-view own, or all"});
}

// Devices of ranks whose locality is known, and without a CPU: the topology was cut by a cgroup.
void report_devices(const PlanInput& input, Plan& plan) {
  std::vector<std::string> names;
  std::set<int> used;
  for (const NodeClass& one : plan.classes)
    for (const RankPlan& rank : one.ranks) {
      used.insert(rank.device);
      for (const UnitRef& more : rank.more_units) used.insert(more.device);
    }
  for (const Device& device : input.node.devices)
    if (used.count(device.index) > 0 && lacks_cpus(input.node, device))
      names.push_back(device.numa < 0
                          ? std::to_string(device.index)
                          : fmt::format("{} (NUMA node {})", device.index, device.numa));
  if (names.empty()) return;
  plan.reports.push_back(
      {"device-without-cpus", Severity::note,
       fmt::format("no usable CPU near device {}: ranks reach {} from another NUMA node",
                   fmt::join(names, ", "), names.size() == 1 ? "it" : "them"),
       "plan with the topology of the whole node, or request CPUs on these NUMA nodes"});
}

void report_size(const PlanInput& input, Plan& plan) {
  const int most = input.model == nullptr ? 0 : input.model->count;
  if (most > 0 && plan.nodes() > most)
    plan.reports.push_back({"more-nodes-than-site", Severity::warning,
                            fmt::format("{} planned, and {} has {} of this kind",
                                        counted(plan.nodes(), "node"), input.profile->name, most),
                            fmt::format("--nodes {} or fewer", most)});
}

bool has_numbers(const std::string& mask) {
  for (const std::string_view entry : split(mask, ','))
    if (parse_natural(trim(entry))) return true;
  return false;
}

// A rank's mask by numbers, or none, so that its program counts what the driver counts.
bool goes_by_number(const Plan& plan, const std::string& mask) {
  const Setting* setting = plan.find_env(mask);
  if (setting == nullptr) return true;
  if (const auto* text = std::get_if<std::string>(&setting->value())) return has_numbers(*text);
  const auto* items = std::get_if<PerRank>(&setting->value());
  if (items == nullptr) return true;
  for (const auto& ranks : items->items)
    if (std::any_of(ranks.begin(), ranks.end(), has_numbers)) return true;
  return false;
}

// What ranks will find; "" where it is not set, or not one value for all.
std::string value_in_force(const PlanInput& input, const Plan& plan, const std::string& name) {
  const Setting* setting = plan.find_env(name);
  if (setting == nullptr) return input.env.get(name);
  const auto* text = std::get_if<std::string>(&setting->value());
  return text == nullptr ? "" : *text;
}

// Source: CUDA programming guide, environment variables: CUDA_DEVICE_ORDER is FASTEST_FIRST by default.
void report_order(const PlanInput& input, const Units& units, Plan& plan) {
  const char* kOrder = "CUDA_DEVICE_ORDER";
  if (units.vendor->pci_order.name.empty() || units.list.empty() || !differing_models(input.node))
    return;
  const std::string order = value_in_force(input, plan, kOrder);
  const bool by_address = order == "PCI_BUS_ID";
  if (!by_address && units.view != "launcher" && goes_by_number(plan, units.mask)) {
    plan.reports.push_back(
        {"device-order", Severity::warning,
         fmt::format("{}: CUDA counts the node's devices, which are of several models, fastest "
                     "first, and the plan counts them by PCI address, so that ranks may get others "
                     "than planned",
                     order.empty() ? fmt::format("{} is not set", kOrder)
                                   : fmt::format("{}={}", kOrder, order)),
         fmt::format("--set {}=PCI_BUS_ID", kOrder)});
    return;
  }
  // The batch system's list beside a mask is by address, as is what was exported to be.
  const std::string mask = input.env.get(units.mask);
  const bool settled = input.env.get(kOrder) == "PCI_BUS_ID" || units.given.starts_with("SLURM_") ||
                       !input.env.get("SLURM_JOB_GPUS").empty() ||
                       !input.env.get("SLURM_STEP_GPUS").empty();
  if (settled || !has_numbers(mask) || units.total == static_cast<int>(input.node.devices.size()))
    return;
  plan.reports.push_back(
      {"device-order", Severity::note,
       fmt::format("{}={} is read by PCI address; the node's devices are of several models, and "
                   "CUDA by itself would count them fastest first",
                   units.mask, mask),
       fmt::format("export {}=PCI_BUS_ID where that is meant, or name the devices by UUID "
                   "(nvidia-smi -L)",
                   kOrder)});
}

}  // namespace

void report_placement(const PlanInput& input, const Facts& facts, const Units& units, Plan& plan) {
  report_devices(input, plan);
  report_services(input, facts, plan);
  report_view(units, plan);
  report_order(input, units, plan);
  report_size(input, plan);
}

}  // namespace hpclaunch
