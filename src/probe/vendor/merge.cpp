#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "hpclaunch/text.h"
#include "probe/locality.h"
#include "probe/sysfs.h"
#include "probe/vendor/vendor.h"

namespace hpclaunch::probe::vendor {

namespace {

constexpr int kMostSubdevices = 64;  ///< the limit of check_topology

/// The device's NUMA node and CPUs as the kernel names them, where this topology has them, and its bridges.
void locate(const Topology& topology, const std::string& sysfs, Device& device) {
  const std::string folder = fmt::format("{}/bus/pci/devices/{}/", sysfs, device.pci);
  device.bridges = bridges_above(folder);
  const int numa = node_in(folder + "numa_node");
  if (topology.find_numa(numa) != nullptr) device.numa = numa;
  device.pus = cpus_in(folder + "local_cpulist") & topology.all_pus();
}

/// A UUID of several devices names none: some kernels give all partitions of a card the card's own number.
void fill(const VendorReport& report, const ReportedDevice& reported, Device& device) {
  if (!reported.model.empty()) device.model = reported.model;
  if (!reported.uuid.empty() &&
      std::ranges::count(report.devices, reported.uuid, &ReportedDevice::uuid) == 1)
    device.uuid = reported.uuid;
  if (!reported.partition.empty()) device.partition = reported.partition;
  if (reported.memory_bytes != 0) device.memory_bytes = reported.memory_bytes;
  if (reported.subdevices >= 0) device.subdevices = std::min(reported.subdevices, kMostSubdevices);
  if (!reported.partition.empty() || !reported.instances.empty())
    device.instances = reported.instances;
}

/// The device of `one`, which is in the report: the n-th of its address for the n-th report of that address.
Device* find(Topology& topology, const VendorReport& report, const ReportedDevice& one) {
  auto before = std::ranges::count(report.devices.data(), &one, one.pci, &ReportedDevice::pci);
  const auto same = std::ranges::find_if(topology.devices, [&](const Device& device) {
    return device.vendor == report.vendor && device.pci == one.pci && before-- == 0;
  });
  return same == topology.devices.end() ? nullptr : &*same;
}

/// Sorts the devices as add_in_order does, and renumbers them and their links: the vendor's by PCI address where the
/// known ones are in that order, else new ones behind the known. Other vendors' devices keep their order. Links of
/// devices that are gone go too.
void renumber(Topology& topology, const std::string& vendor) {
  std::vector<PciAddress> known;
  for (const Device& device : topology.devices)
    if (const auto address = parse_pci(device.pci); address && device.vendor == vendor)
      if (device.index >= 0) known.push_back(*address);
  const bool by_address = std::is_sorted(known.begin(), known.end());
  std::vector<FoundDevice> found;
  for (Device& device : topology.devices) {
    FoundDevice& one = found.emplace_back();
    one.address = parse_pci(device.pci);
    if (device.vendor != vendor || !by_address)
      one.number = device.index < 0 ? std::numeric_limits<int>::max() : device.index;
    one.device = std::move(device);
  }
  std::map<int, int> moved;  // old index -> new
  topology.devices.clear();
  for (const std::size_t at : device_order(found)) {
    Device& device = topology.devices.emplace_back(std::move(found[at].device));
    const int old = std::exchange(device.index, static_cast<int>(topology.devices.size()) - 1);
    if (old >= 0) moved[old] = device.index;
  }
  std::erase_if(topology.links, [&](const Link& link) {
    return !moved.contains(link.from) || !moved.contains(link.to);
  });
  for (Link& link : topology.links) {
    link.from = moved[link.from];
    link.to = moved[link.to];
    if (link.from > link.to) std::swap(link.from, link.to);
  }
}

/// `indices`: of the reported devices.
void set_links(Topology& topology, const VendorReport& report, const std::vector<int>& indices) {
  const auto place = [](const Link& link) { return std::tie(link.from, link.to, link.kind); };
  if (!report.links.empty())
    std::erase_if(topology.links, [&](const Link& link) { return link.kind == report.link_kind; });
  for (const ReportedLink& link : report.links) {
    if (link.from >= indices.size() || link.to >= indices.size() || link.lanes < 1) continue;
    const auto [from, to] = std::minmax(indices[link.from], indices[link.to]);
    if (from != to) topology.links.push_back({from, to, report.link_kind, link.lanes});
  }
  std::ranges::sort(topology.links, {}, place);
  const auto same = [&](const Link& a, const Link& b) { return place(a) == place(b); };
  topology.links.erase(std::unique(topology.links.begin(), topology.links.end(), same),
                       topology.links.end());
}

}  // namespace

std::string merge(Topology& topology, const VendorReport& report, const std::string& sysfs) {
  const std::size_t were = topology.devices.size();
  for (const ReportedDevice& one : report.devices) {
    Device* device = find(topology, report, one);
    if (device == nullptr) {
      device = &topology.devices.emplace_back();
      device->index = -1;
      device->vendor = report.vendor;
      device->pci = one.pci;
      locate(topology, sysfs, *device);
    }
    fill(report, one, *device);
  }
  topology.no_devices = topology.no_devices && topology.devices.empty();
  const std::size_t all = topology.devices.size();
  const auto gone = std::erase_if(topology.devices, [&](const Device& device) {
    return report.complete && device.vendor == report.vendor &&
           std::ranges::count(report.devices, device.pci, &ReportedDevice::pci) == 0;
  });
  if (gone > 0 || all != were) renumber(topology, report.vendor);
  std::vector<int> indices;
  for (const ReportedDevice& one : report.devices)
    indices.push_back(find(topology, report, one)->index);
  set_links(topology, report, indices);
  if (gone == 0) return "";
  return fmt::format(
      "it lists {} of the {} in /sys: this job cannot use the others", report.devices.size(),
      counted(std::ssize(report.devices) + static_cast<std::ptrdiff_t>(gone), "device"));
}

}  // namespace hpclaunch::probe::vendor
