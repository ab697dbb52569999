// From the description of a node in a profile to the topology that the planner works on.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "profile/reader.h"

namespace hpclaunch::profile {

CpuSet NodeShape::pus_of_core(int core) const {
  CpuSet pus;
  for (int thread = 0; thread < threads_per_core; ++thread)
    pus.add(adjacent ? core * threads_per_core + thread : core + thread * cores());
  return pus;
}

CpuSet NodeShape::range(int first, int count) const {
  CpuSet pus;
  for (int core = first; core < first + count; ++core) pus |= pus_of_core(core);
  return pus;
}

namespace {

// Packages, NUMA nodes (each with its extra memory behind it), level-3 caches and cores; everything allowed; no
// devices. The shape has at most CpuSet::kCapacity PUs.
Topology build_topology(const NodeText& text) {
  const NodeShape& shape = text.shape;
  Topology topology;
  const auto divide = [&](int cores_each, auto add) {
    for (int part = 0; part < shape.cores() / cores_each; ++part)
      add(part, shape.range(part * cores_each, cores_each));
  };
  const auto add_extra = [&](int near, const CpuSet& pus) {
    for (const ExtraMemory& memory : text.extra)
      if (memory.near_numa == near)
        topology.numa_nodes.push_back({memory.os_index, memory.bytes, pus});
  };
  const int per_package = shape.numa_per_package * shape.cores_per_numa;
  divide(per_package, [&](int package, const CpuSet& pus) {
    topology.packages.push_back({package, shape.package_model, pus});
  });
  divide(shape.cores_per_numa, [&](int numa, const CpuSet& pus) {
    const auto index = static_cast<std::size_t>(numa);
    topology.numa_nodes.push_back({numa, index < text.memory.size() ? text.memory[index] : 0, pus});
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

// Each entry of a list that was read, with its place in the file.
template <class Entry>
void each(const Item& list, std::vector<Entry>& entries, auto visit) {
  const std::vector<Item> items = list.items();
  for (std::size_t i = 0; i < entries.size(); ++i) visit(items[i], entries[i]);
}

/// Puts together what belongs to one node, and reports what does not fit.
class Builder {
 public:
  Builder(const Item& at, NodeText& text)
      : at_(at), text_(text), node_(text.model), topology_(text.model.topology) {}

  void build() {
    if (text_.topology) {
      topology_ = *std::move(text_.topology);
      for (const char* key : {"numa_memory_mb", "memory_only_numa", "devices", "nics"})
        at_.refuse(key, "\"topology\" has it", "remove one of the two");
    } else {
      if (!text_.shape.good) return;
      add_memory();
      topology_ = build_topology(text_);
    }
    add_services();
    if (const Item devices = at_["devices"]; devices && text_.devices)
      add_devices(devices, *text_.devices);
    if (node_.share) check_share(at_["share"], *node_.share);
    each(at_["nics"], text_.nics, [&](const Item& at, NicText& nic) { add_nic(at, nic); });
  }

  /// The last look, at a node that nothing else is wrong with.
  void check_whole() {
    const Status good = check_topology(topology_);
    if (good) return;
    const bool none_left = topology_.allowed.empty();
    const std::string& pointer = good.error().where->pointer;
    const auto begins = [&](const char* prefix) { return pointer.starts_with(prefix); };
    Item place = at_[begins("/allowed")      ? "reserved"
                     : at_["topology"]       ? "topology"
                     : begins("/caches")     ? "l3_per_numa"
                     : begins("/numa_nodes") ? "memory_only_numa"
                                             : "packages"];
    if (!place) place = at_;
    place.fault(none_left ? "no core is left for ranks" : good.error().message,
                none_left ? "reserve fewer cores" : "");
  }

 private:
  int cores() const { return static_cast<int>(topology_.cores.size()); }
  int numa_nodes() const { return text_.shape.numa_nodes(); }

  /// What does not fit the shape. Where a count of the shape is wrong, the rest does not fit either.
  void refuse_misfit(const Item& at, std::string message, const std::string& hint) {
    if (!std::exchange(misfits_, true))
      at.fault(std::move(message),
               hint + R"(; or correct "packages", "numa_per_package" or "cores_per_numa")");
  }

  void add_memory() {
    const Item memory = at_["numa_memory_mb"];
    const auto count = static_cast<std::size_t>(numa_nodes());
    if (memory && memory->kind != Json::Kind::array)
      text_.memory.assign(count, text_.memory.front());
    else if (memory && text_.memory.size() != count)
      refuse_misfit(memory, fmt::format("{} numbers for {} NUMA nodes", text_.memory.size(), count),
                    "write one number for each, or one for all");
    std::vector<int> taken;
    each(at_["memory_only_numa"], text_.extra, [&](const Item& at, ExtraMemory& extra) {
      if (extra.near_numa >= numa_nodes()) (void)at["near_numa"].whole(0, numa_nodes() - 1);
      if (at["os_index"] &&
          (extra.os_index < numa_nodes() || std::ranges::count(taken, extra.os_index) > 0))
        at["os_index"].fault(fmt::format("two NUMA nodes have the number {}", extra.os_index),
                             fmt::format("NUMA nodes with cores are 0 to {}", numa_nodes() - 1));
      taken.push_back(extra.os_index);
    });
  }

  /// The PUs of these cores, siblings included.
  CpuSet pus_of(const Item& at, const CpuSet& numbers) {
    if (numbers.last() >= cores())
      refuse_misfit(at, fmt::format("core {} does not exist", numbers.last()),
                    fmt::format("the node has cores 0 to {}", cores() - 1));
    CpuSet pus;
    for (const int core : numbers.to_vector())
      if (core < cores()) pus |= topology_.cores[static_cast<std::size_t>(core)].pus;
    return pus;
  }

  /// Cores that belong to the system, always or while a service runs.
  void add_services() {
    if (text_.reserved) {
      node_.reserved = pus_of(at_["reserved"]["cores"], text_.reserved->cores);
      node_.reserved_why = text_.reserved->why;
      topology_.allowed -= node_.reserved;
    }
    each(at_["services"], text_.services, [&](const Item& at, ServiceText& service) {
      node_.services.push_back(
          {service.name, pus_of(at["cores"], service.cores), service.why, std::move(service.when)});
    });
  }

  void check_share(const Item& at, const Share& share) {
    const int devices = static_cast<int>(topology_.devices.size());
    each(at["devices"], node_.share->counts, [&](const Item& one, int count) {
      if (count > std::max(devices, 1)) (void)one.whole(1, std::max(devices, 1));
    });
    if (share.cores * devices > cores())
      refuse_misfit(at["cores"], fmt::format("{} devices with {} cores each", devices, share.cores),
                    fmt::format("the node has {} cores", cores()));
  }

  int known_numa(const Item& at, int numa) {
    if (numa < 0 || topology_.find_numa(numa) != nullptr) return numa;
    refuse_misfit(at, fmt::format("NUMA node {} does not exist", numa),
                  fmt::format("those with cores are 0 to {}", numa_nodes() - 1));
    return -1;
  }

  void add_devices(const Item& at, DevicesText& text) {
    if (text.list.size() > static_cast<std::size_t>(CpuSet::kCapacity))
      return at["list"].fault(fmt::format("{} devices on one node", text.list.size()));
    each(at["list"], text.list, [&](const Item& one, PlaceText& place) {
      Device& device = topology_.devices.emplace_back();
      device.index = static_cast<int>(topology_.devices.size()) - 1;
      device.vendor = text.vendor;
      device.model = text.model;
      device.memory_bytes = text.memory_bytes;
      device.subdevices = text.subdevices;
      device.partition = text.partition;
      device.pci = std::move(place.pci);
      device.bridges = std::move(place.bridges);
      device.pus = pus_of(one["cores"], place.cores);
      const int numa = known_numa(one["numa"], place.numa);
      device.numa = numa >= 0 ? numa : numa_of(topology_, device.pus);
      if (numa >= 0 && !one["cores"]) device.pus = topology_.find_numa(numa)->pus;
    });
    if (topology_.devices.empty()) return;  // what is wrong with the list is reported
    each(at["links"], text.links, [&](const Item& one, Link& link) { add_link(one, link); });
  }

  void add_link(const Item& at, Link& link) {
    const int last = static_cast<int>(topology_.devices.size()) - 1;
    if (link.from > last) (void)at["from"].whole(0, last);
    if (link.to > last) (void)at["to"].whole(0, last);
    const bool whole = at["from"] && at["to"] && at["kind"];
    if (!whole || std::max(link.from, link.to) > last) return;
    const auto place = [](const Link& one) { return std::tie(one.from, one.to, one.kind); };
    std::vector<Link>& links = topology_.links;
    const auto next = std::ranges::lower_bound(links, place(link), {}, place);
    if (next != links.end() && place(*next) == place(link))
      at.fault("this link appears twice", "count links side by side in \"lanes\"");
    else if (link.from >= link.to)
      at.fault("a link goes from the lower device to the higher", "swap the two");
    else
      links.insert(next, std::move(link));
  }

  void add_nic(const Item& at, NicText& text) {
    Nic& nic = topology_.nics.emplace_back();
    nic.name = std::move(text.name);
    nic.fabric = std::move(text.fabric);
    nic.kind = std::move(text.kind);
    nic.pci = std::move(text.place.pci);
    nic.bridges = std::move(text.place.bridges);
    nic.numa = known_numa(at["numa"], text.place.numa);
    const CpuSet near = pus_of(at["cores"], text.place.cores);
    if (near.empty()) return;
    nic.numa = numa_of(topology_, near);
    if (nic.numa < 0) nic.pus = near;
  }

  const Item& at_;
  NodeText& text_;
  NodeModel& node_;
  Topology& topology_;
  bool misfits_ = false;
};

}  // namespace

NodeModel build_node(const Item& at, NodeText text, std::size_t problems_before) {
  Builder builder(at, text);
  builder.build();
  if (at.context().count() == problems_before) builder.check_whole();
  return std::move(text.model);
}

}  // namespace hpclaunch::profile
