#include "probe/locality.h"

#include <string.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace hpclaunch::probe {
namespace {

/// The number of different CPU sets of NUMA nodes.
int numa_domains(const Topology& topology) {
  std::vector<CpuSet> sets;
  for (const NumaNode& node : topology.numa_nodes)
    if (!node.pus.empty() && std::ranges::count(sets, node.pus) == 0) sets.push_back(node.pus);
  return static_cast<int>(sets.size());
}

/// By CPUs alone; all CPUs of a machine with several NUMA nodes mean unknown.
Locality locality_by_cpus(const CpuSet& near, const Topology& topology) {
  const CpuSet all = topology.all_pus();
  const CpuSet pus = near & all;
  if (pus.empty() || (pus == all && numa_domains(topology) > 1)) return {};
  const int numa = home_of(pus, topology);
  return {numa, pus};
}

/// Buses of domain 0 that are wired to one group of cores.
struct Wire {
  unsigned first_bus, last_bus;
  int cpu;  ///< one CPU of the group
};

/// One EPYC 7A53 and four MI250X: each half of a GPU is wired to one group of eight cores, which ACPI
/// does not describe. Source: hwloc 2.9, hwloc/pci-common.c, HWLOC_PCI_LOCALITY_QUIRK_CRAY_EX235A.
constexpr std::string_view kEx235a = "HPE CRAY EX235A";
constexpr Wire kEx235aWires[] = {
    {0xd0, 0xd1, 0},  {0xd4, 0xd6, 8},  {0xc8, 0xc9, 16}, {0xcc, 0xce, 24},
    {0xd8, 0xd9, 32}, {0xdc, 0xde, 40}, {0xc0, 0xc1, 48}, {0xc4, 0xc6, 56},
};

}  // namespace

int home_of(const CpuSet& pus, const Topology& topology) {
  int home = -1;
  int fewest = INT_MAX;
  for (const NumaNode& node : topology.numa_nodes) {
    if (!node.pus.contains(pus) || node.pus.count() >= fewest) continue;
    fewest = node.pus.count();
    home = node.os_index;
  }
  return home;
}

CpuSet near_on_board(std::string_view board, const PciAddress& address, const Topology& topology) {
  if (board != kEx235a || address.domain != 0) return {};
  const auto wire = std::ranges::find_if(kEx235aWires, [&](const Wire& one) {
    return address.bus >= one.first_bus && address.bus <= one.last_bus;
  });
  if (wire == std::end(kEx235aWires)) return {};
  for (const Cache& cache : topology.caches)
    if (cache.pus.has(wire->cpu)) return cache.pus;
  return {};
}

Locality locality_of(const CpuSet& near, int numa, const Topology& topology) {
  const NumaNode* node = topology.find_numa(numa);
  Locality place = locality_by_cpus(near, topology);
  if (node != nullptr && !node->pus.empty()) {
    // The CPU list is a part of the node's, or all CPUs of the machine (unknown).
    if (place.pus.empty() || !node->pus.contains(place.pus)) place.pus = node->pus;
    place.numa = numa;
    return place;
  }
  if (node != nullptr) return {numa, place.pus};
  if (!place.pus.empty() || numa_domains(topology) > 1) return place;
  const CpuSet all = topology.all_pus();
  return {home_of(all, topology), all};
}

void set_locality(Nic& nic, const Locality& place, const Topology& topology) {
  const NumaNode* node = topology.find_numa(place.numa);
  nic.numa = place.numa;
  if (node == nullptr || node->pus.empty()) nic.pus = place.pus;
}

std::vector<std::size_t> device_order(const std::vector<FoundDevice>& devices) {
  std::map<std::string_view, int> counts;
  std::set<std::string_view> unnumbered;
  for (const FoundDevice& one : devices) {
    ++counts[one.device.vendor];
    if (one.number < 0) unnumbered.insert(one.device.vendor);
  }
  const auto key = [&](std::size_t at) {
    const FoundDevice& one = devices[at];
    const std::string_view vendor = one.device.vendor;
    return std::tuple(-counts[vendor], vendor != "nvidia", vendor,
                      unnumbered.count(vendor) == 0 ? one.number : 0, !one.address.has_value(),
                      one.address.value_or(PciAddress{}), one.sequence);
  };
  std::vector<std::size_t> order(devices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, key);
  return order;
}

std::vector<std::size_t> add_in_order(std::vector<FoundDevice> found, Topology& topology) {
  std::vector<std::size_t> order = device_order(found);
  for (const std::size_t at : order) {
    FoundDevice& one = found[at];
    const Locality place = locality_of(one.near, one.numa, topology);
    one.device.index = static_cast<int>(topology.devices.size());
    one.device.pci = one.address ? to_string(*one.address) : "";
    one.device.numa = place.numa;
    one.device.pus = place.pus;
    topology.devices.push_back(std::move(one.device));
  }
  return order;
}

void sort_nics(std::vector<Nic>& nics) {
  std::stable_sort(nics.begin(), nics.end(), [&](const Nic& a, const Nic& b) {
    if (a.on_fabric() != b.on_fabric()) return a.on_fabric();
    const std::string& left = a.name.empty() ? a.fabric : a.name;
    const std::string& right = b.name.empty() ? b.fabric : b.name;
    const int order = strverscmp(left.c_str(), right.c_str());  // "hsn2" before "hsn10"
    return (order != 0 ? order : strverscmp(a.fabric.c_str(), b.fabric.c_str())) < 0;
  });
}

}  // namespace hpclaunch::probe
