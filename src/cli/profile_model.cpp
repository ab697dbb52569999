// A node as a profile describes it: counts, where the format can, and what got lost where it cannot.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "cli/profile_new.h"
#include "hpclaunch/profile.h"

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
  return entries.empty() ? ""
                         : fmt::format("\"memory_only_numa\": [\n        {}\n      ]",
                                       fmt::join(entries, ",\n        "));
}

bool is_pci(const std::string& text) {
  if (text.size() != 12 || text[4] != ':' || text[7] != ':' || text[10] != '.') return false;
  return text.find_first_not_of("0123456789abcdef:.") == std::string::npos && text[11] <= '7';
}

// How often the devices, or the interfaces, have this address: the format wants it unique.
template <class Entry>
bool is_unique_pci(const std::vector<Entry>& entries, const std::string& pci) {
  return is_pci(pci) && std::count_if(entries.begin(), entries.end(),
                                      [&](const Entry& entry) { return entry.pci == pci; }) == 1;
}

// `places`: false where NUMA numbers and cores would mean something else in the model.
std::vector<std::string> place_keys(const Topology& node, const Device& device, bool places) {
  std::vector<std::string> keys;
  const NumaNode* numa = places ? find_numa(node, device.numa) : nullptr;
  if (numa != nullptr) keys.push_back(fmt::format("\"numa\": {}", device.numa));
  if (!places || device.pus.empty() || (numa != nullptr && device.pus == numa->pus)) return keys;
  CpuSet cores;
  for (std::size_t c = 0; c < node.cores.size(); ++c)
    if (device.pus.contains(node.cores[c].pus)) cores.add(static_cast<int>(c));
  if (!cores.empty()) keys.push_back(fmt::format("\"cores\": \"{}\"", cores.to_list()));
  return keys;
}

std::string devices_line(const Topology& node, bool places) {
  if (node.devices.empty()) return "";
  const Device& first = node.devices.front();
  std::vector<std::string> entries;
  for (const Device& device : node.devices) {
    if (device.vendor != first.vendor) continue;
    std::vector<std::string> keys = place_keys(node, device, places);
    if (is_unique_pci(node.devices, device.pci))
      keys.push_back(fmt::format("\"pci\": \"{}\"", device.pci));
    entries.push_back(fmt::format("        {{{}}}", fmt::join(keys, ", ")));
  }
  std::string text = fmt::format("\"devices\": {{\"vendor\": \"{}\"", first.vendor);
  if (!first.model.empty()) text += fmt::format(", \"model\": {}", json_text(first.model));
  if (first.memory_bytes >= kMiB)
    text += fmt::format(", \"memory_mb\": {}", first.memory_bytes / kMiB);
  if (first.subdevices > 0) text += fmt::format(", \"subdevices\": {}", first.subdevices);
  if (!first.partition.empty())
    text += fmt::format(", \"partition\": {}", json_text(first.partition));
  return text + fmt::format(", \"list\": [\n{}\n      ]}}", fmt::join(entries, ",\n"));
}

std::string nics_line(const Topology& node, bool places) {
  constexpr std::array<std::string_view, 6> kKinds = {"slingshot", "infiniband", "roce",
                                                      "efa",       "omni-path",  "ethernet"};
  std::vector<std::string> entries;
  for (const Nic& nic : node.nics) {
    std::vector<std::string> keys;
    if (!nic.name.empty()) keys.push_back("\"name\": " + json_text(nic.name));
    if (!nic.fabric.empty()) keys.push_back("\"fabric\": " + json_text(nic.fabric));
    if (keys.empty()) continue;
    if (std::find(kKinds.begin(), kKinds.end(), nic.kind) != kKinds.end())
      keys.push_back(fmt::format("\"kind\": \"{}\"", nic.kind));
    if (places && find_numa(node, nic.numa) != nullptr)
      keys.push_back(fmt::format("\"numa\": {}", nic.numa));
    if (is_pci(nic.pci)) keys.push_back(fmt::format("\"pci\": \"{}\"", nic.pci));
    entries.push_back(fmt::format("        {{{}}}", fmt::join(keys, ", ")));
  }
  return entries.empty() ? "" : fmt::format("\"nics\": [\n{}\n      ]", fmt::join(entries, ",\n"));
}

