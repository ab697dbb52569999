#pragma once
#include "hpclaunch/topology.h"
#include "probe/vendor/told.h"

namespace hpclaunch::probe::vendor {

/// Puts what a library told into a lawful topology, which stays lawful.
///
/// A device is matched by vendor and PCI address; partitions that share an address are matched in
/// order. What the library says replaces what was there, what it does not say stays. A device that
/// only it knows is added, near the CPUs and below the bridges that `sysfs` ("/sys") names for its address. If what was told
/// is complete, a device of that vendor that was not told goes, and a remark is returned with the
/// counts ("" otherwise). `index` counts anew when a device came or went: in PCI address order, or, where
/// the devices of a vendor are not in that order, as they were and new ones behind them. Links of the library's
/// kind are replaced if it told any.
std::string merge(Topology& topology, const Told& told, const std::string& sysfs);

}  // namespace hpclaunch::probe::vendor
