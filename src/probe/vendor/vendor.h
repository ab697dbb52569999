#pragma once
#include <string>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/topology.h"
#include "probe/vendor/report.h"

namespace hpclaunch::probe::vendor {

/// The libraries to open, and the root of the kernel's files. Each list (sonames or paths) is tried in order;
/// an empty one: the library is not asked.
struct Libraries {
  std::vector<std::string> nvml = {};
  std::vector<std::string> level_zero = {};
  std::vector<std::string> amd_smi = {};
  std::vector<std::string> rocm_smi = {};  ///< asked when AMD SMI is absent or fails
  std::string sysfs = "/sys";
  /// For each library. A driver without its persistence daemon wakes GPUs one after the other.
  double limit_seconds = 8;
};

/// The libraries to open on this machine, by the names they have there: only of vendors of which the topology
/// has a device, or whose driver has a file under `root`/dev. With `if_needed`, only where a plan may depend
/// on it: MIG instances exist; the job's mask names devices by UUID (`named_by_uuid`); some NVIDIA devices
/// cannot be opened; a GPU with tiles shows none.
Libraries libraries_to_open(const Topology& topology, VendorLibraries want, bool named_by_uuid,
                            const std::string& root = "");

/// Merges a vendor report into a valid topology, which stays valid.
///
/// A device is matched by vendor and PCI address; partitions that share an address are matched in order.
/// Reported values replace known ones; unknown ones change nothing. A device that only the library reports is
/// added, near the CPUs and below the bridges that `sysfs` ("/sys") names for its address. If the report is
/// complete, an unreported device of that vendor is removed, and a sentence with the counts is returned
/// ("" otherwise). Indices are renumbered when a device was added or removed: those of the vendor in PCI address
/// order, or, where they were not in that order, as they were with new ones behind; others as they were. Links of
/// the report's kind are replaced if it has any.
std::string merge(Topology& topology, const VendorReport& report, const std::string& sysfs);

/// Adds what the libraries report to the topology's devices and links (merge). Every library runs in a child
/// process, the vendors at the same time; one that hangs, crashes or fails loses only its own values. One that hung
/// is remembered (sys::runtime_folder) and skipped until its files change or the machine restarts. The topology must pass check_topology, and passes afterwards. Returns notes ("vendor-library") for the user;
/// a library that is not installed gives none.
std::vector<Diagnostic> enrich(Topology& topology, const Libraries& which);

}  // namespace hpclaunch::probe::vendor
