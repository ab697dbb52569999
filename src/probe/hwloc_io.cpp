#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "hpclaunch/text.h"
#include "probe/hwloc_objects.h"
#include "probe/locality.h"
#include "probe/pci.h"
#include "probe/sysfs.h"

namespace hpclaunch::probe {
namespace {

/// The programming interface that shows a device under this name.
enum class Api { nvml, cuda, rsmi, level_zero, opencl };

/// An OS device of one of them.
struct OsDevice {
  hwloc_obj_t object = nullptr;
  hwloc_obj_t pci = nullptr;  ///< the function that it is a child of; null for none
  Api api = Api::nvml;
  int number = 0;      ///< "rsmi12"
  bool part = false;   ///< of another OS device: the tile "ze0.1"
  std::string vendor;  ///< "" when unknown
};

std::string reported_vendor(hwloc_obj_t osdev) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"NVIDIA", "nvidia"}, {"Intel", "intel"}, {"AMD", "amd"}, {"Advanced Micro", "amd"}};
  const std::string reported = info(osdev, "GPUVendor");
  for (const auto& [name, vendor] : kNames)
    if (reported.find(name) != std::string::npos) return vendor;
  return "";
}

/// In the order of the file.
std::vector<OsDevice> os_devices(hwloc_topology_t from) {
  constexpr std::tuple<std::string_view, Api, const char*> kApis[] = {
      {"nvml", Api::nvml, "nvidia"},
      {"cuda", Api::cuda, "nvidia"},
      {"rsmi", Api::rsmi, "amd"},
      {"ze", Api::level_zero, "intel"},
      {"opencl", Api::opencl, nullptr}};
  std::vector<OsDevice> all;
  for (hwloc_obj_t osdev = nullptr; (osdev = hwloc_get_next_osdev(from, osdev)) != nullptr;) {
    const std::string_view name = osdev->name == nullptr ? "" : osdev->name;
    for (const auto& [prefix, api, vendor] : kApis) {
      if (!name.starts_with(prefix)) continue;
      const std::string_view rest = name.substr(prefix.size());
      const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
      if (const auto number = parse_natural(rest.substr(0, end)))
        all.push_back({osdev, pci_above(osdev), api, static_cast<int>(*number),
                       rest.substr(end).starts_with('.'),
                       vendor == nullptr ? reported_vendor(osdev) : vendor});
    }
  }
  return all;
}

/// Sizes are in KiB, without a unit in format 2 and with "KiB" in format 3.
std::uint64_t kib(hwloc_obj_t osdev, const char* name) {
  const std::string text = info(osdev, name);
  const std::string_view digits =
      std::string_view(text).substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  const auto value = parse_natural(digits, LONG_MAX / 1024);
  return value ? static_cast<std::uint64_t>(*value) * 1024 : 0;
}

void take_infos(hwloc_obj_t osdev, Device& device) {
  const auto text = [&](std::string& into, const char* name) {
    if (std::string value = info(osdev, name); !value.empty()) into = std::move(value);
  };
  text(device.model, "GPUModel");
  text(device.model, "LevelZeroModel");
  text(device.uuid, "NVIDIAUUID");
  text(device.uuid, "LevelZeroUUID");
  if (const std::string serial = amd_uuid(info(osdev, "AMDUUID")); !serial.empty())
    device.uuid = serial;
  for (const char* name : {"CUDAGlobalMemorySize", "RSMIVRAMSize", "OpenCLGlobalMemorySize"})
    if (device.memory_bytes == 0) device.memory_bytes = kib(osdev, name);
  if (device.memory_bytes == 0)
    device.memory_bytes = kib(osdev, "LevelZeroHBMSize") + kib(osdev, "LevelZeroDDRSize");
}

// ---- devices ---------------------------------------------------------------------------------------

/// A device and the objects that it was made of, for the links.
struct Found : FoundDevice {
  std::vector<hwloc_obj_t> objects;
  int rsmi = -1;  ///< ROCm SMI's number
};

class DeviceReader {
 public:
  DeviceReader(hwloc_topology_t from, const ObjectLocality& where)
      : from_(from), where_(where), all_(os_devices(from)) {}

