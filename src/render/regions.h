#pragma once
// The machine as nested regions: what every picture of it is laid out from.
#include <vector>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::render {

/// Everything with exactly these PUs. Numbers are positions in the vectors of the Topology.
struct Region {
  CpuSet pus;
  std::vector<int> packages, numa_nodes, caches;
  std::vector<int> cores;          ///< in this region and in none of `inner`, in physical order
  std::vector<int> devices, nics;  ///< near this region, and near no smaller one
  std::vector<int> inner;          ///< places in Regions::all, in physical order

  /// A package, a NUMA node, or a cache of level 3 and above: large enough to be near something.
  bool has_neighbours = false;
};

struct Regions {
  std::vector<Region> all;                           ///< [0] is the whole machine; never empty
  std::vector<int> memory;                           ///< NUMA nodes without CPUs
  std::vector<int> unplaced_devices, unplaced_nics;  ///< of unknown locality
};

/// `topology` obeys check_topology.
Regions regions_of(const Topology& topology);

}  // namespace hpclaunch::render
