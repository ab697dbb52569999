// Section "rules": variables that follow from the hardware. A rule that applies to any machine with that
// hardware is active, others are suggestions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "authoring/new.h"

namespace hpclaunch::authoring {

namespace {

constexpr const char* kNccl = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html";
constexpr const char* kPytorch = "https://pytorch.org/docs/stable/distributed.html";
constexpr const char* kLibfabric = "https://ofiwg.github.io/libfabric/main/man/fabric.7.html";
constexpr const char* kOfiPlugin = "https://github.com/aws/aws-ofi-nccl";
constexpr const char* kEfa = "https://ofiwg.github.io/libfabric/main/man/fi_efa.7.html";
constexpr const char* kOnecclStore =
    "https://github.com/oneapi-src/oneCCL/blob/master/src/atl/util/pm/pmi_resizable_rt/"
    "pmi_resizable/kvs/internal_kvs.cpp";
constexpr const char* kOneccl =
    "https://www.intel.com/content/www/us/en/docs/oneccl/developer-guide-reference/2021-13/"
    "transport-selection.html";
constexpr const char* kUcx = "https://openucx.readthedocs.io/en/master/faq.html";
constexpr const char* kMiopen = "https://rocm.docs.amd.com/projects/MIOpen/en/latest/finddb.html";

// The day on which the sources were read.
constexpr std::string_view kSourcesRead = "2026-11-22";

constexpr const char* kSeveralNodes = R"({"nodes": {"gt": 1}})";

/// The interfaces for the job's traffic: those of the best kind that are not down.
struct Fabric {
  std::string kind;
  std::vector<std::string> names;    // of IP interfaces
  std::vector<std::string> domains;  // of libfabric, or verbs devices
  std::string provider;              // as libfabric reports it; "" without libfabric
  std::size_t count = 0;
  bool skipped = false;  // an interface has a name that is unsafe in lists and templates
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

/// What rules follow from.
struct Hardware {
  const Topology& node;
  const Fabric& fabric;
  std::string vendor;  ///< of the devices; "" without any
  bool
      nccl;  ///< or RCCL, which reads NCCL's variables; Gloo, libfabric and UCX are used everywhere
  bool verbs;
  bool sockets;
};

/// One entry of "rules".
struct NewRule {
  bool wanted;
  const char* id;
  const char* when;  ///< as JSON; "" for always
  const char* name;  ///< of the default that it sets; "": `value` is the verbs as JSON
  std::string value;
  const char* why;
  const char* source = "";
  bool suggested = true;
};

std::vector<NewRule> all_rules(const Fresh& fresh, const Hardware& has) {
  const Fabric& fabric = has.fabric;
  const std::string provider = provider_of(fabric);
  const std::string first = fabric.names.empty() ? "" : fabric.names.front();
  const bool libfabric = fabric.kind == "slingshot" || fabric.kind == "efa";
  const bool adapters = has.verbs && !fabric.domains.empty();
  const bool slurm = fresh.scheduler == "slurm";
  return {
      {has.sockets && has.nccl, "sockets", kSeveralNodes, "NCCL_SOCKET_IFNAME",
       has.sockets ? socket_value(has.node, fabric) : "",
       "NCCL bootstrap and TCP traffic use the job's network, not the management network", kNccl,
       !has.nccl || fabric.kind != "slingshot" || fabric.skipped},
      {has.sockets, "gloo", kSeveralNodes, "GLOO_SOCKET_IFNAME", first,
       "Gloo otherwise takes the host name's address, which may be on the management network",
       kPytorch},
      {!provider.empty(), "libfabric", kSeveralNodes, "FI_PROVIDER", provider,
       "libfabric fails without this network instead of falling back to TCP", kLibfabric},
      {libfabric && has.nccl, "nccl-plugin", kSeveralNodes, "NCCL_NET", "AWS Libfabric",
       "NCCL fails without its libfabric plugin instead of falling back to TCP", kOfiPlugin},
      {fabric.kind == "efa", "efa-rdma", "", "FI_EFA_USE_DEVICE_RDMA", "1",
       "GPU transfers use RDMA read; libfabric fails on instances without it", kEfa},
      {adapters && has.nccl, "nccl-adapters", "", "NCCL_IB_HCA",
       fmt::format("={}", fmt::join(fabric.domains, ",")),
       "NCCL uses these adapters only, not those of storage or management", kNccl},
      {adapters, "ucx-adapters", "", "UCX_NET_DEVICES",
       fmt::format("{}:1", fmt::join(fabric.domains, ":1,")),
       "UCX uses port 1 of these adapters only; by default it uses all", kUcx},
      {has.nccl && fabric.count > 1 && fabric.kind != "ethernet", "nccl-cross-nic", "",
       "NCCL_CROSS_NIC", "1",
       "rings may leave a node by another interface than they entered; not for rail-only networks",
       kNccl},
      {has.nccl && fabric.kind == "slingshot", "nccl-gpu-direct", "", "NCCL_NET_GDR_LEVEL", "PHB",
       "direct transfers between a GPU and an interface below one host bridge", kNccl},
      {has.nccl, "ranks-share-a-device", R"({"ranks_per_device": {"gt": 1}})", "",
       R"("report": {
    "severity": "warning",
    "message": "${ranks_per_node} ranks share ${units} devices, which NCCL refuses",
    "fix": "use back end gloo or mpi, or leave --ranks-per-node out"
  })",
       "NCCL fails when two ranks have the same device"},
      {has.vendor == "intel" && !first.empty(), "oneccl-interface", kSeveralNodes, "CCL_KVS_IFACE",
       first, "oneCCL bootstraps over the job's network", kOnecclStore},
      {has.vendor == "intel", "oneccl-transport", "", "CCL_ATL_TRANSPORT", "ofi",
       "libfabric directly; use mpi where oneCCL runs over an MPI that the launcher starts",
       kOneccl},
      {has.vendor == "amd", "miopen-cache", "", "",
       R"("default": {
    "MIOPEN_USER_DB_PATH": "/tmp/${user}-miopen-${job_id}",
    "MIOPEN_CUSTOM_CACHE_DIR": "/tmp/${user}-miopen-${job_id}"
  },
  "make_dirs": ["/tmp/${user}-miopen-${job_id}"])",
       "MIOpen's database breaks in a home directory shared by nodes", kMiopen},
      {slurm, "whole-nodes", "", "", R"("batch": {"slurm": ["--exclusive"]})",
       "whole nodes: no other job on them", "https://slurm.schedmd.com/sbatch.html"},
      {fresh.scheduler == "pbs", "whole-nodes", "", "", R"("batch": {"pbs": ["-l place=excl"]})",
       "whole nodes: no other job on them"},
      {has.nccl, "warnings", "", "NCCL_DEBUG", "WARN", "warnings of NCCL reach the job's output",
       "", false},
      {!has.nccl, "tracebacks", "", "PYTHONFAULTHANDLER", "1",
       "a crash prints the Python stack of every thread", "", false}};
}

