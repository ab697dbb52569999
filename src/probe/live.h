#pragma once
#include <functional>

#include "hpclaunch/probe.h"
#include "probe/vendor/vendor.h"

namespace hpclaunch::probe {

/// probe_node, with the choice of libraries left to the caller. `choose` is called in the child, with
/// the devices from /sys.
Result<LiveNode> probe_asking(
    const std::function<vendor::Libraries(const Topology&)>& choose, double limit_seconds,
    const std::function<void()>& meanwhile = [] {});

}  // namespace hpclaunch::probe
