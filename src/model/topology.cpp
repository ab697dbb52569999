#include "hpclaunch/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

Error breach(const std::string& pointer, std::string message) {
  Error error{ErrorKind::invalid, std::move(message)};
  error.where = SourceRef{"", 0, 0, pointer};
  return error;
}

std::vector<Group> groups_of(const Topology& topology) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < topology.packages.size(); ++i) {
    const Package& package = topology.packages[i];
    groups.push_back({fmt::format("package {}", package.os_index), fmt::format("/packages/{}", i),
                      &package.pus});
  }
  for (std::size_t i = 0; i < topology.numa_nodes.size(); ++i) {
    const NumaNode& node = topology.numa_nodes[i];
    groups.push_back(
        {fmt::format("NUMA node {}", node.os_index), fmt::format("/numa_nodes/{}", i), &node.pus});
  }
  for (std::size_t i = 0; i < topology.caches.size(); ++i) {
    const Cache& cache = topology.caches[i];
    groups.push_back({fmt::format("L{} cache with PUs {}", cache.level, cache.pus.to_list()),
                      fmt::format("/caches/{}", i), &cache.pus});
  }
  return groups;
}

Status check_cores(const Topology& topology) {
  if (topology.cores.empty()) return breach("/cores", "the topology has no core");
  CpuSet seen;
  for (std::size_t i = 0; i < topology.cores.size(); ++i) {
    const CpuSet& pus = topology.cores[i].pus;
    const std::string pointer = fmt::format("/cores/{}/pus", i);
    if (pus.empty()) return breach(pointer, fmt::format("core {} has no PU", i));
    if (pus.intersects(seen)) {
      return breach(pointer, fmt::format("PU {} is in two cores", (pus & seen).first()));
    }
    seen |= pus;
  }
  if (topology.allowed.empty()) return breach("/allowed", "no PU is allowed");
  if (!seen.contains(topology.allowed)) {
    return breach("/allowed", fmt::format("allowed PUs {} are in no core",
                                          (topology.allowed - seen).to_list()));
  }
  return Done{};
}

Status check_indices(const Topology& topology) {
  std::set<int> packages;
  for (std::size_t i = 0; i < topology.packages.size(); ++i) {
    const int index = topology.packages[i].os_index;
    const std::string pointer = fmt::format("/packages/{}/os_index", i);
    if (index < 0) return breach(pointer, fmt::format("package number {} is negative", index));
    if (!packages.insert(index).second) {
      return breach(pointer, fmt::format("two packages have the number {}", index));
    }
    if (topology.packages[i].pus.empty()) {
      return breach(fmt::format("/packages/{}/pus", i), fmt::format("package {} has no PU", index));
    }
  }
  std::set<int> nodes;
  for (std::size_t i = 0; i < topology.numa_nodes.size(); ++i) {
    const int index = topology.numa_nodes[i].os_index;
    const std::string pointer = fmt::format("/numa_nodes/{}/os_index", i);
    if (index < 0) return breach(pointer, fmt::format("NUMA node number {} is negative", index));
    if (!nodes.insert(index).second) {
      return breach(pointer, fmt::format("two NUMA nodes have the number {}", index));
    }
  }
  int level = 1 << 20;
  for (std::size_t i = 0; i < topology.caches.size(); ++i) {
    const Cache& cache = topology.caches[i];
    const std::string pointer = fmt::format("/caches/{}/level", i);
    if (cache.level < 2) {
      return breach(pointer, fmt::format("cache level {} is below 2", cache.level));
    }
    if (cache.level > level) {
      return breach(pointer, fmt::format("an L{} cache follows an L{} cache", cache.level, level));
    }
    if (cache.pus.empty()) return breach(fmt::format("/caches/{}/pus", i), "a cache has no PU");
    level = cache.level;
  }
  return Done{};
}

