// Slurm: the job's nodes, what was asked for on each, and heterogeneous jobs.
//
// Source: slurm doc/man/man1/{sbatch,srun}.1 (output environment), doc/html/heterogeneous_jobs.shtml.
// In a heterogeneous job SLURM_HET_SIZE says how many components there are; what describes one has
// _HET_GROUP_N at the end, the plain names are component 0's, and srun takes --het-group=N (0 unasked).
#include <fmt/format.h>

#include <map>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

namespace {

constexpr std::size_t kMostShown = 200;
constexpr const char* kAskForHosts =
    "scontrol show hostnames \"$(squeue -h -j $SLURM_JOB_ID -o %N)\" > hosts.txt, then --hostfile "
    "hosts.txt; or --nodes 1";

std::string of_group(std::string_view name, int group) {
  return fmt::format("{}_HET_GROUP_{}", name, group);
}

// What the user passes to srun himself.
std::optional<long> typed_for_srun(const std::vector<std::string>& args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    for (const std::string_view option : {"--het-group", "--pack-group"}) {
      const std::string& word = args[i];
      if (word == option && i + 1 < args.size()) return parse_natural(args[i + 1]).value_or(-1);
      if (word.starts_with(fmt::format("{}=", option)))
        return parse_natural(word.substr(option.size() + 1)).value_or(-1);
    }
  }
  return std::nullopt;
}

