#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "parse.h"

namespace hpclaunch::profile {
namespace {

// ---- from the compact description of a node to the topology that the planner works on -----------------------

// Memory without cores of its own. `near_numa` -1: near no CPU.
struct ExtraMemory {
  int os_index = 0;
  std::uint64_t bytes = 0;
  int near_numa = -1;
};

// A node of equal packages, equal NUMA nodes and equal cores, as profiles describe it. Core c is in
// NUMA node c / cores_per_numa, that in package n / numa_per_package.
struct NodeShape {
  int packages = 1;
  int numa_per_package = 1;
  int l3_per_numa = 0;
  int cores_per_numa = 1;
  int threads_per_core = 1;
  bool adjacent = false;  // siblings have neighbouring numbers
  std::string package_model;
  std::vector<std::uint64_t> memory;  // bytes of each NUMA node with cores; empty: unknown
  std::vector<ExtraMemory> extra;

  int numa_nodes() const { return packages * numa_per_package; }
  int cores() const { return numa_nodes() * cores_per_numa; }
  CpuSet pus_of_core(int core) const {
    CpuSet pus;
    for (int thread = 0; thread < threads_per_core; ++thread)
      pus.add(adjacent ? core * threads_per_core + thread : core + thread * cores());
    return pus;
  }
  // Of cores first .. first+count-1.
  CpuSet range(int first, int count) const {
    CpuSet pus;
    for (int core = first; core < first + count; ++core) pus |= pus_of_core(core);
    return pus;
  }
};

void add_numa_nodes(const NodeShape& shape, Topology& topology) {
  const auto add_extra = [&](int near, const CpuSet& pus) {
    for (const ExtraMemory& memory : shape.extra) {
      if (memory.near_numa == near)
        topology.numa_nodes.push_back({memory.os_index, memory.bytes, pus});
    }
  };
  for (int numa = 0; numa < shape.numa_nodes(); ++numa) {
    const auto index = static_cast<std::size_t>(numa);
    const std::uint64_t bytes = index < shape.memory.size() ? shape.memory[index] : 0;
    const CpuSet pus = shape.range(numa * shape.cores_per_numa, shape.cores_per_numa);
    topology.numa_nodes.push_back({numa, bytes, pus});
    add_extra(numa, pus);
  }
  add_extra(-1, {});
}

void add_caches(const NodeShape& shape, Topology& topology) {
  constexpr int kLevel = 3;
  if (shape.l3_per_numa < 1) return;
  const int width = shape.cores_per_numa / shape.l3_per_numa;
  for (int cache = 0; cache < shape.numa_nodes() * shape.l3_per_numa; ++cache)
    topology.caches.push_back({kLevel, 0, shape.range(cache * width, width)});
}

// Packages, NUMA nodes (each with its extra memory behind it), level-3 caches and cores; everything allowed; no
// devices. The shape has at most CpuSet::kCapacity PUs.
Topology build_topology(const NodeShape& shape) {
  Topology topology;
  const int per_package = shape.numa_per_package * shape.cores_per_numa;
  for (int package = 0; package < shape.packages; ++package) {
    topology.packages.push_back(
        {package, shape.package_model, shape.range(package * per_package, per_package)});
  }
  add_numa_nodes(shape, topology);
  add_caches(shape, topology);
  for (int core = 0; core < shape.cores(); ++core) {
    topology.cores.push_back(
        {core / per_package, core / shape.cores_per_numa, shape.pus_of_core(core)});
  }
  topology.allowed = topology.all_pus();
  return topology;
}

// The NUMA node that contains all these PUs; -1 when there is no single one.
int numa_of(const Topology& topology, const CpuSet& pus) {
  int found = -1;
  for (const Core& core : topology.cores) {
    if (!core.pus.intersects(pus)) continue;
    if (found >= 0 && core.numa != found) return -1;
    found = core.numa;
  }
  return found;
}

// ---- reading ----------------------------------------------------------------------------------------

constexpr int kMostMemory = 1'000'000'000;  // in MiB
constexpr std::uint64_t kMiB = 1024 * 1024;

bool is_pci_root(std::string_view text) { return text.find(':') == 4 && is_pci_place(text, true); }

/// The address and the way there, as Device::bridges: a root's bus, then bridges.
template <class Part>
void read_pci(Object& object, Part& part) {
  part.pci = object.text_of("pci", "a PCI address", is_pci_address,
                            "write it like \"0000:18:00.0\", in small letters");
  for (const Item& item : object.elements("bridges", "strings")) {
    const bool root = part.bridges.empty();
    part.bridges.push_back(object.context().text_of(
        item, root ? "a PCI root" : "a PCI bridge", root ? is_pci_root : is_pci_address,
        R"(write a root like "0000:c0", then bridges like "0000:c0:01.1")"));
  }
}

/// Reads what belongs to one node; keeps the shape that the parts refer to.
class NodeReader {
 public:
  explicit NodeReader(Object& object)
      : context_(object.context()), object_(object), problems_before_(context_.count()) {}

