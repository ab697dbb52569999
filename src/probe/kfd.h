#pragma once
// What KFD, the kernel's part of ROCm, shows in /sys/class/kfd/kfd/topology/nodes: the GPUs in the order in
// which ROCr and HIP count them, and the XGMI links between them. A missing file means an unknown field.
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "hpclaunch/topology.h"

namespace hpclaunch::probe {

/// A GPU as the runtime counts them: a device, or a partition of one.
struct KfdNode {
  int number = 0;         ///< of its folder; ROCr counts those that have SIMD units in this order
  std::string unique_id;  ///< hexadecimal; "0" when there is none
  std::uint64_t memory_bytes = 0;
};

using KfdKey = std::tuple<unsigned, unsigned, unsigned>;  ///< PCI domain, bus, device

/// By PCI function, in the order of their numbers, without processors and devices outside the cgroup.
std::map<KfdKey, std::vector<KfdNode>> read_kfd(const std::string& root);

/// XGMI links between neighbours, ascending (from, to); `index`: the device of a node's number. Lanes are as
/// the vendors' libraries have them (vendor/amd.h).
std::vector<Link> read_kfd_links(const std::string& root, const std::map<int, int>& index);

}  // namespace hpclaunch::probe
