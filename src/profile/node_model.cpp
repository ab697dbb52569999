#include "node_model.h"

#include <algorithm>

namespace hpclaunch::profile {
namespace {

/// PUs of cores first .. first+count-1.
CpuSet range(const NodeShape& shape, int first, int count) {
  CpuSet pus;
  for (int core = first; core < first + count; ++core) pus |= shape.pus_of_core(core);
  return pus;
}

void add_numa_nodes(const NodeShape& shape, Topology& topology) {
  const auto add_extra = [&](int near, const CpuSet& pus) {
    for (const ExtraMemory& memory : shape.extra) {
      if (memory.near_numa == near)
        topology.numa_nodes.push_back({memory.os_index, memory.bytes, pus});
    }
  };
  for (int numa = 0; numa < shape.numa_nodes(); ++numa) {
    const auto index = static_cast<std::size_t>(numa);
    const std::uint64_t bytes = index < shape.memory.size() ? shape.memory[index] : 0;
    const CpuSet pus = range(shape, numa * shape.cores_per_numa, shape.cores_per_numa);
    topology.numa_nodes.push_back({numa, bytes, pus});
    add_extra(numa, pus);
  }
  add_extra(-1, {});
}

void add_caches(const NodeShape& shape, Topology& topology) {
  constexpr int kLevel = 3;
  if (shape.l3_per_numa < 1) return;
  const int width = shape.cores_per_numa / shape.l3_per_numa;
  for (int cache = 0; cache < shape.numa_nodes() * shape.l3_per_numa; ++cache)
    topology.caches.push_back({kLevel, 0, range(shape, cache * width, width)});
}

}  // namespace

CpuSet NodeShape::pus_of_core(int core) const {
  CpuSet pus;
  for (int thread = 0; thread < threads_per_core; ++thread)
    pus.add(adjacent ? core * threads_per_core + thread : core + thread * cores());
  return pus;
}

CpuSet NodeShape::pus_of_cores(const CpuSet& wanted) const {
  CpuSet pus;
  for (const int core : wanted.to_vector()) {
    if (core < cores()) pus |= pus_of_core(core);
  }
  return pus;
}

Topology build_topology(const NodeShape& shape) {
  Topology topology;
  const int per_package = shape.numa_per_package * shape.cores_per_numa;
  for (int package = 0; package < shape.packages; ++package) {
    topology.packages.push_back(
        {package, shape.package_model, range(shape, package * per_package, per_package)});
  }
  add_numa_nodes(shape, topology);
  add_caches(shape, topology);
  for (int core = 0; core < shape.cores(); ++core) {
    topology.cores.push_back(
        {core / per_package, core / shape.cores_per_numa, shape.pus_of_core(core)});
  }
  topology.allowed = topology.all_pus();
  return topology;
}

int numa_of(const Topology& topology, const CpuSet& pus) {
  int found = -1;
  for (const Core& core : topology.cores) {
    if (!core.pus.intersects(pus)) continue;
    if (found >= 0 && core.numa != found) return -1;
    found = core.numa;
  }
  return found;
}

}  // namespace hpclaunch::profile
