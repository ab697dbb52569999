#pragma once
// A node that is not the one that was planned: what is said about it, and what is done.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/check.h"
#include "hpclaunch/request.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::cli {

/// What --on-drift says; without it `fail` where ranks must be as planned (--verify strict), else `warn`.
OnDrift on_drift(const Request& args);

/// How many devices the batch system has given here: its mask, its list, else its count. 0: none.
std::size_t granted_devices(const EnvSnapshot& env);

/// Compares and adds the diagnostic `node-differs`, if any. `planned_as`: "the profile's node \"gpu\"".
/// `granted`: hardware threads of the job here; 0: unknown. True when the plan is to be for `live`.
bool judge_drift(const Topology& planned, const Topology& live, const std::string& planned_as,
                 int granted, const EnvSnapshot& env, OnDrift how,
                 std::vector<Diagnostic>& diagnostics);

/// `live` with what only the planned node knows: its devices and network cards where none were found, as
/// far as the CPUs and NUMA nodes that they name are there.
Topology replanned(const Topology& live, const Topology& planned);

/// Device::index of those that can be reached; nullopt where that is not known of each, by its address.
std::optional<std::vector<int>> reachable_devices(const Topology& live,
                                                  const std::vector<sys::DeviceFile>& files);

}  // namespace hpclaunch::cli
