// Sections "nodes", "device_modes" and "bindings".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "authoring/command.h"
#include "authoring/new.h"

namespace hpclaunch::authoring {

namespace {

/// Cores outside the cgroup or affinity mask, by the core numbers of the model.
struct Held {
  CpuSet whole;  // no thread available
  CpuSet parts;  // some threads available
};

Held held_cores(const Topology& node) {
  Held held;
  for (std::size_t c = 0; c < node.cores.size(); ++c) {
    const CpuSet& pus = node.cores[c].pus;
    if (node.allowed.contains(pus)) continue;
    (node.allowed.intersects(pus) ? held.parts : held.whole).add(static_cast<int>(c));
  }
  return held;
}

// `numbered`: the model's cores are this node's, in the same order.
std::string reserved_text(const Topology& node, bool numbered) {
  const Held held = held_cores(node);
  const std::string about =
      "Core numbers of this model: \"reserved\" for the system, \"services\" for a running "
      "service.";
  if (held.whole.empty() && held.parts.empty()) {
    if (node.cores.size() == 1) return prose(about, 6);
    return prose(about + " All cores were available on this node; an example:", 6) +
           lines_of(R"("reserved": {"cores": "0", "why": "system services are pinned there"},)", 6,
                    true);
  }
  const CpuSet missing = node.all_pus() - node.allowed;
  std::string text = prose(fmt::format("{} CPUs {} were not available: reserved by the system, or "
                                       "granted to other jobs. A guess:",
                                       about, missing.to_list()),
                           6);
  if (!numbered || held.whole.empty()) return text + prose("(none: not a set of whole cores)", 6);
  return text + lines_of(fmt::format("\"reserved\": {{\"cores\": \"{}\", \"why\": \"not granted to "
                                     "the job that wrote this\"}},",
                                     held.whole.to_list()),
                         6, true);
}

std::string left_out_text(const std::vector<std::string>& interfaces) {
  if (interfaces.empty()) return "";
  return prose(fmt::format("Interfaces left out, because ranks do not get them: {}.",
                           fmt::join(interfaces, ", ")),
               2);
}

std::string lost_text(const std::vector<std::string>& lost) {
  if (lost.empty())
    return prose(
        "This model is exact: packages, NUMA nodes, L3 caches, cores, devices and interfaces.", 2);
  std::string text = prose(
      "This model is not exact: inside a job the node is probed (\"use\": \"live\"). What is lost:",
      2);
  for (const std::string& what : lost) text += prose("- " + what, 2);
  return text;
}

std::string listed(const std::set<int>& counts) {
  return fmt::format("{}", fmt::join(counts, ", "));
}

// Counts of ranks that a rule for whole packages fits.
std::set<int> example_counts(const Topology& node) {
  const int packages = std::max<int>(1, static_cast<int>(node.packages.size()));
  return {packages, 2 * packages};
}

}  // namespace

std::string nodes_section(const Fresh& fresh) {
  const NodeText model = node_model_text(fresh.node);
  return prose(
             "Node types (docs/reference/profile-format.md, nodes). Each further one is an entry "
             "with a \"when\", or selected by \"--node-type NAME\".",
             2) +
         left_out_text(model.left_out) + lost_text(model.lost) +
         fmt::format("  \"nodes\": [\n    {{\n      \"name\": \"compute\",\n      \"doc\": {},\n",
                     json_text("as found on " + fresh.host)) +
         prose("Number of nodes, if known:", 6) + lines_of("\"count\": 1,", 6, true) +
         reserved_text(fresh.node, model.numbered) +
         fmt::format("      \"use\": \"{}\",\n{}\n    }}\n  ],\n\n",
                     model.lost.empty() ? "model" : "live", model.lines);
}

std::string modes_section(const Fresh& fresh) {
  const Topology& node = fresh.node;
  if (node.devices.empty()) return "";
  std::string text = prose(
      "Device modes: what one rank gets (docs/reference/profile-format.md, device_modes). \"unit\" "
      "is device or subdevice; \"mask_item\" is the driver's name of it.",
      2);
  if (fresh.in_mig)
    return text +
           prose(
               "These devices are divided into MIG instances, which masks name by UUID. Inside a "
               "job hpclaunch takes the instances of the node or the batch system.",
               2) +
           "\n";
  if (fresh.has_tiles)
    return text +
           prose("Modes tile (default), tile-composite and gpu come from \"intel-max\".", 2) + "\n";
  std::string list =
      "\"device_modes\": [\n  {\"name\": \"gpu\", \"unit\": \"device\", \"doc\": \"a rank gets a "
      "whole device\"}";
  if (node.devices.front().subdevices > 1) {
    text += prose("These devices have parts: check \"mask_item\" with the driver before use.", 2);
    list +=
        ",\n  {\"name\": \"part\", \"unit\": \"subdevice\", \"mask_item\": \"${unit}\", \"doc\": "
        "\"a rank gets a part of one\"}";
  }
  return text + lines_of(list + "\n],", 2, true) + "\n";
}

std::string bindings_section(const Fresh& fresh) {
  const std::set<int> counts = example_counts(fresh.node);
  return prose(
             "CPU binding rules (docs/reference/profile-format.md, bindings). Without one, ranks "
             "share the cores nearest to their devices evenly. An example: ranks share each "
             "package's cores.",
             2) +
         lines_of(
             fmt::format(
                 "\"bindings\": [\n  {{\n    \"id\": \"share-packages\", \"when\": "
                 "{{\"ranks_per_node\": [{}]}},\n    \"per\": \"package\", \"first\": 0, "
                 "\"split\": true,\n    \"why\": \"ranks of a package share its cores\"\n  }}\n],",
                 listed(counts)),
             2, true) +
         "\n";
}

}  // namespace hpclaunch::authoring
