#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "probe/hwloc_io.h"

namespace hpclaunch::probe {
namespace {

struct Matrix {
  const char* name;
  const char* kind;
};

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

}  // namespace

void add_links(hwloc_topology_t from, const std::map<hwloc_obj_t, int>& numbers, Topology& to) {
  constexpr Matrix kMatrices[] = {
      {"NVLinkBandwidth", "nvlink"}, {"XGMIBandwidth", "xgmi"}, {"XeLinkBandwidth", "xe-link"}};
  for (const Matrix& wanted : kMatrices) {
    unsigned count = 1;
    hwloc_distances_s* matrix = nullptr;
    if (hwloc_distances_get_by_name(from, wanted.name, &count, &matrix, 0) != 0 || count == 0)
      continue;
    read_matrix(*matrix, wanted.kind, numbers, to);
    hwloc_distances_release(from, matrix);
  }
  std::sort(to.links.begin(), to.links.end(), [](const Link& a, const Link& b) {
    return std::tie(a.from, a.to, a.kind) < std::tie(b.from, b.to, b.kind);
  });
}

}  // namespace hpclaunch::probe
