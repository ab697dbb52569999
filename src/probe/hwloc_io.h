#pragma once
// What the readers of hwloc's I/O objects share.
#include <hwloc.h>

#include <map>
#include <string>
#include <vector>

#include "hpclaunch/topology.h"
#include "probe/pci.h"

namespace hpclaunch::probe {

PciFunction function_of(hwloc_obj_t pci);

/// The PCI function that an object is, or hangs below; null for none.
hwloc_obj_t pci_above(hwloc_obj_t object);

/// Device::bridges of a PCI function; empty where the file was written without its root.
std::vector<std::string> bridges_above(hwloc_obj_t pci);

/// Tells what I/O objects are near.
class Whereabouts {
 public:
  Whereabouts(hwloc_topology_t from, const Topology& to);

  /// CPUs beside an object: those of what it hangs below, or what is known of the board. Where none of these
  /// CPUs are shown (a file that was written in a cgroup), those of what holds it.
  CpuSet near(hwloc_obj_t object) const;

  /// The NUMA node of an object that hangs below one without a CPU shown; -1 for every other.
  int bare_node(hwloc_obj_t object) const;

 private:
  hwloc_topology_t from_;
  const Topology& to_;
  std::string board_;
};

/// Links from hwloc's matrices of bandwidth. `numbers`: the device that an object stands for.
void add_links(hwloc_topology_t from, const std::map<hwloc_obj_t, int>& numbers, Topology& to);

/// Network interfaces and fabric adapters that hang on PCI functions, but wireless ones.
void add_interfaces(hwloc_topology_t from, const Whereabouts& where, Topology& to);

}  // namespace hpclaunch::probe
