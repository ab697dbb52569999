#pragma once
// From what was found on the buses to the devices of a topology: where they are, in which order. Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/topology.h"
#include "probe/pci.h"

namespace hpclaunch::probe {

/// A device that has no number yet.
struct FoundDevice {
  Device device;  ///< `pci`, `numa` and `pus` are settled by attach_devices
  std::optional<PciAddress> address;
  CpuSet near;       ///< the CPUs that it was found beside; those of all the machine say nothing
  int numa = -1;     ///< as the system says; -1: it does not
  int number = -1;   ///< as the vendor's runtime counts it; -1: not told
  int sequence = 0;  ///< order among those of one address (partitions), and among those of none
};

/// The place of something near `near` and, where the system names one, on NUMA node `numa`. Cut to what
/// exists. Where both say nothing, it is the only NUMA node of a machine that has but one.
struct Place {
  int numa = -1;
  CpuSet pus;
};
Place place_of(const CpuSet& near, int numa, const Topology& topology);

/// Puts an interface there: its own CPUs are kept where no NUMA node says them.
void put(Nic& nic, const Place& place, const Topology& topology);

/// What decides about the order of a node's devices.
struct Standing {
  std::string_view vendor;
  std::optional<PciAddress> address;
  int number = -1;   ///< as in FoundDevice
  int sequence = 0;  ///< as in FoundDevice
};

/// Places in `devices` in the order in which they are numbered: by the runtime's number where all devices of
/// the vendor have one, else by PCI address, then `sequence`, those without an address last. Where there are
/// several vendors, the one with the most devices comes first (then by name, "nvidia" before the others), so
/// that its numbers are what its masks count. Equal ones stay as they are.
std::vector<std::size_t> device_order(const std::vector<Standing>& devices);

/// Numbers the devices and puts them into `topology`, in that order. Returns the places that they had in
/// `found`, in their new order.
std::vector<std::size_t> attach_devices(std::vector<FoundDevice> found, Topology& topology);

/// Sorts interfaces: fabrics before plain Ethernet, then by name, numbers in it by value.
void sort_nics(std::vector<Nic>& nics);

/// True when `a` comes before `b`, digits compared as numbers: "hsn2" before "hsn10".
bool natural_less(const std::string& a, const std::string& b);

/// The partition mode that cuts an AMD device into so many: "TPX" for 3; "" for one.
std::string partition_name(int parts);

/// What ROCm's tools print for a serial number of 64 bits in hexadecimal, with or without "GPU-" before it:
/// "GPU-" and 16 digits. "" for all zeros and all ones, which mean that there is none. Other text stays as
/// it is.
std::string amd_uuid(const std::string& told);

}  // namespace hpclaunch::probe
