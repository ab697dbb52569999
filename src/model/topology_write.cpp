#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hpclaunch/topology.h"
#include "model/topology_json.h"

namespace hpclaunch {
namespace {

using nlohmann::json;

template <class Item, class Line>
void append_array(std::string& out, const char* key, const std::vector<Item>& items, bool last,
                  Line line) {
  out += fmt::format("  \"{}\": [", key);
  const char* separator = "\n";
  for (const Item& item : items) {
    out += separator;
    out += "    {" + line(item) + "}";
    separator = ",\n";
  }
  out += items.empty() ? "]" : "\n  ]";
  out += last ? "\n" : ",\n";
}

// Unknown values are omitted.
void append_text(std::string& line, const char* key, const std::string& text) {
  if (!text.empty()) line += fmt::format(R"(, "{}": {})", key, json_text(text));
}

void append_texts(std::string& line, const char* key, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  line += fmt::format(R"(, "{}": [)", key);
  for (std::size_t i = 0; i < texts.size(); ++i) line += (i == 0 ? "" : ", ") + json_text(texts[i]);
  line += "]";
}

std::string device_line(const Device& device) {
  std::string line = fmt::format(
      R"("index": {}, "vendor": {}, "model": {}, "pci": {}, "memory_bytes": {}, "subdevices": {}, )"
      R"("numa": {}, "pus": "{}")",
      device.index, json_text(device.vendor), json_text(device.model), json_text(device.pci),
      device.memory_bytes, device.subdevices, device.numa, device.pus.to_list());
  append_text(line, "uuid", device.uuid);
  append_text(line, "partition", device.partition);
  append_texts(line, "instances", device.instances);
  append_texts(line, "bridges", device.bridges);
  return line;
}

std::string nic_line(const Nic& nic) {
  std::string line =
      fmt::format(R"("name": {}, "fabric": {}, "pci": {}, "numa": {})", json_text(nic.name),
                  json_text(nic.fabric), json_text(nic.pci), nic.numa);
  append_text(line, "kind", nic.kind);
  append_text(line, "provider", nic.provider);
  if (nic.speed_mbps > 0) line += fmt::format(R"(, "speed_mbps": {})", nic.speed_mbps);
  append_text(line, "state", nic.state);
  append_texts(line, "addresses", nic.addresses);
  append_texts(line, "bridges", nic.bridges);
  append_text(line, "pus", nic.pus.to_list());
  return line;
}

std::string link_line(const Link& link) {
  return fmt::format(R"("from": {}, "to": {}, "kind": {}, "lanes": {})", link.from, link.to,
                     json_text(link.kind), link.lanes);
}

}  // namespace

std::string json_text(std::string_view text) {
  return json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string topology_to_json(const Topology& topology) {
  std::string out =
      fmt::format("{{\n  \"schema\": {},\n  \"hostname\": {},\n  \"allowed\": \"{}\",\n",
                  kTopologySchema, json_text(topology.hostname), topology.allowed.to_list());
  append_array(out, "packages", topology.packages, false, [](const Package& package) {
    return fmt::format(R"("os_index": {}, "model": {}, "pus": "{}")", package.os_index,
                       json_text(package.model), package.pus.to_list());
  });
  append_array(out, "numa_nodes", topology.numa_nodes, false, [](const NumaNode& node) {
    return fmt::format(R"("os_index": {}, "memory_bytes": {}, "pus": "{}")", node.os_index,
                       node.memory_bytes, node.pus.to_list());
  });
  append_array(out, "caches", topology.caches, false, [](const Cache& cache) {
    return fmt::format(R"("level": {}, "size_bytes": {}, "pus": "{}")", cache.level,
                       cache.size_bytes, cache.pus.to_list());
  });
  const bool nics = !topology.nics.empty();
  const bool devices = !topology.devices.empty() || topology.no_devices;
  const bool links = !topology.links.empty();
  append_array(out, "cores", topology.cores, !devices && !nics && !links, [](const Core& core) {
    return fmt::format(R"("package": {}, "numa": {}, "pus": "{}")", core.package, core.numa,
                       core.pus.to_list());
  });
  if (devices) append_array(out, "devices", topology.devices, !nics && !links, device_line);
  if (nics) append_array(out, "nics", topology.nics, !links, nic_line);
  if (links) append_array(out, "links", topology.links, true, link_line);
  return out + "}\n";
}

}  // namespace hpclaunch
