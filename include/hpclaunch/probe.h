#pragma once
#include <functional>
#include <string>
#include <vector>

#include "hpclaunch/topology.h"

namespace hpclaunch {

/// Whether a probe opens the libraries of the devices' vendors (NVML, Level Zero, AMD SMI, ROCm SMI),
/// which costs from some milliseconds to seconds.
enum class VendorLibraries {
  none,
  if_needed,  ///< where what they tell can change a plan (docs/topology.md)
  all,        ///< of every vendor whose devices are here
};

/// What one of those libraries could not tell, or told and the user should know.
struct LibraryNote {
  std::string library;  ///< "NVML"
  std::string what;     ///< lower case, no full stop
};

struct LiveNode {
  Topology topology;
  std::vector<LibraryNote> notes;
};

/// What this machine is, read by hwloc, and its devices and network interfaces from /sys, in a child
/// process, so that a probe that crashes or hangs cannot take the caller with it. Its environment is cleared
/// of what filters or replaces what hwloc and the vendors' libraries see (HWLOC_*, device masks).
/// Errors: `system` when the child crashed (signal named), ran past `limit_seconds` (it is killed), or
/// hwloc refused (its call and errno named), or no CPU is left to us; `unsupported` when a PU's number is
/// above what CpuSet holds.
/// `meanwhile` is what the caller has to do anyway: it is called once, while the child works.
Result<Topology> probe_live(
    double limit_seconds = 20, const std::function<void()>& meanwhile = [] {});

/// The same, with what the vendors' libraries know, and their failures, none of which is an error: each
/// runs in a child of its own, with a limit, and what it does not tell is as if it were not installed.
Result<LiveNode> probe_node(
    VendorLibraries libraries, double limit_seconds = 20,
    const std::function<void()>& meanwhile = [] {});

/// Names libfabric's provider of each interface that hangs on a fabric (InfiniBand, Slingshot, EFA, ...):
/// the first one that it offers for reliable messages without connections, else the first of all. The
/// library is opened in a child, as are the vendors' that it opens, and may take a second; nothing is
/// asked where no interface hangs on a fabric. Errors, with nothing changed: `unsupported` when it is not
/// here or offers nothing, `system` when it crashed or ran past the limit.
Status ask_libfabric(Topology& topology, double limit_seconds = 5);

/// Reads a topology file: our own JSON, or hwloc XML of format version 1 or 2, told apart by
/// content. An XML file is read in a child as well, since it is a stranger's. The result's hostname
/// is what the file says, else "". Errors: `not_found`, `invalid` (with file and, for JSON, line,
/// column and pointer), `unsupported` (as above), `system`.
Result<Topology> read_topology(const std::string& path, double limit_seconds = 20);

}  // namespace hpclaunch
