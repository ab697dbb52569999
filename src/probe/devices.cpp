#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "probe/locality.h"
#include "probe/sysfs.h"

namespace hpclaunch::probe {
namespace {

constexpr const char* kPciDevices = "/sys/bus/pci/devices";
constexpr unsigned long kAmdProcessors = 0x1022;  ///< vendor of what sits inside AMD's processors

unsigned number_or_zero(const std::string& path) {
  return static_cast<unsigned>(number_in(read_small(path)).value_or(0));
}

/// One of AMD's processors with graphics: its other functions (encryption, USB) are the processor's.
bool inside_a_processor(const std::string& pci, const std::vector<std::string>& names,
                        const PciFunction& function) {
  for (unsigned other = 1; other <= 7; ++other) {
    PciAddress address = function.address;
    address.function = other;
    const std::string name = to_string(address);
    if (std::ranges::binary_search(names, name) &&
        number_or_zero(below(below(pci, name), "vendor")) == kAmdProcessors)
      return true;
  }
  return false;
}

/// Given away to a virtual machine, or a share of a function that is here itself.
bool not_ours(const std::string& folder) {
  const std::string driver = link_name(below(folder, "driver"));
  return driver == "vfio-pci" || driver == "pci-stub" || exists(below(folder, "physfn"));
}

/// Functions that can be accelerators, as bus << 8 | device << 3 | function in any domain: of their vendors, with a
/// memory window of 1 MiB. One file shows all; nullopt without it. Source: Linux, drivers/pci/proc.c.
std::optional<std::set<unsigned long>> candidates(const std::string& root) {
  constexpr std::size_t kSizes = 10, kBehindSizes = 16;
  constexpr unsigned long kVendors[] = {0x10de, 0x1002, 0x8086}, kLeast = 1UL << 20;
  const Result<std::string> text = sys::read_file(root + "/proc/bus/pci/devices", 16UL << 20);
  if (!text || text->empty()) return {};
  std::set<unsigned long> found;
  for (const std::string_view line : split(*text, '\n')) {
    std::vector<unsigned long> columns;
    for (const std::string_view word : split(line, '\t'))
      columns.push_back(number_in(fmt::format("0x{}", trim(word))).value_or(0));
    if (columns.size() < kBehindSizes || std::ranges::count(kVendors, columns[1] >> 16) == 0)
      continue;
    if (*std::max_element(columns.begin() + kSizes, columns.begin() + kBehindSizes) >= kLeast)
      found.insert(columns[0]);
  }
  return found;
}

std::vector<PciFunction> accelerators(const std::string& root, const std::string& pci) {
  const std::optional<std::set<unsigned long>> possible = candidates(root);
  std::vector<PciFunction> found;
  const std::vector<std::string> names = names_in(pci);
  for (const std::string& name : names) {
    const auto address = parse_pci(name);
    if (!address) continue;
    const unsigned long place = address->bus << 8 | address->device << 3 | address->function;
    if (possible && !possible->contains(place)) continue;
    const std::string folder = below(pci, name);
    const unsigned class_id = number_or_zero(below(folder, "class")) >> 8;
    if (class_id >> 8 != 0x03 && class_id >> 8 != 0x12) continue;
    const PciFunction function{*address, class_id, number_or_zero(below(folder, "vendor")),
                               number_or_zero(below(folder, "device"))};
    const std::string vendor = accelerator_vendor(function);
    if (vendor.empty() || not_ours(folder)) continue;
    const bool picture = class_id >> 8 == 0x03;
    if (vendor == "amd" && picture && inside_a_processor(pci, names, function)) continue;
    found.push_back(function);
  }
  return found;
}

// ---- KFD, the kernel's part of ROCm -----------------------------------------------------------------
// /sys/class/kfd/kfd/topology/nodes: GPUs in the order in which ROCr and HIP count them, and XGMI links.

constexpr const char* kNodes = "sys/class/kfd/kfd/topology/nodes";

/// A GPU as the runtime counts them: a device, or a partition of one.
struct KfdNode {
  int number = 0;         ///< of its folder; ROCr counts those that have SIMD units in this order
  std::string unique_id;  ///< hexadecimal; "0" when there is none
  std::uint64_t memory_bytes = 0;
};

using KfdKey = std::tuple<unsigned, unsigned, unsigned>;  ///< PCI domain, bus, device

std::map<std::string, unsigned long> properties_in(const std::string& path) {
  std::map<std::string, unsigned long> values;
  const std::string text = read_small(path);
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto value = number_in(std::string(line.substr(blank + 1)));
    if (value) values.emplace(line.substr(0, blank), *value);
  }
  return values;
}

std::uint64_t memory_of(const std::string& node) {
  constexpr unsigned long kPublic = 1, kPrivate = 2;  // HSA_MEM_HEAP_TYPE_FB_*
  std::uint64_t bytes = 0;
  const std::string banks = below(node, "mem_banks");
  for (const std::string& bank : names_in(banks)) {
    auto values = properties_in(below(below(banks, bank), "properties"));
    const unsigned long heap = values["heap_type"];
    if (heap == kPublic || heap == kPrivate) bytes += values["size_in_bytes"];
  }
  return bytes;
}

/// By PCI function, in the order of their numbers, without processors and devices outside the cgroup.
/// location_id is bus << 8 | device << 3 | function; the kernel puts a partition's number into bits 28 to
/// 31, and older ones into the function's bits (amdkfd, kfd_topology.c).
std::map<KfdKey, std::vector<KfdNode>> read_kfd(const std::string& root) {
  std::map<KfdKey, std::vector<KfdNode>> found;
  const std::string nodes = below(root, kNodes);
  for (const std::string& name : names_in(nodes)) {
    const auto number = parse_natural(name);
    if (!number) continue;
    auto values = properties_in(below(below(nodes, name), "properties"));
    if (values["simd_count"] == 0) continue;  // processors, and devices outside the cgroup
    const unsigned long location = values["location_id"];
    KfdNode node;
    node.number = static_cast<int>(*number);
    node.unique_id = fmt::format("{:x}", values["unique_id"]);
    node.memory_bytes = memory_of(below(nodes, name));
    found[{static_cast<unsigned>(values["domain"]), static_cast<unsigned>(location >> 8 & 0xff),
           static_cast<unsigned>(location >> 3 & 0x1f)}]
        .push_back(std::move(node));
  }
  for (auto& [key, parts] : found) std::ranges::sort(parts, {}, &KfdNode::number);
  return found;
}

/// XGMI links between neighbours, ascending (from, to); `index`: the device of a node's number. p2p_links are pairs connected by PCI Express only, and are skipped (amdkfd,
/// kfd_topology.c, kfd_dev_create_p2p_links).
std::vector<Link> read_kfd_links(const std::string& root, const std::map<int, int>& index) {
  constexpr unsigned long kXgmi = 11;  // CRAT_IOLINK_TYPE_XGMI
  std::map<std::pair<int, int>, int> lanes;
  for (const auto& [number, from] : index) {
    const std::string folder =
        below(below(below(root, kNodes), std::to_string(number)), "io_links");
    for (const std::string& name : names_in(folder)) {
      auto values = properties_in(below(below(folder, name), "properties"));
      const auto to = index.find(static_cast<int>(values["node_to"]));  // else a processor
      if (values["type"] != kXgmi || to == index.end() || to->second == from) continue;
      int& most = lanes[std::minmax(from, to->second)];
      most = std::max(most, xgmi_lanes({0, values["weight"], values["min_bandwidth"],
                                        values["max_bandwidth"]}));
    }
  }
  std::vector<Link> links;
  for (const auto& [pair, count] : lanes)
    if (count > 0) links.push_back({pair.first, pair.second, "xgmi", count});
  return links;
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
  device.uuid = amd_uuid(read_small(below(folder, "unique_id")));
  if (!parts.empty()) one.number = parts.front().number;
  if (parts.size() < 2) return {std::move(one)};
  if (device.partition.empty() || device.partition == "SPX")
    device.partition = partition_name(static_cast<int>(parts.size()));
  std::set<std::string> ids;
  for (const KfdNode& part : parts) ids.insert(part.unique_id);
  std::vector<FoundDevice> devices;
  for (const KfdNode& part : parts) {
    FoundDevice cut = one;
    cut.number = part.number;
    // Some kernels give all partitions the whole device's number, which then names none of them.
    cut.device.uuid = ids.size() == parts.size() ? amd_uuid(part.unique_id) : "";
    cut.device.memory_bytes = part.memory_bytes;
    devices.push_back(std::move(cut));
  }
  return devices;
}

// ---- the others ------------------------------------------------------------------------------------

/// What stands behind "KEY:" in a file of NVIDIA's driver; "" for nothing. Source: its README, "Using the /proc File
/// System Interface".
std::string value_of(const std::string& text, std::string_view key) {
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with(key) && line.substr(key.size()).starts_with(':'))
      return std::string(trim(line.substr(key.size() + 1)));
  return "";
}

