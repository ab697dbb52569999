#include "job/site.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hpclaunch/hosts.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "job/drift.h"
#include "job/libraries.h"
#include "job/node.h"

namespace hpclaunch::cli {

namespace {

constexpr double kProbeSeconds = 20;

// What the batch system gives of each node, where that is less than all of it.
void heed_grants(const Site& site, int whole, Seen& seen) {
  Grants grants = settle_grants(site.hosts.granted, whole, seen.node);
  if (grants.each.empty()) return;
  seen.granted = std::move(grants.each);
  seen.part = true;
  const bool first_is_here = same_host(site.hosts.names.front(), sys::host_name());
  seen.known = first_is_here && seen.live && seen.live->allowed.count() == seen.granted.front();
}

Topology with_devices_of(const std::string& vendor, const Topology& node) {
  Topology some = node;
  some.devices.erase(std::remove_if(some.devices.begin(), some.devices.end(),
                                    [&](const Device& device) { return device.vendor != vendor; }),
                     some.devices.end());
  return some;
}

// Opening tells what a control group leaves; without a job files that are there will do. Each vendor's
// devices by themselves: this machine may have some that the node of the plan has not.
void see_reachable(const Site& site, Seen& seen) {
  if (!seen.live || !site.is_here || seen.node.devices.empty()) return;
  const std::vector<sys::DeviceFile> files = sys::device_files(site.job.scheduler != "none");
  std::set<std::string> vendors;
  for (const Device& device : seen.node.devices) vendors.insert(device.vendor);
  std::vector<int> reachable;
  for (const std::string& vendor : vendors) {
    const std::vector<Device> planned = with_devices_of(vendor, seen.node).devices;
    const Topology here = with_devices_of(vendor, *seen.live);
    if (here.devices.size() != planned.size()) return;
    const std::optional<std::vector<int>> found = reachable_devices(here, files);
    if (!found) return;
    for (std::size_t d = 0; d < planned.size(); ++d)
      if (std::count(found->begin(), found->end(), here.devices[d].index) > 0)
        reachable.push_back(planned[d].index);
  }
  std::sort(reachable.begin(), reachable.end());
  seen.reachable = std::move(reachable);
}

}  // namespace

JobFacts job_facts(const EnvSnapshot& env) {
  JobFacts job;
  constexpr std::pair<const char*, const char*> kIds[] = {
      {"flux", "FLUX_JOB_ID"}, {"slurm", "SLURM_JOB_ID"},  {"pbs", "PBS_JOBID"},
      {"lsf", "LSB_JOBID"},    {"cobalt", "COBALT_JOBID"}, {"sge", "JOB_ID"}};
  for (const auto& [scheduler, name] : kIds) {
    // Many programs set a JOB_ID; SGE's comes with a file of hosts.
    if (scheduler == std::string("sge") && !env.has("PE_HOSTFILE")) continue;
    if (scheduler == std::string("slurm") && pbs_names_nodes(env)) continue;
    if (!env.get(name).empty() || (scheduler == std::string("flux") && env.has("FLUX_URI"))) {
      job.scheduler = scheduler;
      // The first program of a Flux allocation knows only the id of what encloses it.
      job.id = env.get(name, env.get("FLUX_ENCLOSING_ID", "0"));
      break;
    }
  }
  job.user = env.get("USER", env.get("LOGNAME"));
  if (job.user.empty()) job.user = fmt::format("uid{}", sys::user_id());
  return job;
}

// Planning for a site that is not here: as many nodes as were asked for.
void make_up_hosts(int nodes, Hosts& hosts) {
  hosts.names.clear();
  for (int n = 1; n <= nodes; ++n) hosts.names.push_back(fmt::format("node{:05}", n));
  hosts.slots.clear();
  hosts.granted.clear();
  hosts.only_here = false;
  hosts.allocation = true;
  hosts.why = "made up, since this is no job: the batch system's own will take their place";
}

int nodes_asked_for(const Request& args) {
  if (args.nodes) return *args.nodes;
  if (args.ranks && args.ranks_per_node)
    return (*args.ranks + *args.ranks_per_node - 1) / *args.ranks_per_node;
  return 1;
}

Status find_site(const Request& args, const EnvSnapshot& env, Purpose purpose, Site& site,
                 std::vector<Diagnostic>& diagnostics) {
  Result<Hosts> hosts = find_hosts(args, env);
  if (!hosts) return hosts.error();
  site.hosts = std::move(*hosts);
  site.job = job_facts(env);
  const bool in_job = site.job.scheduler != "none";
  const std::string here = sys::host_name();
  std::vector<std::string> names = {site.hosts.names.front()};
  if (here != names.front()) names.push_back(here);
  Result<ChosenProfile> chosen = choose_profile(args.profile, env, names, in_job, diagnostics);
  if (!chosen) return chosen.error();
  site.chosen = std::move(*chosen);
  if (site.hosts.of_lsf) {
    const bool jsrun = sys::find_program("jsrun", env.get("PATH")).has_value();
    const Profile* profile = site.profile();
    drop_launch_node(profile != nullptr ? profile->lsf_launch_node : std::nullopt, jsrun,
                     site.hosts);
  }
  Result<const NodeModel*> model = choose_model(args, site.profile(), env, site.job);
  if (!model) return model.error();
  site.model = *model;
  site.is_here = std::any_of(site.hosts.names.begin(), site.hosts.names.end(),
                             [&](const std::string& host) { return same_host(host, here); });
  const bool elsewhere =
      site.model != nullptr && !in_job && args.hostfile.empty() && args.launcher != "local";
  if (elsewhere && purpose == Purpose::show) {
    make_up_hosts(nodes_asked_for(args), site.hosts);
    site.is_here = false;
  }
  site.job.whole_allocation = site.hosts.allocation;
  return Done{};
}

Result<Seen> see_node(const Request& args, const EnvSnapshot& env, const Site& site,
                      const std::function<void()>& meanwhile,
                      std::vector<Diagnostic>& diagnostics) {
  Seen seen;
  const bool by_file = !args.topology.empty();
  // A file is there to plan for another node than this: compared only on demand.
  if (by_file ? args.on_drift.has_value() && site.is_here : site.model == nullptr || site.is_here) {
    Result<LiveNode> live = probe_node(VendorLibraries::if_needed, kProbeSeconds, meanwhile);
    if (!live) return live.error();
    seen.live = std::move(live->topology);
    for (Diagnostic& diagnostic : library_diagnostics(live->notes))
      diagnostics.push_back(std::move(diagnostic));
  } else {
    meanwhile();
  }
  Node node;
  if (by_file) {
    Result<Topology> file = read_topology(args.topology, kProbeSeconds);
    if (!file) return file.error();
    node =
        settle_file(std::move(*file), args.topology, seen.live, env, on_drift(args), diagnostics);
  } else {
    const int first = site.hosts.granted.empty() ? granted_cpus(env) : site.hosts.granted.front();
    node = settle_node(site.model, seen.live, first, env, on_drift(args), diagnostics);
  }
  seen.node = std::move(node.topology);
  seen.model = node.model;
  seen.part = node.part;
  seen.known = node.known;
  // What of this machine is not allowed may well be another job's; what a model reserves is nobody's.
  heed_grants(site, node.whole, seen);
  see_reachable(site, seen);
  return seen;
}

}  // namespace hpclaunch::cli