std::string rule_lines(const NewRule& rule) {
  std::string json = fmt::format("{{\n  \"id\": \"{}\",\n", rule.id);
  if (*rule.when != '\0') json += fmt::format("  \"when\": {},\n", rule.when);
  const std::string does = *rule.name == '\0' ? rule.value
                                              : fmt::format("\"default\": {{\"{}\": {}}}",
                                                            rule.name, json_text(rule.value));
  json += fmt::format("  {},\n  \"why\": \"{}\"", does, rule.why);
  if (*rule.source != '\0')
    json +=
        fmt::format(",\n  \"source\": \"{}\",\n  \"checked\": \"{}\"", rule.source, kSourcesRead);
  return json + "\n},\n";
}

}  // namespace

std::string rules_section(const Fresh& fresh) {
  Fabric fabric = fabric_of(fresh.node);
  for (std::vector<std::string>* names : {&fabric.names, &fabric.domains}) {
    const std::size_t unsafe =
        std::erase_if(*names, [](const std::string& name) { return !is_plain(name); });
    fabric.skipped = fabric.skipped || (unsafe > 0 && names == &fabric.names);
  }
  if (!is_plain(fabric.provider)) fabric.provider.clear();
  const std::string vendor = fresh.node.devices.empty() ? "" : fresh.node.devices.front().vendor;
  const Hardware hardware{fresh.node,
                          fabric,
                          vendor,
                          !vendor.empty() && vendor != "intel",
                          fabric.kind == "infiniband" || fabric.kind == "roce",
                          !fabric.names.empty() && (fabric.kind != "ethernet" || fabric.count > 1)};
  std::string text = prose(
      "The site's recommendations (docs/reference/profile-format.md, rules), each with its reason. "
      "Users' exports override \"default\", not \"require\"; \"checked\" is the date of comparison "
      "with \"source\".",
      2);
  if (!fabric.kind.empty())
    text +=
        prose(fmt::format(
                  "Found {} of {}. Suggestions follow from the hardware: measure before use.",
                  fabric.count == 1 ? "one interface" : fmt::format("{} interfaces", fabric.count),
                  fabric.kind),
              2);
  text += "  \"rules\": [\n";
  for (const NewRule& rule : all_rules(fresh, hardware))
    if (rule.wanted) text += lines_of(rule_lines(rule), 4, rule.suggested);
  text.erase(text.rfind(','));  // behind the last rule
  return text + "\n  ],\n\n";
}

}  // namespace hpclaunch::authoring
