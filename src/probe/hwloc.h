#pragma once
#include <string>

#include "hpclaunch/result.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::probe {

/// What hwloc finds on this machine, with `allowed` cut to this process's affinity mask.
/// Changes HWLOC_* in the environment: to be called in a child (child.h).
/// Errors: `system` (hwloc's call and errno), `unsupported` (a PU number that CpuSet cannot hold).
Result<Topology> load_live();

/// What an hwloc XML text describes. Same warning as above.
/// Errors: `invalid` when hwloc cannot read it or it describes no machine; `unsupported` as above.
Result<Topology> load_xml(const std::string& text);

}  // namespace hpclaunch::probe
