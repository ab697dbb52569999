// Cores and devices that a batch system grants by name, host by host.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "world/node.h"

namespace hpclaunch::job {

namespace {

using Grants = std::vector<HostGrant>;

// Hardware threads of cores in hwloc's order; nullopt for a core that this node does not have.
std::optional<CpuSet> threads_of(const Topology& node, const CpuSet& cores) {
  if (!cores.empty() && cores.last() >= static_cast<int>(node.cores.size())) return std::nullopt;
  CpuSet pus;
  for (const int core : cores.to_vector()) pus |= node.cores[static_cast<std::size_t>(core)].pus;
  return pus;
}

// Devices of the driver that one of the batch system's is: three of an MI300A in TPX, else one.
int parts_of_device(const Topology& node) {
  std::set<std::string> places;
  for (const Device& device : node.devices) {
    if (device.partition.empty() || device.partition == "SPX" || device.partition == "MIG")
      return 1;
    places.insert(device.pci.empty() ? fmt::format("node {}", device.numa)
                                     : device.pci.substr(0, device.pci.rfind('.')));
  }
  const auto all = node.devices.size();
  return places.empty() || all % places.size() != 0 ? 1 : static_cast<int>(all / places.size());
}

std::optional<std::vector<int>> devices_of(const Topology& node, const CpuSet& granted) {
  const int parts = parts_of_device(node);
  const auto all = static_cast<int>(node.devices.size());
  if (!granted.empty() && granted.last() >= all / parts) return std::nullopt;
  std::vector<int> devices;
  for (const int device : granted.to_vector())
    for (int part = 0; part < parts; ++part)
      devices.push_back(node.devices[static_cast<std::size_t>(device * parts + part)].index);
  std::ranges::sort(devices);
  return devices;
}

// The batch system knows devices: it has granted some, or said that there are none.
bool knows_devices(const Grants& grants, const EnvSnapshot& env) {
  return env.get("CUDA_VISIBLE_DEVICES") == "-1" ||
         std::ranges::any_of(grants, [](const HostGrant& one) { return !one.devices.empty(); });
}

}  // namespace

bool name_grants(const Site& site, const EnvSnapshot& env, const CpuSet& here, JobNode& node) {
  const Grants& grants = site.hosts.grants;
  if (grants.empty()) return false;
  const Topology& model = node.topology;
  const CpuSet whole = node.whole.empty() ? model.all_pus() : node.whole;
  const bool devices = !model.devices.empty() && knows_devices(grants, env);
  std::vector<NodeGrant> own;
  for (const HostGrant& grant : grants) {
    const std::optional<CpuSet> cpus = threads_of(model, grant.cores);
    const auto some = devices ? devices_of(model, grant.devices) : std::nullopt;
    if (!cpus || (devices && !some)) return false;  // of a node that is not like this one
    own.push_back({*cpus & whole, some});
    if (own.back().cpus.empty()) own.back().cpus = whole;
  }
  const bool narrower = own.front().cpus.intersects(here) && !here.contains(own.front().cpus);
  for (NodeGrant& one : own)
    if (narrower && one.cpus.intersects(here)) one.cpus &= here;
  const bool all = std::ranges::all_of(own, [&](const NodeGrant& one) {
    return one.cpus.contains(whole) &&
           (!one.devices || one.devices->size() == model.devices.size());
  });
  if (all) return true;
  for (const NodeGrant& one : own) {
    const auto known = std::ranges::find(node.grants, one);
    node.grant_of.push_back(static_cast<int>(known - node.grants.begin()));
    if (known == node.grants.end()) node.grants.push_back(one);
  }
  if (devices)
    node.grants_mask = grants.front().devices.empty()
                           ? "-1"
                           : fmt::format("{}", fmt::join(grants.front().devices.to_vector(), ","));
  return true;
}

}  // namespace hpclaunch::job
