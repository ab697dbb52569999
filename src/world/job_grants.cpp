// Jobs with some CPUs of a node where nothing confines them: the batch system says how many, and not which.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/launch.h"
#include "hpclaunch/text.h"
#include "world/node.h"
#include "world/time_limit.h"

namespace hpclaunch::job {

namespace {

// By the profile, no job has a part of a node.
bool has_whole_nodes(const Site& site) {
  return site.model != nullptr && !site.model->share &&
         std::ranges::none_of(site.profile()->job.queues,
                              [](const Queue& queue) { return queue.share.has_value(); });
}

// As the batch system counts CPUs; where it does not answer, at least by cores.
NodeShare ask_about_node(const Scheduler& system, const std::string& host, const World& world,
                         const Topology& node) {
  std::vector<std::string> question;
  for (const std::string_view word : system.ask_node)
    question.emplace_back(word == "{host}" ? host : word);
  NodeShare share;
  const Result<sys::Captured> answer = ask_batch_system(std::move(question), world);
  if (answer && answer->status == 0 && system.node != nullptr) share = system.node(answer->out);
  if (share.cpus == 0) share.cpus = static_cast<int>(node.cores.size());
  return share;
}

// "" where the batch system does not answer.
std::string description(const BatchJob& batch, const World& world) {
  const Result<sys::Captured> answer = ask_about_job(batch, world);
  return answer && answer->status == 0 ? answer->out : "";
}

// CPUs of each host, as the batch system counts them; empty where it does not name one of them.
std::vector<int> counts_of(const JobGrants& grants, const HostNames& hosts) {
  std::map<std::string, int> known;
  for (const auto& [host, cpus] : grants.cpus) known[short_host(host)] += cpus;
  std::vector<int> counts;
  for (const std::string& host : hosts) {
    const auto found = known.find(short_host(host));
    if (found == known.end()) return {};
    counts.push_back(std::max(found->second, 1));
  }
  return counts;
}

}  // namespace

std::string describe_job(const Request& request, const World& world, const Site& site) {
  const Scheduler* system = site.batch.scheduler;
  if (system == nullptr || system->grants == nullptr || world.made_up() ||
      site.facts.invented_hosts || !request.topology.empty() ||
      !is_here(site.hosts.names.front(), world) || has_whole_nodes(site))
    return "";
  return description(site.batch, world);
}

CpuQuota counted_cpus(const World& world, const Site& site, const Topology& live) {
  const CpuSet whole = live.all_pus();
  if (site.batch.said.empty() || !live.allowed.contains(whole)) return {};
  const Scheduler& system = *site.batch.scheduler;
  const std::optional<JobGrants> grants = system.grants(site.batch.said);
  if (!grants || grants->whole) return {};
  const std::vector<int> counts = counts_of(*grants, site.hosts.names);
  if (counts.empty()) return {};
  const int least = *std::ranges::min_element(counts);
  const std::string here = short_host(site.hosts.names.front());
  const NodeShare node = ask_about_node(system, here, world, live);
  if (node.exclusive || least >= node.cpus) return {};
  const int threads = std::max(whole.count() / node.cpus, 1);  // of what it counts as a CPU
  return {least * threads, grants->why, std::string(system.title),
          std::string(system.directives.whole)};
}

std::map<std::string, std::string> set_by_job(const World& world, const Site& site,
                                              const Topology& node) {
  std::map<std::string, std::string> found = set_by_batch(site.batch, world.env);
  if (site.batch.scheduler == nullptr || world.made_up()) return found;
  for (const OwnVariable& one : site.batch.scheduler->own_variables) {
    const auto entry = found.find(std::string(one.name));
    if (one.unless.empty() || entry == found.end()) continue;
    // As many as the node has is what a job gets that asks for nothing.
    const std::optional<long> value = parse_natural(world.env.get(one.name));
    if (value && *value >= node.all_pus().count()) continue;
    const std::string text =
        site.batch.said.empty() ? description(site.batch, world) : site.batch.said;
    if (asked_for(text, one.unless)) found.erase(entry);
  }
  return found;
}

bool count_others(const Site& site, const CpuSet& here, JobNode& node) {
  if (site.batch.said.empty()) return false;
  const std::optional<JobGrants> grants = site.batch.scheduler->grants(site.batch.said);
  std::vector<int> counts = grants ? counts_of(*grants, site.hosts.names) : std::vector<int>();
  if (counts.empty() || here.count() % counts.front() != 0) return false;
  const int threads = here.count() / counts.front();  // of what it counts as a CPU
  const int cores = static_cast<int>(node.topology.cores.size());
  if (threads > 1 && threads * cores != node.topology.all_pus().count()) return false;
  for (int& count : counts) count *= threads;
  node.granted = std::move(counts);
  node.granted_why = grants->why;
  return true;
}

}  // namespace hpclaunch::job
