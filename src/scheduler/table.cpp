// The table of batch systems, innermost first, and the one decision which of them this job belongs to.
//
// Sources: flux-environment(7), qsub(1B) of OpenPBS, sbatch(1), IBM Spectrum LSF "Environment variables
// set for job execution", Cobalt's qsub(1), SGE's qsub(1) and sge_pe(5).
#include <fmt/format.h>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/device_vendor.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

namespace {

using Words = std::string_view;
constexpr Words kFluxHosts[] = {"flux", "hostlist", "local"};
constexpr Words kFluxTimeLeft[] = {"flux", "job", "timeleft"};
constexpr Words kPbsTimeLeft[] = {"qstat", "-f", "{job}"};
constexpr Words kSlurmHosts[] = {"SLURM_JOB_NODELIST", "SLURM_NODELIST"};
constexpr Words kSlurmTimeLeft[] = {"squeue", "-h", "-j", "{job}", "-o", "%L"};
constexpr Words kLsfHosts[] = {"LSB_MCPU_HOSTS", "LSB_HOSTS"};
constexpr Words kLsfTimeLeft[] = {"bjobs", "-noheader", "-o", "time_left", "{job}"};

constexpr Words kPbsConfigurations[] = {"/etc/pbs.conf"};
constexpr Words kSlurmConfigurations[] = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"};
constexpr Words kFluxConfigurations[] = {"/run/flux/local"};

constexpr Scheduler kSchedulers[] = {
    {.name = "flux",
     .title = "Flux",
     .job_variable = "FLUX_JOB_ID",
     .instance_variable = "FLUX_URI",
     .outer_variable = "FLUX_ENCLOSING_ID",
     .nested = true,
     .ask_hosts = kFluxHosts,
     .hosts = flux_hosts,
     .ask_time_left = kFluxTimeLeft,
     .time_left = flux_time_left,
     .launcher = "flux",
     .allocate = "flux alloc -N {nodes} -t 60m",
     .submit = "flux batch",
     .first_host = "flux hostlist --nth=0 local",
     .configurations = kFluxConfigurations},
    {.name = "pbs",
     .title = "PBS",
     .job_variable = "PBS_JOBID",
     .hosts_file = "PBS_NODEFILE",
     .one_per_line = true,
     .ask_time_left = kPbsTimeLeft,
     .time_left = pbs_time_left,
     .allocate = "qsub -I -l select={nodes} -l walltime=01:00:00",
     .submit = "qsub",
     .first_host = "head -n 1 \"$PBS_NODEFILE\"",
     .configured_by = "PBS_CONF_FILE",
     .configurations = kPbsConfigurations},
    {.name = "slurm",
     .title = "Slurm",
     .job_variable = "SLURM_JOB_ID",
     .hosts_variables = kSlurmHosts,
     .nodes_variable = "SLURM_JOB_NUM_NODES",
     .hosts = slurm_hosts,
     .cpus_variable = "SLURM_JOB_CPUS_PER_NODE",
     .device_lists = kSlurmGpuLists,
     .device_count = kSlurmGpuCount,
     .end_variable = "SLURM_JOB_END_TIME",
     .ask_time_left = kSlurmTimeLeft,
     .time_left = slurm_time_left,
     .launcher = "slurm",
     .allocate = "salloc -N {nodes} -t 01:00:00",
     .submit = "sbatch",
     .first_host = "scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1",
     .configured_by = "SLURM_CONF",
     .configurations = kSlurmConfigurations,
     .inherited_prefix = "SLURM_",
     .inherited_why = "set by the Slurm job that submitted this job; mpiexec would start there"},
    {.name = "lsf",
     .title = "LSF",
     .job_variable = "LSB_JOBID",
     .task_variable = "LSB_JOBINDEX",
     .task_form = "{}[{}]",
     .hosts_file = "LSB_DJOB_HOSTFILE",
     .hosts_variables = kLsfHosts,
     .launch_node = true,
     .hosts = lsf_hosts,
     .ask_time_left = kLsfTimeLeft,
     .time_left = lsf_time_left,
     .launcher = "jsrun",
     .allocate = "bsub -nnodes {nodes} -W 60 -Is $SHELL",
     .submit = "bsub"},
    {.name = "cobalt",
     .title = "Cobalt",
     .job_variable = "COBALT_JOBID",
     .hosts_file = "COBALT_NODEFILE",
     .one_per_line = true,
     .allocate = "qsub -I -n {nodes} -t 60",
     .submit = "qsub",
     .first_host = "head -n 1 \"$COBALT_NODEFILE\""},
    {.name = "sge",
     .title = "SGE",
     .job_variable = "JOB_ID",
     .task_variable = "SGE_TASK_ID",
     .task_form = "{}.{}",
     .common_variable = true,
     .hosts_file = "PE_HOSTFILE",
     .hosts = sge_hosts,
     .allocate = "qlogin",
     .submit = "qsub",
     .first_host = "head -n 1 \"$PE_HOSTFILE\" | cut -d ' ' -f 1"},
};

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
  for (const char* name : one.device_lists) {
    const Result<CpuSet> list = CpuSet::parse(env.get(name));
    job.devices_listed = job.devices_listed || is_set(env, name);
    if (job.devices == 0 && list) job.devices = static_cast<std::size_t>(list->count());
  }
  if (job.devices == 0)
    job.devices = static_cast<std::size_t>(parse_natural(env.get(one.device_count)).value_or(0));
}

}  // namespace

std::span<const Scheduler> schedulers() { return kSchedulers; }

const Scheduler* find_scheduler(std::string_view name) {
  for (const Scheduler& one : kSchedulers)
    if (one.name == name) return &one;
  return nullptr;
}

bool names_hosts(const Scheduler& scheduler, const EnvSnapshot& env) {
  if (!scheduler.ask_hosts.empty()) return is_set(env, scheduler.instance_variable);
  for (const std::string_view name : scheduler.hosts_variables)
    if (is_set(env, name)) return true;
  return is_set(env, scheduler.hosts_file);
}

BatchJob find_batch(const EnvSnapshot& env) {
  BatchJob job;
  for (const bool with_hosts : {true, false})
    for (const Scheduler& one : kSchedulers) {
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