  std::vector<Found> read() {
    for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(from_, pci)) != nullptr;)
      add_function(pci);
    add_orphans();
    return std::move(found_);
  }

 private:
  std::vector<OsDevice> below(hwloc_obj_t pci) const {
    std::vector<OsDevice> devices;
    std::ranges::copy_if(all_, std::back_inserter(devices),
                         [&](const OsDevice& one) { return one.pci == pci; });
    return devices;
  }

  void add_function(hwloc_obj_t pci) {
    const PciFunction function = function_of(pci);
    const std::vector<OsDevice> devices = below(pci);
    std::string vendor = accelerator_vendor(function);
    for (const OsDevice& one : devices) {  // an unexpected PCI class
      const bool driven = one.api != Api::opencl && one.api != Api::level_zero;
      if (vendor.empty() && driven && function.address.bus != 0) vendor = one.vendor;
    }
    if (vendor.empty()) return;
    Found one;
    one.address = function.address;
    one.near = where_.near(pci);
    one.numa = where_.bare_node(pci);
    one.device.vendor = vendor;
    one.device.model = model_name(function);
    one.device.subdevices = tiles_of(function);
    one.device.bridges = bridges_above(pci);
    std::vector<OsDevice> partitions = devices;
    std::erase_if(partitions, [](const OsDevice& part) { return part.api != Api::rsmi; });
    if (partitions.size() < 2) {
      if (!partitions.empty()) one.sequence = one.rsmi = partitions.front().number;
      take_objects(devices, one);
      return found_.push_back(std::move(one));
    }
    one.device.partition = partition_name(static_cast<int>(partitions.size()));
    for (const OsDevice& partition : partitions) {
      Found part = one;
      part.sequence = part.rsmi = partition.number;
      take_objects({partition}, part);
      found_.push_back(std::move(part));
    }
  }

  static void take_objects(const std::vector<OsDevice>& devices, Found& one) {
    Device& device = one.device;
    int roots = 0;
    int shown = 0;
    int reported_tiles = 0;
    for (const OsDevice& osdev : devices) {
      one.objects.push_back(osdev.object);
      if (osdev.api == Api::level_zero) ++(osdev.part ? shown : roots);
      if (osdev.part) continue;
      take_infos(osdev.object, device);
      const auto tiles = parse_natural(info(osdev.object, "LevelZeroSubdevices"), 64);
      reported_tiles = std::max(reported_tiles, static_cast<int>(tiles.value_or(0)));
    }
    // Level Zero shows tiles as parts of a device, or each as a device of its own (FLAT) with its memory.
    if (roots > 1) device.memory_bytes *= static_cast<std::uint64_t>(roots);
    const int tiles = roots > 1 ? roots : std::max(reported_tiles, shown);
    if (tiles > 1) device.subdevices = tiles;
  }

  /// Devices without a PCI function. An older hwloc puts all but the first partition of an AMD device outside
  /// its function: they have its locality and the following numbers.
  void add_orphans() {
    std::vector<OsDevice> orphans = below(nullptr);
    std::map<std::string, Api> chosen;  // one interface for each vendor, the first of Api
    for (const OsDevice& one : orphans) {
      const auto at = chosen.emplace(one.vendor, one.api).first;
      at->second = std::min(at->second, one.api);
    }
    std::ranges::stable_sort(orphans, {}, &OsDevice::number);
    for (const OsDevice& osdev : orphans) {
      if (osdev.vendor.empty() || osdev.part || chosen[osdev.vendor] != osdev.api) continue;
      const bool shown_by_pci = std::ranges::any_of(found_, [&](const Found& one) {
        return one.device.vendor == osdev.vendor && one.address;
      });
      if (shown_by_pci && osdev.api != Api::rsmi) continue;
      Found one;
      one.device.vendor = osdev.vendor;
      one.near = where_.near(osdev.object);
      one.numa = where_.bare_node(osdev.object);
      one.sequence = osdev.number;
      std::vector<OsDevice> whole = {osdev};
      std::ranges::copy_if(orphans, std::back_inserter(whole), [&](const OsDevice& other) {
        return other.part && other.object->parent == osdev.object;
      });
      take_objects(whole, one);
      if (osdev.api == Api::rsmi) join_partition(one);
      found_.push_back(std::move(one));
    }
  }

  /// The device with the next lower number of ROCm SMI, when it has a PCI address: `one` is a part of it.
  void join_partition(Found& one) {
    one.rsmi = one.sequence;
    const auto before = std::ranges::find(found_, one.rsmi - 1, &Found::rsmi);
    if (one.rsmi == 0 || before == found_.end() || !before->address) return;
    one.address = before->address;
    one.near = before->near;
    one.numa = before->numa;
    one.device.bridges = before->device.bridges;
    if (one.device.model.empty()) one.device.model = before->device.model;
    std::vector<Found*> parts = {&one};
    for (Found& other : found_)
      if (other.address == one.address) parts.push_back(&other);
    for (Found* part : parts)
      part->device.partition = partition_name(static_cast<int>(parts.size()));
  }

  hwloc_topology_t from_;
  const ObjectLocality& where_;
  const std::vector<OsDevice> all_;
  std::vector<Found> found_;
};

