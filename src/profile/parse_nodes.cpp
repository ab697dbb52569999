#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

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

// Packages, NUMA nodes (each with its extra memory behind it), level-3 caches and cores; everything allowed; no
// devices. The shape has at most CpuSet::kCapacity PUs.
Topology build_topology(const NodeShape& shape) {
  Topology topology;
  const auto divide = [&](int cores_each, auto add) {
    for (int part = 0; part < shape.cores() / cores_each; ++part)
      add(part, shape.range(part * cores_each, cores_each));
  };
  const auto add_extra = [&](int near, const CpuSet& pus) {
    for (const ExtraMemory& memory : shape.extra)
      if (memory.near_numa == near)
        topology.numa_nodes.push_back({memory.os_index, memory.bytes, pus});
  };
  const int per_package = shape.numa_per_package * shape.cores_per_numa;
  divide(per_package, [&](int package, const CpuSet& pus) {
    topology.packages.push_back({package, shape.package_model, pus});
  });
  divide(shape.cores_per_numa, [&](int numa, const CpuSet& pus) {
    const auto index = static_cast<std::size_t>(numa);
    topology.numa_nodes.push_back(
        {numa, index < shape.memory.size() ? shape.memory[index] : 0, pus});
    add_extra(numa, pus);
  });
  add_extra(-1, {});
  if (shape.l3_per_numa > 0)
    divide(shape.cores_per_numa / shape.l3_per_numa, [&](int, const CpuSet& pus) {
      topology.caches.push_back({3, 0, pus});
    });
  divide(1, [&](int core, const CpuSet& pus) {
    topology.cores.push_back({core / per_package, core / shape.cores_per_numa, pus});
  });
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
void read_pci(const Item& at, Part& part) {
  part.pci = at["pci"].text_of("a PCI address", is_pci_address,
                               "write it like \"0000:18:00.0\", in small letters");
  for (const Item& item : at["bridges"].elements("strings")) {
    const bool root = part.bridges.empty();
    part.bridges.push_back(
        item.text_of(root ? "a PCI root" : "a PCI bridge", root ? is_pci_root : is_pci_address,
                     R"(write a root like "0000:c0", then bridges like "0000:c0:01.1")"));
  }
}

std::uint64_t read_bytes(const Item& mebibytes, int min) {
  return static_cast<std::uint64_t>(mebibytes.whole(min, kMostMemory)) * kMiB;
}

/// Reads what belongs to one node; keeps the shape that the parts refer to.
class NodeReader {
 public:
  explicit NodeReader(const Item& at) : at_(at), problems_before_(at.context().count()) {}

  NodeModel read() {
    node_.name = at_.need("name").word();
    node_.doc = at_["doc"].text();
    constexpr int kMostNodes = 1'000'000;
    node_.count = at_["count"].whole(0, kMostNodes);
    node_.live = at_["use"].choice(kUses) == "live";
    if (read_shape()) {
      read_memory();
      for (const Item& memory : at_["memory_only_numa"].elements("objects")) read_extra(memory);
      node_.topology = build_topology(shape_);
      read_services();
      if (const Item devices = at_["devices"]) read_devices(devices);
      read_share(at_["share"]);
      for (const Item& nic : at_["nics"].elements("objects")) read_nic(nic);
      check();
    }
    for (const char* key :
         {"numa_memory_mb", "memory_only_numa", "reserved", "services", "devices", "share", "nics"})
      (void)at_[key];
    node_.when = parse_when(at_["when"], {.never = "node_type"});
    node_.origin = parse_origin(at_);
    return std::move(node_);
  }

 private:
  /// False when the counts make no node that could be built.
  bool read_shape() {
    constexpr int kMostPackages = 64;
    constexpr int kMostThreads = 16;
    const std::size_t problems_before = at_.context().count();
    shape_.packages = at_.need("packages").whole(1, kMostPackages);
    shape_.numa_per_package = at_["numa_per_package"].whole(1, kMostPackages);
    shape_.cores_per_numa = at_.need("cores_per_numa").whole(1, CpuSet::kCapacity);
    shape_.l3_per_numa = at_["l3_per_numa"].whole(0, CpuSet::kCapacity);
    shape_.threads_per_core = at_["threads_per_core"].whole(1, kMostThreads);
    shape_.adjacent = at_["siblings"].choice(kSiblings) == "adjacent";
    shape_.package_model = at_["package_model"].text();
    if (at_.context().count() != problems_before) return false;
    const long pus = static_cast<long>(shape_.cores()) * shape_.threads_per_core;
    if (pus > CpuSet::kCapacity) {
      at_.fault(fmt::format("the node has {} hardware threads, and {} is the limit", pus,
                            CpuSet::kCapacity),
                "check packages, numa_per_package, cores_per_numa and threads_per_core");
      return false;
    }
    if (shape_.l3_per_numa > 0 && shape_.cores_per_numa % shape_.l3_per_numa != 0) {
      at_["l3_per_numa"].fault(fmt::format("{} cores do not divide evenly among {} caches",
                                           shape_.cores_per_numa, shape_.l3_per_numa),
                               "leave \"l3_per_numa\" out when caches differ in size");
      shape_.l3_per_numa = 0;
    }
    return true;
  }

  /// What does not fit the shape. Where a count of the shape is wrong, the rest does not fit either.
  void refuse_misfit(const Item& at, std::string message, const std::string& hint) {
    if (!std::exchange(misfits_, true))
      at.fault(std::move(message),
               hint + R"(; or correct "packages", "numa_per_package" or "cores_per_numa")");
  }

  void read_memory() {
    const Item at = at_["numa_memory_mb"];
    if (!at) return;
    const auto count = static_cast<std::size_t>(shape_.numa_nodes());
    if (at->kind != Json::Kind::array) return shape_.memory.assign(count, read_bytes(at, 1));
    for (const Item& item : at.elements("numbers")) shape_.memory.push_back(read_bytes(item, 1));
    if (shape_.memory.size() != count)
      refuse_misfit(at, fmt::format("{} numbers for {} NUMA nodes", shape_.memory.size(), count),
                    "write one number for each, or one for all");
  }

  void read_extra(const Item& at) {
    const std::size_t problems_before = at.context().count();
    const Item index = at.need("os_index");
    const ExtraMemory memory{index.whole(0, CpuSet::kCapacity), read_bytes(at["memory_mb"], 0),
                             at["near_numa"].whole(0, shape_.numa_nodes() - 1, -1)};
    if (at.context().count() != problems_before) return;
    const bool taken =
        memory.os_index < shape_.numa_nodes() ||
        std::ranges::count(shape_.extra, memory.os_index, &ExtraMemory::os_index) > 0;
    if (!taken)
      shape_.extra.push_back(memory);
    else
      index.fault(fmt::format("two NUMA nodes have the number {}", memory.os_index),
                  fmt::format("NUMA nodes with cores are 0 to {}", shape_.numa_nodes() - 1));
  }

  /// The PUs of these cores, siblings included.
  CpuSet read_cores(const Item& at) {
    const CpuSet cores = at.cores();
    if (cores.last() >= shape_.cores())
      refuse_misfit(at, fmt::format("core {} does not exist", cores.last()),
                    fmt::format("the node has cores 0 to {}", shape_.cores() - 1));
    CpuSet pus;
    for (const int core : cores.to_vector())
      if (core < shape_.cores()) pus |= shape_.pus_of_core(core);
    return pus;
  }

  /// Cores that belong to the system, always or while a service runs.
  void read_services() {
    if (const Item at = at_["reserved"]) {
      node_.reserved = read_cores(at.need("cores"));
      node_.reserved_why = at["why"].text();
      node_.topology.allowed -= node_.reserved;
    }
    for (const Item& at : at_["services"].entries("name"))
      node_.services.push_back({at.need("name").word(), read_cores(at.need("cores")),
                                at["why"].text(), parse_whens(at["when"], {})});
  }

  void read_share(const Item& at) {
    if (!at) return;
    const int devices = static_cast<int>(node_.topology.devices.size());
    const Share share = parse_share(at, devices);
    if (share.cores * devices > shape_.cores())
      refuse_misfit(at["cores"], fmt::format("{} devices with {} cores each", devices, share.cores),
                    fmt::format("the node has {} cores", shape_.cores()));
    node_.share = share;
  }

  int read_numa(const Item& at) {
    const int numa = at.whole(0, CpuSet::kCapacity, -1);
    if (numa < 0 || node_.topology.find_numa(numa) != nullptr) return numa;
    refuse_misfit(at, fmt::format("NUMA node {} does not exist", numa),
                  fmt::format("those with cores are 0 to {}", shape_.numa_nodes() - 1));
    return -1;
  }

  Device read_device(const Item& at, const Device& common) {
    Device device = common;
    device.index = static_cast<int>(node_.topology.devices.size());
    read_pci(at, device);
    device.pus = read_cores(at["cores"]);
    const int numa = read_numa(at["numa"]);
    device.numa = numa >= 0 ? numa : numa_of(node_.topology, device.pus);
    if (numa >= 0 && !at["cores"]) device.pus = node_.topology.find_numa(numa)->pus;
    return device;
  }

  void read_devices(const Item& at) {
    constexpr int kMostParts = 64;
    Device common;
    common.vendor = at.need("vendor").choice(kVendors);
    common.model = at["model"].text();
    common.memory_bytes = read_bytes(at["memory_mb"], 0);
    common.subdevices = at["subdevices"].whole(0, kMostParts);
    common.partition = at["partition"].text();
    const Item list = at.need("list");
    if (list->items.size() > static_cast<std::size_t>(CpuSet::kCapacity))
      return list.fault(fmt::format("{} devices on one node", list->items.size()));
    for (const Item& one : list.entries("pci"))
      node_.topology.devices.push_back(read_device(one, common));
    const Item links = at["links"];
    if (node_.topology.devices.empty()) return;  // what is wrong with the list is reported
    for (const Item& one : links.elements("objects")) read_link(one);
  }

  void read_link(const Item& at) {
    constexpr int kMostLanes = 1024;
    const std::size_t problems_before = at.context().count();
    const int last = std::max(static_cast<int>(node_.topology.devices.size()) - 1, 0);
    Link link{at.need("from").whole(0, last), at.need("to").whole(0, last), at.need("kind").text(),
              at["lanes"].whole(1, kMostLanes)};
    if (at.context().count() != problems_before) return;
    const auto place = [](const Link& one) { return std::tie(one.from, one.to, one.kind); };
    std::vector<Link>& links = node_.topology.links;
    const auto next = std::ranges::lower_bound(links, place(link), {}, place);
    if (next != links.end() && place(*next) == place(link))
      at.fault("this link appears twice", "count links side by side in \"lanes\"");
    else if (link.from >= link.to)
      at.fault("a link goes from the lower device to the higher", "swap the two");
    else
      links.insert(next, std::move(link));
  }

  /// Of an interface: its NUMA node, or its cores where these are those of several.
  void read_place(const Item& at, Nic& nic) {
    nic.numa = read_numa(at["numa"]);
    const CpuSet near = read_cores(at["cores"]);
    if (at["numa"] && at["cores"])
      at.fault("the interface has both \"numa\" and \"cores\"",
               "\"cores\" is for interfaces near several NUMA nodes; remove one of them");
    if (near.empty()) return;
    nic.numa = numa_of(node_.topology, near);
    if (nic.numa < 0) nic.pus = near;
  }

  void read_nic(const Item& at) {
    Nic& nic = node_.topology.nics.emplace_back();
    nic.name = at["name"].text();
    nic.fabric = at["fabric"].text();
    nic.kind = at["kind"].choice(kNicKinds);
    read_pci(at, nic);
    read_place(at, nic);
    if (!at["name"] && !at["fabric"] && at->kind == Json::Kind::object)
      at.fault("the interface has no name", R"(add "name" or "fabric")");
  }

  /// The key that a part of the topology was made from.
  Item place_of(const std::string& pointer) {
    const auto begins = [&](const char* prefix) { return pointer.starts_with(prefix); };
    const Item item = at_[begins("/allowed")      ? "reserved"
                          : begins("/caches")     ? "l3_per_numa"
                          : begins("/numa_nodes") ? "memory_only_numa"
                                                  : "packages"];
    return item ? item : at_;
  }

  /// The last look, at a node that nothing else is wrong with.
  void check() {
    if (at_.context().count() != problems_before_) return;
    const Status good = check_topology(node_.topology);
    if (good) return;
    const bool none_left = node_.topology.allowed.empty();
    place_of(good.error().where->pointer)
        .fault(none_left ? "no core is left for ranks" : good.error().message,
               none_left ? "reserve fewer cores" : "");
  }

  Item at_;
  std::size_t problems_before_;
  bool misfits_ = false;
  NodeShape shape_;
  NodeModel node_;
};

}  // namespace

NodeModel parse_node(const Item& at) { return NodeReader(at).read(); }

}  // namespace hpclaunch::profile
