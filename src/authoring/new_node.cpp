// What the node is made of, and how it is dealt out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "authoring/command.h"
#include "authoring/new.h"

namespace hpclaunch::cli {

namespace {

/// What a cgroup or an affinity mask kept from us, by the core numbers of the model.
struct Held {
  CpuSet whole;  // cores of which no thread was ours
  CpuSet parts;  // cores of which some were
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
      "Cores that the system needs belong into \"reserved\", those that a service uses while it "
      "runs into \"services\": core numbers of this model, siblings included.";
  if (held.whole.empty() && held.parts.empty()) {
    if (node.cores.size() == 1) return prose(about, 6);
    return prose(about + " All were ours when this was written, so that none is known; an example:",
                 6) +
           lines_of(R"("reserved": {"cores": "0", "why": "system services are pinned there"},)", 6,
                    true);
  }
  const CpuSet missing = node.all_pus() - node.allowed;
  std::string text = prose(
      fmt::format("{} CPUs {} were not ours when this was written: kept by the system, or by other "
                  "jobs on a shared node, which cannot be told. A guess:",
                  about, missing.to_list()),
      6);
  if (!numbered || held.whole.empty())
    return text + prose("(none: they are not whole cores of this model)", 6);
  return text + lines_of(fmt::format("\"reserved\": {{\"cores\": \"{}\", \"why\": \"not granted to "
                                     "the job that wrote this\"}},",
                                     held.whole.to_list()),
                         6, true);
}

std::string left_out_text(const std::vector<std::string>& interfaces) {
  if (interfaces.empty()) return "";
  return prose(
      fmt::format("Of the interfaces these are left out, since ranks get no such ones: {}.",
                  fmt::join(interfaces, ", ")),
      2);
}

std::string lost_text(const std::vector<std::string>& lost) {
  if (lost.empty())
    return prose(
        "Read back, this is the node as it was seen: packages, NUMA nodes, level-3 caches, "
        "cores, devices and interfaces.",
        2);
  std::string text = prose(
      "The counts below cannot express all of this node: inside a job it is asked itself (\"use\": "
      "\"live\"), and plans made elsewhere are near, not exact. What is lost:",
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
             "What a node is made of (docs/profiles.md, nodes), so that plans can be made "
             "anywhere. More kinds of nodes are further entries, each with a \"when\" or chosen "
             "by \"--node-type NAME\".",
             2) +
         prose(
             "Left out on purpose is what belongs to one node and not to its kind: UUIDs, "
             "addresses, the state and speed of interfaces.",
             2) +
         left_out_text(model.left_out) + lost_text(model.lost) +
         fmt::format("  \"nodes\": [\n    {{\n      \"name\": \"compute\",\n      \"doc\": {},\n",
                     json_text("as found on " + fresh.host)) +
         prose("How many there are, if that is known:", 6) + lines_of("\"count\": 1,", 6, true) +
         reserved_text(fresh.node, model.numbered) +
         fmt::format("      \"use\": \"{}\",\n{}\n    }}\n  ],\n\n",
                     model.lost.empty() ? "model" : "live", model.lines);
}

std::string modes_section(const Fresh& fresh) {
  const Topology& node = fresh.node;
  if (node.devices.empty()) return "";
  std::string text = prose(
      "Device modes: what one rank gets (docs/profiles.md, device_modes). \"unit\" is a device, or "
      "a subdevice where devices have parts; \"mask_item\" is how the driver names it.",
      2);
  if (fresh.in_mig)
    return text +
           prose(
               "These devices are cut into MIG instances. A mask names them by UUID, which belongs "
               "to this node, so no mode here can: inside a job hpclaunch takes what the node or "
               "the batch system says.",
               2) +
           "\n";
  if (fresh.has_tiles)
    return text +
           prose(
               "The modes tile (the default here), tile-composite and gpu come from "
               "\"intel-max\"; an entry of the same name would take the place of one.",
               2) +
           "\n";
  std::string list =
      "\"device_modes\": [\n  {\"name\": \"gpu\", \"unit\": \"device\", "
      "\"doc\": \"a rank gets a whole device\"}";
  if (node.devices.front().subdevices > 1) {
    text += prose(
        "These devices have parts. How a mask names a part is the driver's affair: see to "
        "\"mask_item\" before the mode is used.",
        2);
    list +=
        ",\n  {\"name\": \"part\", \"unit\": \"subdevice\", \"mask_item\": \"${unit}\", "
        "\"doc\": \"a rank gets a part of one\"}";
  }
  return text + lines_of(list + "\n],", 2, true) + "\n";
}

std::string bindings_section(const Fresh& fresh) {
  const std::set<int> counts = example_counts(fresh.node);
  return prose(
             "Bindings: which cores each rank gets, where the site has its own rule "
             "(docs/profiles.md, bindings). Without one, ranks get the cores nearest to their "
             "devices, shared evenly. An example: ranks share each package's cores.",
             2) +
         lines_of(fmt::format("\"bindings\": [\n  {{\n    \"id\": \"share-packages\", \"when\": "
                              "{{\"ranks_per_node\": [{}]}},\n    \"per\": \"package\", \"first\": "
                              "0, \"split\": true,\n    \"why\": \"ranks of a package share its "
                              "cores\"\n  }}\n],",
                              listed(counts)),
                  2, true) +
         "\n";
}

}  // namespace hpclaunch::cli