void ask_nvidia(const std::string& root, Device& device, const PciAddress& address) {
  const std::string text = read_small(
      fmt::format("{}/proc/driver/nvidia/gpus/{}/information", root, to_string(address)));
  if (std::string model = value_of(text, "Model"); !model.empty()) device.model = model;
  if (const std::string uuid = value_of(text, "GPU UUID");
      uuid.starts_with("GPU-") && uuid.find('?') == std::string::npos)
    device.uuid = uuid;
}

/// xe has a folder for each tile, i915 one for each tile's engines.
void ask_intel(Device& device, const std::string& folder) {
  std::size_t tiles = numbered_in(folder, "tile").size();
  for (const std::string& name : numbered_in(below(folder, "drm"), "card")) {
    const std::string card = below(folder, "drm/" + name);
    if (tiles == 0) tiles = numbered_in(below(card, "gt"), "gt").size();
    const auto memory = number_in(read_small(below(card, "lmem_total_bytes")));
    if (memory) device.memory_bytes = *memory;
  }
  if (tiles > 0) device.subdevices = tiles > 1 ? static_cast<int>(tiles) : 0;
}

}  // namespace

int xgmi_lanes(const XgmiPath& path) {
  constexpr std::uint64_t kOneHop = 15;
  constexpr std::uint64_t kMost = 16;  ///< more than any GPU has towards another
  if (path.weight > kOneHop) return 0;
  if (path.max_bandwidth == 0 || path.min_bandwidth == 0)
    return path.weight > 0 || path.hops == 1 ? 1 : 0;
  return static_cast<int>(
      std::clamp<std::uint64_t>(path.max_bandwidth / path.min_bandwidth, 1, kMost));
}

