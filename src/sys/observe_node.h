#pragma once
// The parts of a rank's report that lie in /dev and /sys.
#include "hpclaunch/sys.h"

namespace hpclaunch::sys {

/// Which device files of accelerators are there, and which of them this process may open. A control
/// group refuses at open(2) what access(2) allows, so they are opened.
void add_devices(RankReport& report);

NodeFacts node_facts(const EnvSnapshot& env, const ObserveRequest& request, bool first_node);

}  // namespace hpclaunch::sys
