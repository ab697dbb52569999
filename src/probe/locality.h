#pragma once
// The NUMA node and CPUs near a device or interface, and the order of devices. Pure.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/topology.h"
#include "probe/pci.h"

namespace hpclaunch::probe {

/// A device without an index.
struct FoundDevice {
  Device device;  ///< `pci`, `numa` and `pus` are set by add_in_order
  std::optional<PciAddress> address;
  CpuSet near;       ///< near CPUs as reported; all CPUs of the machine mean unknown
  int numa = -1;     ///< as the system reports it; -1 unknown
  int number = -1;   ///< as the vendor's runtime counts it; -1 unknown
  int sequence = 0;  ///< order among devices of one address (partitions), and of those without one
};

struct Locality {
  int numa = -1;
  CpuSet pus;
};

/// The locality of something near the CPUs `near` and, where the system reports it, on NUMA node `numa`,
/// restricted to what exists. If both are unknown: the only NUMA node of a machine with just one.
Locality locality_of(const CpuSet& near, int numa, const Topology& topology);

/// Sets the interface's NUMA node, and its CPUs where the node does not imply them.
void set_locality(Nic& nic, const Locality& locality, const Topology& topology);

/// The OS index of the NUMA node with the fewest CPUs that contains all of `pus`, the first of equals (DDR
/// before HBM); -1 for none.
int home_of(const CpuSet& pus, const Topology& topology);

/// Orders packages, NUMA nodes and caches by the positions of their cores (of NUMA nodes with equal CPUs the lowest
/// number first: DDR before HBM), numbers by position what firmware numbers twice, and names the homes of cores.
void settle(Topology& topology);

/// CPUs near a PCI address on a board whose firmware reports less than the wiring: those that share a
/// last-level cache with the wired one. Empty for any other board and address. `board`: the firmware's name
/// (/sys/class/dmi/id/board_name, hwloc's DMIBoardName).
CpuSet near_on_board(std::string_view board, const PciAddress& address, const Topology& topology);

/// Positions in `devices` in index order: by the runtime's number where all devices of the vendor have one, else
/// by PCI address, then `sequence`, those without an address last. The vendor with the most devices comes first
/// (then by name, "nvidia" before others), so that its indices are what its masks count. Stable.
std::vector<std::size_t> device_order(const std::vector<FoundDevice>& devices);

/// Appends the devices to `topology` in that order, with their indices. Returns their positions in `found`, in
/// the new order.
std::vector<std::size_t> add_in_order(std::vector<FoundDevice> found, Topology& topology);

/// A network function, as far as SR-IOV divides it.
struct NetFunction {
  std::string family;  ///< the same for a physical function and its virtual ones; "" alone
  bool is_virtual = false;
  bool has_interface = false;
};

/// Keeps of each family the physical function, or the virtual ones with interfaces where only those have any
/// (a pod, which sees the adapters of all).
template <class Key>
void count_once(std::map<Key, NetFunction>& functions) {
  std::set<std::string> physical, physical_in_use, virtual_in_use;  // families
  for (const auto& [key, one] : functions) {
    if (!one.is_virtual) physical.insert(one.family);
    if (one.has_interface) (one.is_virtual ? virtual_in_use : physical_in_use).insert(one.family);
  }
  std::erase_if(functions, [&](const auto& entry) {
    const NetFunction& one = entry.second;
    if (one.family.empty()) return false;
    const bool as_virtual =
        virtual_in_use.contains(one.family) && !physical_in_use.contains(one.family);
    return as_virtual ? !one.is_virtual || !one.has_interface
                      : one.is_virtual && physical.contains(one.family);
  });
}

/// Sorts interfaces: fabrics before plain Ethernet, then by name, numbers in it by value.
void sort_nics(std::vector<Nic>& nics);

}  // namespace hpclaunch::probe