// The environment as a job of this component alone would have it.
EnvSnapshot as_component(const EnvSnapshot& env, int group) {
  std::map<std::string, std::optional<std::string>> changes;
  for (const char* name :
       {"SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_JOB_NUM_NODES",
        "SLURM_NNODES", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"}) {
    const std::string* own = env.find(of_group(name, group));
    if (own != nullptr)
      changes[name] = *own;
    else if (group > 0)
      changes[name] = std::nullopt;  // what stands there is component 0's
  }
  return env.with(changes);
}

Error which_component(const EnvSnapshot& env, int size, const std::string& wrong) {
  std::string names;
  for (int group = 0; group < size; ++group)
    names += fmt::format(
        "{}{} ({})", group > 0 ? ", " : "", group,
        shown(env.get(of_group("SLURM_JOB_NODELIST", group), "nodes unknown"), kMostShown));
  return Error{
      ErrorKind::usage,
      fmt::format("{}this Slurm job is heterogeneous, with components {}; a launch has the "
                  "nodes of one",
                  wrong, names),
      fmt::format("--het-group 0{}",
                  size > 1 ? fmt::format(" to --het-group {}", size - 1) : std::string())};
}

// -1: no heterogeneous job.
Result<int> component(const Request& request, const EnvSnapshot& env) {
  constexpr int kMostGroups = 128;  // Slurm's MAX_HET_JOB_COMPS
  const auto size =
      static_cast<int>(parse_natural(env.get("SLURM_HET_SIZE"), kMostGroups).value_or(0));
  std::optional<long> asked = typed_for_srun(request.launcher_args);
  if (request.het_group) asked = *request.het_group;
  if (size == 0 && !asked) return -1;
  if (size == 0)
    return Error{ErrorKind::usage,
                 fmt::format("--het-group {}: this Slurm job is not heterogeneous (SLURM_HET_SIZE "
                             "is not set)",
                             *asked),
                 "leave --het-group out"};
  if (size == 1 && !asked) return 0;
  if (!asked) return which_component(env, size, "");
  if (*asked < 0 || *asked >= size)
    return which_component(env, size,
                           *asked < 0 ? std::string("--het-group takes one number here: ")
                                      : fmt::format("there is no component {}: ", *asked));
  return static_cast<int>(*asked);
}

// Counts of another length belong to another list of nodes.
std::optional<std::vector<int>> counts_of(const EnvSnapshot& env, const char* name,
                                          HostList& hosts) {
  const std::string text = env.get(name);
  if (text.empty() || !hosts.allocation) return std::nullopt;
  const Result<std::vector<int>> counts = expand_tasks_per_node(text);
  if (counts && counts->size() == hosts.names.size()) return *counts;
  const std::string wrong =
      counts ? fmt::format("it has counts for {}, and the job has {}",
                           counted(counts->size(), "node"), counted(hosts.names.size(), "node"))
             : counts.error().message;
  hosts.reports.push_back(
      {"counts-ignored", Severity::warning,
       fmt::format("ignoring {}={}: {}", name, shown(text, kMostShown), wrong),
       fmt::format("unset {}, or start hpclaunch where the job's environment is "
                   "whole",
                   name)});
  return std::nullopt;
}

// A job that was not asked for with tasks has counts too, then of CPUs; and inside a step they are the
// step's. Neither says how many ranks are wanted.
void add_counts(const EnvSnapshot& env, HostList& hosts) {
  const bool per_node = env.has("SLURM_NTASKS_PER_NODE");
  const bool in_step = env.has("SLURM_STEP_ID");
  if (!hosts.allocation || (!per_node && (in_step || !env.has("SLURM_NTASKS")))) return;
  if (!in_step) {
    if (std::optional<std::vector<int>> counts = counts_of(env, "SLURM_TASKS_PER_NODE", hosts)) {
      hosts.slots = *std::move(counts);
      hosts.slots_why = fmt::format("SLURM_TASKS_PER_NODE={}", env.get("SLURM_TASKS_PER_NODE"));
      return;
    }
  }
  const std::optional<long> count = parse_natural(env.get("SLURM_NTASKS_PER_NODE"), 4096);
  if (!count || *count == 0) return;
  hosts.slots.assign(hosts.names.size(), static_cast<int>(*count));
  hosts.slots_why = fmt::format("SLURM_NTASKS_PER_NODE={}", *count);
}

void add_grants(const EnvSnapshot& env, HostList& hosts) {
  constexpr const char* kName = "SLURM_JOB_CPUS_PER_NODE";
  std::optional<std::vector<int>> counts = counts_of(env, kName, hosts);
  if (!counts) return;
  hosts.granted = *std::move(counts);
  hosts.granted_why = fmt::format("{}={}", kName, env.get(kName));
}

// A part of a job's environment: in a container, behind ssh or sudo. scontrol goes by the list that is
// missing; squeue asks Slurm.
Error no_list(const std::string& name, const std::string& job, bool set) {
  return Error{ErrorKind::unsupported,
               fmt::format("SLURM_JOB_ID is {}, and {} is {}: this job's nodes are not known", job,
                           name, set ? "empty" : "not set"),
               fmt::format("start hpclaunch where the job's environment is whole; or scontrol show "
                           "hostnames \"$(squeue -h -j {} -o %N)\" > hosts.txt, then --hostfile "
                           "hosts.txt; or --nodes 1 for this machine alone",
                           job)};
}

}  // namespace

Result<HostList> slurm_hosts(const EnvSnapshot& whole, const Request& request, const std::string&,
                             const std::string&) {
  const Result<int> group = component(request, whole);
  if (!group) return group.error();
  const EnvSnapshot env = *group < 0 ? whole : as_component(whole, *group);
  const std::string name =
      *group > 0 ? of_group("SLURM_JOB_NODELIST", *group) : "SLURM_JOB_NODELIST";
  const std::string job = whole.get("SLURM_JOB_ID");
  const std::string list = env.get("SLURM_JOB_NODELIST", env.get("SLURM_NODELIST"));
  if (trim(list).empty()) return no_list(name, job, env.has("SLURM_JOB_NODELIST"));
  Result<HostNames> names = hosts_from_list(list);
  if (!names)
    return Error{ErrorKind::unsupported, fmt::format("{}: {}", name, names.error().message),
                 kAskForHosts};
  HostList hosts = hosts_from_names(
      std::move(*names),
      *group < 0
          ? fmt::format("the nodes of Slurm job {}", job)
          : fmt::format("the nodes of component {} of heterogeneous Slurm job {}", *group, job));
  add_counts(env, hosts);
  add_grants(env, hosts);
  return hosts;
}

}  // namespace hpclaunch
