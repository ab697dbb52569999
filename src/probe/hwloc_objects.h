#pragma once
// From a loaded hwloc topology to ours.
#include <hwloc.h>

#include <string>

#include "hpclaunch/result.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::probe {

/// Errors: `unsupported` for a PU number that CpuSet cannot hold. A null bitmap is empty.
Result<CpuSet> to_cpu_set(hwloc_const_bitmap_t bitmap);

/// The value of an object's info attribute, trimmed; "" when it has none of that name.
std::string info(hwloc_obj_t object, const char* name);

/// All but I/O. Errors: as to_cpu_set.
Result<Topology> convert(hwloc_topology_t from);

/// Errors: `invalid` where two accelerators have one PCI address.
Status check_accelerators(hwloc_topology_t topology);

/// Accelerators, network interfaces and links, from the PCI and OS devices that the topology has kept and
/// its bandwidth matrices (hwloc_io.cpp says how). `to` is what convert made of the same topology.
void add_io(hwloc_topology_t from, Topology& to);

}  // namespace hpclaunch::probe
