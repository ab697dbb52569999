#pragma once
// The node as a tree of domains (packages, NUMA nodes, caches that cores share), for placement.
#include <vector>

#include "hpclaunch/topology.h"

namespace hpclaunch {

/// A core as placement sees it: what is left of it after `allowed`.
struct UsableCore {
  CpuSet pus;        ///< never empty
  int position = 0;  ///< in Topology::cores
};

/// The cores of a topology with at least one allowed PU, in topology order.
std::vector<UsableCore> usable_cores(const Topology& node);

/// A domain and the smaller domains that partition its cores. A leaf has no children; otherwise every
/// core of the domain is in exactly one child.
struct Domain {
  std::vector<int> cores;        ///< positions in the vector of usable cores, ascending
  std::vector<Domain> children;  ///< ordered by first core; none or at least two
  bool rest = false;  ///< cores that no smaller domain covers: no border of the machine's
};

/// Domains nest by containment alone, so caches above NUMA nodes and NUMA nodes above packages are
/// as good as the usual order. Cores of a domain that no smaller domain covers form a child of their own.
Domain domain_tree(const Topology& node, const std::vector<UsableCore>& cores);

}  // namespace hpclaunch
