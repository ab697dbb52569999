#pragma once
// How far cores are from a device or a network interface, and which cores are within each distance.
#include <vector>

#include "hpclaunch/topology.h"
#include "plan/domains.h"

namespace hpclaunch {

/// What a rank's cores and a device have in common, nearest first. The numbers are the measure of
/// docs/placement.md.
enum Distance : int {
  kNear = 0,     ///< the device's own cores; also where nobody knows which those are
  kSameNuma,     ///< the NUMA node around these
  kSamePackage,  ///< the package around these
  kElsewhere,    ///< another package
};
inline constexpr int kDistances = 4;

/// Distance of the farthest of `cpus` from something that is near to `near`. kNear where either is
/// empty: nothing is known then.
int distance(const Topology& node, const CpuSet& near, const CpuSet& cpus);

/// Hardware threads of a NUMA node, and those near a device: its own, else its NUMA node's. Empty when nobody
/// knows.
CpuSet pus_of_numa(const Topology& node, int numa);
CpuSet near_device(const Topology& node, const Device& device);

/// The least NUMA node and the least package that hold all of `near`; a set without members where
/// there is none.
CpuSet numa_around(const Topology& node, const CpuSet& near);
CpuSet package_around(const Topology& node, const CpuSet& near);

}  // namespace hpclaunch
