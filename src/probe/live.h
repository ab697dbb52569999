#pragma once
// The readers of hwloc, and those of libraries that the caller names, for tests.
#include <functional>
#include <optional>
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

/// As libfabric_parameters, of this library.
Result<std::vector<FabricParameter>> libfabric_parameters(const std::string& library,
                                                          double limit_seconds);

/// As load_live, where the kernel's files have all of it; nullopt where only hwloc can tell. Changes nothing.
std::optional<Result<Topology>> load_from_files();

/// This machine, with `allowed` cut to this process's affinity mask.
/// Changes HWLOC_* in the environment: to be called in a child (child.h).
/// Errors: `system` (hwloc's call and errno), `unsupported` (a PU number above the capacity of CpuSet).
Result<Topology> load_live();

/// What an hwloc XML text describes. Same warning as above.
/// Errors: `invalid` when hwloc cannot read it or it describes no machine; `unsupported` as above.
Result<Topology> load_xml(const std::string& text);

/// This machine, or what an XML text describes, as hwloc exports it. Same warning, same errors.
Result<std::string> export_xml(const std::string* xml);

}  // namespace hpclaunch::probe