std::vector<std::string> shape_lines(const Topology& node, const Shape& shape) {
  std::vector<std::string> lines = {fmt::format("\"packages\": {}", shape.packages)};
  if (!node.packages.empty() && !node.packages.front().model.empty())
    lines.push_back("\"package_model\": " + json_text(node.packages.front().model));
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

// Caches that say more than packages, NUMA nodes and cores do: those divide the node differently.
std::set<std::string> telling_caches(const Topology& node) {
  const auto same = [](const CpuSet& pus) {
    return [&pus](const auto& group) { return group.pus == pus; };
  };
  std::set<std::string> caches;
  for (const Cache& cache : node.caches) {
    const bool known =
        cache.pus == node.all_pus() ||
        std::any_of(node.packages.begin(), node.packages.end(), same(cache.pus)) ||
        std::any_of(node.numa_nodes.begin(), node.numa_nodes.end(), same(cache.pus)) ||
        std::any_of(node.cores.begin(), node.cores.end(), same(cache.pus));
    if (!known) caches.insert(cache.pus.to_list());
  }
  return caches;
}

std::map<int, std::string> numa_map(const Topology& node) {
  std::map<int, std::string> nodes;
  for (const NumaNode& numa : node.numa_nodes) nodes[numa.os_index] = numa.pus.to_list();
  return nodes;
}

/// What became of the node's parts in the model.
struct Compared {
  std::vector<std::string> lost;
  bool numbered = false;  // the same cores in the same order
  bool places = false;    // and packages and NUMA nodes mean the same
};

// Packages and NUMA nodes that the node does not name cannot be lost.
Compared compare(const Topology& real, const Topology& model) {
  Compared found;
  const auto all = [&](auto same) {
    return std::equal(real.cores.begin(), real.cores.end(), model.cores.begin(), model.cores.end(),
                      same);
  };
  found.numbered = all([](const Core& a, const Core& b) { return a.pus == b.pus; });
  if (!found.numbered) {
    found.lost.emplace_back("how cores and their hardware threads are numbered");
    return found;
  }
  const bool placed = all([&](const Core& a, const Core& b) {
    return (real.packages.empty() || a.package == b.package) &&
           (real.numa_nodes.empty() || a.numa == b.numa);
  });
  const auto nodes = numa_map(real);
  const auto modelled = numa_map(model);
  if (!placed)
    found.lost.emplace_back("how packages and NUMA nodes are numbered or divided");
  else if (!nodes.empty() && nodes != modelled)
    found.lost.emplace_back("which NUMA nodes there are besides those with cores");
  found.places = found.lost.empty();
  if (telling_caches(real) != telling_caches(model))
    found.lost.emplace_back("which cores share a cache");
  return found;
}

const CpuSet& near(const Topology& node, const Device& device) {
  static const CpuSet kNowhere;
  if (!device.pus.empty()) return device.pus;
  const NumaNode* numa = find_numa(node, device.numa);
  return numa == nullptr ? kNowhere : numa->pus;
}

// What is wrong with one device of the model; "" for nothing.
std::string difference(const Device& device, const Device& modelled) {
  if (device.model != modelled.model && json_text(device.model) != json_text(modelled.model))
    return "its model is another than the first device's";
  if (device.memory_bytes / kMiB != modelled.memory_bytes / kMiB)
    return "its memory is another than the first device's";
  if (device.subdevices != modelled.subdevices || device.partition != modelled.partition)
    return "it is divided otherwise than the first device";
  if (!device.instances.empty())
    return fmt::format("it is cut into {} instances", device.instances.size());
  return "";
}

void compare_devices(const Topology& real, const Topology& model, std::vector<std::string>& lost) {
  std::size_t next = 0;
  bool all_near = true;
  for (const Device& device : real.devices) {
    const std::string name = fmt::format("device {}: ", device.index);
    if (device.vendor != real.devices.front().vendor) {
      lost.push_back(name + "it is of another vendor, " + device.vendor);
      continue;
    }
    const bool there = next < model.devices.size();
    if (there && device.index != model.devices[next].index)
      lost.push_back(fmt::format("{}its number, {} in the model", name, model.devices[next].index));
    const std::string what = there ? difference(device, model.devices[next]) : "it is missing";
    if (!what.empty()) lost.push_back(name + what);
    all_near = all_near && there && near(real, device) == near(model, model.devices[next]);
    ++next;
  }
  if (!all_near) lost.emplace_back("which cores devices are near to");
}

}  // namespace

NodeText node_model_text(const Topology& node) {
  const auto with_parts = [&](std::vector<std::string> lines, bool places) {
    for (std::string line : {devices_line(node, places), nics_line(node, places)})
      if (!line.empty()) lines.push_back(std::move(line));
    return lines;
  };
  std::vector<std::string> lines = shape_lines(node, shape_of(node));
  Result<Topology> model = read_back(lines);
  if (!model) {
    Shape block;
    block.cores_per_numa = static_cast<int>(node.cores.size());
    lines = shape_lines(node, block);
    model = read_back(lines);
  }
  if (!model) return {joined(lines), {model.error().message}, false};
  Compared found = compare(node, *model);
  const std::vector<std::string> whole = with_parts(lines, found.places);
  model = read_back(whole);
  if (!model) {
    found.lost.push_back("devices and interfaces: " + model.error().message);
    return {joined(lines), std::move(found.lost), found.numbered};
  }
  compare_devices(node, *model, found.lost);
  return {joined(whole), std::move(found.lost), found.numbered};
}

}  // namespace hpclaunch::cli
