#pragma once
#include <string>
#include <vector>

#include "cli/session.h"
#include "hpclaunch/check.h"
#include "hpclaunch/probe.h"

namespace hpclaunch::cli {

/// The node of a topology file, or this machine with all that can be known of it; what could not be asked
/// is said. Not for a launch, which asks only for what it needs.
Result<Topology> known_node(const std::string& file, Session& session);

}  // namespace hpclaunch::cli
