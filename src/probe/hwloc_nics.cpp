#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "probe/hwloc_objects.h"
#include "probe/locality.h"

namespace hpclaunch::probe {
namespace {

bool is_type(hwloc_obj_t osdev, unsigned long type) {
#if HWLOC_API_VERSION >= 0x00030000
  return (osdev->attr->osdev.types & type) != 0;
#else
  return static_cast<unsigned long>(osdev->attr->osdev.type) == type;
#endif
}

/// The OS devices of one network function.
struct Ports {
  std::vector<hwloc_obj_t> interfaces;
  std::vector<hwloc_obj_t> fabrics;
};

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
  constexpr std::size_t kEthernetAddress = 17;  // "52:54:00:00:01:00"; InfiniBand's have 20 bytes
  const std::size_t address = interface == nullptr ? 0 : info(interface, "Address").size();
  const bool fabric_class = function.class_id == 0x0207 || function.class_id == 0x0c06;
  const bool infiniband = address > 0 ? address > kEthernetAddress
                                      : fabric_class || name_of(interface).starts_with("ib");
  if (infiniband) return "infiniband";
  return fabric.empty() ? "ethernet" : "roce";
}

/// hwloc shows "4" for "4: ACTIVE" of a port. Where the port is unknown or has no state, one active port makes
/// the adapter active.
std::string state_of(hwloc_obj_t fabric, const std::string& port) {
  constexpr int kMostPorts = 16;
  const auto state = [&](const std::string& of) {
    return info(fabric, ("Port" + of + "State").c_str());
  };
  const std::string own = port.empty() ? "" : state(port);
  if (!own.empty()) return own == "4" ? "up" : "down";
  std::string any;
  for (int number = 1; number <= kMostPorts && any != "4"; ++number)
    if (std::string one = state(std::to_string(number)); !one.empty()) any = std::move(one);
  return any.empty() ? "" : any == "4" ? "up" : "down";
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

/// `nic` has what all interfaces of the function have in common.
void add_nic(Nic nic, const PciFunction& function, hwloc_obj_t interface, hwloc_obj_t fabric,
             const std::string& port, Topology& to) {
  nic.name = name_of(interface);
  nic.fabric = name_of(fabric);
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
  constexpr unsigned kNetworks = 0x02, kOldInfiniband = 0x0c06;
  std::map<hwloc_obj_t, Ports> functions;
  for (hwloc_obj_t osdev = nullptr; (osdev = hwloc_get_next_osdev(from, osdev)) != nullptr;) {
    hwloc_obj_t pci = pci_above(osdev);
    const unsigned class_id = pci == nullptr ? 0 : function_of(pci).class_id;
    if (class_id >> 8 != kNetworks && class_id != kOldInfiniband) continue;
    const bool wireless =
        name_of(osdev).rfind("wl", 0) == 0;  // as systemd and the kernel name them
    // hwloc 3 calls an adapter such as mlx5_0 a network device too, and 2.14 calls cxi0 nothing else.
    if (is_type(osdev, HWLOC_OBJ_OSDEV_OPENFABRICS) || name_of(osdev).starts_with("cxi"))
      functions[pci].fabrics.push_back(osdev);
    else if (is_type(osdev, HWLOC_OBJ_OSDEV_NETWORK) && !wireless)
      functions[pci].interfaces.push_back(osdev);
  }
  return functions;
}

bool is_share(hwloc_obj_t pci) {
  return is_share(function_of(pci)) ||
         info(pci, "PCIDevice").find("Virtual Function") != std::string::npos;
}

/// A root or switch port and the vendor below it, which a physical function and its virtual functions share.
/// None on bus 0 of a virtual machine, where unrelated functions are neighbours.
std::string family_of(hwloc_obj_t pci) {
  hwloc_obj_t above = pci->parent;
  if (above->type != HWLOC_OBJ_BRIDGE || above->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI)
    return "";
  return fmt::format("{} {}", above->gp_index, function_of(pci).vendor);
}

void count_shares_once(std::map<hwloc_obj_t, Ports>& functions) {
  std::map<hwloc_obj_t, NetFunction> counting;
  std::set<std::string> with_physical;  // a virtual machine has virtual functions alone: all count
  for (const auto& [pci, ports] : functions) {
    counting[pci] = {family_of(pci), is_share(pci), !ports.interfaces.empty()};
    if (!is_share(pci)) with_physical.insert(family_of(pci));
  }
  for (auto& [pci, one] : counting)
    if (!with_physical.contains(one.family)) one.family.clear();
  count_once(counting);
  std::erase_if(functions, [&](const auto& one) { return !counting.contains(one.first); });
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
    : from_(from), to_(to), board_(machine_info(from, "DMIBoardName")) {}

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
  return home == nullptr ? CpuSet{} : to_cpu_set(home->cpuset);
}

int ObjectLocality::bare_node(hwloc_obj_t object) const {
  const hwloc_obj_t home = hwloc_get_non_io_ancestor_obj(from_, object);
  if (home == nullptr || !hwloc_bitmap_iszero(home->cpuset)) return -1;
  for (hwloc_const_bitmap_t nodes : {home->nodeset, home->complete_nodeset})
    if (nodes != nullptr && hwloc_bitmap_weight(nodes) == 1) return hwloc_bitmap_first(nodes);
  return -1;
}

void add_interfaces(hwloc_topology_t from, const ObjectLocality& where, Topology& to) {
  std::map<hwloc_obj_t, Ports> functions = network_functions(from);
  count_shares_once(functions);
  for (const auto& [pci, ports] : functions) {
    Nic nic;
    nic.pci = to_string(function_of(pci).address);
    nic.bridges = bridges_above(pci);
    set_locality(nic, locality_of(where.near(pci), where.bare_node(pci), to), to);
    // One adapter with two ports has two interfaces and one name as a fabric.
    const std::size_t count = std::max(ports.interfaces.size(), ports.fabrics.size());
    for (std::size_t i = 0; i < count; ++i) {
      hwloc_obj_t interface = i < ports.interfaces.size() ? ports.interfaces[i] : nullptr;
      hwloc_obj_t fabric = i < ports.fabrics.size() ? ports.fabrics[i] : nullptr;
      if (fabric == nullptr && !ports.fabrics.empty()) fabric = ports.fabrics.back();
      add_nic(nic, function_of(pci), interface, fabric, port_of(interface, ports), to);
    }
  }
  std::ranges::stable_sort(to.nics, {}, &Nic::pci);
  sort_nics(to.nics);
}

}  // namespace hpclaunch::probe
