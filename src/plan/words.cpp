#include "plan/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "plan/cores/locality.h"
#include "plan/devices/masks.h"
#include "plan/devices/nics.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

int numa_of(const Topology& node, const Device& device) {
  if (device.numa >= 0) return device.numa;
  int numa = -1;
  for (const Core& core : node.cores) {
    if (!core.pus.intersects(device.pus)) continue;
    if (numa >= 0 && core.numa != numa) return -1;
    numa = core.numa;
  }
  return numa;
}

std::string unit_text(int unit, int device, int subdevice) {
  if (device < 0) return fmt::format("entry {} of the mask", unit);
  return subdevice < 0 ? fmt::format("{}", device) : fmt::format("{}.{}", device, subdevice);
}

// "GPU 2 on NUMA node 1", "GPUs 0,1 on NUMA node 0"; without devices "NUMA node 1".
std::string devices_text(const Topology& node, const RankPlan& rank) {
  if (rank.unit < 0) return rank.numa < 0 ? std::string() : fmt::format("NUMA node {}", rank.numa);
  std::string names = unit_text(rank.unit, rank.device, rank.subdevice);
  const Device* first = find_device(node, rank.device);
  int numa = first == nullptr ? -1 : numa_of(node, *first);
  for (const UnitRef& more : rank.more_units) {
    names += "," + unit_text(more.unit, more.device, more.subdevice);
    const Device* other = find_device(node, more.device);
    if (other == nullptr || numa_of(node, *other) != numa) numa = -1;
  }
  std::string text = fmt::format("GPU{} {}", rank.more_units.empty() ? "" : "s", names);
  if (numa >= 0) text += fmt::format(" on NUMA node {}", numa);
  return text;
}

std::string cpus_text(const CpuSet& cpus) {
  return fmt::format("CPU{} {}", cpus.count() == 1 ? "" : "s", cpus.to_list());
}

// Whether the cores are where the device is, when that is not so.
std::string far_text(const Topology& node, const RankPlan& rank) {
  CpuSet near;
  std::vector<int> devices{rank.device};
  for (const UnitRef& more : rank.more_units) devices.push_back(more.device);
  for (const int index : devices) {
    const Device* device = find_device(node, index);
    const CpuSet its = device == nullptr ? CpuSet{} : near_device(node, *device);
    if (its.empty()) return "";
    near |= its;
  }
  switch (distance(node, near, rank.cpus)) {
    case kNear:
      return "";
    case kSameNuma:
      return ", same NUMA node but not the nearest";
    case kSamePackage:
      return ", on another NUMA node of the package";
    default:
      return ", far from it";
  }
}

// What of the least domain around `cpus` is not given to ranks.
std::string kept_text(const PlanInput& input, const CpuSet& cpus) {
  const Topology& node = input.node;
  CpuSet domain;
  const auto consider = [&](const CpuSet& pus) {
    if (pus.contains(cpus) && (domain.empty() || pus.count() < domain.count())) domain = pus;
  };
  for (const Package& package : node.packages) consider(package.pus);
  for (const NumaNode& numa : node.numa_nodes) consider(numa.pus);
  for (const Cache& cache : node.caches) consider(cache.pus);
  const CpuSet missing = domain - node.allowed;
  const CpuSet reserved = input.model == nullptr ? CpuSet{} : missing & input.model->reserved;
  const CpuSet others = missing - reserved;
  std::string text;
  const auto add = [&](const CpuSet& pus, const char* what) {
    if (!pus.empty())
      text += fmt::format("; {} {} {}", cpus_text(pus), pus.count() == 1 ? "is" : "are", what);
  };
  add(reserved, "kept for the system");
  add(others, "not allowed here");
  return text;
}

std::string cores_text(int least, int most, bool several) {
  const std::string cores =
      least == most ? counted(most, "core") : fmt::format("{} to {} cores", least, most);
  return several ? cores + " each" : cores;
}