/// Memory of a GPU that the processor addresses too: a NUMA node that names its PCI function.
void take_memory_nodes(hwloc_topology_t from, Topology& to) {
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(from, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    const auto address = parse_pci(info(node, "PCIBusID"));
    if (!address || node->attr == nullptr) continue;
    for (Device& device : to.devices)
      if (device.memory_bytes == 0 && device.pci == to_string(*address))
        device.memory_bytes = node->attr->numanode.local_memory;
  }
}

// ---- links -----------------------------------------------------------------------------------------

/// Megabytes per second in units of one link: NVLink 2 to 4 have 25,000, NVLink 1 has 20,000 (hwloc's
/// topology-nvml.c); for the others the slowest one is the unit.
int lanes_of(std::uint64_t bandwidth, std::uint64_t least, bool nvlink) {
  std::uint64_t unit = std::max<std::uint64_t>(least, 1);
  if (nvlink && bandwidth % 20000 == 0) unit = 20000;
  if (nvlink && bandwidth % 25000 == 0) unit = 25000;
  return static_cast<int>(std::clamp<std::uint64_t>(bandwidth / unit, 1, 1000));
}

void read_matrix(const hwloc_distances_s& matrix, const char* kind,
                 const std::map<hwloc_obj_t, int>& numbers, Topology& to) {
  const unsigned size = matrix.nbobjs;
  std::vector<int> device;
  for (unsigned i = 0; i < size; ++i) {
    const auto at = numbers.find(matrix.objs[i]);
    device.push_back(at == numbers.end() ? -1 : at->second);
  }
  const auto value = [&](unsigned i, unsigned j) { return matrix.values[i * size + j]; };
  std::uint64_t least = UINT64_MAX;
  std::map<std::pair<int, int>, std::uint64_t> between;
  std::map<int, std::uint64_t> to_switches;
  for (unsigned i = 0; i < size; ++i) {
    for (unsigned j = 0; j < size; ++j) {
      if (i == j || device[i] < 0 || device[i] == device[j] || value(i, j) == 0) continue;
      least = std::min<std::uint64_t>(least, value(i, j));
      if (device[j] < 0 && matrix.objs[j] != nullptr &&
          matrix.objs[j]->type == HWLOC_OBJ_PCI_DEVICE)
        to_switches[device[i]] += value(i, j);
      if (device[i] < device[j]) between[{device[i], device[j]}] += value(i, j);
    }
  }
  for (const auto& [a, first] : to_switches)  // through switches every pair is linked
    for (const auto& [b, second] : to_switches)
      if (a < b) between[{a, b}] += std::min(first, second);
  const bool nvlink = std::string_view(kind) == "nvlink";
  for (const auto& [pair, bandwidth] : between)
    to.links.push_back({pair.first, pair.second, kind, lanes_of(bandwidth, least, nvlink)});
}

/// Links from hwloc's matrices of bandwidth. `numbers`: the device of an object.
void add_links(hwloc_topology_t from, const std::map<hwloc_obj_t, int>& numbers, Topology& to) {
  constexpr std::pair<const char*, const char*> kMatrices[] = {
      {"NVLinkBandwidth", "nvlink"}, {"XGMIBandwidth", "xgmi"}, {"XeLinkBandwidth", "xe-link"}};
  for (const auto& [name, kind] : kMatrices) {
    unsigned count = 1;
    hwloc_distances_s* matrix = nullptr;
    if (hwloc_distances_get_by_name(from, name, &count, &matrix, 0) != 0 || count == 0) continue;
    read_matrix(*matrix, kind, numbers, to);
    hwloc_distances_release(from, matrix);
  }
  std::ranges::sort(to.links, {},
                    [](const Link& one) { return std::tie(one.from, one.to, one.kind); });
}

}  // namespace

Status check_accelerators(hwloc_topology_t topology) {
  std::set<PciAddress> seen;
  for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(topology, pci)) != nullptr;) {
    const PciFunction function = function_of(pci);
    if (accelerator_vendor(function).empty() || seen.insert(function.address).second) continue;
    return Error{ErrorKind::invalid, fmt::format("duplicate GPU {}", to_string(function.address))};
  }
  return Done{};
}

void add_io(hwloc_topology_t from, Topology& to) {
  const ObjectLocality where(from, to);
  const std::vector<Found> found = DeviceReader(from, where).read();
  const std::vector<std::size_t> order = add_in_order({found.begin(), found.end()}, to);
  std::map<hwloc_obj_t, int> numbers;
  for (std::size_t index = 0; index < order.size(); ++index)
    for (const hwloc_obj_t object : found[order[index]].objects)
      numbers[object] = static_cast<int>(index);
  to.no_devices = to.devices.empty() && hwloc_get_next_pcidev(from, nullptr) != nullptr;
  take_memory_nodes(from, to);
  add_links(from, numbers, to);
  add_interfaces(from, where, to);
}

}  // namespace hpclaunch::probe
