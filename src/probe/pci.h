#pragma once
// What a PCI function is, from its configuration space alone. Pure.
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace hpclaunch::probe {

/// Where a function sits; ascending order is the order in which drivers number their devices.
struct PciAddress {
  unsigned domain = 0;
  unsigned bus = 0;       ///< 0..255
  unsigned device = 0;    ///< 0..31
  unsigned function = 0;  ///< 0..7
  // clang-tidy 14 finds a 0 in what the compiler writes here. NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const PciAddress&, const PciAddress&) = default;
};

/// Reads "0000:c1:00.0" as the kernel and hwloc write it (domains of up to 8 digits, any case).
std::optional<PciAddress> parse_pci(std::string_view text);

/// "0000:c1:00.0": lower case, a domain of at least 4 digits.
std::string to_string(const PciAddress& address);

struct PciFunction {
  PciAddress address;
  unsigned class_id = 0;  ///< base class and subclass: 0x0302
  unsigned vendor = 0;
  unsigned device = 0;
};

/// "nvidia", "amd", "intel" when programs can compute on it; "" for anything else: the picture of a
/// service processor, a processor's own graphics on bus 0, bridges, switches, sound. docs/reference/topology.md has
/// the rules.
std::string accelerator_vendor(const PciFunction& function);

/// The product name of accelerators found in compute nodes (profiles/programs/gpus.json); "" for any other.
std::string model_name(const PciFunction& function);

/// Tiles of an Intel device, 2 or more; 0 when it is one piece, or not listed. Source: pci.ids.
int tiles_of(const PciFunction& function);

/// Whether an Intel device with this number can have two tiles, listed in pci.ids or not.
bool may_have_tiles(unsigned intel_device);

/// A network adapter's share by SR-IOV (a virtual function), where its vendor gives those numbers of their own.
/// Sources: the tables of PCI ids of the Linux drivers mlx4_core, mlx5_core, iavf, ixgbevf and igbvf.
bool is_share(const PciFunction& function);

}  // namespace hpclaunch::probe
