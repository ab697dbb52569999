#include "cli/hosts.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string_view>

#include "hpclaunch/job.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

bool is_only_here(const std::vector<std::string>& names) {
  return names.size() == 1 &&
         (same_host(names.front(), sys::host_name()) || names.front() == "localhost");
}

Result<Hosts> from_file(const std::string& path, const std::string& what, bool of_job) {
  const Result<std::string> text = sys::read_file(path);
  if (!text) return text.error();
  const Result<std::vector<HostSlots>> read = parse_host_file(*text, path);
  if (!read) return read.error();
  Hosts hosts;
  hosts.why = fmt::format("{} {}", what, path);
  bool repeated = false;
  for (const HostSlots& host : *read) {
    hosts.names.push_back(host.name);
    if (host.slots > 0) hosts.slots.push_back(host.slots);
    repeated = repeated || host.slots > 1;
  }
  if (hosts.slots.size() != hosts.names.size()) hosts.slots.clear();
  if (!hosts.slots.empty()) hosts.slots_why = fmt::format("{} has a count for each node", what);
  hosts.only_here = is_only_here(hosts.names);
  if (hosts.slots.empty() && !repeated) hosts.file = sys::real_path(path);
  hosts.allocation = of_job && !repeated;
  return hosts;
}

Hosts from_names(const std::vector<std::string>& names, std::string why) {
  Hosts hosts;
  hosts.why = std::move(why);
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    const std::size_t before = seen.size();
    seen.emplace_hint(seen.end(), name);
    if (seen.size() > before) hosts.names.push_back(name);
  }
  hosts.only_here = is_only_here(hosts.names);
  hosts.allocation = hosts.names.size() == names.size();
  return hosts;
}

Result<Hosts> from_flux(const EnvSnapshot& env) {
  constexpr double kSeconds = 10;
  const Result<std::string> flux = sys::find_program("flux", env.get("PATH"));
  if (!flux) return flux.error();
  const Result<std::string> text = sys::capture({*flux, "hostlist", "local"}, kSeconds);
  if (!text) return text.error();
  const Result<std::vector<std::string>> names = expand_hostlist(*text);
  // What flux complains about comes by the same way: "flux-hostlist: ERROR: ...".
  if (!names || text->find(':') != std::string::npos)
    return Error{ErrorKind::unsupported,
                 fmt::format("\"flux hostlist local\" does not name this instance's nodes: {}",
                             trim(text->substr(0, text->find('\n')))),
                 "flux hostlist -e local > hosts.txt, then --hostfile hosts.txt; or --nodes 1"};
  return from_names(*names, "the Flux instance's nodes");
}

// A job that was not asked for with tasks has counts too, then of CPUs; and inside a step they are the
// step's. Neither says how many ranks are wanted.
void add_slurm_counts(const EnvSnapshot& env, Hosts& hosts) {
  const bool per_node = env.has("SLURM_NTASKS_PER_NODE");
  const bool in_step = env.has("SLURM_STEP_ID");
  if (!hosts.allocation || (!per_node && (in_step || !env.has("SLURM_NTASKS")))) return;
  if (!in_step) {
    const Result<std::vector<int>> counts = expand_tasks_per_node(env.get("SLURM_TASKS_PER_NODE"));
    if (counts && counts->size() == hosts.names.size()) {
      hosts.slots = *counts;
      hosts.slots_why = fmt::format("SLURM_TASKS_PER_NODE={}", env.get("SLURM_TASKS_PER_NODE"));
      return;
    }
  }
  const std::optional<long> count = parse_natural(env.get("SLURM_NTASKS_PER_NODE"), 4096);
  if (!count || *count == 0) return;
  hosts.slots.assign(hosts.names.size(), static_cast<int>(*count));
  hosts.slots_why = fmt::format("SLURM_NTASKS_PER_NODE={}", *count);
}

Result<Hosts> from_slurm(const EnvSnapshot& env) {
  const std::string list = env.get("SLURM_JOB_NODELIST", env.get("SLURM_NODELIST"));
  const Result<std::vector<std::string>> names = expand_hostlist(list);
  if (!names)
    return Error{ErrorKind::unsupported,
                 fmt::format("SLURM_JOB_NODELIST: {}", names.error().message),
                 "scontrol show hostnames > hosts.txt, then --hostfile hosts.txt; or --nodes 1"};
  Hosts hosts =
      from_names(*names, fmt::format("the nodes of Slurm job {}", env.get("SLURM_JOB_ID")));
  add_slurm_counts(env, hosts);
  return hosts;
}

Hosts this_machine() {
  Hosts hosts;
  hosts.names = {sys::host_name()};
  hosts.why = "this machine";
  hosts.only_here = true;
  return hosts;
}

}  // namespace

Result<Hosts> find_hosts(const LaunchArgs& args, const EnvSnapshot& env) {
  if (!args.hostfile.empty()) return from_file(args.hostfile, "host file", false);
  std::optional<Error> unknown;
  if (!env.get("FLUX_URI").empty()) {
    Result<Hosts> hosts = from_flux(env);
    if (hosts) return hosts;
    unknown = hosts.error();
  }
  if (env.has("PBS_JOBID") && !env.get("PBS_NODEFILE").empty())
    return from_file(env.get("PBS_NODEFILE"), "PBS node file", true);
  if (env.has("SLURM_JOB_ID")) {
    Result<Hosts> hosts = from_slurm(env);
    if (hosts) return hosts;
    const bool one = env.get("SLURM_JOB_NUM_NODES") == "1";
    if (!one) unknown = hosts.error();
  }
  if (unknown && args.nodes != 1) return *unknown;
  return this_machine();
}

}  // namespace hpclaunch::cli
