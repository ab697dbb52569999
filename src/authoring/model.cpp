// A probed node as a profile's node model: its topology, without what only this one node has.
#include <fmt/format.h>

#include <algorithm>

#include "authoring/new.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

// Removes the interfaces that jobs do not use, and names them: "\"eno1\" (down)".
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

// For any node of its kind. Texts are those of one line.
void generalize(Topology& node) {
  node.hostname.clear();
  node.allowed = node.all_pus();
  const auto shorten = [](auto&... texts) { ((texts = short_text(texts)), ...); };
  for (Package& package : node.packages) shorten(package.model);
  for (Device& device : node.devices) {
    device.uuid.clear();
    device.instances.clear();
    shorten(device.vendor, device.model, device.pci, device.partition);
  }
  for (Nic& nic : node.nics) {
    nic.addresses.clear();
    nic.state.clear();
    nic.speed_mbps = 0;
    shorten(nic.name, nic.fabric, nic.pci, nic.kind, nic.provider);
  }
  for (Link& link : node.links) shorten(link.kind);
}

}  // namespace

NodeText node_model_text(Topology node) {
  constexpr std::string_view kEntry = "    {";
  constexpr std::size_t kWidth = 94;
  NodeText text;
  text.left_out = drop_idle_nics(node);
  generalize(node);
  const std::string json = topology_to_json(node);
  std::vector<std::string> lines;  // entries of a list share lines
  for (const std::string_view line : split(trim(json), '\n')) {
    const bool joins = line.starts_with(kEntry) && lines.back().starts_with(kEntry) &&
                       lines.back().size() + line.size() < kWidth;
    if (joins)
      lines.back().append(line.substr(kEntry.size() - 2));
    else if (!line.starts_with("  \"hostname\"") && !line.starts_with("  \"allowed\""))
      lines.emplace_back(line);
  }
  text.lines = "      \"topology\": " + joined(lines, "\n      ");
  return text;
}

}  // namespace hpclaunch::authoring
