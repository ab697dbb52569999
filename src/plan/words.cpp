#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/nics.h"
#include "plan/environment/settings.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

// "cxi1", "hsn0": its usual name; its PCI address where it has no name.
std::string nic_name(const Nic& nic) {
  for (const std::string* name : {&nic.fabric, &nic.name, &nic.pci})
    if (!name->empty()) return *name;
  return "(no name)";
}

int numa_of(const Topology& node, const Device& device) {
  if (device.numa >= 0) return device.numa;
  RankPlan near;
  near.cpus = device.pus;
  describe_cpus(node, near);
  return near.numa;
}

// "GPU 2 on NUMA node 1", "GPUs 0,1 on NUMA node 0"; without devices "NUMA node 1".
std::string devices_text(const Topology& node, const RankPlan& rank) {
  if (rank.slots.empty())
    return rank.numa < 0 ? std::string() : fmt::format("NUMA node {}", rank.numa);
  std::vector<std::string> names;
  std::set<int> numa;
  for (const Slot& one : rank.slots) {
    names.push_back(one.device < 0 ? fmt::format("entry {} of the mask", one.unit)
                    : one.part < 0 ? std::to_string(one.device)
                                   : fmt::format("{}.{}", one.device, one.part));
    const Device* device = node.find_device(one.device);
    numa.insert(device == nullptr ? -1 : numa_of(node, *device));
  }
  std::string text = fmt::format("GPU{} {}", names.size() == 1 ? "" : "s", fmt::join(names, ","));
  if (numa.size() == 1 && *numa.begin() >= 0)
    text += fmt::format(" on NUMA node {}", *numa.begin());
  return text;
}

// Whether the cores are where the device is, when that is not so.
std::string far_text(const Topology& node, const RankPlan& rank) {
  CpuSet near;
  for (const Slot& one : rank.slots) {
    const Device* device = node.find_device(one.device);
    const CpuSet its = device == nullptr ? CpuSet{} : node.near(*device);
    if (its.empty()) return "";
    near |= its;
  }
  constexpr std::array<const char*, kDistances> kTexts = {
      "", ", same NUMA node but not the nearest", ", on another NUMA node of the package",
      ", on another package"};
  return kTexts[distance(node, near, rank.cpus)];
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
  std::string text;
  for (const auto& [pus, what] : {std::pair(reserved, "reserved for the system"),
                                  std::pair(missing - reserved, "not allowed here")})
    if (!pus.empty())
      text += fmt::format("; {} {} {}", cpus_text(pus), pus.count() == 1 ? "is" : "are", what);
  return text;
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
  const std::string cores =
      (least == most ? counted(most, "core") : fmt::format("{} to {} cores", least, most)) +
      (first == last ? "" : " each");
  if (cpus.empty()) {
    add(rank.part_first < 0 ? "not bound" : cores + " of the granted ones");
    return text;
  }
  add(fmt::format("{} ({}{})", cpus_text(cpus), cores, far_text(input.node, rank)));
  return text + kept_text(input, cpus);
}

bool alike(const RankPlan& a, const RankPlan& b) {
  return a.slots == b.slots && a.numa == b.numa && a.nic == b.nic &&
         a.cpus.empty() == b.cpus.empty();
}

// ". Not used: hsn2, hsn3 (down); eth0 (Ethernet beside a fabric)"
std::string not_used(const Topology& node) {
  const std::vector<std::string> idle = idle_nics(node);
  std::map<std::string, std::vector<std::string>> names;
  for (std::size_t n = 0; n < idle.size(); ++n)
    if (!idle[n].empty()) names[idle[n]].push_back(nic_name(node.nics[n]));
  std::string text;
  for (const auto& [why, list] : names)
    text +=
        fmt::format("{}{} ({})", text.empty() ? ". Not used: " : "; ", fmt::join(list, ", "), why);
  return text;
}

Setting placement_choice(const PlanInput& input, const Placement& placement) {
  PerRank words;
  for (const NodeClass& kind : placement.classes) {
    words.items.emplace_back();
    for (std::size_t first = 0; first < kind.ranks.size();) {
      std::size_t last = first;
      while (last + 1 < kind.ranks.size() && alike(kind.ranks[first], kind.ranks[last + 1])) ++last;
      words.items.back().insert(words.items.back().end(), last - first + 1,
                                run_text(input, kind, first, last));
      first = last + 1;
    }
  }
  return choice("placement", Layer::computed, std::move(words),
                "what each rank of a node gets (reasons: cpu-bind, devices, nics)");
}

Setting device_choice(const Slots& slots, bool agent, bool linked, const Placement& placement) {
  PerRank numbers = per_rank(placement, [](const RankPlan& rank) {
    std::vector<int> each;
    for (const Slot& unit : rank.slots) each.push_back(unit.unit);
    return fmt::format("{}", fmt::join(each, ","));
  });
  std::string why =
      fmt::format("{} on the node, {}, each by the nearest ranks", counted(slots.total, "device"),
                  slots.filled > 0 ? "filled in order" : "used evenly");
  if (agent)
    why = "--agent: all of the job's on the node";
  else if (slots.per_rank > 1)
    why += fmt::format("; --devices-per-rank {}, near one another", slots.per_rank);
  if (linked && !agent) why += "; linked devices side by side";
  return choice("devices", Layer::computed, std::move(numbers), std::move(why));
}

Setting nic_choice(const PlanInput& input, const Placement& placement) {
  const std::string others = not_used(input.node);
  if (job_nics(input.node).empty())
    return choice("nics", Layer::computed, "none",
                  "no network interface can be used for the job's traffic" + others);
  bool by_bridge = false;
  PerRank names = per_rank(placement, [&](const RankPlan& rank) {
    by_bridge = by_bridge || bridges_decide(input.node, rank);
    return rank.nic < 0 ? "" : nic_name(input.node.nics[rank.nic]);
  });
  return choice(
      "nics", Layer::computed, std::move(names),
      fmt::format("the network interface nearest to the rank's device{}, or to its cores; "
                  "ranks with the same nearest ones share them evenly. For information: "
                  "sets no variable{}",
                  by_bridge ? ", on its NUMA node below the same PCI bridge" : "", others));
}

}  // namespace

std::vector<Setting> describe(const PlanInput& input, const Slots& slots, const LaidOut& laid) {
  const bool linked = !input.node.links.empty() && laid.nodes.front().rules.empty();
  std::vector<Setting> choices;
  if (!slots.list.empty())
    choices.push_back(device_choice(slots, input.request->agent, linked, laid.placement));
  if (!input.node.nics.empty()) choices.push_back(nic_choice(input, laid.placement));
  choices.push_back(placement_choice(input, laid.placement));
  return choices;
}

}  // namespace hpclaunch
