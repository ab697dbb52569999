#pragma once
// Nodes as their sites' pages and lstopo draw them, caches included, in one line each.
#include <string>
#include <vector>

#include "hpclaunch/topology.h"
#include "support/catch.h"

namespace hpclaunch::test {

struct Shape {
  const char* name;
  int packages, numa, cores;  ///< NUMA nodes per package, cores per NUMA node
  int l3;                     ///< cores that share one L3; 0: none known
  std::vector<int> near;      ///< NUMA node of each device
  const char* reserved;
};

// Sources: OLCF, NERSC, ALCF, LLNL, LRZ and DRAC system pages, as quoted in docs/sites; AMD and IBM data sheets.
inline const Shape kMi250x{"MI250X blade, 8 cores reserved", 1, 4, 16, 8, {3, 3, 1, 1, 0, 0, 2, 2},
                           "0,8,16,24,32,40,48,56"};
inline const Shape kPvc{"PVC node, 2 cores reserved", 2, 1, 52, 52, {0, 0, 0, 1, 1, 1}, "0,52"};
inline const Shape kMi300a{"MI300A, 4 APUs", 4, 1, 24, 8, {0, 1, 2, 3}, ""};
inline const Shape kPolaris{"A100 node, 4 GPUs", 1, 4, 8, 4, {3, 2, 1, 0}, ""};
inline const Shape kA100x8{"A100 node, 8 GPUs", 2, 4, 16, 8, {3, 3, 1, 1, 7, 7, 5, 5}, ""};
inline const Shape kSummit{
    "POWER9, 6 V100, 2 cores reserved", 2, 1, 22, 2, {0, 0, 0, 1, 1, 1}, "0,22"};
inline const Shape kSierra{"POWER9, 4 V100", 2, 1, 22, 2, {0, 0, 1, 1}, ""};
inline const Shape kT4{"T4 node, 8 GPUs", 2, 1, 24, 24, {0, 0, 0, 0, 1, 1, 1, 1}, ""};
inline const Shape kTrillium{"Epyc 9654, 4 H100", 1, 1, 96, 8, {0, 0, 0, 0}, ""};
inline const Shape kFir{"Epyc 9454, 4 H100", 1, 1, 48, 6, {0, 0, 0, 0}, ""};
inline const Shape kGenoa{"2 Epyc 9654, 8 GPUs", 2, 1, 96, 8, {0, 0, 0, 0, 1, 1, 1, 1}, ""};
inline const Shape kGh200{"GH200, 4 sockets", 4, 1, 72, 72, {0, 1, 2, 3}, ""};
inline const Shape kOneSided{"4 GPUs on package 1 of 2", 2, 1, 32, 8, {1, 1, 1, 1}, ""};
inline const Shape kOneCore{"4 GPUs, 2 of them near one core", 1, 2, 8, 8, {0, 0, 1, 1}, "1-7"};

inline Topology build(const Shape& shape) {
  Topology node;
  CpuSet l3;
  for (int p = 0; p < shape.packages; ++p) {
    Package package{p, "", {}};
    for (int n = 0; n < shape.numa; ++n) {
      NumaNode numa{p * shape.numa + n, 0, {}};
      for (int c = 0; c < shape.cores; ++c) {
        Core core{p, numa.os_index, {}};
        core.pus.add(static_cast<int>(node.cores.size()));
        numa.pus |= core.pus;
        node.cores.push_back(core);
        l3 |= core.pus;
        if (shape.l3 == 0 || l3.count() < shape.l3) continue;
        node.caches.push_back({3, 1u << 25, l3});
        l3 = {};
      }
      package.pus |= numa.pus;
      node.numa_nodes.push_back(numa);
    }
    node.packages.push_back(package);
  }
  node.allowed = node.all_pus();
  if (*shape.reserved != '\0') node.allowed -= *CpuSet::parse(shape.reserved);
  for (std::size_t d = 0; d < shape.near.size(); ++d) {
    Device device;
    device.index = static_cast<int>(d);
    device.vendor = "amd";
    device.numa = shape.near[d];
    node.devices.push_back(device);
  }
  REQUIRE(check_topology(node));
  return node;
}

}  // namespace hpclaunch::test
