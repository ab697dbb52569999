#include "job/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "hpclaunch/hosts.h"
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
  Result<Hosts> hosts = hosts_from_text(*text, path, fmt::format("{} {}", what, path));
  if (!hosts) return hosts;
  if (!hosts->slots.empty()) hosts->slots_why = fmt::format("{} has a count for each node", what);
  if (hosts->slots.empty() && hosts->allocation) hosts->file = sys::real_path(path);
  hosts->allocation = hosts->allocation && of_job;
  return hosts;
}

// The batch system's file is on one node only. A job of one node can do without it.
Result<Hosts> from_job_file(const char* variable, const EnvSnapshot& env, const std::string& what,
                            const std::string& system) {
  const std::string path = env.get(variable);
  Result<Hosts> hosts = from_file(path, what, true);
  if (hosts || hosts.error().kind == ErrorKind::invalid) return hosts;
  return Error{ErrorKind::unsupported,
               fmt::format("{}: {} on this machine ({}); {} writes it on the job's first node only",
                           variable, hosts.error().message, sys::host_name(), system),
               "start hpclaunch from the job script, or copy the file and pass it with --hostfile "
               "FILE; --nodes 1 for this machine alone"};
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
  return hosts_from_names(*names, "the Flux instance's nodes");
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split(line, ' '))
    if (!trim(word).empty()) words.push_back(trim(word));
  return words;
}

// "host slots queue processors" per line; the latter two say nothing about hosts.
Result<Hosts> from_sge(const EnvSnapshot& env) {
  const std::string path = env.get("PE_HOSTFILE");
  const Result<std::string> text = sys::read_file(path);
  if (!text)
    return Error{
        ErrorKind::unsupported,
        fmt::format("PE_HOSTFILE: {} on this machine ({})", text.error().message, sys::host_name()),
        "start hpclaunch from the job script, or --nodes 1 for this machine alone"};
  std::string lines;
  for (const std::string_view line : split(*text, '\n')) {
    const std::vector<std::string_view> words = words_of(line);
    if (!words.empty()) lines += words.front();
    if (words.size() > 1) lines += fmt::format(" slots={}", words[1]);
    lines += '\n';
  }
  Result<Hosts> hosts = hosts_from_text(lines, path, "SGE host file " + path);
  if (hosts) hosts->slots_are_cpus = true;
  return hosts;
}

Hosts this_machine(const EnvSnapshot& env) {
  Hosts hosts;
  hosts.names = {sys::host_name()};
  hosts.why = "this machine";
  hosts.only_here = true;
  constexpr std::pair<const char*, const char*> kUnnamed[] = {{"PBS_JOBID", "PBS_NODEFILE"},
                                                              {"COBALT_JOBID", "COBALT_NODEFILE"}};
  for (const auto& [job, file] : kUnnamed)
    if (env.has(job) && env.get(file).empty())
      hosts.why +=
          fmt::format("; {} is set and {} is not, which would name the job's nodes", job, file);
  return hosts;
}

// The innermost system first. nullopt: in no job whose nodes somebody names.
std::optional<Result<Hosts>> of_batch_system(const Request& args, const EnvSnapshot& env) {
  const auto set = [&](const char* name) { return !env.get(name).empty(); };
  if (pbs_names_nodes(env)) return from_job_file("PBS_NODEFILE", env, "PBS node file", "PBS");
  if (set("SLURM_JOB_ID")) return hosts_of_slurm(args, env);
  if (set("LSB_JOBID")) return hosts_of_lsf(env);
  if (set("COBALT_JOBID") && set("COBALT_NODEFILE"))
    return from_job_file("COBALT_NODEFILE", env, "Cobalt node file", "Cobalt");
  if (set("JOB_ID") && set("PE_HOSTFILE")) return from_sge(env);
  return std::nullopt;
}

}  // namespace

Result<Hosts> hosts_from_text(const std::string& text, const std::string& file,
                              const std::string& what) {
  const Result<std::vector<HostSlots>> read = parse_host_file(text, file);
  if (!read) return read.error();
  Hosts hosts;
  hosts.why = what;
  bool repeated = false;
  for (const HostSlots& host : *read) repeated = repeated || host.slots > 1;
  for (const HostSlots& host : *read) {
    hosts.names.push_back(host.name);
    // Where others come several times, one that comes once has one place.
    const int slots = repeated ? std::max(1, host.slots) : host.slots;
    if (slots > 0) hosts.slots.push_back(slots);
  }
  if (hosts.slots.size() != hosts.names.size()) hosts.slots.clear();
  if (!hosts.slots.empty()) hosts.slots_why = fmt::format("{} has a count for each node", what);
  hosts.only_here = is_only_here(hosts.names);
  hosts.allocation = !repeated;
  return hosts;
}

Hosts hosts_from_names(const std::vector<std::string>& names, std::string why) {
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

Result<Hosts> find_hosts(const Request& args, const EnvSnapshot& env) {
  if (!args.hostfile.empty()) return from_file(args.hostfile, "host file", false);
  std::optional<Error> unknown;
  if (!env.get("FLUX_URI").empty()) {
    Result<Hosts> hosts = from_flux(env);
    if (hosts) return hosts;
    unknown = hosts.error();
  }
  if (std::optional<Result<Hosts>> hosts = of_batch_system(args, env)) {
    if (*hosts || hosts->error().kind == ErrorKind::usage) return std::move(*hosts);
    // A list of one node that cannot be read is no loss: this is that node.
    if (!(env.has("SLURM_JOB_ID") && env.get("SLURM_JOB_NUM_NODES") == "1"))
      unknown = hosts->error();
  }
  if (unknown && args.nodes != 1) return *unknown;
  return this_machine(env);
}

}  // namespace hpclaunch::cli
