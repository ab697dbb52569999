#include "plan/cores/locality.h"

#include <algorithm>

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

int count_cores(const Topology& node, const CpuSet& pus) {
  return static_cast<int>(std::ranges::count_if(
      node.cores, [&](const Core& core) { return core.pus.intersects(pus); }));
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

}  // namespace hpclaunch
