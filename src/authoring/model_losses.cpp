// What a node model cannot express of the real node.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "authoring/model.h"
#include "authoring/new.h"

namespace hpclaunch::authoring {

namespace {

// Caches that divide the node differently from packages, NUMA nodes and cores.
std::set<std::string> telling_caches(const Topology& node) {
  const auto same = [](const CpuSet& pus) {
    return [&pus](const auto& group) { return group.pus == pus; };
  };
  std::set<std::string> caches;
  for (const Cache& cache : node.caches) {
    const bool known =
        cache.pus == node.all_pus() ||
        std::any_of(node.packages.begin(), node.packages.end(), same(cache.pus)) ||
        std::any_of(node.numa_nodes.begin(), node.numa_nodes.end(), same(cache.pus)) ||
        std::any_of(node.cores.begin(), node.cores.end(), same(cache.pus));
    if (!known) caches.insert(cache.pus.to_list());
  }
  return caches;
}

std::map<int, std::string> numa_map(const Topology& node) {
  std::map<int, std::string> nodes;
  for (const NumaNode& numa : node.numa_nodes) nodes[numa.os_index] = numa.pus.to_list();
  return nodes;
}

// The CPUs of a device or an interface, else those of its NUMA node.
template <class Entry>
CpuSet near(const Topology& node, const Entry& entry) {
  const NumaNode* numa = find_numa(node, entry.numa);
  return numa == nullptr || !entry.pus.empty() ? entry.pus : numa->pus;
}

// What is wrong with one device of the model; "" for nothing.
std::string difference(const Device& device, const Device& modelled) {
  if (device.model != modelled.model && json_text(device.model) != json_text(modelled.model))
    return "model differs from the first device's";
  if (device.memory_bytes / kMiB != modelled.memory_bytes / kMiB)
    return "memory differs from the first device's";
  if (device.subdevices != modelled.subdevices || device.partition != modelled.partition)
    return "divided differently from the first device";
  if (!device.instances.empty())
    return fmt::format("it is cut into {} instances", device.instances.size());
  return "";
}

}  // namespace

const NumaNode* find_numa(const Topology& node, int os_index) {
  for (const NumaNode& numa : node.numa_nodes)
    if (numa.os_index == os_index) return &numa;
  return nullptr;
}

bool same_cores(const Topology& node, const CpuSet& pus, const Topology& model,
                const CpuSet& modelled) {
  return std::equal(node.cores.begin(), node.cores.end(), model.cores.begin(), model.cores.end(),
                    [&](const Core& a, const Core& b) {
                      return pus.contains(a.pus) == modelled.contains(b.pus) &&
                             pus.intersects(a.pus) == modelled.intersects(b.pus);
                    });
}

Compared compare(const Topology& real, const Topology& model) {
  Compared found;
  const auto all = [&](auto same) {
    return std::equal(real.cores.begin(), real.cores.end(), model.cores.begin(), model.cores.end(),
                      same);
  };
  found.numbered = all([](const Core& a, const Core& b) { return a.pus == b.pus; });
  if (!found.numbered) {
    found.lost.emplace_back("numbering of cores and hardware threads");
    return found;
  }
  const bool placed = all([&](const Core& a, const Core& b) {
    return (real.packages.empty() || a.package == b.package) &&
           (real.numa_nodes.empty() || a.numa == b.numa);
  });
  const auto nodes = numa_map(real);
  const auto modelled = numa_map(model);
  if (!placed)
    found.lost.emplace_back("numbering or division of packages and NUMA nodes");
  else if (!nodes.empty() && nodes != modelled)
    found.lost.emplace_back("NUMA nodes without cores");
  if (telling_caches(real) != telling_caches(model))
    found.lost.emplace_back("caches that cores share");
  return found;
}

void compare_devices(const Topology& real, const Topology& model, std::vector<std::string>& lost) {
  std::size_t next = 0;
  bool all_near = true;
  for (const Device& device : real.devices) {
    const std::string name = fmt::format("device {}: ", device.index);
    if (device.vendor != real.devices.front().vendor) {
      lost.push_back(name + "another vendor, " + device.vendor);
      continue;
    }
    const bool there = next < model.devices.size();
    if (there && device.index != model.devices[next].index)
      lost.push_back(fmt::format("{}number {} in the model", name, model.devices[next].index));
    const std::string what = there ? difference(device, model.devices[next]) : "missing";
    if (!what.empty()) lost.push_back(name + what);
    all_near = all_near && there &&
               same_cores(real, near(real, device), model, near(model, model.devices[next]));
    ++next;
  }
  if (!all_near) lost.emplace_back("locality of devices");
  if (model.links.size() != real.links.size())
    lost.push_back(fmt::format("{} of {} links between devices",
                               real.links.size() - model.links.size(), real.links.size()));
}

void compare_nics(const Topology& real, const Topology& model, std::vector<std::string>& lost) {
  const bool all_near = std::equal(real.nics.begin(), real.nics.end(), model.nics.begin(),
                                   model.nics.end(), [&](const Nic& a, const Nic& b) {
                                     return same_cores(real, near(real, a), model, near(model, b));
                                   });
  if (!all_near) lost.emplace_back("locality of interfaces");
}

}  // namespace hpclaunch::authoring