Status check_whole_cores(const Topology& topology, const std::vector<Group>& groups) {
  std::array<int, CpuSet::kCapacity> core_of;
  core_of.fill(-1);
  for (std::size_t i = 0; i < topology.cores.size(); ++i) {
    for (const int pu : topology.cores[i].pus.to_vector()) {
      core_of[static_cast<std::size_t>(pu)] = static_cast<int>(i);
    }
  }
  for (const Group& group : groups) {
    for (const int pu : group.pus->to_vector()) {
      const int core = core_of[static_cast<std::size_t>(pu)];
      if (core < 0) {
        return breach(group.pointer + "/pus",
                      fmt::format("{} has PU {}, which is in no core", group.name, pu));
      }
      const CpuSet& whole = topology.cores[static_cast<std::size_t>(core)].pus;
      if (!group.pus->contains(whole)) {
        return breach(
            group.pointer + "/pus",
            fmt::format("{} has only a part of the core with PUs {}", group.name, whole.to_list()));
      }
    }
  }
  return Done{};
}

/// Larger groups first; each PU keeps the last group that contains it. A group over PUs of two different
/// groups overlaps the smaller one.
Status check_nesting(std::vector<Group> groups) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.pus->count() > b.pus->count(); });
  std::array<int, CpuSet::kCapacity> owner;
  owner.fill(-1);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::vector<int> pus = groups[i].pus->to_vector();
    for (const int pu : pus) {
      const int first = owner[static_cast<std::size_t>(pus.front())];
      const int here = owner[static_cast<std::size_t>(pu)];
      if (first == here) continue;
      const Group& other = groups[static_cast<std::size_t>(std::max(first, here))];
      return breach(groups[i].pointer + "/pus",
                    fmt::format("{} and {} overlap, and neither contains the other", groups[i].name,
                                other.name));
    }
    for (const int pu : pus) owner[static_cast<std::size_t>(pu)] = static_cast<int>(i);
  }
  return Done{};
}

template <class Member>
const CpuSet* pus_of(const std::vector<Member>& members, int os_index) {
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& member) {
    return member.os_index == os_index;
  });
  return found == members.end() ? nullptr : &found->pus;
}

Status check_references(const Topology& topology) {
  for (std::size_t i = 0; i < topology.cores.size(); ++i) {
    const Core& core = topology.cores[i];
    const auto check = [&](const CpuSet* home, int index, const char* key,
                           const char* noun) -> Status {
      if (index == -1 || (home != nullptr && home->contains(core.pus))) return Done{};
      return breach(fmt::format("/cores/{}/{}", i, key),
                    home == nullptr
                        ? fmt::format("core {} names {} {}, which does not exist", i, noun, index)
                        : fmt::format("core {} names {} {}, which does not contain its PUs {}", i,
                                      noun, index, core.pus.to_list()));
    };
    if (Status ok =
            check(pus_of(topology.packages, core.package), core.package, "package", "package");
        !ok) {
      return ok;
    }
    if (Status ok = check(pus_of(topology.numa_nodes, core.numa), core.numa, "numa", "NUMA node");
        !ok) {
      return ok;
    }
  }
  return Done{};
}

/// "0000:c0" with `root`, else "0000:c0:01.1": lower case, domains of 4 digits and more, as the kernel
/// writes them.
bool is_on_pci(std::string_view text, bool root) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string shape = std::string(colon, 'h') + (root ? ":hh" : ":hh:hh.h");
  return colon >= 4 && colon <= 8 &&
         std::equal(text.begin(), text.end(), shape.begin(), shape.end(), [](char c, char wanted) {
           const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           return wanted == 'h' ? hex : c == wanted;
         });
}

Status check_bridges(const std::vector<std::string>& bridges, const std::string& pointer) {
  for (std::size_t i = 0; i < bridges.size(); ++i) {
    if (is_on_pci(bridges[i], i == 0)) continue;
    return breach(fmt::format("{}/bridges/{}", pointer, i),
                  fmt::format("\"{}\" is not a PCI {} like {}", bridges[i],
                              i == 0 ? "root" : "bridge", i == 0 ? "0000:c0" : "0000:c0:01.1"));
  }
  return Done{};
}

