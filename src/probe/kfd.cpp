#include "probe/kfd.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "hpclaunch/text.h"
#include "probe/sysfs.h"
#include "probe/vendor/amd.h"

namespace hpclaunch::probe {
namespace {

constexpr const char* kNodes = "sys/class/kfd/kfd/topology/nodes";

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
  constexpr unsigned long kFrameBuffers[] = {1, 2};  // HSA_MEM_HEAP_TYPE_FB_PUBLIC, _FB_PRIVATE
  std::uint64_t bytes = 0;
  const std::string banks = below(node, "mem_banks");
  for (const std::string& bank : names_in(banks)) {
    auto values = properties_in(below(below(banks, bank), "properties"));
    const unsigned long heap = values["heap_type"];
    if (std::find(std::begin(kFrameBuffers), std::end(kFrameBuffers), heap) !=
        std::end(kFrameBuffers))
      bytes += values["size_in_bytes"];
  }
  return bytes;
}

}  // namespace

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
  for (auto& [key, parts] : found)
    std::sort(parts.begin(), parts.end(),
              [](const KfdNode& a, const KfdNode& b) { return a.number < b.number; });
  return found;
}

/// p2p_links are pairs connected by PCI Express only, and are skipped (amdkfd,
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
      vendor::XgmiPath path;
      path.weight = values["weight"];
      path.min_bandwidth = values["min_bandwidth"];
      path.max_bandwidth = values["max_bandwidth"];
      int& most = lanes[std::minmax(from, to->second)];
      most = std::max(most, vendor::xgmi_lanes(path));
    }
  }
  std::vector<Link> links;
  for (const auto& [pair, count] : lanes)
    if (count > 0) links.push_back({pair.first, pair.second, "xgmi", count});
  return links;
}

}  // namespace hpclaunch::probe
