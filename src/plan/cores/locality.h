#pragma once
// How far cores are from a device or a network interface.
#include "hpclaunch/topology.h"

namespace hpclaunch {

/// Distance of a rank's cores from its device, nearest first (docs/placement.md).
enum Distance : int {
  kNear = 0,     ///< the device's own cores; also where the device's locality is unknown
  kSameNuma,     ///< the NUMA node around these
  kSamePackage,  ///< the package around these
  kElsewhere,    ///< another package
};
inline constexpr int kDistances = 4;

/// Distance of the farthest of `cpus` from something near `near`; kNear where either is empty, and where
/// `cpus` has all usable ones of `near` (a rank that has more cores besides).
int distance(const Topology& node, const CpuSet& near, const CpuSet& cpus);

/// Hardware threads of a NUMA node, and those near a device: its own, else its NUMA node's. Empty
/// when unknown.
CpuSet pus_of_numa(const Topology& node, int numa);
CpuSet near_device(const Topology& node, const Device& device);

/// The device has a NUMA node (or CPUs) of its own, and no usable CPU is there: a cgroup, `lstopo --restrict`.
bool lacks_cpus(const Topology& node, const Device& device);

/// Cores with hardware threads in `pus`.
int count_cores(const Topology& node, const CpuSet& pus);

/// The smallest NUMA node and the smallest package that contain all of `near`; empty for none.
CpuSet numa_around(const Topology& node, const CpuSet& near);
CpuSet package_around(const Topology& node, const CpuSet& near);

}  // namespace hpclaunch
