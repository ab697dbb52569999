#include "hpclaunch/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "hpclaunch/device_vendor.h"
namespace hpclaunch {
namespace {

constexpr int kMostSubdevices = 64;

/// One package, NUMA node or cache, seen as a set of PUs with a name.
struct Group {
  std::string name;
  std::string pointer;
  const CpuSet* pus = nullptr;
};

template <class... Args>
Error breach(std::string pointer, fmt::format_string<Args...> message, Args&&... args) {
  return {ErrorKind::invalid,
          fmt::format(message, std::forward<Args>(args)...),
          {},
          SourceRef{"", 0, 0, std::move(pointer)}};
}

/// "/cores/3/pus"
std::string member(const char* list, std::size_t index, const char* key) {
  return fmt::format("/{}/{}/{}", list, index, key);
}

std::vector<Group> groups_of(const Topology& topology) {
  std::vector<Group> groups;
  const auto add = [&](const auto& parts, const char* list, auto name) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      groups.push_back({name(parts[i]), fmt::format("/{}/{}", list, i), &parts[i].pus});
  };
  add(topology.packages, "packages",
      [](const Package& one) { return fmt::format("package {}", one.os_index); });
  add(topology.numa_nodes, "numa_nodes",
      [](const NumaNode& one) { return fmt::format("NUMA node {}", one.os_index); });
  add(topology.caches, "caches", [](const Cache& one) {
    return fmt::format("L{} cache with PUs {}", one.level, one.pus.to_list());
  });
  return groups;
}

Status check_cores(const Topology& topology) {
  if (topology.cores.empty()) return breach("/cores", "the topology has no core");
  CpuSet seen;
  for (std::size_t i = 0; i < topology.cores.size(); ++i) {
    const CpuSet& pus = topology.cores[i].pus;
    if (pus.empty()) return breach(member("cores", i, "pus"), "core {} has no PU", i);
    if (pus.intersects(seen))
      return breach(member("cores", i, "pus"), "PU {} is in two cores", (pus & seen).first());
    seen |= pus;
  }
  if (topology.allowed.empty()) return breach("/allowed", "no PU is allowed");
  if (!seen.contains(topology.allowed))
    return breach("/allowed", "allowed PUs {} are in no core", (topology.allowed - seen).to_list());
  return Done{};
}

/// OS indices are unique and not negative.
template <class Part>
Status check_os_indices(const std::vector<Part>& parts, const char* list, const char* noun) {
  std::set<int> seen;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int index = parts[i].os_index;
    if (index < 0)
      return breach(member(list, i, "os_index"), "{} number {} is negative", noun, index);
    if (!seen.insert(index).second)
      return breach(member(list, i, "os_index"), "two {}s have the number {}", noun, index);
  }
  return Done{};
}

Status check_indices(const Topology& topology) {
  if (Status ok = check_os_indices(topology.packages, "packages", "package"); !ok) return ok;
  for (std::size_t i = 0; i < topology.packages.size(); ++i)
    if (topology.packages[i].pus.empty())
      return breach(member("packages", i, "pus"), "package {} has no PU",
                    topology.packages[i].os_index);
  if (Status ok = check_os_indices(topology.numa_nodes, "numa_nodes", "NUMA node"); !ok) return ok;
  int above = 1 << 20;
  for (std::size_t i = 0; i < topology.caches.size(); ++i) {
    const int level = topology.caches[i].level;
    if (level < 2) return breach(member("caches", i, "level"), "cache level {} is below 2", level);
    if (level > above)
      return breach(member("caches", i, "level"), "an L{} cache follows an L{} cache", level,
                    above);
    if (topology.caches[i].pus.empty())
      return breach(member("caches", i, "pus"), "a cache has no PU");
    above = level;
  }
  return Done{};
}

Status check_whole_cores(const Topology& topology) {
  const CpuSet all = topology.all_pus();
  for (const Group& group : groups_of(topology)) {
    if (!all.contains(*group.pus))
      return breach(group.pointer + "/pus", "{} has PU {}, which is in no core", group.name,
                    (*group.pus - all).first());
    for (const Core& core : topology.cores)
      if (core.pus.intersects(*group.pus) && !group.pus->contains(core.pus))
        return breach(group.pointer + "/pus", "{} has only a part of the core with PUs {}",
                      group.name, core.pus.to_list());
  }
  return Done{};
}

/// Each group with the larger ones, smallest first.
Status check_nesting(const Topology& topology) {
  std::vector<Group> groups = groups_of(topology);
  std::ranges::stable_sort(groups, std::greater(),
                           [](const Group& one) { return one.pus->count(); });
  for (auto one = groups.begin(); one != groups.end(); ++one)
    for (auto larger = one; larger != groups.begin();) {
      --larger;
      if (!larger->pus->intersects(*one->pus) || larger->pus->contains(*one->pus)) continue;
      return breach(one->pointer + "/pus", "{} and {} overlap, and neither contains the other",
                    one->name, larger->name);
    }
  return Done{};
}

Status check_references(const Topology& topology) {
  for (std::size_t i = 0; i < topology.cores.size(); ++i) {
    const Core& core = topology.cores[i];
    const auto check = [&](const auto& homes, int index, const char* key,
                           const char* noun) -> Status {
      const auto home =
          std::ranges::find(homes, index, [](const auto& one) { return one.os_index; });
      const bool exists = home != homes.end();
      if (index == -1 || (exists && home->pus.contains(core.pus))) return Done{};
      if (!exists)
        return breach(member("cores", i, key), "core {} names {} {}, which does not exist", i, noun,
                      index);
      return breach(member("cores", i, key),
                    "core {} names {} {}, which does not contain its PUs {}", i, noun, index,
                    core.pus.to_list());
    };
    if (Status ok = check(topology.packages, core.package, "package", "package"); !ok) return ok;
    if (Status ok = check(topology.numa_nodes, core.numa, "numa", "NUMA node"); !ok) return ok;
  }
  return Done{};
}

