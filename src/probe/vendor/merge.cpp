#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

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

void fill(const ReportedDevice& reported, Device& device) {
  if (!reported.model.empty()) device.model = reported.model;
  if (!reported.uuid.empty()) device.uuid = reported.uuid;
  if (!reported.partition.empty()) device.partition = reported.partition;
  if (reported.memory_bytes != 0) device.memory_bytes = reported.memory_bytes;
  if (reported.subdevices >= 0) device.subdevices = std::min(reported.subdevices, kMostSubdevices);
  if (!reported.partition.empty() || !reported.instances.empty())
    device.instances = reported.instances;
}

/// The position of each reported device in the topology; -1: none.
std::vector<int> match(const Topology& topology, const VendorReport& report) {
  std::vector<int> places;
  for (const ReportedDevice& one : report.devices) {
    const auto same = std::ranges::find_if(topology.devices, [&](const Device& device) {
      return device.vendor == report.vendor && device.pci == one.pci;
    });
    const bool known = same != topology.devices.end();
    places.push_back(known ? static_cast<int>(same - topology.devices.begin()) : -1);
  }
  return places;
}

/// Removes the devices that are not `kept`, and their links. Sorts the others as add_in_order does, and
/// renumbers; devices of vendors without a report keep their order. Returns the new index of each old position.
std::vector<int> renumber(Topology& topology, const std::vector<bool>& kept,
                          const std::string& vendor) {
  std::vector<FoundDevice> found;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    FoundDevice one;
    one.address = parse_pci(topology.devices[i].pci);
    one.sequence = static_cast<int>(i);
    if (topology.devices[i].vendor != vendor) one.number = topology.devices[i].index;
    one.device = std::move(topology.devices[i]);
    found.push_back(std::move(one));
  }
  std::vector<int> now(kept.size(), -1);
  std::map<int, int> moved;  // old index -> new
  topology.devices.clear();
  for (const std::size_t at : device_order(found)) {
    const int index = static_cast<int>(topology.devices.size());
    Device& device = found[at].device;
    now[static_cast<std::size_t>(found[at].sequence)] = index;
    if (device.index >= 0) moved[device.index] = index;
    device.index = index;
    topology.devices.push_back(std::move(device));
  }
  std::erase_if(topology.links, [&](const Link& link) {
    return moved.count(link.from) == 0 || moved.count(link.to) == 0;
  });
  for (Link& link : topology.links) {
    link.from = moved[link.from];
    link.to = moved[link.to];
    if (link.from > link.to) std::swap(link.from, link.to);
  }
  return now;
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
  std::vector<int> places = match(topology, report);
  const std::size_t were = topology.devices.size();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) {
      Device device;
      device.index = -1;
      device.vendor = report.vendor;
      device.pci = report.devices[i].pci;
      locate(topology, sysfs, device);
      places[i] = static_cast<int>(topology.devices.size());
      topology.devices.push_back(std::move(device));
    }
    fill(report.devices[i], topology.devices[static_cast<std::size_t>(places[i])]);
  }
  topology.no_devices = topology.no_devices && topology.devices.empty();
  std::vector<bool> kept(topology.devices.size(), true);
  std::vector<int> now;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    now.push_back(topology.devices[i].index);
    const bool reported =
        std::find(places.begin(), places.end(), static_cast<int>(i)) != places.end();
    kept[i] = !report.complete || reported || topology.devices[i].vendor != report.vendor;
  }
  const auto gone = std::count(kept.begin(), kept.end(), false);
  if (gone > 0 || kept.size() != were) now = renumber(topology, kept, report.vendor);
  std::vector<int> indices;
  indices.reserve(places.size());
  for (const int place : places) indices.push_back(now[static_cast<std::size_t>(place)]);
  set_links(topology, report, indices);
  if (gone == 0) return "";
  return fmt::format("it lists {} of the {} in /sys: this job cannot use the others",
                     report.devices.size(), counted(gone + std::ssize(places), "device"));
}

}  // namespace hpclaunch::probe::vendor
