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
int lock_given_port(int port, const std::string& who, const World& world,
                    Diagnostics& diagnostics) {
  const Result<sys::PortClaim> claim = world.claim_port({port}, "");
  if (claim) return claim->lock;
  diagnostics.push_back({"port-taken", Severity::error,
                         fmt::format("MASTER_PORT {} ({}): {}", port, who, claim.error().message),
                         "omit the port, or choose a free one with --master-port"});
  return -1;
}

bool uses_one_node(const Request& request, const HostList& hosts) {
  if (hosts.names.size() == 1 || request.nodes == 1 || request.ranks == 1) return true;
  return request.ranks && request.ranks_per_node && *request.ranks <= *request.ranks_per_node;
}

}  // namespace

Result<Meeting> choose_rendezvous(const Request& request, const World& world, const Site& site,
                                  Diagnostics& diagnostics) {
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
      diagnostics.push_back(
          {"bad-port", Severity::error,
           fmt::format("MASTER_PORT must be from 1 to 65535, not \"{}\"", *exported),
           "unset MASTER_PORT"});
    else if (here)
      meeting.port_lock =
          lock_given_port(static_cast<int>(port),
                          request.master_port ? "--master-port" : "exported", world, diagnostics);
    return meeting;
  }
  const auto [low, high] = world.ephemeral_ports();
  const std::vector<int> candidates =
      candidate_ports(port_key(request, site.batch, world), low, high);
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
