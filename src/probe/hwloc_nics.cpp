#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "probe/hwloc_objects.h"
#include "probe/locality.h"

namespace hpclaunch::probe {
namespace {

bool is_type(hwloc_obj_t osdev, hwloc_obj_osdev_type_t type) {
#if HWLOC_API_VERSION >= 0x00030000
  return (osdev->attr->osdev.types & static_cast<hwloc_obj_osdev_types_t>(type)) != 0;
#else
  return osdev->attr->osdev.type == type;
#endif
}

/// The OS devices of one network function.
struct Ports {
  std::vector<hwloc_obj_t> interfaces;
  std::vector<hwloc_obj_t> fabrics;
};

bool carries_network(const PciFunction& function) {
  constexpr unsigned kOldInfiniband = 0x0c06;
  return function.class_id >> 8 == 0x02 || function.class_id == kOldInfiniband;
}

std::string name_of(hwloc_obj_t object) {
  return object == nullptr || object->name == nullptr ? "" : object->name;
}

std::string kind_of(const PciFunction& function, hwloc_obj_t interface, const std::string& fabric) {
  constexpr unsigned kCray = 0x17db;
  constexpr unsigned kAmazon = 0x1d0f;
  const bool named = interface != nullptr && interface->subtype != nullptr &&
                     std::string_view(interface->subtype) == "Slingshot";
  if (named || function.vendor == kCray) return "slingshot";
  if (function.vendor == kAmazon && function.device >> 4 == 0xefa) return "efa";
  if (fabric.rfind("hfi1", 0) == 0) return "omni-path";
  const bool fabric_class = function.class_id == 0x0207 || function.class_id == 0x0c06;
  constexpr std::size_t kEthernetAddress = 17;  // "52:54:00:00:01:00"; InfiniBand's have 20 bytes
  if (const std::size_t length = interface == nullptr ? 0 : info(interface, "Address").size();
      length > 0) {
    if (length > kEthernetAddress) return "infiniband";
    return fabric.empty() ? "ethernet" : "roce";
  }
  if (fabric_class || name_of(interface).rfind("ib", 0) == 0) return "infiniband";
  return fabric.empty() ? "ethernet" : "roce";
}

/// hwloc shows "4" for "4: ACTIVE" of a port. Where the port is unknown or has no state, one active port makes
/// the adapter active.
std::string state_of(hwloc_obj_t fabric, const std::string& port) {
  const std::string own = port.empty() ? "" : info(fabric, ("Port" + port + "State").c_str());
  if (!own.empty()) return own == "4" ? "up" : "down";
  constexpr int kMostPorts = 16;
  bool any = false;
  for (int number = 1; number <= kMostPorts; ++number) {
    const std::string state = info(fabric, ("Port" + std::to_string(number) + "State").c_str());
    if (state == "4") return "up";
    any = any || !state.empty();
  }
  return any ? "down" : "";
}

/// The adapter port of the interface; "" where it is unknown or not unique (older kernels number InfiniBand
/// ports in dev_id only, and hwloc reads dev_port where it exists).
std::string port_of(hwloc_obj_t interface, const Ports& ports) {
  if (interface == nullptr) return "";
  const std::string port = info(interface, "Port");
  const auto claims = std::count_if(ports.interfaces.begin(), ports.interfaces.end(),
                                    [&](hwloc_obj_t one) { return info(one, "Port") == port; });
  return claims == 1 ? port : "";
}

void add_nic(const PciFunction& function, hwloc_obj_t interface, hwloc_obj_t fabric,
             const std::string& port, const Locality& place,
             const std::vector<std::string>& bridges, Topology& to) {
  Nic nic;
  nic.name = name_of(interface);
  nic.fabric = name_of(fabric);
  nic.pci = to_string(function.address);
  set_locality(nic, place, to);
  nic.bridges = bridges;
  nic.kind = kind_of(function, interface, nic.fabric);
  if (nic.kind == "slingshot" && nic.fabric.empty()) {  // hsn0 runs on cxi0
    const std::size_t digits = nic.name.find_last_not_of("0123456789") + 1;
    if (digits < nic.name.size()) nic.fabric = "cxi" + nic.name.substr(digits);
  }
  if (fabric != nullptr) nic.state = state_of(fabric, port);
  to.nics.push_back(std::move(nic));
}

/// Network functions with the OS devices of each.
std::map<hwloc_obj_t, Ports> network_functions(hwloc_topology_t from) {
  std::map<hwloc_obj_t, Ports> functions;
  for (hwloc_obj_t osdev = nullptr; (osdev = hwloc_get_next_osdev(from, osdev)) != nullptr;) {
    hwloc_obj_t pci = pci_above(osdev);
    if (pci == nullptr || !carries_network(function_of(pci))) continue;
    const bool wireless =
        name_of(osdev).rfind("wl", 0) == 0;  // as systemd and the kernel name them
    if (is_type(osdev, HWLOC_OBJ_OSDEV_NETWORK) && !wireless)
      functions[pci].interfaces.push_back(osdev);
    if (is_type(osdev, HWLOC_OBJ_OSDEV_OPENFABRICS)) functions[pci].fabrics.push_back(osdev);
  }
  return functions;
}

bool is_share(hwloc_obj_t pci) {
  return is_share(function_of(pci)) ||
         info(pci, "PCIDevice").find("Virtual Function") != std::string::npos;
}

/// A root or switch port and the vendor below it: a physical function and its virtual functions share both.
/// None on bus 0 of a virtual machine, where unrelated functions are neighbours.
using Family = std::pair<hwloc_obj_t, unsigned>;

std::optional<Family> family_of(hwloc_obj_t pci) {
  hwloc_obj_t above = pci->parent;
  if (above->type != HWLOC_OBJ_BRIDGE || above->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI)
    return std::nullopt;
  return Family(above, function_of(pci).vendor);
}

/// SR-IOV functions count once: as the physical function, or as the virtual functions with interfaces where it
/// has none (a pod, which sees the adapters of all).
void count_shares_once(std::map<hwloc_obj_t, Ports>& functions) {
  struct Members {
    bool there = false, have_interface = false;
  };
  std::map<Family, std::pair<Members, Members>> families;  // the physical ones, the shares
  for (const auto& [pci, ports] : functions) {
    const std::optional<Family> family = family_of(pci);
    if (!family) continue;
    auto& [whole, shares] = families[*family];
    Members& members = is_share(pci) ? shares : whole;
    members.there = true;
    members.have_interface = members.have_interface || !ports.interfaces.empty();
  }
  for (auto at = functions.begin(); at != functions.end();) {
    const std::optional<Family> family = family_of(at->first);
    const auto [whole, shares] = family ? families[*family] : std::pair<Members, Members>();
    const bool as_shares = shares.have_interface && !whole.have_interface;
    const bool counts =
        as_shares ? is_share(at->first) && !at->second.interfaces.empty() : !is_share(at->first);
    const bool twice = whole.there && shares.there && !counts;
    at = twice ? functions.erase(at) : std::next(at);
  }
}

}  // namespace

PciFunction function_of(hwloc_obj_t pci) {
  const auto& attributes = pci->attr->pcidev;
  return {{attributes.domain, attributes.bus, attributes.dev, attributes.func},
          attributes.class_id,
          attributes.vendor_id,
          attributes.device_id};
}

hwloc_obj_t pci_above(hwloc_obj_t object) {
  while (object != nullptr && object->type != HWLOC_OBJ_PCI_DEVICE) object = object->parent;
  return object;
}

std::vector<std::string> bridges_above(hwloc_obj_t pci) {
  std::vector<std::string> bridges;
  for (hwloc_obj_t at = pci->parent; at != nullptr; at = at->parent) {
    if (at->type != HWLOC_OBJ_BRIDGE) continue;
    const auto& bridge = at->attr->bridge;
    if (bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI) {
      const auto& own = bridge.upstream.pci;
      bridges.push_back(to_string(PciAddress{own.domain, own.bus, own.dev, own.func}));
      continue;
    }
    const auto& below = bridge.downstream.pci;
    const std::string first = to_string(PciAddress{below.domain, below.secondary_bus, 0, 0});
    bridges.push_back(first.substr(0, first.rfind(':')));
    std::reverse(bridges.begin(), bridges.end());
    return bridges;
  }
  return {};
}

ObjectLocality::ObjectLocality(hwloc_topology_t from, const Topology& to)
    : from_(from), to_(to), board_(info(hwloc_get_root_obj(from), "DMIBoardName")) {
#if HWLOC_API_VERSION >= 0x00030000
  const char* name = hwloc_get_info_by_name(hwloc_topology_get_infos(from), "DMIBoardName");
  if (name != nullptr) board_ = name;
#endif
}

CpuSet ObjectLocality::near(hwloc_obj_t object) const {
  if (const hwloc_obj_t pci = pci_above(object); pci != nullptr) {
    const CpuSet wired = near_on_board(board_, function_of(pci).address, to_);
    if (!wired.empty()) return wired;
  }
  hwloc_obj_t home = hwloc_get_non_io_ancestor_obj(from_, object);
  if (home != nullptr && hwloc_bitmap_iszero(home->cpuset)) {
    while (home != nullptr && hwloc_bitmap_iszero(home->cpuset)) home = home->parent;
    if (home == hwloc_get_root_obj(from_)) return {};  // the rest of the machine is elsewhere
  }
  const Result<CpuSet> set = home == nullptr ? CpuSet{} : to_cpu_set(home->cpuset);
  return set ? *set : CpuSet{};
}

int ObjectLocality::bare_node(hwloc_obj_t object) const {
  const hwloc_obj_t home = hwloc_get_non_io_ancestor_obj(from_, object);
  const bool bare = home != nullptr && hwloc_bitmap_iszero(home->cpuset) &&
                    home->complete_cpuset != nullptr &&
                    !hwloc_bitmap_iszero(home->complete_cpuset) && home->nodeset != nullptr &&
                    hwloc_bitmap_weight(home->nodeset) == 1;
  return bare ? hwloc_bitmap_first(home->nodeset) : -1;
}

void add_interfaces(hwloc_topology_t from, const ObjectLocality& where, Topology& to) {
  std::map<hwloc_obj_t, Ports> functions = network_functions(from);
  count_shares_once(functions);
  for (const auto& [pci, ports] : functions) {
    const Locality place = locality_of(where.near(pci), where.bare_node(pci), to);
    const std::vector<std::string> bridges = bridges_above(pci);
    const std::size_t count = std::max(ports.interfaces.size(), ports.fabrics.size());
    for (std::size_t i = 0; i < count; ++i) {
      // One adapter with two ports has two interfaces and one name as a fabric.
      const auto of = [i](const std::vector<hwloc_obj_t>& all, bool last) -> hwloc_obj_t {
        if (i < all.size()) return all[i];
        return last && !all.empty() ? all.back() : nullptr;
      };
      hwloc_obj_t interface = of(ports.interfaces, false);
      add_nic(function_of(pci), interface, of(ports.fabrics, true), port_of(interface, ports),
              place, bridges, to);
    }
  }
  std::stable_sort(to.nics.begin(), to.nics.end(),
                   [](const Nic& a, const Nic& b) { return a.pci < b.pci; });
  sort_nics(to.nics);
}

}  // namespace hpclaunch::probe
