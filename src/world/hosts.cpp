// Which nodes the job has: runs or reads what the batch system's row names.
#include "hpclaunch/hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "hpclaunch/launch.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "world/site.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kMostOfList = 64u << 20;

HostList this_machine(const World& world, const Scheduler* scheduler) {
  const EnvSnapshot& env = world.env;
  HostList hosts;
  hosts.names = {world.host};
  hosts.why = "this machine";
  if (scheduler != nullptr && !names_hosts(*scheduler, env) && !scheduler->hosts_file.empty())
    hosts.why +=
        fmt::format("; {} is set, but {} is not", scheduler->job_variable, scheduler->hosts_file);
  return hosts;
}

// The batch system writes the file on one node only; other variables may have the same list.
Result<std::string> file_text(const Scheduler& system, const World& world,
                              const std::string& path) {
  Result<std::string> text = world.read_file(path, kMostOfList);
  const bool listed = std::ranges::any_of(
      system.hosts_variables, [&](std::string_view name) { return world.env.has(name); });
  if (text || listed) return text ? *text : std::string();
  return Error{ErrorKind::unsupported,
               fmt::format("{}: {} on this machine ({}); {} writes it on the job's first node only",
                           system.hosts_file, text.error().message, world.host, system.title),
               "start hpclaunch from the job script, or copy the file and pass it with --hostfile "
               "FILE; --nodes 1 for this machine alone"};
}

Result<std::string> printed_hosts(const Scheduler& system, const World& world) {
  if (!system.ask_grants.empty())
    if (const auto answer =
            ask_batch_system({system.ask_grants.begin(), system.ask_grants.end()}, world);
        answer && answer->status == 0 && !trim(answer->out).empty())
      return answer->out;
  const auto answer = ask_batch_system({system.ask_hosts.begin(), system.ask_hosts.end()}, world);
  if (!answer) return answer.error();
  if (answer->status == 0) return answer->out;
  return Error{
      ErrorKind::unsupported,
      fmt::format("\"{}\" failed: {}", fmt::join(system.ask_hosts, " "), answer->complaint()),
      "pass the hosts with --hostfile FILE, or --nodes 1 for this machine alone"};
}

Result<HostList> hosts_of(const Scheduler& system, const Request& request, const World& world) {
  const std::string path = world.env.get(system.hosts_file);
  Result<std::string> text = std::string();
  if (!system.ask_hosts.empty())
    text = printed_hosts(system, world);
  else if (!path.empty())
    text = file_text(system, world, path);
  if (!text) return text.error();
  Result<HostList> hosts =
      system.hosts != nullptr
          ? system.hosts(world.env, request, *text, path)
          : hosts_from_text(*text, path, fmt::format("{} node file {}", system.title, path));
  if (hosts && system.one_per_line && hosts->allocation && hosts->slots.empty())
    hosts->file = world.real_path(path);
  return hosts;
}

// One node under two names would get the ranks of two.
Status check_spellings(const HostNames& names, const std::string& path) {
  std::map<std::string, std::string> known;  // by short_host
  for (const std::string& name : names) {
    const std::string& first = known.try_emplace(short_host(name), name).first->second;
    if (first != name && same_host(first, name))
      return Error{ErrorKind::invalid, fmt::format("{}: {} and {} are one node", path, first, name),
                   "spell each node's name in one way"};
  }
  return Done{};
}

Result<HostList> from_hostfile(const std::string& path, const World& world) {
  const Result<std::string> text = world.read_file(path, kMostOfList);
  if (!text)
    return Error{text.error().kind, text.error().message, "--hostfile FILE with one host per line"};
  Result<HostList> hosts = hosts_from_text(*text, path, "host file " + path);
  if (!hosts) return hosts;
  if (const Status done = check_spellings(hosts->names, "host file " + path); !done)
    return done.error();
  if (hosts->slots.empty() && hosts->allocation) hosts->file = world.real_path(path);
  hosts->allocation = false;
  return hosts;
}

// "a,b:4,n[1-3]:2" as the lines of a host file.
Result<std::string> lines_of(std::string_view list) {
  std::string lines;
  const auto add = [&](std::string_view host, std::string_view ranks) -> Status {
    const auto strange = strange_in_host(host);
    const auto count = parse_natural(ranks.substr(std::min<std::size_t>(1, ranks.size())));
    if (strange || (!ranks.empty() && count.value_or(0) < 1))
      return Error{ErrorKind::invalid,
                   strange ? fmt::format("--hosts: \"{}\" is no host: {}", shown(host), *strange)
                           : fmt::format("--hosts: \"{}{}\": ranks must be 1 or more", shown(host),
                                         shown(ranks)),
                   host.find('@') == host.npos ? "--hosts a,b:4,n[1-3]"
                                               : "the host alone, and User NAME in ~/.ssh/config"};
    lines.append(host).append(ranks).append("\n");
    return Done{};
  };
  for (std::size_t at = 0; at < list.size();) {
    std::size_t end = at;
    for (int depth = 0; end < list.size() && (depth > 0 || list[end] != ','); ++end)
      depth += list[end] == '[' ? 1 : list[end] == ']' ? -1 : 0;
    const std::string_view host = trim(list.substr(at, end - at));
    at = end + 1;
    const std::size_t colon = host.find(':');
    if (host.empty()) continue;
    if (colon != host.npos && host.find(':', colon + 1) != host.npos) {  // an IPv6 address
      if (const Status good = add(host, ""); !good) return good.error();
      continue;
    }
    const Result<HostNames> names = expand_hostlist(host.substr(0, colon));
    if (!names) return Error{names.error().kind, names.error().message, "--hosts a,b:4,n[1-3]"};
    for (const std::string& name : *names)
      if (const Status good = add(name, colon == host.npos ? "" : host.substr(colon)); !good)
        return good.error();
  }
  if (lines.empty())
    return Error{ErrorKind::invalid, "--hosts: no host is named", "--hosts a,b:4,n[1-3]"};
  return lines;
}

