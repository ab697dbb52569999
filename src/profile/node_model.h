#pragma once
// From the compact description of a node to the topology that the planner works on.
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/topology.h"

namespace hpclaunch::profile {

/// Memory without cores of its own. `near_numa` -1: near no CPU.
struct ExtraMemory {
  int os_index = 0;
  std::uint64_t bytes = 0;
  int near_numa = -1;
};

/// A node of equal packages, equal NUMA nodes and equal cores, as profiles describe it. Core c is in
/// NUMA node c / cores_per_numa, that in package n / numa_per_package.
struct NodeShape {
  int packages = 1;
  int numa_per_package = 1;
  int l3_per_numa = 0;
  int cores_per_numa = 1;
  int threads_per_core = 1;
  bool adjacent = false;  ///< siblings have neighbouring numbers
  std::string package_model;
  std::vector<std::uint64_t> memory;  ///< bytes of each NUMA node with cores; empty: unknown
  std::vector<ExtraMemory> extra;

  int numa_nodes() const { return packages * numa_per_package; }
  int cores() const { return numa_nodes() * cores_per_numa; }
  CpuSet pus_of_core(int core) const;
  CpuSet pus_of_cores(const CpuSet& cores) const;  ///< those that the node has
};

/// Packages, NUMA nodes (each with its extra memory behind it), level-3 caches and cores; everything
/// allowed; no devices. The shape has at most CpuSet::kCapacity PUs.
Topology build_topology(const NodeShape& shape);

/// The NUMA node that contains all these PUs; -1 when there is no single one.
int numa_of(const Topology& topology, const CpuSet& pus);

}  // namespace hpclaunch::profile
