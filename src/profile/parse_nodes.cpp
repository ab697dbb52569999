#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "node_model.h"
#include "parse.h"

namespace hpclaunch::profile {
namespace {

constexpr int kMostMemory = 1'000'000'000;  // in MiB
constexpr std::uint64_t kMiB = 1024 * 1024;

/// Reads what belongs to one node; keeps the shape that the parts refer to.
class NodeReader {
 public:
  NodeReader(Context& context, const Item& at)
      : context_(context), object_(context, at), problems_before_(context.count()) {}

  NodeModel read();

 private:
  bool read_shape();
  void read_memory();
  void read_extra();
  CpuSet read_cores(Object& object, Need need);
  void read_reserved();
  void read_services();
  void read_devices();
  Device read_device(const Item& at, const Device& common, int index);
  void read_links(Object& devices);
  void read_nics();
  int read_numa(Object& object);
  void read_place(Object& object, Nic& nic);
  void check();
  Item place_of(const std::string& pointer);

  Context& context_;
  Object object_;
  std::size_t problems_before_;
  NodeShape shape_;
  NodeModel node_;
};

/// False when the counts make no node that could be built.
bool NodeReader::read_shape() {
  constexpr int kMostPackages = 64;
  constexpr int kMostThreads = 16;
  shape_.packages = object_.whole("packages", 1, kMostPackages, std::nullopt);
  shape_.numa_per_package = object_.whole("numa_per_package", 1, kMostPackages, 1);
  shape_.cores_per_numa = object_.whole("cores_per_numa", 1, CpuSet::kCapacity, std::nullopt);
  shape_.l3_per_numa = object_.whole("l3_per_numa", 0, CpuSet::kCapacity, 0);
  shape_.threads_per_core = object_.whole("threads_per_core", 1, kMostThreads, 1);
  shape_.adjacent = object_.choice("siblings", kSiblings) == "adjacent";
  shape_.package_model = object_.text("package_model");
  const long pus = static_cast<long>(shape_.cores()) * shape_.threads_per_core;
  if (pus > CpuSet::kCapacity) {
    context_.fault(object_.at(),
                   fmt::format("the node has {} hardware threads, and {} is the limit", pus,
                               CpuSet::kCapacity),
                   "check packages, numa_per_package, cores_per_numa and threads_per_core");
    return false;
  }
  if (shape_.l3_per_numa > 0 && shape_.cores_per_numa % shape_.l3_per_numa != 0) {
    context_.fault(object_.find("l3_per_numa"),
                   fmt::format("{} cores do not divide evenly among {} caches",
                               shape_.cores_per_numa, shape_.l3_per_numa),
                   "leave \"l3_per_numa\" out when caches differ in size");
    shape_.l3_per_numa = 0;
  }
  return true;
}

void NodeReader::read_memory() {
  const Item at = object_.find("numa_memory_mb");
  if (!at) return;
  const auto count = static_cast<std::size_t>(shape_.numa_nodes());
  const auto bytes = [&](const Item& item) {
    return static_cast<std::uint64_t>(context_.whole(item, 1, kMostMemory)) * kMiB;
  };
  if (at.json->kind != Json::Kind::array) {
    shape_.memory.assign(count, bytes(at));
    return;
  }
  for (const Item& item : context_.elements(at, "numbers")) shape_.memory.push_back(bytes(item));
  if (shape_.memory.size() != count) {
    context_.fault(at, fmt::format("{} numbers for {} NUMA nodes", shape_.memory.size(), count),
                   "write one number for each, or one for all");
  }
}

void NodeReader::read_extra() {
  for (const Item& item : object_.elements("memory_only_numa", "objects")) {
    Object object(context_, item);
    ExtraMemory memory;
    memory.os_index = object.whole("os_index", 0, CpuSet::kCapacity, std::nullopt);
    memory.bytes = static_cast<std::uint64_t>(object.whole("memory_mb", 0, kMostMemory, 0)) * kMiB;
    const Item near = object.find("near_numa");
    if (near) memory.near_numa = context_.whole(near, 0, shape_.numa_nodes() - 1);
    object.finish();
    const bool taken =
        memory.os_index < shape_.numa_nodes() ||
        std::any_of(shape_.extra.begin(), shape_.extra.end(),
                    [&](const ExtraMemory& other) { return other.os_index == memory.os_index; });
    if (taken && object.has("os_index")) {
      context_.fault(object.find("os_index"),
                     fmt::format("two NUMA nodes have the number {}", memory.os_index),
                     fmt::format("NUMA nodes with cores are 0 to {}", shape_.numa_nodes() - 1));
      continue;
    }
    shape_.extra.push_back(memory);
  }
}

/// The PUs of the cores that "cores" lists, siblings included.
CpuSet NodeReader::read_cores(Object& object, Need need) {
  const Item at = object.find("cores", need);
  const CpuSet cores = context_.cores(at);
  if (cores.last() >= shape_.cores()) {
    context_.fault(at, fmt::format("core {} does not exist", cores.last()),
                   fmt::format("the node has cores 0 to {}", shape_.cores() - 1));
  }
  return shape_.pus_of_cores(cores);
}

void NodeReader::read_reserved() {
  const Item at = object_.find("reserved");
  if (!at) return;
  Object object(context_, at);
  node_.reserved = read_cores(object, Need::required);
  node_.reserved_why = object.text("why");
  object.finish();
  node_.topology.allowed -= node_.reserved;
}

void NodeReader::read_services() {
  const std::vector<Item> items = object_.elements("services", "objects");
  for (const Item& item : items) {
    Object object(context_, item);
    ServiceCores service;
    service.name = object.word("name", Need::required);
    service.pus = read_cores(object, Need::required);
    service.why = object.text("why");
    for (const Item& one : object.elements("when", "conditions"))
      service.when.push_back(parse_when(context_, one, {}));
    object.finish();
    node_.services.push_back(std::move(service));
  }
  context_.unique(items, node_.services, &ServiceCores::name, "name");
}

int NodeReader::read_numa(Object& object) {
  const Item at = object.find("numa");
  if (!at) return -1;
  const int numa = context_.whole(at, 0, CpuSet::kCapacity);
  const auto& nodes = node_.topology.numa_nodes;
  const bool known = std::any_of(nodes.begin(), nodes.end(),
                                 [&](const NumaNode& n) { return n.os_index == numa; });
  if (known) return numa;
  context_.fault(at, fmt::format("NUMA node {} does not exist", numa),
                 fmt::format("those with cores are 0 to {}", shape_.numa_nodes() - 1));
  return -1;
}

bool is_pci(std::string_view text) {
  constexpr std::string_view kForm = "xxxx:xx:xx.x";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (kForm[i] == 'x' ? !hex : text[i] != kForm[i]) return false;
  }
  return text.back() <= '7';
}

std::string read_pci(Object& object) {
  const Item at = object.find("pci");
  std::string pci = object.context().text(at);
  if (!pci.empty() && !is_pci(pci)) {
    object.context().fault(at, fmt::format("{} is not a PCI address", shown(pci)),
                           "write it like \"0000:18:00.0\", in small letters");
  }
  return pci;
}

/// The way on PCI, as Device::bridges: a root's bus, then bridges.
std::vector<std::string> read_bridges(Object& object) {
  std::vector<std::string> bridges;
  for (const Item& item : object.elements("bridges", "strings")) {
    const std::string bridge = object.context().text(item);
    const bool root = bridges.empty();
    if (!bridge.empty() && !is_pci(root ? bridge + ":00.0" : bridge))
      object.context().fault(
          item, fmt::format("{} is not a PCI {}", shown(bridge), root ? "root" : "bridge"),
          R"(write a root like "0000:c0", then bridges like "0000:c0:01.1")");
    bridges.push_back(bridge);
  }
  return bridges;
}

Device NodeReader::read_device(const Item& at, const Device& common, int index) {
  Object object(context_, at);
  Device device = common;
  device.index = index;
  device.pci = read_pci(object);
  device.bridges = read_bridges(object);
  device.pus = read_cores(object, Need::optional);
  const int numa = read_numa(object);
  device.numa = numa >= 0 ? numa : numa_of(node_.topology, device.pus);
  if (numa >= 0 && !object.has("cores")) {
    for (const NumaNode& node : node_.topology.numa_nodes) {
      if (node.os_index == numa) device.pus = node.pus;
    }
  }
  object.finish();
  return device;
}

void NodeReader::read_devices() {
  constexpr int kMostParts = 64;
  const Item at = object_.find("devices");
  if (!at) return;
  Object object(context_, at);
  Device common;
  common.vendor = object.choice("vendor", kVendors, Need::required);
  common.model = object.text("model");
  common.memory_bytes =
      static_cast<std::uint64_t>(object.whole("memory_mb", 0, kMostMemory, 0)) * kMiB;
  common.subdevices = object.whole("subdevices", 0, kMostParts, 0);
  common.partition = object.text("partition");
  const Item list = object.find("list", Need::required);
  const std::vector<Item> items = context_.elements(list, "devices");
  if (items.size() > static_cast<std::size_t>(CpuSet::kCapacity)) {
    context_.fault(list, fmt::format("{} devices on one node", items.size()));
    return;
  }
  for (const Item& item : items) {
    const auto index = static_cast<int>(node_.topology.devices.size());
    node_.topology.devices.push_back(read_device(item, common, index));
  }
  context_.unique(items, node_.topology.devices, &Device::pci, "pci");
  read_links(object);
  object.finish();
}

void NodeReader::read_links(Object& devices) {
  constexpr int kMostLanes = 1024;
  const auto place = [](const Link& link) { return std::tie(link.from, link.to, link.kind); };
  const int last = std::max(static_cast<int>(node_.topology.devices.size()) - 1, 0);
  std::vector<Link>& links = node_.topology.links;
  for (const Item& item : devices.elements("links", "objects")) {
    const std::size_t problems_before = context_.count();
    Object object(context_, item);
    Link link;
    link.from = object.whole("from", 0, last, std::nullopt);
    link.to = object.whole("to", 0, last, std::nullopt);
    link.kind = object.text("kind", Need::required);
    link.lanes = object.whole("lanes", 1, kMostLanes, 1);
    object.finish();
    if (context_.count() != problems_before) continue;
    const auto at = std::lower_bound(
        links.begin(), links.end(), link,
        [&](const Link& one, const Link& other) { return place(one) < place(other); });
    if (at != links.end() && place(*at) == place(link))
      context_.fault(item, "this link appears twice", "count links side by side in \"lanes\"");
    else if (link.from >= link.to)
      context_.fault(item, "a link goes from the lower device to the higher", "swap the two");
    else
      links.insert(at, std::move(link));
  }
}

/// Of an interface: its NUMA node, or its cores where these are those of several.
void NodeReader::read_place(Object& object, Nic& nic) {
  nic.numa = read_numa(object);
  const CpuSet near = read_cores(object, Need::optional);
  if (object.has("numa") && object.has("cores"))
    context_.fault(object.at(), "the interface has both \"numa\" and \"cores\"",
                   "\"cores\" is for interfaces near several NUMA nodes; remove one of them");
  if (near.empty()) return;
  nic.numa = numa_of(node_.topology, near);
  if (nic.numa < 0) nic.pus = near;
}

void NodeReader::read_nics() {
  for (const Item& item : object_.elements("nics", "objects")) {
    Object object(context_, item);
    Nic nic;
    nic.name = object.text("name");
    nic.fabric = object.text("fabric");
    nic.kind = object.choice("kind", kNicKinds);
    nic.pci = read_pci(object);
    nic.bridges = read_bridges(object);
    read_place(object, nic);
    if (!object.has("name") && !object.has("fabric") && item.json->kind == Json::Kind::object)
      context_.fault(item, "the interface has no name", R"(add "name" or "fabric")");
    object.finish();
    node_.topology.nics.push_back(std::move(nic));
  }
}

/// The key that a part of the topology was made from.
Item NodeReader::place_of(const std::string& pointer) {
  const auto begins = [&](const char* prefix) { return pointer.starts_with(prefix); };
  const char* key = begins("/allowed")      ? "reserved"
                    : begins("/caches")     ? "l3_per_numa"
                    : begins("/numa_nodes") ? "memory_only_numa"
                                            : "packages";
  const Item item = object_.find(key);
  return item ? item : object_.at();
}

/// The last look, at a node that nothing else is wrong with.
void NodeReader::check() {
  if (context_.count() != problems_before_) return;
  const Status good = check_topology(node_.topology);
  if (good) return;
  const std::string pointer = good.error().where ? good.error().where->pointer : "";
  const bool none_left = node_.topology.allowed.empty();
  context_.fault(place_of(pointer), none_left ? "no core is left for ranks" : good.error().message,
                 none_left ? "reserve fewer cores" : "");
}

NodeModel NodeReader::read() {
  node_.name = object_.word("name", Need::required);
  node_.doc = object_.text("doc");
  constexpr int kMostNodes = 1'000'000;
  node_.count = object_.whole("count", 0, kMostNodes, 0);
  node_.live = object_.choice("use", kUses) == "live";
  if (read_shape()) {
    read_memory();
    read_extra();
    node_.topology = build_topology(shape_);
    read_reserved();
    read_services();
    read_devices();
    read_nics();
    check();
  }
  for (const char* key :
       {"numa_memory_mb", "memory_only_numa", "reserved", "services", "devices", "nics"})
    object_.find(key);
  node_.when = parse_when(object_, {.never = "node_type"});
  node_.origin = parse_origin(object_, Need::optional);
  object_.finish();
  return std::move(node_);
}

}  // namespace

NodeModel parse_node(Context& context, const Item& at) { return NodeReader(context, at).read(); }

}  // namespace hpclaunch::profile
