// What the rules of a new profile follow from: the network and the vendor. A rule that applies to any machine with that hardware is
// active in profiles/new/profile.txt, others are suggestions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "authoring/new.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

/// The interfaces for the job's traffic: those of the best kind that are not down.
struct Fabric {
  std::string kind;
  std::vector<std::string> names;    // of IP interfaces
  std::vector<std::string> domains;  // of libfabric, or verbs devices
  std::string provider;              // as libfabric reports it; "" without libfabric
  std::size_t count = 0;
};

Fabric fabric_of(const Topology& node) {
  Fabric fabric;
  for (const std::string_view kind : kNicKinds) {
    for (const Nic& nic : node.nics) {
      if (nic.kind != kind || nic.state == "down") continue;
      ++fabric.count;
      if (!nic.name.empty()) fabric.names.push_back(nic.name);
      if (!nic.fabric.empty()) fabric.domains.push_back(nic.fabric);
      if (fabric.provider.empty()) fabric.provider = nic.provider;
    }
    if (fabric.count == 0) continue;
    fabric.kind = kind;
    break;
  }
  return fabric;
}

// "hsn" for hsn0 to hsn3, when no other name starts so; else "=a,b": whole names for NCCL.
std::string socket_value(const Topology& node, const Fabric& fabric) {
  std::string stem = fabric.names.front();
  while (!stem.empty() && stem.back() >= '0' && stem.back() <= '9') stem.pop_back();
  const auto begins = [&](const std::string& name) {
    return !stem.empty() && name.starts_with(stem);
  };
  const bool ours = std::all_of(fabric.names.begin(), fabric.names.end(), begins);
  const auto all = std::count_if(node.nics.begin(), node.nics.end(),
                                 [&](const Nic& nic) { return begins(nic.name); });
  if (ours && static_cast<std::size_t>(all) == fabric.names.size()) return stem;
  return fmt::format("={}", fmt::join(fabric.names, ","));
}

// Names that are safe in comma lists and templates.
bool is_plain(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.:;").find(c) != std::string_view::npos;
  });
}

std::string provider_of(const Fabric& fabric) {
  if (!fabric.provider.empty()) return fabric.provider;
  if (fabric.kind == "slingshot") return "cxi";
  if (fabric.kind == "efa") return "efa";
  if (fabric.kind == "omni-path") return "opx";
  return fabric.kind == "infiniband" || fabric.kind == "roce" ? "verbs;ofi_rxm" : "";
}

}  // namespace

void add_network(const Fresh& fresh, Names& found, Values& values) {
  Fabric fabric = fabric_of(fresh.node);
  found.insert({fabric.kind, fresh.scheduler});
  const auto note = [&](bool there, std::string_view name) {
    if (there) found.emplace(name);
  };
  note(!fabric.kind.empty(), "fabric");
  values["fabric"] = fmt::format(
      "{} of {}", fabric.count == 1 ? "one interface" : fmt::format("{} interfaces", fabric.count),
      fabric.kind);
  note(std::ranges::all_of(fabric.names, is_plain), "plain-names");
  for (std::vector<std::string>* names : {&fabric.names, &fabric.domains})
    std::erase_if(*names, [](const std::string& name) { return !is_plain(name); });
  if (!is_plain(fabric.provider)) fabric.provider.clear();
  if (!fresh.node.devices.empty()) {
    found.insert(fresh.node.devices.front().vendor);
    note(!found.contains("intel"), "nccl");  // or RCCL, which reads NCCL's variables
  }
  const bool interface = !fabric.names.empty();
  note(interface, "interface");
  note(interface && (fabric.kind != "ethernet" || fabric.count > 1), "sockets");
  note(fabric.count > 1, "several");
  note((fabric.kind == "infiniband" || fabric.kind == "roce") && !fabric.domains.empty(),
       "adapters");
  const std::string provider = provider_of(fabric);
  note(!provider.empty(), "provider");
  if (interface) {
    values["interfaces"] = short_text(socket_value(fresh.node, fabric));
    values["interface"] = short_text(fabric.names.front());
  }
  values["provider"] = short_text(provider);
  values["adapters"] = short_text(fmt::format("={}", fmt::join(fabric.domains, ",")));
  values["ports"] = short_text(fmt::format("{}:1", fmt::join(fabric.domains, ":1,")));
}

}  // namespace hpclaunch::authoring
