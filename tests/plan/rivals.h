#pragma once
// How other planners place ranks on a node, written from their descriptions, and the measure by which
// docs/reference/placement.md compares them with ours. Sources, read 2026-11: LLNL/mpibind src/internals.c (greedy
// and memory hierarchy mappings); openpmix/prrte src/mca/rmaps/round_robin (mapping by object and by
// device); pytorch torch/numa/binding.py at 01c9f4fc (torchrun --numa-binding).
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/topology.h"

namespace hpclaunch::test {

struct RivalRank {
  CpuSet cpus;
  std::vector<int> devices;  ///< Device::index
};
using RivalPlan = std::vector<RivalRank>;

/// mpibind with devices known: tasks over the NUMA nodes that have devices, each task an even part of
/// the cores and the devices there; with fewer tasks than NUMA nodes whole ones, devices or not.
std::optional<RivalPlan> mpibind(const Topology& node, int ranks);

/// prterun --map-by numa: ranks to NUMA nodes in turn, here with as many cores each as all can have
/// (:pe=N). Devices are not assigned; programs take device LOCAL_RANK.
std::optional<RivalPlan> prrte_by_numa(const Topology& node, int ranks);

/// prterun --map-by device=gpu: ranks to devices in turn, each with as many of the cores near its device as
/// all can have (:pe=N). nullopt where that is refused: no cores are near a device.
std::optional<RivalPlan> prrte_by_device(const Topology& node, int ranks);

/// torchrun --numa-binding: "node", "socket", "exclusive" or "core-complex". Local rank i has device i;
/// nullopt where there is none.
std::optional<RivalPlan> torchrun(const Topology& node, int ranks, std::string_view mode);

/// In the order in which they count.
struct Measure {
  int without = 0;  ///< ranks that get no device
  int crowded = 0;  ///< ranks that have less than one core for themselves
  int uneven = 0;   ///< ranks on the most used device less those on the least used one; with fewer
                    ///< ranks than devices: on the most used one less one
  long far =
      0;  ///< sum over ranks of the distance of their farthest core from their farthest device
          ///< (plan/reach.h)
  int split =
      0;  ///< ranks with a part of a NUMA node, package or cache and something outside of it
  int worst_off = 0;   ///< cores of the rank with the fewest, shared ones in equal parts
  int best_off = 0;    ///< and of the rank with the most
  int cores_used = 0;  ///< cores that some rank has
};

Measure measure(const Topology& node, const RivalPlan& plan);

}  // namespace hpclaunch::test
