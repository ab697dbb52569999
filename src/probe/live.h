#pragma once
// Readers with the libraries left to the caller, for tests.
#include <functional>
#include <string>

#include "hpclaunch/probe.h"
#include "probe/vendor/vendor.h"

namespace hpclaunch::probe {

/// probe_node, with the choice of libraries left to the caller. `choose` is called in the child, with
/// the devices from /sys.
Result<LiveNode> probe_asking(
    const std::function<vendor::Libraries(const Topology&)>& choose, double limit_seconds,
    const std::function<void()>& meanwhile = [] {});

/// As ask_libfabric (hpclaunch/probe.h), of this library: a name for dlopen, or a path.
Status ask_libfabric(Topology& topology, const std::string& library, double limit_seconds);

}  // namespace hpclaunch::probe
