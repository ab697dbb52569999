#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

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

bool lacks_cpus(const Topology& node, const Device& device) {
  if (device.numa < 0) return !device.pus.empty() && !device.pus.intersects(node.allowed);
  return !node.numa_pus(device.numa).intersects(node.allowed);
}

CpuSet around(const Topology& node, const CpuSet& near, int far) {
  return far == kNear          ? near
         : far == kSameNuma    ? smallest_around(node.numa_nodes, near)
         : far == kSamePackage ? smallest_around(node.packages, near)
                               : CpuSet();
}

int distance(const Topology& node, const CpuSet& near, const CpuSet& cpus) {
  const CpuSet usable = near & node.allowed;
  if (near.empty() || cpus.empty() || (!usable.empty() && cpus.contains(usable))) return kNear;
  int far = kNear;
  while (far < kElsewhere && !around(node, near, far).contains(cpus)) ++far;
  return far;
}

void describe_cpus(const Topology& node, RankPlan& rank) {
  const CoreSet cores = cores_of(node, rank.cpus);
  rank.cores = cores.count();
  const Core* first = cores.empty() ? nullptr : &node.cores[cores.first()];
  rank.package = first == nullptr ? -1 : first->package;
  rank.numa = first == nullptr ? -1 : first->numa;
  for (const int c : cores.to_vector()) {
    if (node.cores[c].package != rank.package) rank.package = -1;
    if (node.cores[c].numa != rank.numa) rank.numa = -1;
  }
}

Topology usable_part(const Topology& node) {
  Topology usable = node;
  for (Core& core : usable.cores) core.pus &= node.allowed;
  std::erase_if(usable.cores, [](const Core& core) { return core.pus.empty(); });
  return usable;
}

Topology first_threads(Topology node, int threads) {
  CpuSet used;
  for (Core& core : node.cores) {
    std::vector<int> pus = (core.pus & node.allowed).to_vector();
    if (pus.empty()) pus = core.pus.to_vector();
    pus.resize(std::min(pus.size(), static_cast<std::size_t>(threads)));
    core.pus = CpuSet{};
    for (const int pu : pus) core.pus.add(pu);
    used |= core.pus;
  }
  node.allowed &= used;
  return node;
}

CpuSet pus_of(const Topology& node, const CoreSet& cores) {
  CpuSet pus;
  for (const int core : cores.to_vector()) pus |= node.cores[core].pus;
  return pus;
}

std::vector<CoreSet> cores_by_numa(const Topology& node) {
  std::vector<CoreSet> cores;
  std::map<int, std::size_t> at;
  for (int c = 0; c < std::ssize(node.cores); ++c) {
    const auto [numa, fresh] = at.emplace(node.cores[c].numa, cores.size());
    if (fresh) cores.emplace_back();
    cores[numa->second].add(c);
  }
  return cores;
}

}  // namespace hpclaunch