  NodeModel read() {
    node_.name = object_.word("name", Need::required);
    node_.doc = object_.text("doc");
    constexpr int kMostNodes = 1'000'000;
    node_.count = object_.whole("count", 0, kMostNodes, 0);
    node_.live = object_.choice("use", kUses) == "live";
    if (read_shape()) {
      read_memory();
      object_.objects("memory_only_numa", [&](Object& memory) { read_extra(memory); });
      node_.topology = build_topology(shape_);
      read_services();
      object_.object("devices", [&](Object& devices) { read_devices(devices); });
      object_.objects("nics", [&](Object& nic) { read_nic(nic); });
      check();
    }
    for (const char* key :
         {"numa_memory_mb", "memory_only_numa", "reserved", "services", "devices", "nics"})
      object_.find(key);
    node_.when = parse_when(object_, {.never = "node_type"});
    node_.origin = parse_origin(object_, Need::optional);
    return std::move(node_);
  }

 private:
  /// False when the counts make no node that could be built.
  bool read_shape() {
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

  void read_memory() {
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

  void read_extra(Object& object) {
    ExtraMemory memory;
    memory.os_index = object.whole("os_index", 0, CpuSet::kCapacity, std::nullopt);
    memory.bytes = static_cast<std::uint64_t>(object.whole("memory_mb", 0, kMostMemory, 0)) * kMiB;
    const Item near = object.find("near_numa");
    if (near) memory.near_numa = context_.whole(near, 0, shape_.numa_nodes() - 1);
    const bool taken =
        memory.os_index < shape_.numa_nodes() ||
        std::any_of(shape_.extra.begin(), shape_.extra.end(),
                    [&](const ExtraMemory& other) { return other.os_index == memory.os_index; });
    if (taken && object.has("os_index"))
      context_.fault(object.find("os_index"),
                     fmt::format("two NUMA nodes have the number {}", memory.os_index),
                     fmt::format("NUMA nodes with cores are 0 to {}", shape_.numa_nodes() - 1));
    else
      shape_.extra.push_back(memory);
  }

  /// The PUs of the cores that "cores" lists, siblings included.
  CpuSet read_cores(Object& object, Need need) {
    const Item at = object.find("cores", need);
    const CpuSet cores = context_.cores(at);
    if (cores.last() >= shape_.cores()) {
      context_.fault(at, fmt::format("core {} does not exist", cores.last()),
                     fmt::format("the node has cores 0 to {}", shape_.cores() - 1));
    }
    CpuSet pus;
    for (const int core : cores.to_vector())
      if (core < shape_.cores()) pus |= shape_.pus_of_core(core);
    return pus;
  }

  /// Cores that belong to the system, always or while a service runs.
  void read_services() {
    object_.object("reserved", [&](Object& object) {
      node_.reserved = read_cores(object, Need::required);
      node_.reserved_why = object.text("why");
      node_.topology.allowed -= node_.reserved;
    });
    const std::vector<Item> items = object_.objects("services", [&](Object& object) {
      ServiceCores& service = node_.services.emplace_back();
      service.name = object.word("name", Need::required);
      service.pus = read_cores(object, Need::required);
      service.why = object.text("why");
      for (const Item& one : object.elements("when", "conditions"))
        service.when.push_back(parse_when(context_, one, {}));
    });
    context_.unique(items, node_.services, &ServiceCores::name, "name");
  }

  int read_numa(Object& object) {
    const Item at = object.find("numa");
    if (!at) return -1;
    const int numa = context_.whole(at, 0, CpuSet::kCapacity);
    if (node_.topology.find_numa(numa) != nullptr) return numa;
    context_.fault(at, fmt::format("NUMA node {} does not exist", numa),
                   fmt::format("those with cores are 0 to {}", shape_.numa_nodes() - 1));
    return -1;
  }

  Device read_device(Object& object, const Device& common) {
    Device device = common;
    device.index = static_cast<int>(node_.topology.devices.size());
    read_pci(object, device);
    device.pus = read_cores(object, Need::optional);
    const int numa = read_numa(object);
    device.numa = numa >= 0 ? numa : numa_of(node_.topology, device.pus);
    if (numa >= 0 && !object.has("cores")) device.pus = node_.topology.find_numa(numa)->pus;
    return device;
  }

  void read_devices(Object& object) {
    constexpr int kMostParts = 64;
    Device common;
    common.vendor = object.choice("vendor", kVendors, Need::required);
    common.model = object.text("model");
    common.memory_bytes =
        static_cast<std::uint64_t>(object.whole("memory_mb", 0, kMostMemory, 0)) * kMiB;
    common.subdevices = object.whole("subdevices", 0, kMostParts, 0);
    common.partition = object.text("partition");
    const Item list = object.find("list", Need::required);
    if (list.json->items.size() > static_cast<std::size_t>(CpuSet::kCapacity))
      return context_.fault(list, fmt::format("{} devices on one node", list.json->items.size()));
    std::vector<Device>& devices = node_.topology.devices;
    const std::vector<Item> items =
        object.objects("list", [&](Object& one) { devices.push_back(read_device(one, common)); });
    context_.unique(items, devices, &Device::pci, "pci");
    object.objects("links", [&](Object& one) { read_link(one); });
  }

  void read_link(Object& object) {
    constexpr int kMostLanes = 1024;
    const std::size_t problems_before = context_.count();
    const int last = std::max(static_cast<int>(node_.topology.devices.size()) - 1, 0);
    Link link;
    link.from = object.whole("from", 0, last, std::nullopt);
    link.to = object.whole("to", 0, last, std::nullopt);
    link.kind = object.text("kind", Need::required);
    link.lanes = object.whole("lanes", 1, kMostLanes, 1);
    if (context_.count() != problems_before) return;
    const auto place = [](const Link& one) { return std::tie(one.from, one.to, one.kind); };
    std::vector<Link>& links = node_.topology.links;
    const auto at = std::ranges::lower_bound(links, place(link), {}, place);
    if (at != links.end() && place(*at) == place(link))
      context_.fault(object.at(), "this link appears twice",
                     "count links side by side in \"lanes\"");
    else if (link.from >= link.to)
      context_.fault(object.at(), "a link goes from the lower device to the higher",
                     "swap the two");
    else
      links.insert(at, std::move(link));
  }

  /// Of an interface: its NUMA node, or its cores where these are those of several.
  void read_place(Object& object, Nic& nic) {
    nic.numa = read_numa(object);
    const CpuSet near = read_cores(object, Need::optional);
    if (object.has("numa") && object.has("cores"))
      context_.fault(object.at(), "the interface has both \"numa\" and \"cores\"",
                     "\"cores\" is for interfaces near several NUMA nodes; remove one of them");
    if (near.empty()) return;
    nic.numa = numa_of(node_.topology, near);
    if (nic.numa < 0) nic.pus = near;
  }

  void read_nic(Object& object) {
    Nic& nic = node_.topology.nics.emplace_back();
    nic.name = object.text("name");
    nic.fabric = object.text("fabric");
    nic.kind = object.choice("kind", kNicKinds);
    read_pci(object, nic);
    read_place(object, nic);
    if (!object.has("name") && !object.has("fabric") &&
        object.at().json->kind == Json::Kind::object)
      context_.fault(object.at(), "the interface has no name", R"(add "name" or "fabric")");
  }

  /// The key that a part of the topology was made from.
  Item place_of(const std::string& pointer) {
    const auto begins = [&](const char* prefix) { return pointer.starts_with(prefix); };
    const char* key = begins("/allowed")      ? "reserved"
                      : begins("/caches")     ? "l3_per_numa"
                      : begins("/numa_nodes") ? "memory_only_numa"
                                              : "packages";
    const Item item = object_.find(key);
    return item ? item : object_.at();
  }

  /// The last look, at a node that nothing else is wrong with.
  void check() {
    if (context_.count() != problems_before_) return;
    const Status good = check_topology(node_.topology);
    if (good) return;
    const std::string pointer = good.error().where ? good.error().where->pointer : "";
    const bool none_left = node_.topology.allowed.empty();
    context_.fault(place_of(pointer),
                   none_left ? "no core is left for ranks" : good.error().message,
                   none_left ? "reserve fewer cores" : "");
  }

  Context& context_;
  Object& object_;
  std::size_t problems_before_;
  NodeShape shape_;
  NodeModel node_;
};

}  // namespace

NodeModel parse_node(Object& object) { return NodeReader(object).read(); }

}  // namespace hpclaunch::profile
