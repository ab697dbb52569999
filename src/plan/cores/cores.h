#pragma once
// Cores: how far they are from devices, and which of them each rank gets.
#include <optional>
#include <string_view>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

// ---- locality.cpp: how far cores are from a device or a network interface ---------------------------

/// Distance of a rank's cores from its device, nearest first (docs/reference/placement.md).
enum Distance : int {
  kNear = 0,     ///< the device's own cores; also where the device's locality is unknown
  kSameNuma,     ///< the NUMA node around these
  kSamePackage,  ///< the package around these
  kElsewhere,    ///< another package
};
inline constexpr int kDistances = 4;

/// Distance of the farthest of `cpus` from something near `near`; kNear where either is empty, and where
/// `cpus` has all usable ones of `near` (a rank that has more cores besides).
int distance(const Topology& node, const CpuSet& near, const CpuSet& cpus);

/// The device has a NUMA node (or CPUs) of its own, and no usable CPU is there: a cgroup, `lstopo --restrict`.
bool lacks_cpus(const Topology& node, const Device& device);

/// `near` itself, the smallest NUMA node or the smallest package that contains all of it, by Distance; empty for none,
/// and for kElsewhere.
CpuSet around(const Topology& node, const CpuSet& near, int far);

// ---- share.cpp: which cores each rank gets; numbers only. Nodes have usable cores only, as usable_part().

/// The node without the cores and hardware threads that are not allowed.
Topology usable_part(const Topology& node);

/// The node with the first `threads` hardware threads of each core only, allowed ones where it has any.
Topology first_threads(Topology node, int threads);

/// The hardware threads of these cores.
CpuSet pus_of(const Topology& node, const CoreSet& cores);

/// The cores of each NUMA node that has any, by first core.
std::vector<CoreSet> cores_by_numa(const Topology& node);

/// From the one at `begin` to the one before `end`.
CoreSet slice(const std::vector<int>& cores, std::size_t begin, std::size_t end);

/// As many shares of `cores` as ranks, ordered by first core. A share is a run of cores of one NUMA node, or whole
/// neighbouring NUMA nodes; the smallest share is as large as that allows. With at least as many ranks as NUMA nodes no
/// share lies in several where the smallest one can be as large without. 1 <= ranks <= cores.
std::vector<CoreSet> even_shares(const Topology& node, const CoreSet& cores, int ranks);

/// Exactly `width` cores each, spread as even shares are; across caches and NUMA nodes only where
/// nothing else fits. ranks * width <= cores.
std::vector<CoreSet> exact_shares(const Topology& node, const CoreSet& cores, int ranks, int width);

/// Cores, package and NUMA node of a rank's CPUs; -1 where these lie in several. For any node.
void describe_cpus(const Topology& node, RankPlan& rank);

// ---- runs.cpp: the numbers of cores ------------------------------------------------------------------

/// Every core of the node, as Placement::counted has them; empty where each has one thread and they ascend. nullopt:
/// the threads of one core lie between those of others in no order.
std::optional<std::vector<CoreRun>> core_runs(const Topology& node);

// ---- allocate.cpp: cores for groups of ranks, each as near as there is room; numbers only ----------

/// Ranks whose devices are near the same cores.
struct LocalityGroup {
  std::vector<int> slots;  ///< positions in Slots::list, ascending
  std::vector<CoreSet> within =
      {};  ///< cores by Distance; each contains the one before; none near a device without CPUs
};

/// Ranks of one group that share the cores `from`, which are theirs alone.
struct Block {
  int group = 0;
  int distance = 0;
  int ranks = 0;
  CoreSet from;
};

/// As many ranks as near as can be, with `width` cores each; with width 0 one each, and then all cores near somebody,
/// max-min fair (docs/reference/placement.md). `numa_nodes`: as cores_by_numa(). `ranks`: of each group, for all of
/// which there are cores. By distance, then by group.
std::vector<Block> allocate_cores(const std::vector<LocalityGroup>& groups,
                                  const std::vector<CoreSet>& numa_nodes, std::vector<int> ranks,
                                  int width);

// ---- binding.cpp: ranks on cores by a site's rule --------------------------------------------------

/// The cores that a rule gives `ranks` ranks of one node, in rank order; nullopt when it does not fit: a
/// count that its groups do not divide, cores that the node does not have, or one core for two ranks.
std::optional<std::vector<RankPlan>> apply_binding(const Binding& rule, const Topology& node,
                                                   int ranks);

// ---- lists.cpp: ranks on the CPUs that somebody wrote down -------------------------------------------

/// The CPUs of each rank as launchers' --cpu-bind has them: "verbose,list:1-4:5-8" (PALS; the words in front may be
/// left out), "mask_cpu:0xf,0xf0", "map_cpu:0,8" (Slurm), "0xf,0xf0". Errors: `invalid` for any other text.
Result<std::vector<CpuSet>> parse_cpu_lists(std::string_view text);

}  // namespace hpclaunch
