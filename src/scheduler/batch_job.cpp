// Which of the batch systems this job belongs to, and what it has.
#include <fmt/format.h>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/device_vendor.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"

namespace hpclaunch {
namespace {

bool is_set(const EnvSnapshot& env, std::string_view name) {
  return !name.empty() && !env.get(name).empty();
}

bool recognised(const Scheduler& one, const EnvSnapshot& env) {
  if (one.common_variable && !names_hosts(one, env)) return false;
  return is_set(env, one.job_variable) ||
         (!one.instance_variable.empty() && env.has(one.instance_variable));
}

// A nested system seldom says what its enclosing job grants on the node; then that job does.
void add_grants(const Scheduler& one, const EnvSnapshot& env, BatchJob& job) {
  if (const Result<std::vector<int>> counts = expand_tasks_per_node(env.get(one.cpus_variable));
      job.cpus == 0 && counts && !counts->empty())
    job.cpus = counts->front();
  if (!one.slurm_devices) return;
  for (const char* name : kSlurmGpuLists) {
    const Result<CpuSet> list = CpuSet::parse(env.get(name));
    job.devices_listed = job.devices_listed || is_set(env, name);
    if (job.devices == 0 && list) job.devices = static_cast<std::size_t>(list->count());
  }
  if (job.devices == 0)
    job.devices = static_cast<std::size_t>(parse_natural(env.get(kSlurmGpuCount)).value_or(0));
}

}  // namespace

Words scheduler_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Scheduler& one : rows<Scheduler>()) all.push_back(one.name);
    return all;
  }();
  return names;
}

bool names_hosts(const Scheduler& scheduler, const EnvSnapshot& env) {
  if (!scheduler.ask_hosts.empty()) return is_set(env, scheduler.instance_variable);
  for (const std::string_view name : scheduler.hosts_variables)
    if (is_set(env, name)) return true;
  return is_set(env, scheduler.hosts_file);
}

std::map<std::string, std::string> set_by_batch(const BatchJob& job, const EnvSnapshot& env) {
  std::map<std::string, std::string> found;
  for (const Scheduler* system : {job.outer, job.scheduler}) {
    if (system == nullptr) continue;
    for (const OwnVariable& one : system->own_variables) {
      const std::string* value = env.find(one.name);
      if (value == nullptr || (!one.value.empty() && *value != one.value)) continue;
      if (one.devices && job.devices > 0 && split(*value, ',').size() != job.devices) continue;
      if (!one.same_as.empty() && *value != env.get(one.same_as)) continue;
      if (!one.beside.empty() &&
          std::ranges::none_of(one.beside, [&](auto name) { return is_set(env, name); }))
        continue;
      found[std::string(one.name)] =
          one.same_as.empty() ? fmt::format("set by {}", system->title)
                              : fmt::format("{} sets it to {}", system->title, one.same_as);
    }
  }
  return found;
}

BatchJob find_batch(const EnvSnapshot& env) {
  BatchJob job;
  for (const bool with_hosts : {true, false})
    for (const Scheduler& one : rows<Scheduler>()) {
      if (!recognised(one, env) || names_hosts(one, env) != with_hosts) continue;
      if (job.scheduler == nullptr)
        job.scheduler = &one;
      else if (job.scheduler->nested && job.outer == nullptr)
        job.outer = &one;
      else
        job.inherited.push_back(&one);
    }
  if (job.scheduler == nullptr) return job;
  const Scheduler& own = *job.scheduler;
  job.id = env.get(own.job_variable, env.get(own.outer_variable, "0"));
  if (const auto task = parse_natural(env.get(own.task_variable)); task && *task > 0)
    job.id = fmt::format(fmt::runtime(own.task_form), job.id, *task);
  job.key = is_set(env, own.instance_variable) ? env.get(own.instance_variable) : job.id;
  if (const auto at = parse_natural(env.get(own.end_variable), 100'000'000'000)) job.ends_at = *at;
  add_grants(own, env, job);
  if (job.outer != nullptr) add_grants(*job.outer, env, job);
  return job;
}

}  // namespace hpclaunch
