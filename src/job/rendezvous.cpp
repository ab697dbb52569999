#include "job/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hpclaunch/hosts.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

// Equal launches get equal ports, so that a dry run shows what a run does; jobs get ports of their own.
std::string port_key(const Request& args, const EnvSnapshot& env) {
  for (const char* name : {"PBS_JOBID", "SLURM_JOB_ID", "FLUX_URI", "LSB_JOBID", "COBALT_JOBID"})
    if (const std::string* job = env.find(name))
      return fmt::format("{}/{}", *job, fmt::join(args.command, " "));
  return fmt::format("{}/{}/{}", sys::user_id(), sys::working_directory(),
                     fmt::join(args.command, " "));
}

// A port that somebody else chose is checked, not changed.
void check_given_port(int port, const std::string& who, Meeting& meeting,
                      std::vector<Diagnostic>& diagnostics) {
  const Result<sys::PortClaim> claim = sys::claim_port({port});
  if (claim) {
    meeting.lock = claim->lock;
    return;
  }
  diagnostics.push_back({"port-taken", Severity::error,
                         fmt::format("MASTER_PORT {} ({}): {}", port, who, claim.error().message),
                         "leave the port to hpclaunch, or name a free one with --master-port"});
}

}  // namespace

Result<Meeting> choose_meeting(const Request& args, const EnvSnapshot& env, const Hosts& hosts,
                               bool one_node, std::vector<Diagnostic>& diagnostics) {
  Meeting meeting;
  const std::string& first = hosts.names.front();
  const bool here = hosts.only_here || same_host(first, sys::host_name());
  Rendezvous& meet = meeting.rendezvous;
  if (one_node && here) {
    meet.address = "127.0.0.1";
    meet.address_why = "all ranks are on this machine";
  } else if (here && sys::resolves_to_loopback(first)) {
    meet.address = sys::outward_address().value_or(first);
    meet.address_why =
        fmt::format("{} leads to loopback here; this is the machine's address for others", first);
  } else {
    meet.address = first;
    meet.address_why = "the first host, where rank 0 runs";
  }
  const std::string* exported = env.find("MASTER_PORT");
  if (args.master_port || exported != nullptr) {
    const long port =
        args.master_port ? *args.master_port : parse_natural(*exported, 65535).value_or(0);
    if (port == 0)
      diagnostics.push_back({"bad-port", Severity::error,
                             fmt::format("MASTER_PORT=\"{}\" is no port", *exported),
                             "unset MASTER_PORT"});
    else if (here)
      check_given_port(static_cast<int>(port), args.master_port ? "--master-port" : "exported",
                       meeting, diagnostics);
    return meeting;
  }
  const auto [low, high] = sys::ephemeral_ports();
  const std::vector<int> candidates = candidate_ports(port_key(args, env), low, high);
  meet.port = candidates.front();
  meet.port_why = fmt::format("outside the kernel's own range {}-{}", low, high);
  if (!here) {
    meet.port_why += fmt::format("; not checked, since rank 0 runs on {}", first);
    return meeting;
  }
  const Result<sys::PortClaim> claim = sys::claim_port(candidates);
  if (!claim) return claim.error();
  meet.port = claim->port;
  meet.port_why += "; nobody listens on it here";
  meeting.lock = claim->lock;
  return meeting;
}

}  // namespace hpclaunch::cli
