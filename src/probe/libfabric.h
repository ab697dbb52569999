#pragma once
#include <string>

#include "hpclaunch/result.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::probe {

/// As ask_libfabric (hpclaunch/probe.h), of this library: a name for dlopen, or a path.
Status ask_libfabric(Topology& topology, const std::string& library, double limit_seconds);

}  // namespace hpclaunch::probe
