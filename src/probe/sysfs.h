#pragma once
// Devices and network interfaces as the kernel shows them. `root` is the prefix of /sys and /proc: ""
// on a real machine, a directory in tests.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/rank_report.h"
#include "hpclaunch/topology.h"
#include "probe/pci.h"

namespace hpclaunch::probe {

/// Packages, NUMA nodes, caches and cores, all of them allowed. At most two calls for each PU; nullopt where only
/// hwloc can tell: old processors and kernels, memory whose CPUs are not named, parts that overlap.
std::optional<Topology> read_processors(const std::string& root);

/// Accelerators by PCI class, vendor and device, driver or no driver; what amdgpu, i915, xe and NVIDIA's
/// driver show in files; partitions and XGMI links as the kernel's KFD has them. Opens no
/// library and no device. docs/reference/topology.md has the rules. A missing file means an unknown field.
void add_devices(const std::string& root, Topology& topology);

/// Network interfaces of a device, and adapters of InfiniBand, Omni-Path, EFA and Slingshot that
/// have none. `addresses` are this host's (sys::interfaces).
void add_nics(const std::string& root, const std::vector<Interface>& addresses, Topology& topology);

/// The partition mode that divides an AMD device into so many: "TPX" for 3; "" for one.
std::string partition_name(int parts);

/// An XGMI connection of two devices as KFD and ROCm SMI describe it. 0: unknown.
struct XgmiPath {
  std::uint64_t hops = 0;
  std::uint64_t weight = 0;         ///< 15 for each hop; 13 inside a package of MI300
  std::uint64_t min_bandwidth = 0;  ///< of one link
  std::uint64_t max_bandwidth = 0;  ///< of all parallel links; 0 where other devices are between
};

/// Parallel links; 0 when the path leads through other devices. `hops` cannot decide it: the library
/// reports 1 for every pair. Source: amdgpu, kfd_crat.c (weights; bandwidth of direct neighbours only).
int xgmi_lanes(const XgmiPath& path);

/// "GPU-" and 16 hexadecimal digits, as ROCm's tools print a serial number of 64 bits, from that number
/// with or without "GPU-". "" for all zeros and all ones, which mean none. Other text is unchanged.
std::string amd_uuid(const std::string& reported);

// ---- small files -----------------------------------------------------------------------------------

/// "folder/name"
std::string below(std::string_view folder, std::string_view name);

/// A file of at most 4 KiB, trimmed; "" when it cannot be read.
std::string read_small(const std::string& path);

/// Names in a folder, ascending, without those that begin with a dot; none when it cannot be read.
std::vector<std::string> names_in(const std::string& path);

/// Those that are `prefix` and a number: "card0", "card12".
std::vector<std::string> numbered_in(const std::string& path, std::string_view prefix);

bool exists(const std::string& path);

/// The last part of where a link leads: the name of a driver. "" when it is no link.
std::string link_name(const std::string& path);

/// The PCI function that `path`, links resolved, lies in or is.
std::optional<PciAddress> pci_function_of(const std::string& path);

/// Device::bridges of the PCI function whose folder `path` is, links resolved; empty without a PCI root above it.
std::vector<std::string> bridges_above(const std::string& path);

/// Decimal, or hexadecimal behind "0x". nullopt for anything else.
std::optional<unsigned long> number_in(const std::string& text);

/// The kernel's CPU list in a file; empty when there is none.
CpuSet cpus_in(const std::string& path);

/// The kernel's number of the NUMA node in a file; -1 for none.
int node_in(const std::string& path);

}  // namespace hpclaunch::probe