/// What devices and interfaces share: a NUMA node and PUs that exist, and a path on PCI.
template <class Part>
Status check_place(const Topology& topology, const Part& part, const std::string& pointer,
                   const std::string& name) {
  const CpuSet all = topology.all_pus();
  if (part.numa != -1 && topology.find_numa(part.numa) == nullptr)
    return breach(pointer + "/numa", "{} names NUMA node {}, which does not exist", name,
                  part.numa);
  if (!all.contains(part.pus))
    return breach(pointer + "/pus", "{} is near PUs {}, which are in no core", name,
                  (part.pus - all).to_list());
  for (std::size_t i = 0; i < part.bridges.size(); ++i)
    if (!is_pci_place(part.bridges[i], i == 0))
      return breach(fmt::format("{}/bridges/{}", pointer, i), "\"{}\" is not a PCI {} like {}",
                    part.bridges[i], i == 0 ? "root" : "bridge",
                    i == 0 ? "0000:c0" : "0000:c0:01.1");
  return Done{};
}

Status check_devices(const Topology& topology) {
  if (topology.no_devices && !topology.devices.empty())
    return breach("/devices", "there are devices although no_devices is set");
  int last = -1;
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const Device& device = topology.devices[i];
    const std::string pointer = fmt::format("/devices/{}", i);
    if (device.index <= last)
      return breach(pointer + "/index", "device {} follows device {}", device.index, last);
    last = device.index;
    if (device_vendor(device.vendor).name.empty())
      return breach(pointer + "/vendor", "vendor \"{}\" is not nvidia, amd or intel",
                    device.vendor);
    if (device.subdevices < 0 || device.subdevices > kMostSubdevices)
      return breach(pointer + "/subdevices", "device {} has {} sub-devices", device.index,
                    device.subdevices);
    const std::string name = fmt::format("device {}", device.index);
    if (Status ok = check_place(topology, device, pointer, name); !ok) return ok;
  }
  return Done{};
}

Status check_nics(const Topology& topology) {
  for (std::size_t i = 0; i < topology.nics.size(); ++i) {
    const Nic& nic = topology.nics[i];
    const std::string name = "interface " + (nic.name.empty() ? nic.fabric : nic.name);
    if (Status ok = check_place(topology, nic, fmt::format("/nics/{}", i), name); !ok) return ok;
    if (nic.numa != -1 && !nic.pus.empty() && !topology.find_numa(nic.numa)->pus.empty())
      return breach(member("nics", i, "pus"), "{} names PUs beside NUMA node {}", name, nic.numa);
    if (!nic.state.empty() && nic.state != "up" && nic.state != "down")
      return breach(member("nics", i, "state"), "state \"{}\" is not up or down", nic.state);
  }
  return Done{};
}

Status check_links(const Topology& topology) {
  const auto place = [](const Link& link) { return std::tie(link.from, link.to, link.kind); };
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const std::string pointer = fmt::format("/links/{}", i);
    for (const auto& [key, index] : {std::pair("from", link.from), std::pair("to", link.to)})
      if (std::ranges::count(topology.devices, index, &Device::index) == 0)
        return breach(member("links", i, key), "link {} names device {}, which does not exist", i,
                      index);
    if (link.from >= link.to)
      return breach(pointer, "link {} must go from the lower device to the higher", i);
    if (link.lanes < 1) return breach(pointer + "/lanes", "link {} has {} lanes", i, link.lanes);
    if (i > 0 && place(topology.links[i - 1]) >= place(link))
      return breach(pointer, "link {} is out of order", i);
  }
  return Done{};
}

}  // namespace

CpuSet Topology::all_pus() const {
  CpuSet all;
  for (const Core& core : cores) all |= core.pus;
  return all;
}

CoreSet cores_of(const Topology& node, const CpuSet& pus) {
  CoreSet cores;
  for (std::size_t c = 0; c < node.cores.size(); ++c)
    if (node.cores[c].pus.intersects(pus)) cores.add(static_cast<int>(c));
  return cores;
}

const NumaNode* Topology::find_numa(int os_index) const {
  const auto found = std::ranges::find(numa_nodes, os_index, &NumaNode::os_index);
  return found == numa_nodes.end() ? nullptr : &*found;
}

const Device* Topology::find_device(int index) const {
  const auto found = std::ranges::find(devices, index, &Device::index);
  return found == devices.end() ? nullptr : &*found;
}

CpuSet Topology::numa_pus(int os_index) const {
  const NumaNode* const found = find_numa(os_index);
  return found == nullptr ? CpuSet() : found->pus;
}

bool is_pci_place(std::string_view text, bool root) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string shape = std::string(colon, 'h') + (root ? ":hh" : ":hh:hh.h");
  return colon >= 4 && colon <= 8 &&
         std::equal(text.begin(), text.end(), shape.begin(), shape.end(), [](char c, char wanted) {
           const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           return wanted == 'h' ? hex : c == wanted;
         });
}

Status check_topology(const Topology& topology) {
  for (const auto check : {check_cores, check_indices, check_whole_cores, check_nesting,
                           check_references, check_devices, check_nics, check_links})
    if (Status ok = check(topology); !ok) return ok;
  return Done{};
}

}  // namespace hpclaunch
