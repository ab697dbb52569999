#include "probe/attach.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace hpclaunch::probe {
namespace {

const NumaNode* node_numbered(const Topology& topology, int os_index) {
  for (const NumaNode& node : topology.numa_nodes)
    if (node.os_index == os_index) return &node;
  return nullptr;
}

/// The NUMA node with the fewest CPUs that holds all of `pus`: among equals the first, which is DDR.
int home_of(const CpuSet& pus, const Topology& topology) {
  int home = -1;
  int fewest = INT_MAX;
  for (const NumaNode& node : topology.numa_nodes) {
    if (!node.pus.contains(pus) || node.pus.count() >= fewest) continue;
    fewest = node.pus.count();
    home = node.os_index;
  }
  return home;
}

/// Memory with CPUs near it, each set of CPUs once.
int domains(const Topology& topology) {
  std::vector<CpuSet> sets;
  for (const NumaNode& node : topology.numa_nodes)
    if (!node.pus.empty() && std::find(sets.begin(), sets.end(), node.pus) == sets.end())
      sets.push_back(node.pus);
  return static_cast<int>(sets.size());
}

/// A device near a part of the machine; what covers all of a machine of several parts is no place.
Place place_by_cpus(const CpuSet& near, const Topology& topology) {
  const CpuSet all = topology.all_pus();
  const CpuSet pus = near & all;
  if (pus.empty() || (pus == all && domains(topology) > 1)) return {};
  const int numa = home_of(pus, topology);
  return {numa, pus};
}

}  // namespace

Place place_of(const CpuSet& near, int numa, const Topology& topology) {
  const NumaNode* node = node_numbered(topology, numa);
  Place place = place_by_cpus(near, topology);
  if (node != nullptr && !node->pus.empty()) {
    // The CPU list is a part of the node's, or what the kernel says of the whole machine.
    if (place.pus.empty() || !node->pus.contains(place.pus)) place.pus = node->pus;
    place.numa = numa;
    return place;
  }
  if (node != nullptr) return {numa, place.pus};
  if (!place.pus.empty() || domains(topology) > 1) return place;
  const CpuSet all = topology.all_pus();
  return {home_of(all, topology), all};
}

void put(Nic& nic, const Place& place, const Topology& topology) {
  const NumaNode* node = node_numbered(topology, place.numa);
  nic.numa = place.numa;
  if (node == nullptr || node->pus.empty()) nic.pus = place.pus;
}

std::vector<std::size_t> device_order(const std::vector<Standing>& devices) {
  std::map<std::string_view, int> counts;
  std::map<std::string_view, bool> numbered;
  for (const Standing& one : devices) {
    ++counts[one.vendor];
    bool& all = numbered.emplace(one.vendor, true).first->second;
    all = all && one.number >= 0;
  }
  const auto key = [&](std::size_t at) {
    const Standing& one = devices[at];
    return std::tuple(-counts[one.vendor], one.vendor != "nvidia", one.vendor,
                      numbered[one.vendor] ? one.number : 0, !one.address.has_value(),
                      one.address.value_or(PciAddress{}), one.sequence);
  };
  std::vector<std::size_t> order(devices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

std::vector<std::size_t> attach_devices(std::vector<FoundDevice> found, Topology& topology) {
  std::vector<Standing> standings;
  standings.reserve(found.size());
  for (const FoundDevice& one : found)
    standings.push_back({one.device.vendor, one.address, one.number, one.sequence});
  std::vector<std::size_t> order = device_order(standings);
  for (const std::size_t at : order) {
    FoundDevice& one = found[at];
    const Place place = place_of(one.near, one.numa, topology);
    one.device.index = static_cast<int>(topology.devices.size());
    one.device.pci = one.address ? to_string(*one.address) : "";
    one.device.numa = place.numa;
    one.device.pus = place.pus;
    topology.devices.push_back(std::move(one.device));
  }
  return order;
}

bool natural_less(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const auto number = [&](const std::string& text, std::size_t& at) {
      std::size_t begin = at;
      while (at < text.size() && digit(text[at])) ++at;
      while (begin + 1 < at && text[begin] == '0') ++begin;
      return text.substr(begin, at - begin);
    };
    const std::string left = number(a, i);
    const std::string right = number(b, j);
    if (left.size() != right.size()) return left.size() < right.size();
    if (left != right) return left < right;
  }
  if (i == a.size() && j == b.size()) return a < b;
  return i == a.size();
}

void sort_nics(std::vector<Nic>& nics) {
  const auto plain = [](const Nic& nic) { return nic.kind == "ethernet" || nic.kind.empty(); };
  std::stable_sort(nics.begin(), nics.end(), [&](const Nic& a, const Nic& b) {
    if (plain(a) != plain(b)) return plain(b);
    const std::string& left = a.name.empty() ? a.fabric : a.name;
    const std::string& right = b.name.empty() ? b.fabric : b.name;
    if (left != right) return natural_less(left, right);
    return natural_less(a.fabric, b.fabric);
  });
}

std::string partition_name(int parts) {
  switch (parts) {
    case 0:
    case 1:
      return "";
    case 2:
      return "DPX";
    case 3:
      return "TPX";
    case 4:
      return "QPX";
    default:
      return "CPX";
  }
}

std::string amd_uuid(const std::string& told) {
  const std::string text = told.compare(0, 4, "GPU-") == 0 ? told.substr(4) : told;
  const bool hex =
      !text.empty() && text.size() <= 16 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!hex) return told;
  const bool none = text.find_first_not_of('0') == std::string::npos ||
                    (text.size() == 16 && text.find_first_not_of("fF") == std::string::npos);
  if (none) return "";
  std::string uuid = "GPU-" + std::string(16 - text.size(), '0') + text;
  std::transform(uuid.begin() + 4, uuid.end(), uuid.begin() + 4,
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return uuid;
}

}  // namespace hpclaunch::probe
