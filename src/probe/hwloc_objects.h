#pragma once
// From a loaded hwloc topology to ours.
#include <hwloc.h>

#include <string>
#include <vector>

#include "hpclaunch/result.h"
#include "hpclaunch/topology.h"
#include "probe/pci.h"

namespace hpclaunch::probe {

/// PUs that exist in a topology which convert has accepted. A null bitmap is empty.
CpuSet to_cpu_set(hwloc_const_bitmap_t bitmap);

/// The value of an object's info attribute, trimmed; "" when it has none of that name.
std::string info(hwloc_obj_t object, const char* name);

/// The same of the whole machine.
std::string machine_info(hwloc_topology_t topology, const char* name);

/// All but I/O. Errors: `unsupported` for a PU number that exceeds CpuSet.
Result<Topology> convert(hwloc_topology_t from);

/// Errors: `invalid` where two accelerators have one PCI address.
Status check_accelerators(hwloc_topology_t topology);

/// Accelerators, network interfaces and links, from the PCI and OS devices that the topology has kept and
/// its bandwidth matrices. `to` is what convert made of the same topology.
void add_io(hwloc_topology_t from, Topology& to);

// ---- shared by the readers of I/O objects -----------------------------------------------------------

PciFunction function_of(hwloc_obj_t pci);

/// The PCI function that an object is, or is a child of; null for none.
hwloc_obj_t pci_above(hwloc_obj_t object);

/// Device::bridges of a PCI function; empty where the file was written without its root.
std::vector<std::string> bridges_above(hwloc_obj_t pci);

/// The locality of I/O objects.
class ObjectLocality {
 public:
  ObjectLocality(hwloc_topology_t from, const Topology& to);

  /// CPUs near an object: those of its parent, or of the board's wiring. Where the file shows none of them (it
  /// was written in a cgroup), those of the next object above.
  CpuSet near(hwloc_obj_t object) const;

  /// The NUMA node of an object below a NUMA node without CPUs in the file; -1 for any other.
  int bare_node(hwloc_obj_t object) const;

 private:
  hwloc_topology_t from_;
  const Topology& to_;
  std::string board_;
};

/// Network interfaces and fabric adapters with PCI functions, except wireless ones.
void add_interfaces(hwloc_topology_t from, const ObjectLocality& where, Topology& to);

}  // namespace hpclaunch::probe
