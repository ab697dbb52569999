#pragma once
#include <string>
#include <vector>

#include "hpclaunch/probe.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::probe::vendor {

/// Which libraries to open, and where the kernel's own words are.
///
/// Each list is tried in order, sonames or paths; an empty one means that the library is not asked.
struct Libraries {
  std::vector<std::string> nvml = {};
  std::vector<std::string> level_zero = {};
  std::vector<std::string> amd_smi = {};
  std::vector<std::string> rocm_smi = {};  ///< asked when AMD SMI is absent or has failed
  std::string sysfs = "/sys";
  /// For each library. A driver without its persistence daemon wakes GPUs one after the other.
  double limit_seconds = 8;
};

/// The libraries worth opening on this machine, by the names that they have there: only of vendors of
/// which the topology has a device, or the driver's own file is under `dev`. With `if_needed`, only
/// where what they tell can change a plan: MIG instances exist; the job's mask names devices by UUID
/// (`named_by_uuid`); not every NVIDIA device may be opened; a GPU with tiles shows none of them.
Libraries worth_opening(const Topology& topology, VendorLibraries want, bool named_by_uuid,
                        const std::string& root = "");

/// Adds to the topology's devices and links what the libraries know (merge.h). Every library runs in a
/// child of its own, the vendors at the same time; one that hangs, crashes or fails costs what it knows
/// and nothing else. The topology must obey check_topology, and does afterwards. Returns what the user
/// should read; a library that is not installed is no news.
std::vector<LibraryNote> enrich(Topology& topology, const Libraries& which);

}  // namespace hpclaunch::probe::vendor
