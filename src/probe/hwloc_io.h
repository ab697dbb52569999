#pragma once
// Shared by the readers of hwloc's I/O objects.
#include <hwloc.h>

#include <map>
#include <string>
#include <vector>

#include "hpclaunch/topology.h"
#include "probe/pci.h"

namespace hpclaunch::probe {

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

/// Links from hwloc's matrices of bandwidth. `numbers`: the device of an object.
void add_links(hwloc_topology_t from, const std::map<hwloc_obj_t, int>& numbers, Topology& to);

/// Network interfaces and fabric adapters with PCI functions, except wireless ones.
void add_interfaces(hwloc_topology_t from, const ObjectLocality& where, Topology& to);

}  // namespace hpclaunch::probe
