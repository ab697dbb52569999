#pragma once
// Where ranks meet: MASTER_ADDR and MASTER_PORT, and the lock that keeps the port ours.
#include <vector>

#include "cli/session.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/request.h"
#include "job/hosts.h"

namespace hpclaunch::cli {

struct Meeting {
  Rendezvous rendezvous;
  int lock = -1;  ///< see sys::PortClaim
};

/// Errors: as sys::claim_port. A port that was given and is taken becomes a diagnostic.
Result<Meeting> choose_meeting(const Request& args, const EnvSnapshot& env, const Hosts& hosts,
                               bool one_node, std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch::cli
