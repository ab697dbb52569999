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

/// One entry of "rules".
struct NewRule {
  const char* id;
  const char* when;  ///< as JSON; "" for always
  std::string does;  ///< the verbs, as JSON
  const char* why;
  const char* source;  ///< "" for none
  bool suggested = true;
};

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

std::string defaults(const std::string& name, const std::string& value) {
  return fmt::format("\"default\": {{\"{}\": {}}}", name, json_text(value));
}

std::string rule_lines(const NewRule& rule) {
  std::string json = fmt::format("{{\n  \"id\": \"{}\",\n", rule.id);
  if (*rule.when != '\0') json += fmt::format("  \"when\": {},\n", rule.when);
  json += fmt::format("  {},\n  \"why\": \"{}\"", rule.does, rule.why);
  if (*rule.source != '\0')
    json +=
        fmt::format(",\n  \"source\": \"{}\",\n  \"checked\": \"{}\"", rule.source, kSourcesRead);
  return json + "\n},\n";
}

bool uses_nccl(const Topology& node) {
  return !node.devices.empty() && node.devices.front().vendor != "intel";
}

// NCCL_SOCKET_IFNAME where it is more than a suggestion: Slingshot's interface names are HPE's. Else "".
std::string socket_names(const Topology& node) {
  const Fabric fabric = fabric_of(node);
  const bool sound = std::all_of(fabric.names.begin(), fabric.names.end(), is_plain);
  if (!uses_nccl(node) || fabric.kind != "slingshot" || fabric.names.empty() || !sound) return "";
  return socket_value(node, fabric);
}

std::string provider_of(const Fabric& fabric) {
  if (!fabric.provider.empty()) return fabric.provider;
  if (fabric.kind == "slingshot") return "cxi";
  if (fabric.kind == "efa") return "efa";
  if (fabric.kind == "omni-path") return "opx";
  return fabric.kind == "infiniband" || fabric.kind == "roce" ? "verbs;ofi_rxm" : "";
}

// For NCCL's variables, which RCCL reads by the same names, Gloo, libfabric and UCX.
std::vector<NewRule> network_rules(const Topology& node, const Fabric& fabric) {
  const bool nccl = uses_nccl(node);
  const bool verbs = fabric.kind == "infiniband" || fabric.kind == "roce";
  const bool sockets = !fabric.names.empty() && (fabric.kind != "ethernet" || fabric.count > 1);
  std::vector<NewRule> rules;
  if (sockets && nccl)
    rules.push_back(
        {"sockets", kSeveralNodes, defaults("NCCL_SOCKET_IFNAME", socket_value(node, fabric)),
         "NCCL bootstrap and TCP traffic use the job's network, not the management network", kNccl,
         socket_names(node).empty()});
  if (sockets)
    rules.push_back(
        {"gloo", kSeveralNodes, defaults("GLOO_SOCKET_IFNAME", fabric.names.front()),
         "Gloo otherwise takes the host name's address, which may be on the management network",
         kPytorch});
  if (const std::string provider = provider_of(fabric); !provider.empty())
    rules.push_back({"libfabric", kSeveralNodes, defaults("FI_PROVIDER", provider),
                     "libfabric fails without this network instead of falling back to TCP",
                     kLibfabric});
  if ((fabric.kind == "slingshot" || fabric.kind == "efa") && nccl)
    rules.push_back({"nccl-plugin", kSeveralNodes, defaults("NCCL_NET", "AWS Libfabric"),
                     "NCCL fails without its libfabric plugin instead of falling back to TCP",
                     kOfiPlugin});
  if (fabric.kind == "efa")
    rules.push_back({"efa-rdma", "", defaults("FI_EFA_USE_DEVICE_RDMA", "1"),
                     "GPU transfers use RDMA read; libfabric fails on instances without it", kEfa});
  if (verbs && !fabric.domains.empty() && nccl)
    rules.push_back({"nccl-adapters", "",
                     defaults("NCCL_IB_HCA", fmt::format("={}", fmt::join(fabric.domains, ","))),
                     "NCCL uses these adapters only, not those of storage or management", kNccl});
  if (verbs && !fabric.domains.empty())
    rules.push_back(
        {"ucx-adapters", "",
         defaults("UCX_NET_DEVICES", fmt::format("{}:1", fmt::join(fabric.domains, ":1,"))),
         "UCX uses port 1 of these adapters only; by default it uses all", kUcx});
  return rules;
}

