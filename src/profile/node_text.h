#pragma once
// A node as profiles describe it, before it becomes a topology.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/profile.h"
#include "profile/kinds.h"

namespace hpclaunch::profile {

inline constexpr long kMiB = 1024 * 1024;

/// Memory without cores of its own. `near_numa` -1: near no CPU.
struct ExtraMemory {
  int os_index = 0;
  std::uint64_t bytes = 0;
  int near_numa = -1;
};

/// A node of equal packages, equal NUMA nodes and equal cores. Core c is in NUMA node c / cores_per_numa, that in
/// package n / numa_per_package.
struct NodeShape {
  int packages = 1;
  int numa_per_package = 1;
  int l3_per_numa = 0;
  int cores_per_numa = 1;
  int threads_per_core = 1;
  bool adjacent = false;  ///< siblings have neighbouring numbers
  std::string package_model;
  bool good = true;  ///< false: the counts make no node that could be built

  int numa_nodes() const { return packages * numa_per_package; }
  int cores() const { return numa_nodes() * cores_per_numa; }
  CpuSet pus_of_core(int core) const;
  CpuSet range(int first, int count) const;  ///< PUs of cores first .. first+count-1
};

struct ReservedText {
  CpuSet cores;
  std::string why;
};

struct ServiceText {
  std::string name;
  CpuSet cores;
  std::string why;
  std::vector<When> when;
};

/// Where a device or an interface is: its NUMA node or its nearest cores.
struct PlaceText {
  std::string pci;
  int numa = -1;
  CpuSet cores;
  std::vector<std::string> bridges;
};

struct DevicesText {
  std::string vendor, model;
  std::uint64_t memory_bytes = 0;
  int subdevices = 0;
  std::string partition;
  std::vector<PlaceText> list;
  std::vector<Link> links;
};

struct NicText {
  std::string name, fabric, kind;
  PlaceText place;
};

struct NodeText {
  NodeModel model;  ///< name, doc, count, live, share, when and origin
  NodeShape shape;
  std::vector<std::uint64_t> memory;  ///< bytes of each NUMA node with cores, or one for all
  std::vector<ExtraMemory> extra;
  std::optional<Topology> topology;  ///< in place of all other parts
  std::optional<ReservedText> reserved;
  std::vector<ServiceText> services;
  std::optional<DevicesText> devices;
  std::vector<NicText> nics;
};

// ---- their keys, as in fields.h ---------------------------------------------------------------------------

void fields(Same<ServiceText> auto& service, auto visit) {
  visit("name", service.name, kWord, must, "Its name");
  visit("cores", service.cores, Cores{}, must, "Numbers of cores; their siblings are included");
  visit("why", service.why, kLine, may, "What it does");
  visit("when", service.when, List<Condition>{{}, "conditions"}, may,
        "The job uses the service when one of them holds; always without");
}

void fields(Same<ReservedText> auto& reserved, auto visit) {
  visit("cores", reserved.cores, Cores{}, must, "Numbers of cores; their siblings are included");
  visit("why", reserved.why, kLine, may, "What they are for");
}

void fields(Same<ExtraMemory> auto& memory, auto visit) {
  visit("os_index", memory.os_index, Whole{0, CpuSet::kCapacity}, must,
        "Its number; NUMA nodes with cores have the first ones");
  visit("memory_mb", memory.bytes, Whole{0, kMostMemory, kMiB}, may, "Memory in MiB");
  visit("near_numa", memory.near_numa, Whole{0, kMaxOffset}, may,
        "Number of the NUMA node whose cores are nearest; none without");
}

void fields(Same<PlaceText> auto& place, auto visit) {
  visit("pci", place.pci, kPci, may, "PCI address, as `lspci -D` prints it");
  visit("numa", place.numa, Whole{0, CpuSet::kCapacity}, may, "Nearest NUMA node");
  visit("cores", place.cores, Cores{}, may, "Nearest cores; their siblings are included");
  visit("bridges", place.bridges, Bridges{}, may,
        "The way to it on PCI: the bus of the root, then the bridges, outermost first");
}

void fields(Same<NicText> auto& nic, auto visit) {
  visit("name", nic.name, kLine, may, "IP interface; this or `fabric` must be given");
  visit("fabric", nic.fabric, kLine, may, "libfabric domain or verbs device");
  visit("kind", nic.kind, Choice{kNicKinds}, may, "What network it belongs to");
  visit("", nic.place, Inline{}, may, "");
}

void fields(Same<Link> auto& link, auto visit) {
  constexpr int kMostLanes = 1024;
  visit("from", link.from, Whole{}, must, "The lower place in the list");
  visit("to", link.to, Whole{}, must, "The higher place in the list");
  visit("kind", link.kind, kLine, must, "What connects them: `nvlink`, `xgmi`, `xe-link`");
  visit("lanes", link.lanes, Whole{1, kMostLanes}, may, "How many of these side by side");
}

void fields(Same<DevicesText> auto& devices, auto visit) {
  constexpr int kMostParts = 64;
  visit("vendor", devices.vendor, Choice{kVendors}, must, "Who made them");
  visit("model", devices.model, kLine, may, "Name of the device");
  visit("memory_mb", devices.memory_bytes, Whole{0, kMostMemory, kMiB}, may,
        "Memory of each in MiB");
  visit("subdevices", devices.subdevices, Whole{0, kMostParts}, may,
        "Parts that a rank can get by itself (tiles); 0: only the whole");
  visit("partition", devices.partition, kLine, may,
        "How the driver divides each, such as `CPX`: entries are what it counts then");
  visit("list", devices.list, Entries{"pci"}, must, "One entry per device in the driver's order");
  visit("links", devices.links, Entries{""}, may, "Direct connections, by which ranks are ordered");
}

void fields(Same<NodeShape> auto& shape, auto visit) {
  constexpr int kMostPackages = 64;
  constexpr int kMostThreads = 16;
  visit("packages", shape.packages, Whole{1, kMostPackages}, must, "Processor packages (sockets)");
  visit("package_model", shape.package_model, kLine, may, "Name of the processor");
  visit("numa_per_package", shape.numa_per_package, Whole{1, kMostPackages}, may,
        "NUMA nodes with cores in each package");
  visit("l3_per_numa", shape.l3_per_numa, Whole{0, CpuSet::kCapacity}, may,
        "Level-3 caches in each NUMA node, with equally many cores; 0: unknown");
  visit("cores_per_numa", shape.cores_per_numa, Whole{1, CpuSet::kCapacity}, must,
        "Cores in each NUMA node");
  visit("threads_per_core", shape.threads_per_core, Whole{1, kMostThreads}, may,
        "Hardware threads of each core");
  visit("siblings", shape.adjacent, Choice{kSiblings}, may,
        "`after-all-cores`: thread t of core c is PU c + t * cores; `adjacent`: c * threads + t");
}

void fields(Same<NodeText> auto& node, auto visit) {
  visit("name", node.model.name, kWord, must, "What `--node-type` takes");
  visit("doc", node.model.doc, kLine, may, "One line for people");
  visit("count", node.model.count, Whole{0, kMostNodes}, may, "Nodes of this kind at the site");
  visit("use", node.model.live, Choice{kUses}, may,
        "`live`: locality is not published, and inside a job the node itself is read; `model`: "
        "this description holds");
  visit("", node.shape, Inline{}, may, "");
  visit("numa_memory_mb", node.memory, OneOrList<Whole>{{1, kMostMemory, kMiB}}, may,
        "Memory in MiB of each NUMA node with cores, or one number for all");
  visit("memory_only_numa", node.extra, Entries{""}, may,
        "NUMA nodes without cores of their own: HBM beside DDR, GPU memory");
  visit("topology", node.topology, Tree{}, may,
        "Instead of the keys from `packages` on, `devices` and `nics`: what `hpclaunch topo "
        "--json` prints on such a node");
  visit("reserved", node.reserved, Object{}, may,
        "Cores that the system keeps; no rank gets them unless a binding says so");
  visit("services", node.services, Entries{"name"}, may, "Cores that a service uses while it runs");
  visit("devices", node.devices, Object{}, may, "Accelerators, equal but for their place");
  visit("nics", node.nics, Entries{""}, may, "Network interfaces for the job's traffic");
  visit("share", node.model.share, Object{}, may,
        "Jobs share such nodes: what a part is asked for with; whole nodes without it");
  visit("when", node.model.when, Condition{{.never = "node_type"}}, may,
        "Chosen when it holds and `--node-type` was not typed");
  visit("", node.model.origin, Inline{}, may, "");
}

}  // namespace hpclaunch::profile
