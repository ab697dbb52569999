// Where the job runs: hosts, batch system, profile and node model.
#include <fmt/format.h>

#include "hpclaunch/hosts.h"
#include "hpclaunch/sys.h"
#include "job/steps.h"

namespace hpclaunch::job {

JobFacts job_facts(const BatchJob& batch, const EnvSnapshot& env) {
  JobFacts facts;
  facts.scheduler = batch.name();
  facts.id = batch.id;
  facts.user = env.get("USER", env.get("LOGNAME"));
  if (facts.user.empty()) facts.user = fmt::format("uid{}", sys::user_id());
  return facts;
}

namespace {

// As in a container that keeps the job's id alone. A batch system that lists hosts in variables has said so before.
void report_unknown_nodes(const Request& request, const EnvSnapshot& env, const Site& site,
                          Diagnostics& diagnostics) {
  const Scheduler* system = site.batch.scheduler;
  if (system == nullptr || !system->one_per_line || names_hosts(*system, env) ||
      !request.hostfile.empty() || request.nodes == 1)
    return;
  diagnostics.push_back({"nodes-unknown", Severity::warning,
                         fmt::format("{} is set, but {} is not: the plan has this machine alone",
                                     system->job_variable, system->hosts_file),
                         fmt::format("pass {} on, or the nodes with --hostfile FILE, or --nodes 1",
                                     system->hosts_file)});
}

}  // namespace

Status find_site(const Request& request, const EnvSnapshot& env, Purpose purpose, Site& site,
                 Diagnostics& diagnostics) {
  site.batch = find_batch(env);
  site.facts = job_facts(site.batch, env);
  Result<HostList> hosts = find_hosts(request, env, site.batch);
  if (!hosts) return hosts.error();
  site.hosts = std::move(*hosts);
  report_unknown_nodes(request, env, site, diagnostics);
  const bool in_job = site.batch.scheduler != nullptr;
  const std::string here = sys::host_name();
  std::vector<std::string> names = {site.hosts.names.front()};
  if (here != names.front()) names.push_back(here);
  Result<ChosenProfile> chosen = choose_profile(request.profile, env, names, in_job, diagnostics);
  if (!chosen) return chosen.error();
  site.chosen = std::move(*chosen);
  const Profile* profile = site.profile();
  if (in_job && site.batch.scheduler->launch_node && request.hostfile.empty())
    drop_launch_node(
        profile != nullptr ? profile->lsf_launch_node : std::nullopt,
        sys::find_program(std::string(site.batch.scheduler->launcher), env.get("PATH")).has_value(),
        site.hosts);
  Result<const NodeModel*> model = choose_model(request, profile, env, site.facts);
  if (!model) return model.error();
  site.model = *model;
  site.is_here = site.hosts.names.contains(here);
  const bool elsewhere = site.model != nullptr && !in_job && request.hostfile.empty() &&
                         request.launcher != kLocalLauncher;
  if (elsewhere && purpose == Purpose::show) {
    HostNames example;
    if (!profile->example_host.empty()) example.push_back(profile->example_host);
    site.hosts = invented_hosts(requested_nodes(request), std::move(example));
    site.is_here = false;
  }
  site.facts.whole_allocation = site.hosts.allocation;
  site.facts.invented_hosts = site.hosts.invented;
  return Done{};
}

}  // namespace hpclaunch::job
