// MASTER_ADDR and MASTER_PORT, and the lock that reserves the port for this launch.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "world/means.h"

namespace hpclaunch::job {

namespace {

// Equal launches get equal ports, so that a dry run shows what a run does; jobs get different ones, also
// those that only a common variable tells apart (JOB_ID of an SGE job without a host file).
std::string port_key(const Request& request, const BatchJob& batch, const World& world) {
  if (!world.port_key.empty()) return world.port_key;
  const EnvSnapshot& env = world.env;
  std::string key = fmt::format("{}/{}", world.user_id, world.directory);
  for (const Scheduler& one : rows<Scheduler>())
    if (const std::string id = env.get(one.job_variable); one.common_variable && !id.empty())
      key += "/" + id;
  if (batch.scheduler != nullptr) key = batch.key;
  return fmt::format("{}/{}", key, fmt::join(request.command, " "));
}

// A port that the user chose is checked, not changed.
int lock_given_port(int port, const std::string& who, const char* fix, const World& world,
                    Diagnostics& diagnostics) {
  const Result<sys::PortClaim> claim = world.claim_port({port}, "");
  if (claim) return claim->lock;
  diagnostics.push_back({"port-taken", Severity::error,
                         fmt::format("MASTER_PORT {} ({}): {}", port, who, claim.error().message),
                         fix});
  return -1;
}

void report_bad_port(const std::string& exported, Diagnostics& diagnostics) {
  diagnostics.push_back({"bad-port", Severity::error,
                         fmt::format("MASTER_PORT must be from 1 to 65535, not \"{}\"", exported),
                         "unset MASTER_PORT"});
}

bool uses_one_node(const Request& request, const HostList& hosts) {
  if (hosts.names.size() == 1 || request.nodes == 1 || request.ranks == 1) return true;
  return request.ranks && request.ranks_per_node && *request.ranks <= *request.ranks_per_node;
}

// Each node finds the same by itself. A name that does not resolve on node 0 may be that of a service which hides it until
// it is ready: there it listens on its own address.
Result<Meeting> meet_each(const Request& request, const World& world, const Site& site,
                          Diagnostics& diagnostics) {
  const EachNode& each = site.each;
  const EnvSnapshot& env = world.env;
  Meeting meeting;
  Rendezvous& point = meeting.point;
  point.address = each.address.empty() ? site.hosts.names.front() : each.address;
  point.address_why = each.address.empty() ? "the first host, where rank 0 runs" : each.address_why;
  point.port = each.port;
  point.port_why = each.port_why;
  const std::string exported = env.get("MASTER_PORT");
  std::string who = each.port_why;
  if (request.master_port) {
    point.port = *request.master_port;
    who = "--master-port";
  } else if (!exported.empty()) {
    point.port = static_cast<int>(parse_natural(exported, 65535).value_or(0));
    who = "exported";
    if (point.port == 0) report_bad_port(exported, diagnostics);
  } else if (point.port == 0) {
    const auto [low, high] = world.ephemeral_ports();
    point.port = candidate_ports(port_key(request, site.batch, world), low, high).front();
    point.port_why = "of the job's id, since every node needs the same";
  }
  if (site.hosts.own != 0) return meeting;
  if (point.port != 0)
    meeting.port_lock = lock_given_port(
        point.port, who, "--master-port PORT on every node, one that is free on node 0", world,
        diagnostics);
  const std::string given = !request.master_addr.empty()      ? request.master_addr
                            : !env.get("MASTER_ADDR").empty() ? env.get("MASTER_ADDR")
                                                              : point.address;
  if (is_address(given) || is_here(given, world) || world.resolve(given)) return meeting;
  const Result<std::vector<std::string>> own = world.resolve(world.host);
  const bool usual = own && !own->empty() && !is_loopback(own->front());
  point.own_address = true;
  point.address = usual ? own->front() : world.outward_address(world.host).value_or("127.0.0.1");
  point.address_why = fmt::format("rank 0 is here, and {} does not resolve here yet", given);
  return meeting;
}

}  // namespace

Result<Meeting> choose_rendezvous(const Request& request, const World& world, const Site& site,
                                  Diagnostics& diagnostics) {
  if (site.hosts.own >= 0) return meet_each(request, world, site, diagnostics);
  const std::string first = site.hosts.names.front();
  const bool here = only_here(site.hosts, world) || is_here(first, world);
  Meeting meeting;
  Rendezvous& point = meeting.point;
  if (here && uses_one_node(request, site.hosts)) {
    point.address = "127.0.0.1";
    point.address_why = "all ranks are on this machine";
  } else if (const auto outward = here ? world.outward_address(first) : std::nullopt) {
    point.address = *outward;
    point.address_why =
        fmt::format("{} resolves to loopback here; other nodes reach this address", first);
  } else {
    point.address = first;
    point.address_why = "the first host, where rank 0 runs";
  }
  const std::string* exported = world.env.find("MASTER_PORT");
  if (request.master_port || exported != nullptr) {
    const long port =
        request.master_port ? *request.master_port : parse_natural(*exported, 65535).value_or(0);
    if (port == 0)
      report_bad_port(*exported, diagnostics);
    else if (here)
      meeting.port_lock = lock_given_port(
          static_cast<int>(port), request.master_port ? "--master-port" : "exported",
          "omit the port, or choose a free one with --master-port", world, diagnostics);
    return meeting;
  }
  const auto [low, high] = world.ephemeral_ports();
  std::vector<int> candidates = candidate_ports(port_key(request, site.batch, world), low, high);
  // Reserved until this process ends, as the port itself.
  while (here && request.output.stall_seconds && candidates.size() > 1 &&
         !world.claim_port({ras_port(candidates.front())}, ""))
    candidates.erase(candidates.begin());
  const Result<sys::PortClaim> claim = world.claim_port(candidates, here ? "" : first);
  if (!claim) return claim.error();
  point.port = claim->port;
  meeting.port_lock = claim->lock;
  point.port_why = fmt::format("outside the kernel's ephemeral range {}-{}", low, high);
  point.port_why += here ? "; currently free on this host"
                         : fmt::format("; not checked, since rank 0 runs on {}", first);
  return meeting;
}

}  // namespace hpclaunch::job