// Ranks first..last, which have the same devices, NUMA node and interface.
std::string run_text(const PlanInput& input, const NodeClass& kind, std::size_t first,
                     std::size_t last) {
  const RankPlan& rank = kind.ranks[first];
  std::string text = devices_text(input.node, rank);
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (rank.nic >= 0) add("NIC " + nic_name(input.node.nics[rank.nic]));
  CpuSet cpus;
  int least = rank.cores;
  int most = rank.cores;
  for (std::size_t r = first; r <= last; ++r) {
    cpus |= kind.ranks[r].cpus;
    least = std::min(least, kind.ranks[r].cores);
    most = std::max(most, kind.ranks[r].cores);
  }
  const std::string cores = cores_text(least, most, first != last);
  if (cpus.empty()) {
    add(rank.part_first < 0 ? "not bound" : cores + " of those granted");
    return text;
  }
  add(fmt::format("{} ({}{})", cpus_text(cpus), cores, far_text(input.node, rank)));
  return text + kept_text(input, cpus);
}

bool alike(const RankPlan& a, const RankPlan& b) {
  return a.unit == b.unit && a.more_units == b.more_units && a.numa == b.numa && a.nic == b.nic &&
         a.cpus.empty() == b.cpus.empty();
}

// "; left out: hsn2 and hsn3 (down), eth0 (Ethernet beside a fabric)"
std::string left_out(const Topology& node) {
  const std::vector<std::string> idle = idle_nics(node);
  std::map<std::string, std::vector<std::string>> names;
  for (std::size_t n = 0; n < idle.size(); ++n)
    if (!idle[n].empty()) names[idle[n]].push_back(nic_name(node.nics[n]));
  std::vector<std::string> texts;
  texts.reserve(names.size());
  for (const auto& [why, list] : names)
    texts.push_back(fmt::format("{} ({})", fmt::join(list, ", "), why));
  return texts.empty() ? "" : fmt::format(". Left out: {}", fmt::join(texts, "; "));
}

}  // namespace

std::string nic_name(const Nic& nic) {
  for (const std::string* name : {&nic.fabric, &nic.name, &nic.pci})
    if (!name->empty()) return *name;
  return "(no name)";
}

Setting placement_choice(const PlanInput& input, const Plan& plan) {
  PerRank words;
  for (const NodeClass& kind : plan.classes) {
    words.items.emplace_back();
    for (std::size_t first = 0; first < kind.ranks.size();) {
      std::size_t last = first;
      while (last + 1 < kind.ranks.size() && alike(kind.ranks[first], kind.ranks[last + 1])) ++last;
      words.items.back().insert(words.items.back().end(), last - first + 1,
                                run_text(input, kind, first, last));
      first = last + 1;
    }
  }
  return Setting{"placement",
                 {decided(Layer::computed, std::move(words),
                          "what each rank of a node gets; cpu-bind, devices and nics have the "
                          "reasons")}};
}

std::optional<Setting> device_choice(const Units& units, bool linked, const Plan& plan) {
  if (units.list.empty()) return std::nullopt;
  const auto numbers = [](const RankPlan& rank) {
    std::string text = rank.unit < 0 ? "" : std::to_string(rank.unit);
    for (const UnitRef& more : rank.more_units) text += fmt::format(",{}", more.unit);
    return text;
  };
  return Setting{
      "devices",
      {decided(Layer::computed, per_rank(plan, numbers),
               fmt::format("{} on the node, {}, each by ranks that are nearest to it",
                           counted(units.total, "device"),
                           units.filled > 0 ? "filled in order" : "used evenly") +
                   (units.per_rank > 1
                        ? fmt::format("; --devices-per-rank {}, near one another", units.per_rank)
                        : "") +
                   (linked ? "; linked ones side by side" : ""))}};
}

std::optional<Setting> nic_choice(const PlanInput& input, const Plan& plan) {
  bool any = false;
  bool by_bridge = false;
  PerRank names = per_rank(plan, [&](const RankPlan& rank) {
    any = any || rank.nic >= 0;
    by_bridge = by_bridge || bridges_decide(input.node, rank);
    return rank.nic < 0 ? "" : nic_name(input.node.nics[rank.nic]);
  });
  if (!any && input.node.nics.empty()) return std::nullopt;
  if (!any)
    return Setting{"nics",
                   {decided(Layer::computed, std::string("none"),
                            "no interface can carry the job's traffic" + left_out(input.node))}};
  return Setting{
      "nics",
      {decided(Layer::computed, std::move(names),
               fmt::format("the interface nearest to the rank's device{}, or to its "
                           "cores; ranks with the same nearest ones share them evenly. "
                           "No variable follows from it{}",
                           by_bridge ? ", below the same PCI bridge where several are on "
                                       "its NUMA node"
                                     : "",
                           left_out(input.node)))}};
}

}  // namespace hpclaunch
