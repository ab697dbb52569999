#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"

namespace hpclaunch {

namespace {

template <class Part>
CpuSet smallest_around(const std::vector<Part>& parts, const CpuSet& near) {
  CpuSet smallest;
  for (const Part& part : parts)
    if (!near.empty() && part.pus.contains(near) &&
        (smallest.empty() || part.pus.count() < smallest.count()))
      smallest = part.pus;
  return smallest;
}

}  // namespace

CpuSet pus_of_numa(const Topology& node, int numa) {
  const NumaNode* const found = node.find_numa(numa);
  return found == nullptr ? CpuSet() : found->pus;
}

CpuSet near_device(const Topology& node, const Device& device) {
  return device.pus.empty() ? pus_of_numa(node, device.numa) : device.pus;
}

bool lacks_cpus(const Topology& node, const Device& device) {
  if (device.numa < 0) return !device.pus.empty() && !device.pus.intersects(node.allowed);
  return !pus_of_numa(node, device.numa).intersects(node.allowed);
}

CoreSet cores_of(const Topology& node, const CpuSet& pus) {
  CoreSet cores;
  for (std::size_t c = 0; c < node.cores.size(); ++c)
    if (node.cores[c].pus.intersects(pus)) cores.add(static_cast<int>(c));
  return cores;
}

CpuSet numa_around(const Topology& node, const CpuSet& near) {
  return smallest_around(node.numa_nodes, near);
}

CpuSet package_around(const Topology& node, const CpuSet& near) {
  return smallest_around(node.packages, near);
}

int distance(const Topology& node, const CpuSet& near, const CpuSet& cpus) {
  if (near.empty() || cpus.empty() || near.contains(cpus)) return kNear;
  const CpuSet usable = near & node.allowed;
  if (!usable.empty() && cpus.contains(usable)) return kNear;
  if (numa_around(node, near).contains(cpus)) return kSameNuma;
  if (package_around(node, near).contains(cpus)) return kSamePackage;
  return kElsewhere;
}

void describe_cpus(const Topology& node, const CoreSet& cores, RankPlan& rank) {
  rank.cores = cores.count();
  const Core* first = cores.empty() ? nullptr : &node.cores[cores.first()];
  rank.package = first == nullptr ? -1 : first->package;
  rank.numa = first == nullptr ? -1 : first->numa;
  for (const int c : cores.to_vector()) {
    if (node.cores[c].package != rank.package) rank.package = -1;
    if (node.cores[c].numa != rank.numa) rank.numa = -1;
  }
}

void describe_cpus(const Topology& node, RankPlan& rank) {
  describe_cpus(node, cores_of(node, rank.cpus), rank);
}

Topology usable_part(const Topology& node) {
  Topology usable = node;
  for (Core& core : usable.cores) core.pus &= node.allowed;
  std::erase_if(usable.cores, [](const Core& core) { return core.pus.empty(); });
  return usable;
}

CpuSet pus_of(const Topology& node, const CoreSet& cores) {
  CpuSet pus;
  for (const int core : cores.to_vector()) pus |= node.cores[core].pus;
  return pus;
}

void deal_threads(std::vector<RankPlan>& ranks) {
  std::map<int, std::vector<RankPlan*>> on;  // by the first hardware thread of the core
  for (RankPlan& rank : ranks) on[rank.cpus.first()].push_back(&rank);
  for (const auto& [first, members] : on) {
    const std::vector<int> threads = members.front()->cpus.to_vector();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t from = i * threads.size() / members.size();
      const std::size_t to = std::max(from + 1, (i + 1) * threads.size() / members.size());
      members[i]->cpus = CpuSet{};
      for (std::size_t t = from; t < to; ++t) members[i]->cpus.add(threads[t]);
    }
  }
}

std::vector<std::string> remarks_on(const Topology& node, const std::vector<RankPlan>& ranks,
                                    bool shared) {
  std::vector<std::string> remarks;
  const std::string all = counted(ranks.size(), "rank");
  if (shared)
    remarks.push_back(fmt::format("{} share {}", all, counted(node.cores.size(), "core")));
  std::set<int> numa;
  CpuSet used;
  CpuSet idle;
  for (const RankPlan& rank : ranks) used |= rank.cpus;
  for (const Core& core : node.cores) {
    numa.insert(core.numa);
    if (!core.pus.intersects(used)) idle |= core.pus;
  }
  const auto spanning =
      std::ranges::count_if(ranks, [](const RankPlan& rank) { return rank.numa < 0; });
  if (numa.size() > 1 && spanning > 0)
    remarks.push_back(fmt::format("{} of {} cover more than one of the {} NUMA nodes", spanning,
                                  all, numa.size()));
  if (!idle.empty())
    remarks.push_back(fmt::format("{} left idle (CPUs {})",
                                  counted(cores_of(node, idle).count(), "core"), idle.to_list()));
  return remarks;
}

}  // namespace hpclaunch
