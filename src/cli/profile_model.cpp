// A node as a profile describes it: counts, where the format can, and what got lost where it cannot.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/profile_command.h"

namespace hpclaunch::cli {

namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

struct Shape {
  int packages = 1;
  int numa_per_package = 1;
  int cores_per_numa = 1;
  int l3_per_numa = 0;
  int threads = 1;
  bool adjacent = false;

  int numa_nodes() const { return packages * numa_per_package; }
};

std::string quoted(const std::string& text) {
  return nlohmann::json(plain(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// NUMA nodes that cores name, in the order of the cores.
std::vector<int> nodes_with_cores(const Topology& node) {
  std::vector<int> found;
  for (const Core& core : node.cores)
    if (std::find(found.begin(), found.end(), core.numa) == found.end()) found.push_back(core.numa);
  return found;
}

const NumaNode* find_numa(const Topology& node, int os_index) {
  for (const NumaNode& numa : node.numa_nodes)
    if (numa.os_index == os_index) return &numa;
  return nullptr;
}

// Counts that divide evenly, and one large block where they do not.
Shape shape_of(const Topology& node) {
  Shape shape;
  const int cores = static_cast<int>(node.cores.size());
  const int numa = static_cast<int>(nodes_with_cores(node).size());
  const int packages = std::max<int>(1, static_cast<int>(node.packages.size()));
  for (const Core& core : node.cores) shape.threads = std::max(shape.threads, core.pus.count());
  const auto l3 = static_cast<int>(std::count_if(node.caches.begin(), node.caches.end(),
                                                 [](const Cache& c) { return c.level == 3; }));
  if (cores % packages == 0) shape.packages = packages;
  if (numa % shape.packages == 0 && cores % numa == 0)
    shape.numa_per_package = numa / shape.packages;
  shape.cores_per_numa = cores / shape.numa_nodes();
  const int each = l3 / shape.numa_nodes();
  if (each > 0 && l3 % shape.numa_nodes() == 0 && shape.cores_per_numa % each == 0)
    shape.l3_per_numa = each;
  if (shape.threads > 1 && cores > 1)
    shape.adjacent = node.cores.front().pus.has(node.cores.front().pus.first() + 1);
  return shape;
}

std::string memory_line(const Topology& node, const Shape& shape) {
  std::vector<std::uint64_t> sizes;
  for (const int index : nodes_with_cores(node)) {
    const NumaNode* numa = find_numa(node, index);
    if (numa != nullptr && numa->memory_bytes >= kMiB) sizes.push_back(numa->memory_bytes / kMiB);
  }
  if (sizes.size() != static_cast<std::size_t>(shape.numa_nodes())) return "";
  const std::set<std::uint64_t> different(sizes.begin(), sizes.end());
  return different.size() == 1 ? fmt::format("\"numa_memory_mb\": {}", sizes.front())
                               : fmt::format("\"numa_memory_mb\": [{}]", fmt::join(sizes, ", "));
}

// Memory beside other memory, or near no core.
std::string extra_line(const Topology& node, const Shape& shape) {
  const std::vector<int> with_cores = nodes_with_cores(node);
  std::vector<std::string> entries;
  for (const NumaNode& numa : node.numa_nodes) {
    const bool has_cores =
        std::find(with_cores.begin(), with_cores.end(), numa.os_index) != with_cores.end();
    if (has_cores || numa.os_index < shape.numa_nodes()) continue;
    std::string near;
    for (std::size_t n = 0; n < with_cores.size(); ++n)
      if (const NumaNode* other = find_numa(node, with_cores[n]);
          other != nullptr && !numa.pus.empty() && other->pus == numa.pus)
        near = fmt::format(", \"near_numa\": {}", n);
    entries.push_back(fmt::format("{{\"os_index\": {}, \"memory_mb\": {}{}}}", numa.os_index,
                                  numa.memory_bytes / kMiB, near));
  }
  return entries.empty() ? "" : fmt::format("\"memory_only_numa\": [{}]", fmt::join(entries, ", "));
}

bool is_pci(const std::string& text) {
  if (text.size() != 12 || text[4] != ':' || text[7] != ':' || text[10] != '.') return false;
  return text.find_first_not_of("0123456789abcdef:.") == std::string::npos && text[11] <= '7';
}

// `places`: false where NUMA numbers and cores would mean something else in the model.
std::string device_text(const Topology& node, const Device& device, bool places) {
  std::vector<std::string> keys;
  const NumaNode* numa = find_numa(node, device.numa);
  if (places && numa != nullptr && (device.pus.empty() || device.pus == numa->pus)) {
    keys.push_back(fmt::format("\"numa\": {}", device.numa));
  } else if (places && !device.pus.empty()) {
    CpuSet cores;
    for (std::size_t c = 0; c < node.cores.size(); ++c)
      if (device.pus.contains(node.cores[c].pus)) cores.add(static_cast<int>(c));
    if (!cores.empty()) keys.push_back(fmt::format("\"cores\": \"{}\"", cores.to_list()));
  }
  if (is_pci(device.pci)) keys.push_back(fmt::format("\"pci\": \"{}\"", device.pci));
  return fmt::format("{{{}}}", fmt::join(keys, ", "));
}

std::string devices_line(const Topology& node, bool places, std::vector<std::string>& lost) {
  if (node.devices.empty()) return "";
  const Device& first = node.devices.front();
  std::vector<std::string> entries;
  for (const Device& device : node.devices) {
    if (device.vendor == first.vendor)
      entries.push_back("        " + device_text(node, device, places));
    else if (entries.size() < node.devices.size())
      lost.push_back(
          fmt::format("device {} is of another vendor, {}", device.index, device.vendor));
  }
  std::string text = fmt::format("\"devices\": {{\"vendor\": \"{}\"", first.vendor);
  if (!first.model.empty()) text += fmt::format(", \"model\": {}", quoted(first.model));
  if (first.memory_bytes >= kMiB)
    text += fmt::format(", \"memory_mb\": {}", first.memory_bytes / kMiB);
  if (first.subdevices > 0) text += fmt::format(", \"subdevices\": {}", first.subdevices);
  return text + fmt::format(", \"list\": [\n{}\n      ]}}", fmt::join(entries, ",\n"));
}

std::string nics_line(const Topology& node, bool places) {
  std::vector<std::string> entries;
  for (const Nic& nic : node.nics) {
    std::vector<std::string> keys;
    if (!nic.name.empty()) keys.push_back("\"name\": " + quoted(nic.name));
    if (!nic.fabric.empty()) keys.push_back("\"fabric\": " + quoted(nic.fabric));
    if (keys.empty()) continue;
    if (places && find_numa(node, nic.numa) != nullptr)
      keys.push_back(fmt::format("\"numa\": {}", nic.numa));
    entries.push_back(fmt::format("        {{{}}}", fmt::join(keys, ", ")));
  }
  return entries.empty() ? "" : fmt::format("\"nics\": [\n{}\n      ]", fmt::join(entries, ",\n"));
}

std::vector<std::string> shape_lines(const Topology& node, const Shape& shape) {
  std::vector<std::string> lines = {fmt::format("\"packages\": {}", shape.packages)};
  if (!node.packages.empty() && !node.packages.front().model.empty())
    lines.push_back("\"package_model\": " + quoted(node.packages.front().model));
  lines.push_back(fmt::format("\"numa_per_package\": {}", shape.numa_per_package));
  lines.push_back(fmt::format("\"l3_per_numa\": {}", shape.l3_per_numa));
  lines.push_back(fmt::format("\"cores_per_numa\": {}", shape.cores_per_numa));
  lines.push_back(fmt::format("\"threads_per_core\": {}", shape.threads));
  if (shape.threads > 1)
    lines.push_back(
        fmt::format("\"siblings\": \"{}\"", shape.adjacent ? "adjacent" : "after-all-cores"));
  for (std::string line : {memory_line(node, shape), extra_line(node, shape)})
    if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("      {}", fmt::join(lines, ",\n      "));
}

// Reads the text back as a launch would.
Result<Topology> read_back(const std::vector<std::string>& lines) {
  const ParsedProfile parsed =
      parse_profile(fmt::format("{{\"schema\": 1, \"name\": \"x\", \"doc\": \"x\", \"nodes\": "
                                "[{{\"name\": \"x\",\n{}}}]}}",
                                joined(lines)),
                    "new");
  if (!parsed.problems.empty()) return parsed.problems.front();
  if (parsed.profile.nodes.empty()) return Error{ErrorKind::invalid, "there is no node"};
  return parsed.profile.nodes.front().topology;
}

std::vector<CpuSet> large_caches(const Topology& node) {
  std::vector<CpuSet> caches;
  for (const Cache& cache : node.caches)
    if (cache.level == 3) caches.push_back(cache.pus);
  return caches;
}

void compare(const Topology& real, const Topology& model, std::vector<std::string>& lost) {
  const auto pus = [](const Core& a, const Core& b) { return a.pus == b.pus; };
  const auto place = [](const Core& a, const Core& b) {
    return a.package == b.package && a.numa == b.numa;
  };
  const auto all = [&](auto same) {
    return std::equal(real.cores.begin(), real.cores.end(), model.cores.begin(), model.cores.end(),
                      same);
  };
  if (!all(pus))
    lost.emplace_back("how cores and their hardware threads are numbered");
  else if (!all(place))
    lost.emplace_back("how packages and NUMA nodes are numbered or divided");
  std::set<int> a;
  std::set<int> b;
  for (const NumaNode& numa : real.numa_nodes) a.insert(numa.os_index);
  for (const NumaNode& numa : model.numa_nodes) b.insert(numa.os_index);
  if (a != b && !a.empty()) lost.emplace_back("the numbers of the NUMA nodes");
  if (large_caches(real) != large_caches(model))
    lost.emplace_back("which cores share a level-3 cache");
}

}  // namespace

std::string node_model_text(const Topology& node, std::vector<std::string>& lost) {
  Shape shape = shape_of(node);
  std::vector<std::string> lines = shape_lines(node, shape);
  Result<Topology> model = read_back(lines);
  if (!model) {
    Shape plain_shape;
    plain_shape.cores_per_numa = static_cast<int>(node.cores.size());
    shape = plain_shape;
    lines = shape_lines(node, shape);
    model = read_back(lines);
  }
  if (model)
    compare(node, *model, lost);
  else
    lost.push_back(model.error().message);
  const bool places = std::none_of(lost.begin(), lost.end(), [](const std::string& what) {
    return what.find("level-3") == std::string::npos;
  });
  for (std::string line : {devices_line(node, places, lost), nics_line(node, places)})
    if (!line.empty()) lines.push_back(std::move(line));
  return joined(lines);
}

}  // namespace hpclaunch::cli