Status check_devices(const Topology& topology) {
  const CpuSet all = topology.all_pus();
  if (topology.no_devices && !topology.devices.empty())
    return breach("/devices", "there are devices although no_devices is set");
  int last = -1;
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const Device& device = topology.devices[i];
    const std::string pointer = fmt::format("/devices/{}", i);
    if (device.index <= last)
      return breach(pointer + "/index",
                    fmt::format("device {} follows device {}", device.index, last));
    last = device.index;
    if (device_vendor(device.vendor).name.empty())
      return breach(pointer + "/vendor",
                    fmt::format("vendor \"{}\" is not nvidia, amd or intel", device.vendor));
    if (device.subdevices < 0 || device.subdevices > kMostSubdevices)
      return breach(pointer + "/subdevices",
                    fmt::format("device {} has {} sub-devices", device.index, device.subdevices));
    if (!all.contains(device.pus))
      return breach(pointer + "/pus", fmt::format("device {} is near PUs {}, which are in no core",
                                                  device.index, (device.pus - all).to_list()));
    if (device.numa != -1 && pus_of(topology.numa_nodes, device.numa) == nullptr)
      return breach(pointer + "/numa",
                    fmt::format("device {} names NUMA node {}, which does not exist", device.index,
                                device.numa));
    if (Status ok = check_bridges(device.bridges, pointer); !ok) return ok;
  }
  for (std::size_t i = 0; i < topology.nics.size(); ++i) {
    const Nic& nic = topology.nics[i];
    const std::string& name = nic.name.empty() ? nic.fabric : nic.name;
    if (nic.numa != -1 && pus_of(topology.numa_nodes, nic.numa) == nullptr)
      return breach(
          fmt::format("/nics/{}/numa", i),
          fmt::format("interface {} names NUMA node {}, which does not exist", name, nic.numa));
    if (!all.contains(nic.pus))
      return breach(fmt::format("/nics/{}/pus", i),
                    fmt::format("interface {} is near PUs {}, which are in no core", name,
                                (nic.pus - all).to_list()));
    if (nic.numa != -1 && !nic.pus.empty() && !pus_of(topology.numa_nodes, nic.numa)->empty())
      return breach(fmt::format("/nics/{}/pus", i),
                    fmt::format("interface {} names PUs beside NUMA node {}", name, nic.numa));
    if (!nic.state.empty() && nic.state != "up" && nic.state != "down")
      return breach(fmt::format("/nics/{}/state", i),
                    fmt::format("state \"{}\" is not up or down", nic.state));
    if (Status ok = check_bridges(nic.bridges, fmt::format("/nics/{}", i)); !ok) return ok;
  }
  return Done{};
}

Status check_links(const Topology& topology) {
  const auto exists = [&](int index) {
    return std::any_of(topology.devices.begin(), topology.devices.end(),
                       [index](const Device& device) { return device.index == index; });
  };
  const auto place = [](const Link& link) { return std::tie(link.from, link.to, link.kind); };
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const std::string pointer = fmt::format("/links/{}", i);
    for (const auto& [key, index] : {std::pair("from", link.from), std::pair("to", link.to)})
      if (!exists(index))
        return breach(fmt::format("{}/{}", pointer, key),
                      fmt::format("link {} names device {}, which does not exist", i, index));
    if (link.from >= link.to)
      return breach(pointer, fmt::format("link {} must go from the lower device to the higher", i));
    if (link.lanes < 1)
      return breach(pointer + "/lanes", fmt::format("link {} has {} lanes", i, link.lanes));
    if (i > 0 && place(topology.links[i - 1]) >= place(link))
      return breach(pointer, fmt::format("link {} is out of order", i));
  }
  return Done{};
}

}  // namespace

CpuSet Topology::all_pus() const {
  CpuSet all;
  for (const Core& core : cores) all |= core.pus;
  return all;
}

Status check_topology(const Topology& topology) {
  if (Status ok = check_cores(topology); !ok) return ok;
  if (Status ok = check_indices(topology); !ok) return ok;
  const std::vector<Group> groups = groups_of(topology);
  if (Status ok = check_whole_cores(topology, groups); !ok) return ok;
  if (Status ok = check_nesting(groups); !ok) return ok;
  if (Status ok = check_references(topology); !ok) return ok;
  if (Status ok = check_devices(topology); !ok) return ok;
  return check_links(topology);
}

}  // namespace hpclaunch
