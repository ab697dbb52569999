#pragma once
#include <functional>
#include <string>

#include "hpclaunch/topology.h"

namespace hpclaunch {

/// What this machine is, read by hwloc in a child process whose environment is cleared of the
/// variables that filter or replace what hwloc sees (HWLOC_*), so that a probe that crashes or
/// hangs cannot take the caller with it. Errors: `system` when the child crashed (signal named),
/// ran past `limit_seconds` (it is killed), or hwloc refused (its call and errno named), or no CPU
/// is left to us; `unsupported` when a PU's number is above what CpuSet holds.
/// `meanwhile` is what the caller has to do anyway: it is called once, while the child works.
Result<Topology> probe_live(
    double limit_seconds = 20, const std::function<void()>& meanwhile = [] {});

/// Reads a topology file: our own JSON, or hwloc XML of format version 1 or 2, told apart by
/// content. An XML file is read in a child as well, since it is a stranger's. The result's hostname
/// is what the file says, else "". Errors: `not_found`, `invalid` (with file and, for JSON, line,
/// column and pointer), `unsupported` (as above), `system`.
Result<Topology> read_topology(const std::string& path, double limit_seconds = 20);

}  // namespace hpclaunch
