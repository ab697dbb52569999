#pragma once
// From what was typed to an argv. Every command that shows a plan is a prefix.
#include <string>
#include <vector>

#include "cli/session.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/render.h"
#include "hpclaunch/request.h"
#include "hpclaunch/topology.h"
#include "job/launchers.h"

namespace hpclaunch::cli {

struct Prepared {
  Topology node;
  Plan plan;
  PictureMarks marks;  ///< what the site's model of the node keeps for others
  ChosenLauncher launcher;
  std::string shim;               ///< absolute
  std::vector<std::string> argv;  ///< the launch line; empty when there is no program
  std::vector<Diagnostic> diagnostics;
  int port_lock = -1;  ///< see sys::PortClaim
};

/// What the caller means to do: only a real start insists that the program exists.
enum class Purpose { show, start };

Result<Prepared> prepare(const Request& args, Session& session, Purpose purpose);

/// The same without looking at this machine at all: the profile's node, these hosts (more are made up), no
/// PATH, no ports, `env` and nothing else. For golden cases and for pages about a site.
Result<Prepared> prepare_elsewhere(const Request& args, const EnvSnapshot& env,
                                   const Profile& profile, const std::vector<std::string>& hosts);

/// What changes in the launcher's environment: the constants of the plan and HPCLAUNCH_PLAN, ascending
/// name; what differs by rank is the shim's. Comments say who decided and why.
std::vector<EnvChange> environment_changes(const Plan& plan);

/// The session's environment with the changes applied.
EnvSnapshot launch_environment(const Plan& plan, const EnvSnapshot& env);

}  // namespace hpclaunch::cli
