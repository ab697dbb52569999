#pragma once
// Plans that the printers are tried on, written by hand: what a planner would make, and more.
#include "hpclaunch/plan.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::test {

struct Sample {
  Plan plan;
  Topology node;
  std::vector<std::string> argv;  ///< the launcher's command line; empty for the local launcher
};

Sample two_ranks();  ///< one node of four cores, local launcher, odd bytes in values
Sample two_nodes();  ///< 2 nodes x 12 ranks on 104 cores with siblings, per-rank values
Sample uneven();     ///< 3 + 2 + 1 nodes in classes 0, 1, 0; a rank that spans NUMA nodes

}  // namespace hpclaunch::test
