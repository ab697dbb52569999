// A probed node as a profile's node model.
#include "authoring/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "authoring/new.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"

namespace hpclaunch::authoring {

namespace {

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

// What the model calls a NUMA node: it numbers those with cores from 0. -1 where it has none like it.
int number_in(const Topology& model, const Topology& node, int os_index) {
  const NumaNode* real = find_numa(node, os_index);
  if (real == nullptr) return -1;
  const auto alike = [&](const NumaNode& one) {
    return same_cores(node, real->pus, model, one.pus);
  };
  const NumaNode* same = find_numa(model, os_index);
  if (same != nullptr && alike(*same)) return os_index;
  if (real->pus.empty()) return -1;
  const auto at = std::find_if(model.numa_nodes.begin(), model.numa_nodes.end(), alike);
  return at == model.numa_nodes.end() ? -1 : at->os_index;
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
    std::string near;  // in the model's numbers, which are others where its NUMA nodes are
    const bool numbered = with_cores.size() == static_cast<std::size_t>(shape.numa_nodes());
    for (std::size_t n = 0; numbered && n < with_cores.size(); ++n)
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

// The part of a PCI path that it shares with one of `others`: the rest decides nothing.
template <class Entry>
std::string bridges_key(const std::vector<std::string>& way, const std::vector<Entry>& others) {
  std::ptrdiff_t longest = 0;
  for (const Entry& other : others) {
    const auto parting =
        std::mismatch(way.begin(), way.end(), other.bridges.begin(), other.bridges.end());
    longest = std::max(longest, parting.first - way.begin());
  }
  const std::vector<std::string> shared(way.begin(), way.begin() + longest);
  for (const std::string& one : shared)
    if (!is_pci(&one == &shared.front() ? one + ":00.0" : one)) return "";
  return shared.empty() ? "" : fmt::format("\"bridges\": [\"{}\"]", fmt::join(shared, "\", \""));
}

// The model's numbers of the cores within `pus`.
CpuSet cores_of(const Topology& node, const CpuSet& pus) {
  CpuSet cores;
  for (std::size_t c = 0; c < node.cores.size(); ++c)
    if (pus.contains(node.cores[c].pus)) cores.add(static_cast<int>(c));
  return cores;
}

// Where a device is, in the model's numbers.
std::vector<std::string> place_keys(const Topology& node, const Device& device,
                                    const Topology& model) {
  std::vector<std::string> keys;
  const NumaNode* numa = find_numa(node, device.numa);
  const int number = number_in(model, node, device.numa);
  if (number >= 0) keys.push_back(fmt::format("\"numa\": {}", number));
  const CpuSet& near = device.pus.empty() && numa != nullptr ? numa->pus : device.pus;
  if (number >= 0 && near == numa->pus) return keys;
  if (const CpuSet cores = cores_of(node, near); !cores.empty())
    keys.push_back(fmt::format("\"cores\": \"{}\"", cores.to_list()));
  return keys;
}

// Links by the places of their devices in the list, which are the model's numbers.
std::string links_key(const Topology& node, const std::vector<int>& listed) {
  const auto place = [&](int index) {
    return std::find(listed.begin(), listed.end(), index) - listed.begin();
  };
  std::vector<std::string> entries;
  for (const Link& link : node.links) {
    const auto from = place(link.from);
    const auto to = place(link.to);
    if (std::max(from, to) == std::ssize(listed) || link.kind.empty()) continue;
    entries.push_back(
        fmt::format("        {{\"from\": {}, \"to\": {}, \"kind\": {}, \"lanes\": {}}}", from, to,
                    json_text(link.kind), link.lanes));
  }
  return entries.empty() ? ""
                         : fmt::format(", \"links\": [\n{}\n      ]", fmt::join(entries, ",\n"));
}

std::string devices_line(const Topology& node, const Topology& model) {
  if (node.devices.empty()) return "";
  const Device& first = node.devices.front();
  std::vector<std::string> entries;
  std::vector<int> listed;
  for (const Device& device : node.devices) {
    if (device.vendor != first.vendor) continue;
    listed.push_back(device.index);
    std::vector<std::string> keys = place_keys(node, device, model);
    if (is_unique_pci(node.devices, device.pci))
      keys.push_back(fmt::format("\"pci\": \"{}\"", device.pci));
    if (std::string way = bridges_key(device.bridges, node.nics); !way.empty())
      keys.push_back(std::move(way));
    entries.push_back(fmt::format("        {{{}}}", fmt::join(keys, ", ")));
  }
  std::string text = fmt::format("\"devices\": {{\"vendor\": \"{}\"", first.vendor);
  if (!first.model.empty()) text += fmt::format(", \"model\": {}", json_text(first.model));
  if (first.memory_bytes >= kMiB)
    text += fmt::format(", \"memory_mb\": {}", first.memory_bytes / kMiB);
  if (first.subdevices > 0) text += fmt::format(", \"subdevices\": {}", first.subdevices);
  if (!first.partition.empty())
    text += fmt::format(", \"partition\": {}", json_text(first.partition));
  return text + fmt::format(", \"list\": [\n{}\n      ]{}}}", fmt::join(entries, ",\n"),
                            links_key(node, listed));
}

std::string nics_line(const Topology& node, const Topology& model) {
  constexpr std::array<std::string_view, 6> kKinds = {"slingshot", "infiniband", "roce",
                                                      "efa",       "omni-path",  "ethernet"};
  std::vector<std::string> entries;
  for (const Nic& nic : node.nics) {
    std::vector<std::string> keys;
    if (!nic.name.empty()) keys.push_back("\"name\": " + json_text(nic.name));
    if (!nic.fabric.empty()) keys.push_back("\"fabric\": " + json_text(nic.fabric));
    if (std::find(kKinds.begin(), kKinds.end(), nic.kind) != kKinds.end())
      keys.push_back(fmt::format("\"kind\": \"{}\"", nic.kind));
    if (const CpuSet cores = cores_of(node, nic.pus); !cores.empty())
      keys.push_back(fmt::format("\"cores\": \"{}\"", cores.to_list()));
    else if (const int number = number_in(model, node, nic.numa); number >= 0)
      keys.push_back(fmt::format("\"numa\": {}", number));
    if (is_pci(nic.pci)) keys.push_back(fmt::format("\"pci\": \"{}\"", nic.pci));
    if (std::string way = bridges_key(nic.bridges, node.devices); !way.empty())
      keys.push_back(std::move(way));
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
  if (parsed.profile.nodes.empty()) return Error{ErrorKind::invalid, "no node"};
  return parsed.profile.nodes.front().topology;
}

// Removes the interfaces that jobs do not use, and names them: the format has no state and no speed.
std::vector<std::string> drop_idle_nics(Topology& node) {
  const std::vector<std::string> idle = idle_nics(node);
  std::vector<Nic> kept;
  std::vector<std::string> dropped;
  for (std::size_t n = 0; n < idle.size(); ++n) {
    const Nic& nic = node.nics[n];
    const std::string& name = nic.name.empty() ? nic.fabric : nic.name;
    if (name.empty()) continue;
    if (idle[n].empty())
      kept.push_back(nic);
    else
      dropped.push_back(fmt::format("{} ({})", json_text(name), idle[n]));
  }
  node.nics = std::move(kept);
  return dropped;
}

}  // namespace

NodeText node_model_text(const Topology& whole_node) {
  Topology node = whole_node;
  NodeText text;
  text.left_out = drop_idle_nics(node);
  std::vector<std::string> lines = shape_lines(node, shape_of(node));
  Result<Topology> shape = read_back(lines);
  if (!shape) {
    Shape block;
    block.cores_per_numa = static_cast<int>(node.cores.size());
    lines = shape_lines(node, block);
    shape = read_back(lines);
  }
  text.lines = joined(lines);
  if (!shape) {
    text.lost = {shape.error().message};
    return text;
  }
  Compared found = compare(node, *shape);
  text.numbered = found.numbered;
  text.lost = std::move(found.lost);
  for (std::string line : {devices_line(node, *shape), nics_line(node, *shape)})
    if (!line.empty()) lines.push_back(std::move(line));
  const Result<Topology> model = read_back(lines);
  if (!model) {
    text.lost.push_back("devices and interfaces: " + model.error().message);
    return text;
  }
  compare_devices(node, *model, text.lost);
  compare_nics(node, *model, text.lost);
  text.lines = joined(lines);
  return text;
}

}  // namespace hpclaunch::authoring
