// Where the job runs: hosts, batch system, profile and node model.
#include "world/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "hpclaunch/hosts.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/text.h"
#include "world/later.h"

namespace hpclaunch::job {

JobFacts job_facts(const BatchJob& batch, const World& world) {
  JobFacts facts;
  facts.scheduler = batch.name();
  facts.id = batch.scheduler == nullptr && !world.job_id.empty() ? world.job_id : batch.id;
  facts.user = world.env.get("USER", world.env.get("LOGNAME"));
  if (facts.user.empty()) facts.user = world.user;
  return facts;
}

namespace {

// An instance that was reached by `flux proxy` has no variable with its job id.
void ask_job_id(const World& world, BatchJob& batch) {
  const Scheduler* system = batch.scheduler;
  if (system == nullptr || system->ask_job.empty() || batch.id != "0" || world.made_up()) return;
  const auto answer = ask_batch_system({system->ask_job.begin(), system->ask_job.end()}, world);
  const std::string id(answer && answer->status == 0 ? trim(answer->out) : "");
  if (!id.empty()) batch.id = id;
}

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

Result<Site> find_site(const Request& request, const World& world, Purpose purpose,
                       const EachNode& each, Diagnostics& diagnostics) {
  const EnvSnapshot& env = world.env;
  Site site;
  site.batch = find_batch(env);
  ask_job_id(world, site.batch);
  site.facts = job_facts(site.batch, world);
  Result<HostList> hosts = find_hosts(request, world, site.batch);
  const bool separate = each.own >= 0;
  site.each = each;
  if (separate && (hosts || each.nodes > 0))
    hosts = hosts_of_each(request, hosts ? *std::move(hosts) : HostList(), world, site.each);
  if (!hosts) return hosts.error();
  if (!separate && hosts->names.size() == 1 && !each.slots.empty()) {
    hosts->slots = each.slots;
    hosts->slots_are_cores = false;
    hosts->slots_why = each.slots_why;
  }
  site.hosts = std::move(*hosts);
  report_unknown_nodes(request, env, site, diagnostics);
  std::ranges::copy(site.hosts.reports, std::back_inserter(diagnostics));
  const bool in_job = site.batch.scheduler != nullptr;
  const std::string& here = world.host;
  std::vector<std::string> names = {separate ? here : site.hosts.names.front()};
  if (here != names.front()) names.push_back(here);
  Result<ChosenProfile> chosen = choose_profile(request.profile, world, names, in_job, diagnostics);
  if (!chosen) return chosen.error();
  site.chosen = std::move(*chosen);
  const Profile* profile = site.profile();
  if (in_job && site.batch.scheduler->launch_node && request.hostfile.empty())
    drop_launch_node(profile != nullptr ? profile->lsf_launch_node : std::nullopt,
                     world.program(std::string(site.batch.scheduler->launcher)).has_value(),
                     site.hosts);
  Result<const NodeModel*> model = choose_model(request, profile, env, site.facts);
  if (!model) return model.error();
  site.model = *model;
  site.is_here = separate || site.hosts.names.contains(here);
  const bool elsewhere = !separate && site.model != nullptr && !in_job && !world.made_up() &&
                         request.hostfile.empty() && request.launcher != kLocalLauncher;
  if (elsewhere && purpose == Purpose::show) {
    HostNames example;
    if (!profile->example_host.empty()) example.push_back(profile->example_host);
    site.hosts = invented_hosts(requested_nodes(request), std::move(example));
    site.is_here = false;
    make_late(request, *profile, site.facts);
  }
  site.facts.whole_allocation = site.hosts.allocation;
  site.facts.invented_hosts = site.hosts.invented;
  if (!request.user.empty()) site.facts.user = request.user;
  if (!request.job_id.empty()) site.facts.id = request.job_id;
  return site;
}

}  // namespace hpclaunch::job