void add_devices(const std::string& root, Topology& topology) {
  const std::string pci = root + kPciDevices;
  const std::vector<PciFunction> functions = accelerators(root, pci);
  const bool amd = std::ranges::count(functions, "amd", accelerator_vendor) > 0;
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
    std::vector<FoundDevice> parts = {one};
    if (one.device.vendor == "amd")
      parts = amd_devices(one, folder, kfd[{address.domain, address.bus, address.device}]);
    found.insert(found.end(), parts.begin(), parts.end());
  }
  std::map<int, int> index;  // of KFD's number
  int next = 0;
  for (const std::size_t at : add_in_order(found, topology)) index[found[at].number] = next++;
  index.erase(-1);  // no number
  topology.links = read_kfd_links(root, index);
  topology.no_devices = topology.devices.empty() && !names_in(pci).empty();
}

}  // namespace hpclaunch::probe

namespace hpclaunch {

std::vector<DeviceFile> device_files(bool to_open, const std::string& root) {
  using namespace probe;
  std::vector<DeviceFile> files;
  const auto add = [&](std::string_view name, const std::string& path) {
    // A control group denies access(2) as it denies open(2) (the kernel's inode_permission), and only the latter
    // wakes a device up.
    const bool usable = access(path.c_str(), to_open ? R_OK | W_OK : F_OK) == 0;
    if (const auto address = parse_pci(name)) files.push_back({to_string(*address), path, usable});
  };
  const std::string gpus = root + "/proc/driver/nvidia/gpus";
  for (const std::string& name : names_in(gpus)) {
    const std::string text = read_small(below(below(gpus, name), "information"));
    if (const auto minor = parse_natural(value_of(text, "Device Minor")))
      add(name, fmt::format("{}/dev/nvidia{}", root, *minor));
  }
  const std::string drm = root + "/sys/class/drm";
  for (const std::string& name : numbered_in(drm, "renderD")) {
    const std::string device = fmt::format("{}/{}/device", drm, name);
    const DeviceVendor& vendor = device_vendor_of_pci(read_small(below(device, "vendor")));
    // Programs of the other vendors use numbered files of the driver.
    if (!vendor.name.empty() && vendor.device_file.empty())
      add(link_name(device), fmt::format("{}/dev/dri/{}", root, name));
  }
  std::ranges::sort(files, {}, &DeviceFile::pci);
  return files;
}

}  // namespace hpclaunch
