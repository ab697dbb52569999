#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "hpclaunch/text.h"
#include "probe/kfd.h"
#include "probe/locality.h"
#include "probe/sysfs.h"
#include "probe/vendor/amd.h"

namespace hpclaunch::probe {
namespace {

constexpr const char* kPciDevices = "/sys/bus/pci/devices";
constexpr unsigned long kAmdProcessors = 0x1022;  ///< vendor of what sits inside AMD's processors

unsigned number_or_zero(const std::string& path) {
  return static_cast<unsigned>(number_in(read_small(path)).value_or(0));
}

/// One of AMD's processors with graphics: its other functions (encryption, USB) are the processor's.
bool inside_a_processor(const std::string& pci, const PciFunction& function) {
  for (unsigned other = 1; other <= 7; ++other) {
    PciAddress address = function.address;
    address.function = other;
    if (number_or_zero(below(below(pci, to_string(address)), "vendor")) == kAmdProcessors)
      return true;
  }
  return false;
}

/// Given away to a virtual machine, or a share of a function that is here itself.
bool not_ours(const std::string& folder) {
  const std::string driver = link_name(below(folder, "driver"));
  return driver == "vfio-pci" || driver == "pci-stub" || exists(below(folder, "physfn"));
}

std::vector<PciFunction> accelerators(const std::string& pci) {
  std::vector<PciFunction> found;
  for (const std::string& name : names_in(pci)) {
    const auto address = parse_pci(name);
    if (!address) continue;
    const std::string folder = below(pci, name);
    const unsigned class_id = number_or_zero(below(folder, "class")) >> 8;
    if (class_id >> 8 != 0x03 && class_id >> 8 != 0x12) continue;
    const PciFunction function{*address, class_id, number_or_zero(below(folder, "vendor")),
                               number_or_zero(below(folder, "device"))};
    const std::string vendor = accelerator_vendor(function);
    if (vendor.empty() || not_ours(folder)) continue;
    const bool picture = class_id >> 8 == 0x03;
    if (vendor == "amd" && picture && inside_a_processor(pci, function)) continue;
    found.push_back(function);
  }
  return found;
}

// ---- AMD -------------------------------------------------------------------------------------------

/// The device itself, or its partitions.
std::vector<FoundDevice> amd_devices(FoundDevice one, const std::string& folder,
                                     const std::vector<KfdNode>& parts) {
  Device& device = one.device;
  if (std::string name = read_small(below(folder, "product_name")); !name.empty())
    device.model = std::move(name);
  device.partition = read_small(below(folder, "current_compute_partition"));
  device.memory_bytes = number_in(read_small(below(folder, "mem_info_vram_total"))).value_or(0);
  device.uuid = vendor::amd_uuid(read_small(below(folder, "unique_id")));
  if (!parts.empty()) one.number = parts.front().number;
  if (parts.size() < 2) return {std::move(one)};
  if (device.partition.empty() || device.partition == "SPX")
    device.partition = vendor::partition_name(static_cast<int>(parts.size()));
  std::set<std::string> ids;
  for (const KfdNode& part : parts) ids.insert(part.unique_id);
  std::vector<FoundDevice> devices;
  for (const KfdNode& part : parts) {
    FoundDevice cut = one;
    cut.number = part.number;
    // Some kernels give all partitions the whole device's number, which then names none of them.
    cut.device.uuid = ids.size() == parts.size() ? vendor::amd_uuid(part.unique_id) : "";
    cut.device.memory_bytes = part.memory_bytes;
    devices.push_back(std::move(cut));
  }
  return devices;
}

// ---- the others ------------------------------------------------------------------------------------

/// What NVIDIA's driver writes without being asked through a library.
void ask_nvidia(const std::string& root, Device& device, const PciAddress& address) {
  const std::string text = read_small(
      fmt::format("{}/proc/driver/nvidia/gpus/{}/information", root, to_string(address)));
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    const std::string value(trim(line.substr(colon + 1)));
    if (key == "Model" && !value.empty()) device.model = value;
    if (key == "GPU UUID" && value.rfind("GPU-", 0) == 0 && value.find('?') == std::string::npos)
      device.uuid = value;
  }
}

int count_named(const std::vector<std::string>& names, std::string_view prefix) {
  return static_cast<int>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.size() > prefix.size() && name.rfind(prefix, 0) == 0 &&
           parse_natural(std::string_view(name).substr(prefix.size()));
  }));
}

/// xe has a folder for each tile, i915 one for each tile's engines.
void ask_intel(Device& device, const std::string& folder) {
  int tiles = count_named(names_in(folder), "tile");
  for (const std::string& card : names_in(below(folder, "drm"))) {
    if (card.rfind("card", 0) != 0) continue;
    if (tiles == 0) tiles = count_named(names_in(below(folder, "drm/") + below(card, "gt")), "gt");
    const auto memory =
        number_in(read_small(below(folder, "drm/") + below(card, "lmem_total_bytes")));
    if (memory) device.memory_bytes = *memory;
  }
  if (tiles > 0) device.subdevices = tiles > 1 ? tiles : 0;
}

}  // namespace

void add_devices(const std::string& root, Topology& topology) {
  const std::string pci = root + kPciDevices;
  const std::vector<PciFunction> functions = accelerators(pci);
  const bool amd = std::any_of(functions.begin(), functions.end(), [](const PciFunction& function) {
    return accelerator_vendor(function) == "amd";
  });
  std::map<KfdKey, std::vector<KfdNode>> kfd;
  if (amd) kfd = read_kfd(root);
  const std::string board = amd ? read_small(below(root, "sys/class/dmi/id/board_name")) : "";
  std::vector<FoundDevice> found;
  for (const PciFunction& function : functions) {
    const PciAddress& address = function.address;
    const std::string folder = below(pci, to_string(address));
    FoundDevice one;
    one.address = address;
    one.device.vendor = accelerator_vendor(function);
    one.device.model = model_name(function);
    one.device.subdevices = tiles_of(function);
    one.device.bridges = bridges_above(folder);
    one.numa = node_in(below(folder, "numa_node"));
    one.near = near_on_board(board, address, topology);
    if (one.near.empty()) one.near = cpus_in(below(folder, "local_cpulist"));
    if (one.device.vendor == "nvidia") ask_nvidia(root, one.device, address);
    if (one.device.vendor == "intel") ask_intel(one.device, folder);
    if (one.device.vendor == "amd") {
      const KfdKey key(address.domain, address.bus, address.device);
      for (FoundDevice& part : amd_devices(std::move(one), folder, kfd[key]))
        found.push_back(std::move(part));
      continue;
    }
    found.push_back(std::move(one));
  }
  std::vector<int> numbers;
  numbers.reserve(found.size());
  for (const FoundDevice& one : found) numbers.push_back(one.number);
  const std::vector<std::size_t> order = add_in_order(std::move(found), topology);
  std::map<int, int> index;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (numbers[order[i]] >= 0) index[numbers[order[i]]] = static_cast<int>(i);
  topology.links = read_kfd_links(root, index);
  topology.no_devices = topology.devices.empty() && !names_in(pci).empty();
}

}  // namespace hpclaunch::probe
