#pragma once
#include <cstdint>

#include "hpclaunch/topology.h"

namespace hpclaunch::test {

/// A made-up machine that obeys check_topology; the same seed gives the same machine everywhere.
///
/// Over many seeds it varies: 1 to 4 packages (or none known); 1 to 4 NUMA nodes in each, one for
/// several packages, none, HBM twins, memory near no CPU; odd and unequal core counts, 1 to 13 per
/// NUMA node; L3 and L2 groups, some incomplete, or no caches; 1, 2, 4 or 8 PUs per core, now and
/// then mixed on one machine; OS numbers in sequence, siblings far apart, packages interleaved, or
/// at random with holes; `allowed` everything, without some cores, without some PUs, one package,
/// one PU. At most 1,664 PUs; most machines have fewer than 200.
Topology random_topology(std::uint64_t seed);

/// What random_topology(seed) gives, with 1 to 9 devices, 0 to 5 interfaces and, now and then, links.
///
/// Over many seeds it varies: devices near NUMA nodes, packages, single caches, the whole machine, or
/// nothing that is known; by PUs, by NUMA node, or both; all on one package; near memory without CPUs;
/// in an order of their own; whole or in 2 parts; interfaces of a fabric and of Ethernet, down, of
/// different speeds. The cores near a device may be forbidden.
Topology random_node(std::uint64_t seed);

/// A machine that is small enough to try every way to place ranks: 1 or 2 packages with 1 or 2 NUMA nodes
/// each of 1 to 3 cores without threads, 1 to 4 devices, and some cores that are not allowed.
Topology small_node(std::uint64_t seed);

/// Small deterministic random numbers (splitmix64), the same with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  int in(int low, int high);  ///< low..high, both possible
  bool chance(int percent);

 private:
  std::uint64_t state_;
};

}  // namespace hpclaunch::test
