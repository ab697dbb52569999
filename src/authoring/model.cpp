// A probed node as a profile's node model: by counts where these say all of it, else as a topology.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "authoring/new.h"
#include "hpclaunch/check.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using Json = nlohmann::ordered_json;

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
    if (std::ranges::count(found, core.numa) == 0) found.push_back(core.numa);
  return found;
}

// Counts that divide evenly, and one large block where they do not.
Shape shape_of(const Topology& node) {
  Shape shape;
  const int cores = static_cast<int>(node.cores.size());
  const int numa = static_cast<int>(nodes_with_cores(node).size());
  const int packages = std::max<int>(1, static_cast<int>(node.packages.size()));
  for (const Core& core : node.cores) shape.threads = std::max(shape.threads, core.pus.count());
  const auto l3 = static_cast<int>(std::ranges::count(node.caches, 3, &Cache::level));
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

// The memory of NUMA nodes with cores: one number, or one for each.
void put_memory(const Topology& node, const Shape& shape, Json& out) {
  std::vector<std::uint64_t> sizes;
  for (const int index : nodes_with_cores(node)) {
    const NumaNode* numa = node.find_numa(index);
    if (numa != nullptr && numa->memory_bytes >= kMiB) sizes.push_back(numa->memory_bytes / kMiB);
  }
  if (sizes.size() != static_cast<std::size_t>(shape.numa_nodes())) return;
  const bool equal = std::set<std::uint64_t>(sizes.begin(), sizes.end()).size() == 1;
  out["numa_memory_mb"] = equal ? Json(sizes.front()) : Json(sizes);
}

// Memory beside other memory, or near no core.
void put_extra(const Topology& node, const Shape& shape, Json& out) {
  const std::vector<int> with_cores = nodes_with_cores(node);
  for (const NumaNode& numa : node.numa_nodes) {
    if (std::ranges::count(with_cores, numa.os_index) > 0 || numa.os_index < shape.numa_nodes())
      continue;
    Json& entry = out["memory_only_numa"].emplace_back(
        Json{{"os_index", numa.os_index}, {"memory_mb", numa.memory_bytes / kMiB}});
    for (const int index : with_cores)
      if (const NumaNode* other = node.find_numa(index);
          other != nullptr && !numa.pus.empty() && other->pus == numa.pus)
        entry["near_numa"] = index;
  }
}

// The part of a PCI path that it shares with one of `others`: the rest decides nothing.
template <class Entry>
void put_bridges(const std::vector<std::string>& way, const std::vector<Entry>& others, Json& out) {
  std::ptrdiff_t longest = 0;
  for (const Entry& other : others) {
    const auto parting =
        std::mismatch(way.begin(), way.end(), other.bridges.begin(), other.bridges.end());
    longest = std::max(longest, parting.first - way.begin());
  }
  const std::vector<std::string> shared(way.begin(), way.begin() + longest);
  for (const std::string& one : shared)
    if (!is_pci_address(&one == &shared.front() ? one + ":00.0" : one)) return;
  if (!shared.empty()) out["bridges"] = shared;
}

// The places of the cores within `pus`.
void put_cores(const Topology& node, const CpuSet& pus, Json& out) {
  CpuSet cores;
  for (std::size_t c = 0; c < node.cores.size(); ++c)
    if (pus.contains(node.cores[c].pus)) cores.add(static_cast<int>(c));
  if (!cores.empty()) out["cores"] = cores.to_list();
}

Json place_of(const Topology& node, const Device& device) {
  Json out = Json::object();
  const NumaNode* numa = node.find_numa(device.numa);
  if (numa != nullptr) out["numa"] = device.numa;
  if (!device.pus.empty() && (numa == nullptr || device.pus != numa->pus))
    put_cores(node, device.pus, out);
  return out;
}

// Links by the places of their devices in the list.
void put_links(const Topology& node, const std::vector<int>& listed, Json& out) {
  const auto place = [&](int index) {
    return std::find(listed.begin(), listed.end(), index) - listed.begin();
  };
  for (const Link& link : node.links) {
    const auto from = place(link.from);
    const auto to = place(link.to);
    if (std::max(from, to) == std::ssize(listed) || link.kind.empty()) continue;
    out["links"].push_back(
        {{"from", from}, {"to", to}, {"kind", short_text(link.kind)}, {"lanes", link.lanes}});
  }
}

void put_devices(const Topology& node, Json& model_json) {
  if (node.devices.empty()) return;
  const Device& first = node.devices.front();
  Json out = {{"vendor", first.vendor}};
  if (!first.model.empty()) out["model"] = short_text(first.model);
  if (first.memory_bytes >= kMiB) out["memory_mb"] = first.memory_bytes / kMiB;
  if (first.subdevices > 0) out["subdevices"] = first.subdevices;
  if (!first.partition.empty()) out["partition"] = short_text(first.partition);
  std::vector<int> listed;
  for (const Device& device : node.devices) {
    if (device.vendor != first.vendor) continue;
    listed.push_back(device.index);
    Json& entry = out["list"].emplace_back(place_of(node, device));
    // The format wants addresses unique.
    if (is_pci_address(device.pci) &&
        std::ranges::count(node.devices, device.pci, &Device::pci) == 1)
      entry["pci"] = device.pci;
    put_bridges(device.bridges, node.nics, entry);
  }
  put_links(node, listed, out);
  model_json["devices"] = std::move(out);
}

void put_nics(const Topology& node, Json& model_json) {
  for (const Nic& nic : node.nics) {
    Json& entry = model_json["nics"].emplace_back(Json::object());
    if (!nic.name.empty()) entry["name"] = short_text(nic.name);
    if (!nic.fabric.empty()) entry["fabric"] = short_text(nic.fabric);
    if (std::ranges::find(kNicKinds, nic.kind) != kNicKinds.end()) entry["kind"] = nic.kind;
    put_cores(node, nic.pus, entry);
    if (!entry.contains("cores") && nic.numa >= 0) entry["numa"] = nic.numa;
    if (is_pci_address(nic.pci)) entry["pci"] = nic.pci;
    put_bridges(nic.bridges, node.devices, entry);
  }
}

Json shape_json(const Topology& node, const Shape& shape) {
  Json out = {{"packages", shape.packages}};
  if (!node.packages.empty() && !node.packages.front().model.empty())
    out["package_model"] = short_text(node.packages.front().model);
  out["numa_per_package"] = shape.numa_per_package;
  out["l3_per_numa"] = shape.l3_per_numa;
  out["cores_per_numa"] = shape.cores_per_numa;
  out["threads_per_core"] = shape.threads;
  if (shape.threads > 1) out["siblings"] = shape.adjacent ? "adjacent" : "after-all-cores";
  put_memory(node, shape, out);
  put_extra(node, shape, out);
  return out;
}

// Reads the text back as a launch would.
Result<Topology> read_back(Json model) {
  model["name"] = "x";
  const Json profile = {
      {"schema", 1}, {"name", "x"}, {"doc", "x"}, {"nodes", Json::array({std::move(model)})}};
  const ParsedProfile parsed = parse_profile(written(profile), "new");
  if (!parsed.problems.empty()) return parsed.problems.front();
  return parsed.profile.nodes.front().topology;
}

// ---- differences ------------------------------------------------------------------------------------

// Caches that divide the node differently from packages, NUMA nodes and cores.
std::set<std::string> telling_caches(const Topology& node) {
  std::set<std::string> known = {node.all_pus().to_list()};
  const auto add = [&](const auto& groups) {
    for (const auto& group : groups) known.insert(group.pus.to_list());
  };
  add(node.packages);
  add(node.numa_nodes);
  add(node.cores);
  std::set<std::string> caches;
  for (const Cache& cache : node.caches)
    if (const std::string pus = cache.pus.to_list(); !known.contains(pus)) caches.insert(pus);
  return caches;
}

// Whether the description says all that a plan can follow from.
bool same_node(const Topology& real, const Topology& model) {
  return std::ranges::equal(real.cores, model.cores, {}, &Core::pus, &Core::pus) &&
         find_drift(model, real).empty() && telling_caches(real) == telling_caches(model) &&
         std::ranges::all_of(real.devices, [&](const Device& device) {
           return device.model == real.devices.front().model;
         });
}

// The node as a topology, without what only this one node has.
Json topology_json(const Topology& node) {
  Json all = Json::parse(topology_to_json(node));
  all.erase("hostname");
  all.erase("allowed");
  for (Json& list : all)
    for (Json& part : list) {
      if (!part.is_object()) continue;
      for (const char* key : {"uuid", "instances", "addresses", "state", "speed_mbps"})
        part.erase(key);
      for (Json& value : part)
        if (value.is_string()) value = short_text(value.get<std::string>());
    }
  return all;
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

std::string written(const nlohmann::ordered_json& json) {
  if (!json.is_structured()) return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::vector<std::string> parts;
  for (const auto& [key, value] : json.items())
    parts.push_back(json.is_object() ? fmt::format("\"{}\": {}", key, written(value))
                                     : written(value));
  if (json.is_object()) return fmt::format("{{{}}}", joined(parts, ", "));
  return !json.empty() && json.front().is_object()
             ? fmt::format("[\n        {}\n      ]", joined(parts, ",\n        "))
             : fmt::format("[{}]", joined(parts, ", "));
}

std::string members(const nlohmann::ordered_json& object) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : object.items())
    lines.push_back(fmt::format("      \"{}\": {}", key, written(value)));
  return joined(lines, ",\n");
}

NodeText node_model_text(const Topology& whole_node) {
  Topology node = whole_node;
  NodeText text;
  text.left_out = drop_idle_nics(node);
  Json lines = shape_json(node, shape_of(node));
  put_devices(node, lines);
  put_nics(node, lines);
  const Result<Topology> model = read_back(lines);
  text.counts = model && same_node(node, *model);
  if (!text.counts) lines = {{"topology", topology_json(node)}};
  text.lines = members(lines);
  return text;
}

}  // namespace hpclaunch::authoring
