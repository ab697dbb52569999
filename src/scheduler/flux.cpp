// What Flux grants an instance: an R (RFC 20), or a host list of a Flux that prints none.
//
// Source: runs of flux-core 0.88.0; `flux resource R` since 0.52, `flux hostlist local` for older ones. Ranks of R_lite
// ascending are the hosts of the node list; one entry stands for all nodes with the same children.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

namespace {

using Json = nlohmann::json;

constexpr const char* kBy = "flux resource R";

Error no_hosts(const std::string& text) {
  return Error{ErrorKind::unsupported,
               fmt::format("\"{}\" printed no hosts: {}", kBy,
                           shown(trim(text.substr(0, text.find('\n'))), 300)),
               "flux hostlist -e avail > hosts.txt, then --hostfile hosts.txt; or --nodes 1"};
}

// "0-23" of a child; empty where there is none.
CpuSet ids_of(const Json& children, const char* name) {
  const Result<CpuSet> ids = CpuSet::parse(children.value(name, std::string()));
  return ids ? *ids : CpuSet{};
}

// The grant of each rank of the instance.
std::map<int, HostGrant> grants_of(const Json& r_lite) {
  std::map<int, HostGrant> grants;
  for (const Json& entry : r_lite) {
    const Json& rank = entry.at("rank");
    const Result<CpuSet> ranks =
        CpuSet::parse(rank.is_string() ? rank.get<std::string>() : rank.dump());
    if (!ranks) continue;
    const Json& children = entry.at("children");
    const HostGrant grant{ids_of(children, "core"), ids_of(children, "gpu")};
    for (const int one : ranks->to_vector()) {
      grants[one].cores |= grant.cores;
      grants[one].devices |= grant.devices;
    }
  }
  return grants;
}

Result<HostList> hosts_of_resources(const std::string& text) {
  try {
    const Json execution = Json::parse(text).at("execution");
    std::string list;
    for (const Json& names : execution.at("nodelist")) list += names.get<std::string>() + ",";
    if (list.find_first_not_of(',') == std::string::npos) return no_hosts("no node is up");
    Result<HostNames> names = hosts_from_list(list);
    if (!names) return no_hosts(names.error().message);
    const std::map<int, HostGrant> grants = grants_of(execution.at("R_lite"));
    HostList hosts = hosts_from_names(*std::move(names), "nodes of the Flux instance that are up");
    if (grants.size() != hosts.names.size()) return hosts;  // several brokers on one node
    hosts.grants_by = kBy;
    for (const auto& [rank, grant] : grants) hosts.grants.push_back(grant);
    return hosts;
  } catch (const Json::exception&) {
    return no_hosts(text);
  }
}

}  // namespace

Result<HostList> flux_hosts(const EnvSnapshot&, const Request&, const std::string& text,
                            const std::string&) {
  if (text.starts_with('{')) return hosts_of_resources(text);
  Result<HostNames> names = hosts_from_list(text);  // a message of flux itself has a colon
  return names ? Result<HostList>(hosts_from_names(*std::move(names), "nodes of the Flux instance"))
               : no_hosts(text);
}

}  // namespace hpclaunch
