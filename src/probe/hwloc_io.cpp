#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <climits>
#include <cstdint>
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
enum class Api { none, nvml, cuda, rsmi, level_zero, opencl };

struct ApiName {
  Api api = Api::none;
  std::string_view vendor;  ///< "" where it shows devices of several
  int number = 0;           ///< "rsmi12"
  bool part = false;        ///< of another OS device: the tile "ze0.1"
};

ApiName api_name(hwloc_obj_t osdev) {
  constexpr std::tuple<std::string_view, Api, std::string_view> kApis[] = {
      {"nvml", Api::nvml, "nvidia"},
      {"cuda", Api::cuda, "nvidia"},
      {"rsmi", Api::rsmi, "amd"},
      {"ze", Api::level_zero, "intel"},
      {"opencl", Api::opencl, ""}};
  const std::string_view name = osdev->name == nullptr ? "" : osdev->name;
  for (const auto& [prefix, api, vendor] : kApis) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto number = parse_natural(rest.substr(0, end));
    if (!number) continue;
    return {api, vendor, static_cast<int>(*number), end < rest.size() && rest[end] == '.'};
  }
  return {};
}

std::string vendor_of(hwloc_obj_t osdev) {
  if (const ApiName name = api_name(osdev); !name.vendor.empty()) return std::string(name.vendor);
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"NVIDIA", "nvidia"}, {"Intel", "intel"}, {"AMD", "amd"}, {"Advanced Micro", "amd"}};
  const std::string reported = info(osdev, "GPUVendor");
  for (const auto& [name, vendor] : kNames)
    if (reported.find(name) != std::string::npos) return vendor;
  return "";
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
};

class DeviceReader {
 public:
  DeviceReader(hwloc_topology_t from, const ObjectLocality& where) : from_(from), where_(where) {}

  std::vector<Found> read() {
    sort_os_devices();
    for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(from_, pci)) != nullptr;)
      add_function(pci);
    add_orphans();
    return std::move(found_);
  }

 private:
  void sort_os_devices() {
    for (hwloc_obj_t osdev = nullptr; (osdev = hwloc_get_next_osdev(from_, osdev)) != nullptr;) {
      if (api_name(osdev).api == Api::none) continue;
      hwloc_obj_t pci = pci_above(osdev);
      if (pci != nullptr) {
        below_[pci].push_back(osdev);
      } else {
        orphans_.push_back(osdev);
      }
    }
  }

  void add_function(hwloc_obj_t pci) {
    const PciFunction function = function_of(pci);
    const std::vector<hwloc_obj_t>& objects = below_[pci];
    std::string vendor = accelerator_vendor(function);
    for (const hwloc_obj_t osdev : objects) {  // an unexpected PCI class
      const Api api = api_name(osdev).api;
      const bool driven = api != Api::opencl && api != Api::level_zero;
      if (vendor.empty() && driven && function.address.bus != 0) vendor = vendor_of(osdev);
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
    std::vector<hwloc_obj_t> partitions;
    for (const hwloc_obj_t osdev : objects)
      if (api_name(osdev).api == Api::rsmi) partitions.push_back(osdev);
    const bool cut = partitions.size() > 1;
    for (std::size_t i = 0; i < std::max<std::size_t>(partitions.size(), 1); ++i) {
      Found part = one;
      if (!partitions.empty()) part.sequence = api_name(partitions[i]).number;
      if (cut) part.device.partition = partition_name(static_cast<int>(partitions.size()));
      take_objects(cut ? std::vector{partitions[i]} : objects, part);
      found_.push_back(std::move(part));
    }
  }

  static void take_objects(const std::vector<hwloc_obj_t>& objects, Found& one) {
    Device& device = one.device;
    int roots = 0;
    int shown = 0;
    int reported_tiles = 0;
    for (const hwloc_obj_t osdev : objects) {
      const ApiName name = api_name(osdev);
      one.objects.push_back(osdev);
      if (name.api == Api::level_zero) ++(name.part ? shown : roots);
      if (name.part) continue;
      take_infos(osdev, device);
      reported_tiles = std::max(
          reported_tiles,
          static_cast<int>(parse_natural(info(osdev, "LevelZeroSubdevices"), 64).value_or(0)));
    }
    // Level Zero shows tiles as parts of a device, or each as a device of its own (FLAT) with its memory.
    if (roots > 1) device.memory_bytes *= static_cast<std::uint64_t>(roots);
    const int tiles = roots > 1 ? roots : std::max(reported_tiles, shown);
    if (tiles > 1) device.subdevices = tiles;
  }

  /// Devices without a PCI function. An older hwloc puts all but the first partition of an AMD device outside
  /// its function: they have its locality and the following numbers.
  void add_orphans() {
    std::map<std::string, Api> chosen;  // one interface for each vendor, the first of Api
    for (const hwloc_obj_t osdev : orphans_) {
      const Api api = api_name(osdev).api;
      const auto [at, fresh] = chosen.emplace(vendor_of(osdev), api);
      if (!fresh) at->second = std::min(at->second, api);
    }
    std::stable_sort(orphans_.begin(), orphans_.end(), [](hwloc_obj_t a, hwloc_obj_t b) {
      return api_name(a).number < api_name(b).number;
    });
    for (const hwloc_obj_t osdev : orphans_) {
      const ApiName name = api_name(osdev);
      const std::string vendor = vendor_of(osdev);
      if (vendor.empty() || name.part || chosen[vendor] != name.api) continue;
      const bool shown_by_pci = std::any_of(found_.begin(), found_.end(), [&](const Found& one) {
        return one.device.vendor == vendor && one.address;
      });
      if (shown_by_pci && name.api != Api::rsmi) continue;
      Found one;
      one.device.vendor = vendor;
      one.near = where_.near(osdev);
      one.numa = where_.bare_node(osdev);
      one.sequence = name.number;
      std::vector<hwloc_obj_t> objects = {osdev};
      for (const hwloc_obj_t other : orphans_)
        if (api_name(other).part && other->parent == osdev) objects.push_back(other);
      take_objects(objects, one);
      if (name.api == Api::rsmi) join_partition(one);
      found_.push_back(std::move(one));
    }
  }

  /// The device with the next lower number of ROCm SMI, when it has a PCI address: `one` is a part of it.
  void join_partition(Found& one) {
    Found* before = nullptr;
    for (Found& other : found_) {
      if (other.objects.empty() || api_name(other.objects.front()).api != Api::rsmi) continue;
      const int number = api_name(other.objects.front()).number;
      if (number == one.sequence - 1) before = &other;
    }
    if (before == nullptr || !before->address) return;
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
  std::map<hwloc_obj_t, std::vector<hwloc_obj_t>> below_;
  std::vector<hwloc_obj_t> orphans_;
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
  std::vector<int> device(size, -1);
  for (unsigned i = 0; i < size; ++i) {
    const auto at = numbers.find(matrix.objs[i]);
    if (at != numbers.end()) device[i] = at->second;
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
  std::sort(to.links.begin(), to.links.end(), [](const Link& a, const Link& b) {
    return std::tie(a.from, a.to, a.kind) < std::tie(b.from, b.to, b.kind);
  });
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
  DeviceReader reader(from, where);
  std::vector<Found> found = reader.read();
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