Result<HostList> from_list(std::string_view list) {
  const Result<std::string> lines = lines_of(list);
  if (!lines) return lines.error();
  Result<HostList> hosts = hosts_from_text(*lines, "--hosts", "--hosts");
  if (!hosts) return hosts;
  if (const Status done = check_spellings(hosts->names, "--hosts"); !done) return done.error();
  hosts->allocation = false;
  return hosts;
}

// Place of each of these hosts among the job's, which may be in another order, more, or spelled otherwise. Empty where one
// is not the job's.
std::vector<int> places_in(const HostNames& job, const HostNames& hosts) {
  std::map<std::string, std::size_t> at;  // by short_host
  for (std::size_t n = 0; n < job.size(); ++n) at.try_emplace(short_host(job[n]), n);
  std::vector<int> places;
  for (const std::string& host : hosts) {
    const auto found = at.find(short_host(host));
    if (found == at.end() || !same_host(host, job[found->second])) return {};
    places.push_back(static_cast<int>(found->second));
  }
  return places;
}

// What the job has of each of these hosts.
void add_grants(const HostList& job, HostList& hosts) {
  const std::vector<int> places = places_in(job.names, hosts.names);
  const auto pick = [&](const auto& all, auto& own) {
    if (all.size() == job.names.size())
      for (const int place : places) own.push_back(all[static_cast<std::size_t>(place)]);
  };
  pick(job.granted, hosts.granted);
  pick(job.grants, hosts.grants);
  if (!hosts.granted.empty()) hosts.granted_in_all = job.granted;
  hosts.granted_why = job.granted_why;
  hosts.grants_by = job.grants_by;
  if (!job.grants_by.empty()) hosts.places = places;
}

}  // namespace

Result<sys::Captured> ask_batch_system(std::vector<std::string> question, const World& world) {
  constexpr double kSeconds = 20;
  const Result<std::string> program = world.program(question.front());
  if (!program) return program.error();
  question.front() = *program;
  return world.capture(question, kSeconds, nullptr);
}

bool is_here(std::string_view host, const World& world) { return same_host(host, world.host); }

bool only_here(const HostList& hosts, const World& world) {
  return hosts.names.size() == 1 &&
         (is_here(hosts.names.front(), world) || hosts.names.front() == "localhost");
}

bool first_is_here(const HostList& hosts, const World& world) {
  if (hosts.own >= 0) return hosts.own == 0;
  return only_here(hosts, world) || is_here(hosts.names.front(), world);
}

HostList invented_hosts(int nodes, HostNames known) {
  HostList hosts;
  hosts.names = std::move(known);
  for (auto n = hosts.names.size() + 1; n <= static_cast<std::size_t>(nodes); ++n)
    hosts.names.push_back(fmt::format("node{:05}", n));
  hosts.allocation = hosts.invented = true;
  hosts.why = "invented: the batch system's hosts replace them in a job";
  return hosts;
}

int requested_nodes(const Request& request) {
  const int spares = request.spares.value_or(0);
  if (request.nodes) return *request.nodes + spares;
  if (request.ranks && request.ranks_per_node)
    return (*request.ranks + *request.ranks_per_node - 1) / *request.ranks_per_node + spares;
  return 1 + spares;
}

Result<HostList> find_hosts(const Request& request, const World& world, const BatchJob& batch) {
  const EnvSnapshot& env = world.env;
  if (const std::string& named = request.hostfile; !named.empty()) {
    Result<HostList> hosts = named.front() == kHostList
                                 ? from_list(std::string_view(named).substr(1))
                                 : from_hostfile(named, world);
    if (!hosts || batch.scheduler == nullptr ||
        (batch.scheduler->cpus_variable.empty() && batch.scheduler->ask_grants.empty()) ||
        !names_hosts(*batch.scheduler, env))
      return hosts;
    const Result<HostList> job = hosts_of(*batch.scheduler, request, world);
    if (!job) return hosts;
    add_grants(*job, *hosts);
    hosts->reports = job->reports;
    return hosts;
  }
  const auto made_up = [&] {
    HostList hosts = invented_hosts(requested_nodes(request), world.hosts);
    hosts.invented = world.hosts.size() < hosts.names.size();
    return hosts;
  };
  if (!world.hosts.empty()) return made_up();
  std::optional<Error> unknown;
  for (const Scheduler* system : {batch.scheduler, batch.outer}) {
    if (system == nullptr) continue;
    // Without its node file a PBS or Cobalt job is this machine.
    const bool elsewhere = world.made_up() || system->one_per_line || !system->ask_hosts.empty();
    if (elsewhere && !names_hosts(*system, env)) continue;
    Result<HostList> hosts = hosts_of(*system, request, world);
    if (hosts || hosts.error().kind == ErrorKind::usage) return hosts;
    // A job of one node needs no list: this is that node.
    const bool one = env.get(system->nodes_variable) == "1";
    if (!one) unknown = hosts.error();
  }
  if (unknown && request.nodes != 1) return *unknown;
  return world.made_up() ? made_up() : this_machine(world, batch.scheduler);
}

}  // namespace hpclaunch::job
