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
  const bool known = std::any_of(topology.numa_nodes.begin(), topology.numa_nodes.end(),
                                 [&](const NumaNode& node) { return node.os_index == numa; });
  if (known) device.numa = numa;
  device.pus = cpus_in(folder + "local_cpulist") & topology.all_pus();
}

/// UUIDs reported for several devices, which name none: some kernels give all partitions of a card the
/// card's own number.
std::set<std::string> shared_uuids(const VendorReport& report) {
  std::set<std::string> seen;
  std::set<std::string> shared;
  for (const ReportedDevice& device : report.devices) {
    if (!seen.insert(device.uuid).second) shared.insert(device.uuid);
  }
  return shared;
}

void fill(const ReportedDevice& reported, const std::set<std::string>& shared, Device& device) {
  if (!reported.model.empty()) device.model = reported.model;
  if (!reported.uuid.empty() && shared.count(reported.uuid) == 0) device.uuid = reported.uuid;
  if (!reported.partition.empty()) device.partition = reported.partition;
  if (reported.memory_bytes != 0) device.memory_bytes = reported.memory_bytes;
  if (reported.subdevices >= 0) device.subdevices = std::min(reported.subdevices, kMostSubdevices);
  if (!reported.partition.empty() || !reported.instances.empty())
    device.instances = reported.instances;
}

/// The position of each reported device in the topology; -1: none.
std::vector<int> match(const Topology& topology, const VendorReport& report) {
  std::map<std::string, std::vector<int>> by_address;
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const Device& device = topology.devices[i];
    if (device.vendor == report.vendor) by_address[device.pci].push_back(static_cast<int>(i));
  }
  std::map<std::string, std::size_t> taken;
  std::vector<int> places;
  places.reserve(report.devices.size());
  for (const ReportedDevice& one : report.devices) {
    const std::vector<int>& same = by_address[one.pci];
    const std::size_t next = taken[one.pci]++;
    places.push_back(next < same.size() ? same[next] : -1);
  }
  return places;
}

/// Vendors whose runtime does not count devices by PCI address.
std::set<std::string> counted_otherwise(const Topology& topology) {
  std::map<std::string, std::optional<PciAddress>> last;
  std::set<std::string> vendors;
  for (const Device& device : topology.devices) {
    const std::optional<PciAddress> address = parse_pci(device.pci);
    if (device.index < 0 || !address) continue;  // one that is new
    std::optional<PciAddress>& before = last[device.vendor];
    if (before && *address < *before) vendors.insert(device.vendor);
    before = address;
  }
  return vendors;
}

/// Sorts as add_in_order does, renumbers, and returns the new index of each old position. Where the order is
/// not that of PCI addresses, known devices keep their order and new ones come last.
std::vector<int> renumber(Topology& topology) {
  const std::set<std::string> otherwise = counted_otherwise(topology);
  std::vector<OrderKey> keys;
  keys.reserve(topology.devices.size());
  for (const Device& device : topology.devices) {
    OrderKey one{device.vendor, parse_pci(device.pci)};
    if (otherwise.count(device.vendor) != 0)
      one.number = device.index < 0 ? std::numeric_limits<int>::max() : device.index;
    keys.push_back(one);
  }
  const std::vector<std::size_t> order = device_order(keys);
  std::vector<int> index(order.size());
  std::map<int, int> moved;
  std::vector<Device> sorted;
  sorted.reserve(order.size());
  for (const std::size_t place : order) {
    Device& device = topology.devices[place];
    const int now = static_cast<int>(sorted.size());
    index[place] = now;
    if (device.index >= 0) moved[device.index] = now;
    sorted.push_back(std::move(device));
    sorted.back().index = now;
  }
  topology.devices = std::move(sorted);
  for (Link& link : topology.links) {
    link.from = moved.at(link.from);
    link.to = moved.at(link.to);
    if (link.from > link.to) std::swap(link.from, link.to);
  }
  return index;
}

/// Removes the devices at these positions (ascending), and their links.
void remove_devices(Topology& topology, const std::vector<int>& places) {
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    const int index = topology.devices[static_cast<std::size_t>(*place)].index;
    const auto touches = [&](const Link& link) { return link.from == index || link.to == index; };
    topology.links.erase(std::remove_if(topology.links.begin(), topology.links.end(), touches),
                         topology.links.end());
    topology.devices.erase(topology.devices.begin() + *place);
  }
}

void set_links(Topology& topology, const VendorReport& report, const std::vector<int>& indices) {
  const auto place = [](const Link& link) { return std::tie(link.from, link.to, link.kind); };
  if (!report.links.empty()) {
    topology.links.erase(
        std::remove_if(topology.links.begin(), topology.links.end(),
                       [&](const Link& link) { return link.kind == report.link_kind; }),
        topology.links.end());
  }
  for (const ReportedLink& link : report.links) {
    if (link.from >= indices.size() || link.to >= indices.size() || link.lanes < 1) continue;
    const auto [from, to] = std::minmax(indices[link.from], indices[link.to]);
    if (from != to) topology.links.push_back({from, to, report.link_kind, link.lanes});
  }
  std::sort(topology.links.begin(), topology.links.end(),
            [&](const Link& a, const Link& b) { return place(a) < place(b); });
  topology.links.erase(
      std::unique(topology.links.begin(), topology.links.end(),
                  [&](const Link& a, const Link& b) { return place(a) == place(b); }),
      topology.links.end());
}

/// Places of this vendor's devices that were not report.
std::vector<int> unreported(const Topology& topology, const VendorReport& report,
                            const std::vector<int>& places) {
  std::vector<int> left;
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const bool reported =
        std::find(places.begin(), places.end(), static_cast<int>(i)) != places.end();
    if (topology.devices[i].vendor == report.vendor && !reported)
      left.push_back(static_cast<int>(i));
  }
  return left;
}

}  // namespace

std::string merge(Topology& topology, const VendorReport& report, const std::string& sysfs) {
  std::vector<int> places = match(topology, report);
  const std::set<std::string> shared = shared_uuids(report);
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
    fill(report.devices[i], shared, topology.devices[static_cast<std::size_t>(places[i])]);
  }
  topology.no_devices = topology.no_devices && topology.devices.empty();
  std::string sentence;
  std::vector<int> gone;
  if (report.complete) gone = unreported(topology, report, places);
  if (!gone.empty()) {
    sentence = fmt::format("it lists {} of the {} in /sys: this job cannot use the others",
                           report.devices.size(),
                           counted(static_cast<long>(gone.size() + places.size()), "device"));
    remove_devices(topology, gone);
    for (int& place : places) {
      place -= static_cast<int>(
          std::count_if(gone.begin(), gone.end(), [&](int g) { return g < place; }));
    }
  }
  std::vector<int> indices;
  if (!gone.empty() || topology.devices.size() != were) {
    const std::vector<int> now = renumber(topology);
    for (const int place : places) indices.push_back(now[static_cast<std::size_t>(place)]);
  } else {
    for (const int place : places)
      indices.push_back(topology.devices[static_cast<std::size_t>(place)].index);
  }
  set_links(topology, report, indices);
  return sentence;
}

}  // namespace hpclaunch::probe::vendor
