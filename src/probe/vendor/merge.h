#pragma once
#include "hpclaunch/topology.h"
#include "probe/vendor/report.h"

namespace hpclaunch::probe::vendor {

/// Merges a vendor report into a valid topology, which stays valid.
///
/// A device is matched by vendor and PCI address; partitions that share an address are matched in order.
/// Reported values replace known ones; unknown ones change nothing. A device that only the library knows is
/// added, near the CPUs and below the bridges that `sysfs` ("/sys") names for its address. If the report is
/// complete, an unreported device of that vendor is removed, and a sentence with the counts is returned
/// ("" otherwise). Indices are renumbered when a device was added or removed: in PCI address order, or, where
/// the vendor's devices are not in that order, as they were with new ones behind. Links of the report's kind
/// are replaced if it has any.
std::string merge(Topology& topology, const VendorReport& report, const std::string& sysfs);

}  // namespace hpclaunch::probe::vendor
