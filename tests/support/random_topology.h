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
