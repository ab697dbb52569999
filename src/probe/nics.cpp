#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "hpclaunch/text.h"
#include "probe/locality.h"
#include "probe/sysfs.h"

namespace hpclaunch::probe {
namespace {

// Kernel: include/uapi/linux/if_arp.h.
constexpr const char* kEthernet = "1";
constexpr const char* kInfiniband = "32";

std::string up_or_down(bool up) { return up ? "up" : "down"; }

// ---- adapters of a fabric --------------------------------------------------------------------------

/// One port of an adapter, or the adapter itself where it has no ports.
struct Wire {
  std::string number;  ///< as its folder is named, "1"
  std::string kind;
  std::string state;
  int speed_mbps = 0;
};

/// Something in a folder of /sys/class that has a PCI function.
struct Entry {
  std::string name;   ///< "mlx5_0", "hfi1_0", "cxi0", "hsn0"
  std::string path;   ///< of its class
  std::string pci;    ///< "" for none
  std::string whole;  ///< PCI address of the physical function, of a virtual one (SR-IOV)
};

Entry entry_of(const std::string& classes, const std::string& name) {
  Entry entry{name, below(classes, name), "", ""};
  const std::string device = below(entry.path, "device");
  if (const auto address = pci_function_of(device)) entry.pci = to_string(*address);
  const std::string physical = below(device, "physfn");
  if (!exists(physical)) return entry;
  if (const auto address = pci_function_of(physical)) entry.whole = to_string(*address);
  return entry;
}

/// An adapter as /sys/class/infiniband or /sys/class/cxi shows it.
struct Adapter : Entry {
  std::vector<Wire> wires;  ///< never empty
};

/// The port with that number, else the first active one, else the first.
const Wire& wire_of(const Adapter& adapter, const std::string& number) {
  return *std::ranges::max_element(adapter.wires, {}, [&](const Wire& wire) {
    return std::pair(!number.empty() && wire.number == number, wire.state == "up");
  });
}

/// "100 Gb/sec (4X EDR)"
int speed_in(const std::string& rate) {
  const std::size_t end = std::min(rate.find(' '), rate.size());
  const auto whole = parse_natural(rate.substr(0, std::min(rate.find('.'), end)), 2'000'000);
  if (!whole || rate.find("Gb/sec") == std::string::npos) return 0;
  const bool half = rate.substr(0, end).find(".5") != std::string::npos;
  return static_cast<int>(*whole) * 1000 + (half ? 500 : 0);
}

std::string kind_of(const std::string& name, const std::string& driver, const std::string& layer) {
  if (driver == "efa") return "efa";
  if (name.rfind("hfi1", 0) == 0 || driver == "hfi1") return "omni-path";
  if (layer == "InfiniBand") return "infiniband";
  return layer == "Ethernet" ? "roce" : "";
}

Adapter verbs_adapter(const std::string& classes, const std::string& name) {
  Adapter adapter{entry_of(classes, name), {}};
  const std::string driver = link_name(below(adapter.path, "device/driver"));
  for (const std::string& port : names_in(below(adapter.path, "ports"))) {
    const std::string folder = below(below(adapter.path, "ports"), port);
    const bool active = read_small(below(folder, "state")).rfind("4:", 0) == 0;  // "4: ACTIVE"
    adapter.wires.push_back({port, kind_of(name, driver, read_small(below(folder, "link_layer"))),
                             up_or_down(active), speed_in(read_small(below(folder, "rate")))});
  }
  if (adapter.wires.empty()) adapter.wires.push_back({"", kind_of(name, driver, ""), "", 0});
  return adapter;
}

std::vector<Adapter> adapters(const std::string& root) {
  std::vector<Adapter> found;
  const std::string verbs = below(root, "sys/class/infiniband");
  for (const std::string& name : names_in(verbs)) found.push_back(verbs_adapter(verbs, name));
  const std::string cxi = below(root, "sys/class/cxi");
  for (const std::string& name : names_in(cxi))
    found.push_back({entry_of(cxi, name), {{"", "slingshot", "", 0}}});
  // A software device over any interface (rxe, siw) has no PCI function.
  std::erase_if(found, [](const Adapter& adapter) { return adapter.pci.empty(); });
  return found;
}

// ---- interfaces ------------------------------------------------------------------------------------

/// An interface of a device.
struct Port : Entry {
  std::string type;  ///< of if_arp.h
};

/// A switch's own view of a virtual function or a sub-function ("pf0vf3", "c1pf0sf88"); the uplink is "p0".
bool is_representor(const std::string& path) {
  const std::string port = read_small(below(path, "phys_port_name"));
  const std::size_t function = port.find("pf");
  return function != std::string::npos && (port.find("vf", function) != std::string::npos ||
                                           port.find("sf", function) != std::string::npos);
}

/// Not for a job's traffic: wireless, on USB (service processors have such).
bool unfit(const std::string& path, const std::string& device) {
  if (is_representor(path)) return true;
  return exists(below(path, "phy80211")) || exists(below(path, "wireless")) ||
         exists(below(device, "bInterfaceClass"));
}

std::vector<Port> ports(const std::string& root) {
  std::vector<Port> found;
  const std::string net = below(root, "sys/class/net");
  for (const std::string& name : names_in(net)) {
    const std::string path = below(net, name);
    const std::string device = below(path, "device");
    if (!exists(device) || unfit(path, device)) continue;
    const std::string type = read_small(below(path, "type"));
    if (type == kEthernet || type == kInfiniband) found.push_back({entry_of(net, name), type});
  }
  return found;
}

/// A pod has the interface of its virtual function in its network namespace, but often sees the adapters of
/// all functions, which it cannot use.
void count_shares_once(std::vector<Port>& ports, std::vector<Adapter>& adapters) {
  std::map<std::string, NetFunction> counting;  // by PCI address
  const auto add = [&](const auto& one, bool interface) {
    NetFunction& function = counting[one.pci];
    function = {one.whole.empty() ? one.pci : one.whole, !one.whole.empty(),
                interface || function.has_interface};
  };
  for (const Port& port : ports) add(port, true);
  for (const Adapter& adapter : adapters) add(adapter, false);
  count_once(counting);
  const auto left_out = [&](const auto& one) { return !counting.contains(one.pci); };
  std::erase_if(ports, left_out);
  std::erase_if(adapters, left_out);
}

/// The adapter port of an interface. Older kernels number InfiniBand ports in dev_id, all others in dev_port;
/// the other file has 0.
std::string port_of(const std::string& path) {
  unsigned long last = 0;
  bool known = false;
  for (const char* name : {"dev_port", "dev_id"}) {
    const auto number = number_in(read_small(below(path, name)));
    known = known || number.has_value();
    last = std::max(last, number.value_or(0));
  }
  return known ? std::to_string(last + 1) : "";
}

std::string state_of(const std::string& path) {
  const std::string state = read_small(below(path, "operstate"));
  if (state == "up") return "up";
  if (state != "unknown" && !state.empty()) return "down";
  const std::string carrier = read_small(below(path, "carrier"));  // unreadable while it is down
  if (carrier.empty()) return state.empty() ? "" : "down";
  return up_or_down(carrier == "1");
}

/// The interface with the addresses: a bond, a bridge or a VLAN may be above the physical one.
std::string carrier_of_addresses(const std::string& net, const std::string& name,
                                 const std::map<std::string, std::vector<std::string>>& addresses,
                                 int depth = 0) {
  constexpr int kMostLayers = 4;
  const auto has = [&](const std::string& one) {
    const auto at = addresses.find(one);
    return at != addresses.end() && !at->second.empty();
  };
  if (has(name) || depth == kMostLayers) return name;
  for (const std::string& entry : names_in(below(net, name))) {
    constexpr std::string_view kUpper = "upper_";
    if (entry.rfind(kUpper, 0) != 0) continue;
    std::string above =
        carrier_of_addresses(net, entry.substr(kUpper.size()), addresses, depth + 1);
    if (has(above)) return above;
  }
  return name;
}

/// Locality and bridges of the NIC's PCI function; where it has none, the locality of `device`.
void place(const std::string& root, const std::string& device, const Topology& topology, Nic& nic) {
  const std::string functions = below(root, "sys/bus/pci/devices");
  const std::string folder = nic.pci.empty() ? device : below(functions, nic.pci);
  const std::string board = read_small(below(root, "sys/class/dmi/id/board_name"));
  CpuSet near;
  if (const auto address = parse_pci(nic.pci)) near = near_on_board(board, *address, topology);
  if (near.empty()) near = cpus_in(below(folder, "local_cpulist"));
  set_locality(nic, locality_of(near, node_in(below(folder, "numa_node")), topology), topology);
  if (!nic.pci.empty()) nic.bridges = bridges_above(folder);
}

Nic nic_of(const Port& port) {
  Nic nic;
  nic.pci = port.pci;
  const bool cxi = link_name(below(port.path, "device/driver")).starts_with("cxi");
  nic.kind = cxi ? "slingshot" : port.type == kInfiniband ? "infiniband" : "ethernet";
  nic.state = state_of(port.path);
  const auto speed = parse_natural(read_small(below(port.path, "speed")), 2'000'000'000);
  nic.speed_mbps = static_cast<int>(speed.value_or(0));  // "-1", or unreadable, while down
  return nic;
}

/// Where no device of the node carries an address: those of a network namespace, as a pod has them (veth, macvlan).
void add_software_interfaces(const std::string& net,
                             const std::map<std::string, std::vector<std::string>>& addresses,
                             std::vector<Nic>& nics) {
  for (const auto& [name, of_it] : addresses) {
    const std::string path = below(net, name);
    if (of_it.empty() || read_small(below(path, "type")) != kEthernet) continue;
    if (exists(below(path, "bridge")) || exists(below(path, "tun_flags"))) continue;
    Nic nic;
    nic.name = name;
    nic.kind = "ethernet";
    nic.addresses = of_it;
    nic.state = state_of(path);
    nics.push_back(std::move(nic));
  }
}

/// Applies what the adapter's port reports more exactly than the interface.
void apply(const Adapter& adapter, const Wire& wire, Nic& nic) {
  nic.fabric = adapter.name;
  if (!wire.kind.empty()) nic.kind = wire.kind;
  // Verbs need no IP interface that is up; its addresses are then missing.
  if ((wire.kind == "infiniband" || wire.kind == "omni-path") && !wire.state.empty())
    nic.state = wire.state;
  if (wire.speed_mbps > 0 && nic.speed_mbps == 0) nic.speed_mbps = wire.speed_mbps;
}

}  // namespace

void add_nics(const std::string& root, const std::vector<Interface>& addresses,
              Topology& topology) {
  const std::string net = below(root, "sys/class/net");
  // An interface that is down may keep addresses that do not work.
  std::map<std::string, std::vector<std::string>> address_of;
  for (const Interface& one : addresses)
    if (one.up && state_of(below(net, one.name)) != "down") address_of[one.name] = one.addresses;
  std::vector<Adapter> known = adapters(root);
  std::vector<Port> seen = ports(root);
  count_shares_once(seen, known);
  std::set<std::string> used;
  for (const Port& port : seen) {
    Nic nic = nic_of(port);
    nic.name = carrier_of_addresses(net, port.name, address_of);
    nic.addresses = address_of[nic.name];
    place(root, below(port.path, "device"), topology, nic);
    const auto adapter = std::ranges::find(known, port.pci, &Adapter::pci);
    if (adapter != known.end()) {
      apply(*adapter, wire_of(*adapter, port_of(port.path)), nic);
      used.insert(adapter->name);
    }
    topology.nics.push_back(std::move(nic));
  }
  for (const Adapter& adapter : known) {  // those without an interface
    if (used.contains(adapter.name)) continue;
    const Wire& wire = wire_of(adapter, "");
    Nic nic;
    nic.pci = adapter.pci;
    apply(adapter, wire, nic);
    nic.state = wire.state;
    place(root, "", topology, nic);
    topology.nics.push_back(std::move(nic));
  }
  if (std::ranges::all_of(topology.nics, [](const Nic& nic) { return nic.addresses.empty(); }))
    add_software_interfaces(net, address_of, topology.nics);
  sort_nics(topology.nics);
}

}  // namespace hpclaunch::probe
