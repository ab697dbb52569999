#include "probe/vendor/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "probe/attach.h"
#include "probe/sysfs.h"

namespace hpclaunch::probe::vendor {

namespace {

constexpr int kMostSubdevices = 64;  ///< what check_topology takes

std::string read_word(const std::string& path) {
  constexpr std::size_t kMost = 65536;
  const Result<std::string> text = sys::read_file(path, kMost);
  return text ? std::string(trim(*text)) : "";
}

/// Where the kernel says that a device is: its NUMA node and CPUs, as far as this topology has them, and its
/// bridges.
void locate(const Topology& topology, const std::string& sysfs, Device& device) {
  const std::string folder = fmt::format("{}/bus/pci/devices/{}/", sysfs, device.pci);
  device.bridges = bridges_above(folder);
  if (const auto numa = parse_natural(read_word(folder + "numa_node")); numa) {
    const bool known =
        std::any_of(topology.numa_nodes.begin(), topology.numa_nodes.end(),
                    [&](const NumaNode& node) { return node.os_index == static_cast<int>(*numa); });
    if (known) device.numa = static_cast<int>(*numa);
  }
  if (const Result<CpuSet> near = CpuSet::parse(read_word(folder + "local_cpulist")); near) {
    device.pus = *near & topology.all_pus();
  }
}

/// UUIDs that are told of more than one device, and so name none: some kernels give the partitions of a
/// card the card's own number.
std::set<std::string> shared_uuids(const Told& told) {
  std::set<std::string> seen;
  std::set<std::string> shared;
  for (const ToldDevice& device : told.devices) {
    if (!seen.insert(device.uuid).second) shared.insert(device.uuid);
  }
  return shared;
}

void fill(const ToldDevice& told, const std::set<std::string>& shared, Device& device) {
  if (!told.model.empty()) device.model = told.model;
  if (!told.uuid.empty() && shared.count(told.uuid) == 0) device.uuid = told.uuid;
  if (!told.partition.empty()) device.partition = told.partition;
  if (told.memory_bytes != 0) device.memory_bytes = told.memory_bytes;
  if (told.subdevices >= 0) device.subdevices = std::min(told.subdevices, kMostSubdevices);
  if (!told.partition.empty() || !told.instances.empty()) device.instances = told.instances;
}

/// Which of the topology's devices each told one is; -1: none.
std::vector<int> match(const Topology& topology, const Told& told) {
  std::map<std::string, std::vector<int>> by_address;
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const Device& device = topology.devices[i];
    if (device.vendor == told.vendor) by_address[device.pci].push_back(static_cast<int>(i));
  }
  std::map<std::string, std::size_t> taken;
  std::vector<int> places;
  places.reserve(told.devices.size());
  for (const ToldDevice& one : told.devices) {
    const std::vector<int>& same = by_address[one.pci];
    const std::size_t next = taken[one.pci]++;
    places.push_back(next < same.size() ? same[next] : -1);
  }
  return places;
}

/// Vendors whose devices the runtime counts otherwise than by PCI address.
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

/// Sorts as attach_devices does, counts anew, and gives the new index of what stood at each place. Where the
/// order is not that of PCI, what was there keeps its order and what is new comes last.
std::vector<int> renumber(Topology& topology) {
  const std::set<std::string> otherwise = counted_otherwise(topology);
  std::vector<Standing> standings;
  standings.reserve(topology.devices.size());
  for (const Device& device : topology.devices) {
    Standing one{device.vendor, parse_pci(device.pci)};
    if (otherwise.count(device.vendor) != 0)
      one.number = device.index < 0 ? std::numeric_limits<int>::max() : device.index;
    standings.push_back(one);
  }
  const std::vector<std::size_t> order = device_order(standings);
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

/// Takes away the devices at these places (ascending), and their links.
void take_away(Topology& topology, const std::vector<int>& places) {
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    const int index = topology.devices[static_cast<std::size_t>(*place)].index;
    const auto touches = [&](const Link& link) { return link.from == index || link.to == index; };
    topology.links.erase(std::remove_if(topology.links.begin(), topology.links.end(), touches),
                         topology.links.end());
    topology.devices.erase(topology.devices.begin() + *place);
  }
}

void set_links(Topology& topology, const Told& told, const std::vector<int>& indices) {
  const auto place = [](const Link& link) { return std::tie(link.from, link.to, link.kind); };
  if (!told.links.empty()) {
    topology.links.erase(
        std::remove_if(topology.links.begin(), topology.links.end(),
                       [&](const Link& link) { return link.kind == told.link_kind; }),
        topology.links.end());
  }
  for (const ToldLink& link : told.links) {
    if (link.from >= indices.size() || link.to >= indices.size() || link.lanes < 1) continue;
    const auto [from, to] = std::minmax(indices[link.from], indices[link.to]);
    if (from != to) topology.links.push_back({from, to, told.link_kind, link.lanes});
  }
  std::sort(topology.links.begin(), topology.links.end(),
            [&](const Link& a, const Link& b) { return place(a) < place(b); });
  topology.links.erase(
      std::unique(topology.links.begin(), topology.links.end(),
                  [&](const Link& a, const Link& b) { return place(a) == place(b); }),
      topology.links.end());
}

/// Places of this vendor's devices that were not told.
std::vector<int> untold(const Topology& topology, const Told& told,
                        const std::vector<int>& places) {
  std::vector<int> left;
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const bool told_of =
        std::find(places.begin(), places.end(), static_cast<int>(i)) != places.end();
    if (topology.devices[i].vendor == told.vendor && !told_of) left.push_back(static_cast<int>(i));
  }
  return left;
}

}  // namespace

std::string merge(Topology& topology, const Told& told, const std::string& sysfs) {
  std::vector<int> places = match(topology, told);
  const std::set<std::string> shared = shared_uuids(told);
  const std::size_t were = topology.devices.size();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) {
      Device device;
      device.index = -1;
      device.vendor = told.vendor;
      device.pci = told.devices[i].pci;
      locate(topology, sysfs, device);
      places[i] = static_cast<int>(topology.devices.size());
      topology.devices.push_back(std::move(device));
    }
    fill(told.devices[i], shared, topology.devices[static_cast<std::size_t>(places[i])]);
  }
  topology.no_devices = topology.no_devices && topology.devices.empty();
  std::string remark;
  std::vector<int> gone;
  if (told.complete) gone = untold(topology, told, places);
  if (!gone.empty()) {
    remark = fmt::format("it lists {} of the {} in /sys: the others are not ours to use",
                         told.devices.size(),
                         counted(static_cast<long>(gone.size() + places.size()), "device"));
    take_away(topology, gone);
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
  set_links(topology, told, indices);
  return remark;
}

}  // namespace hpclaunch::probe::vendor