void add_nccl(const Fabric& fabric, std::vector<NewRule>& rules) {
  if (fabric.count > 1 && fabric.kind != "ethernet")
    rules.push_back({"nccl-cross-nic", "", defaults("NCCL_CROSS_NIC", "1"),
                     "rings may leave a node by another interface than they entered; not for "
                     "rail-only networks",
                     kNccl});
  if (fabric.kind == "slingshot")
    rules.push_back({"nccl-gpu-direct", "", defaults("NCCL_NET_GDR_LEVEL", "PHB"),
                     "direct transfers between a GPU and an interface below one host bridge",
                     kNccl});
  rules.push_back({"ranks-share-a-device", R"({"ranks_per_device": {"gt": 1}})",
                   R"("report": {
    "severity": "warning",
    "message": "${ranks_per_node} ranks share ${units} devices, which NCCL refuses",
    "fix": "use back end gloo or mpi, or leave --ranks-per-node out"
  })",
                   "NCCL fails when two ranks have the same device", ""});
}

void add_vendor(const Topology& node, const Fabric& fabric, std::vector<NewRule>& rules) {
  if (node.devices.empty()) return;
  const std::string& vendor = node.devices.front().vendor;
  if (vendor == "intel") {
    if (!fabric.names.empty())
      rules.push_back({"oneccl-interface", kSeveralNodes,
                       defaults("CCL_KVS_IFACE", fabric.names.front()),
                       "oneCCL bootstraps over the job's network", kOnecclStore});
    rules.push_back(
        {"oneccl-transport", "", defaults("CCL_ATL_TRANSPORT", "ofi"),
         "libfabric directly; use mpi where oneCCL runs over an MPI that the launcher starts",
         kOneccl});
  }
  if (vendor == "amd")
    rules.push_back({"miopen-cache", "",
                     R"("default": {
    "MIOPEN_USER_DB_PATH": "/tmp/${user}-miopen-${job_id}",
    "MIOPEN_CUSTOM_CACHE_DIR": "/tmp/${user}-miopen-${job_id}"
  },
  "make_dirs": ["/tmp/${user}-miopen-${job_id}"])",
                     "MIOpen's database breaks in a home directory shared by nodes", kMiopen});
}

void add_scheduler(const Fresh& fresh, std::vector<NewRule>& rules) {
  const bool slurm = fresh.scheduler == "slurm";
  if (slurm || fresh.scheduler == "pbs")
    rules.push_back({"whole-nodes", "",
                     slurm ? R"("batch": {"slurm": ["--exclusive"]})"
                           : R"("batch": {"pbs": ["-l place=excl"]})",
                     "whole nodes: no other job on them",
                     slurm ? "https://slurm.schedmd.com/sbatch.html" : ""});
}

}  // namespace

std::string rules_section(const Fresh& fresh) {
  Fabric fabric = fabric_of(fresh.node);
  for (std::vector<std::string>* names : {&fabric.names, &fabric.domains})
    std::erase_if(*names, [](const std::string& name) { return !is_plain(name); });
  if (!is_plain(fabric.provider)) fabric.provider.clear();
  const bool nccl = uses_nccl(fresh.node);
  std::vector<NewRule> rules = network_rules(fresh.node, fabric);
  if (nccl) add_nccl(fabric, rules);
  add_vendor(fresh.node, fabric, rules);
  add_scheduler(fresh, rules);
  if (nccl)
    rules.push_back({"warnings", "", defaults("NCCL_DEBUG", "WARN"),
                     "warnings of NCCL reach the job's output", "", false});
  else
    rules.push_back({"tracebacks", "", defaults("PYTHONFAULTHANDLER", "1"),
                     "a crash prints the Python stack of every thread", "", false});
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
  for (const NewRule& rule : rules) text += lines_of(rule_lines(rule), 4, rule.suggested);
  text.erase(text.rfind(','));  // behind the last rule
  return text + "\n  ],\n\n";
}

}  // namespace hpclaunch::authoring
