#pragma once
// Ranks of one node: which cores and which device each gets (docs/reference/placement.md).
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/devices/slots.h"

namespace hpclaunch {

/// How to distribute ranks over the cores of one node.
struct PlaceRequest {
  int ranks = 1;               ///< on this node, >= 1
  int cores_per_rank = 0;      ///< exact number; 0: an even share
  bool oversubscribe = false;  ///< ranks may share cores when there are more ranks than cores
  bool use_idle = false;       ///< fewer ranks than devices get the cores that no rank is near, too
  bool one_device = false;     ///< a rank cannot have several devices: a typed view, or MIG
};

/// A site's binding whose condition holds and that fits.
struct FittingRule {
  const Binding* rule = nullptr;
  std::string condition;  ///< what made it hold
  std::vector<RankPlan> ranks;
};

struct NodeRanks {
  std::vector<RankPlan> ranks;          ///< in the order of their cores
  std::vector<int> assigned;            ///< position in Slots::list; -1 without slots
  std::vector<FittingRule> rules = {};  ///< strongest first, the one in use; empty: by locality
  std::string list = {};  ///< whose list of CPUs is in use: "--cpu-bind", "CPU_BIND"; "" for none
  std::vector<std::string> remarks = {};  ///< idle cores, ranks on several NUMA nodes
  std::vector<Diagnostic> reports = {};
  int far = 0;  ///< ranks whose cores are not near their device
};

/// Cores and slots of ranks by locality: docs/reference/placement.md has the wishes, the stronger first.
/// Renumbering PUs changes the numbers only. Errors: `usage` when ranks do not fit; the message has both numbers.
Result<NodeRanks> match_slots(const Topology& node, const Slots& slots, const PlaceRequest& want);

/// The unit of each rank where the cores are bound already: even, and as near as swaps of two ranks make it.
std::vector<int> match_bound(const Topology& node, const Slots& slots,
                             const std::vector<RankPlan>& ranks);

/// Writes down the slots and the interface of each rank, as `placed.assigned` says.
void give_devices(const Topology& node, const Slots& slots, NodeRanks& placed);

// ---- own_list.cpp: --cpu-bind LIST, and the CPU_BIND that the launch lines of sites' guides take -----

/// The list as it was typed or exported, "list:1-4:5-8"; "" for none.
std::string own_list(const PlanInput& input);

/// False where the list is not used: without one, and with a report where it was exported. Errors: `usage` for a typed one.
Result<bool> refuse_list(const PlanInput& input, const std::string& why, Severity severity,
                         const std::string& fix, std::vector<Diagnostic>& reports);

/// Puts the ranks of a node on the CPUs of the list, each with a unit near them; the fullest node has `most`, 0 where no
/// list can be used. Threads that the
/// profile's rule in use gives a core of the rank's own have its last one, others the nearest idle one.
/// As refuse_list for what is no list for such ranks.
Result<bool> bind_by_list(const PlanInput& input, const Slots& slots, int ranks, int most,
                          NodeRanks& result);

// ---- parts of nodes, of which only the number of granted hardware threads is known -----------------

/// The job has parts of shared nodes, and which cores those are is not known for every node.
bool nameless_cores(const PlanInput& input, int nodes);

/// nameless_cores, and how much of each node the job has is known: `granted` counts.
bool knows_amounts(const PlanInput& input, int nodes);

/// A rank can find its own share by counting through what it finds granted (docs/reference/plan.md, "Parts of nodes").
bool can_count_through(const PlanInput& input, int nodes);

/// Why can_count_through is false; a clause.
std::string why_not_counted(const PlanInput& input);

/// The hardware threads of a job with all of a node.
CpuSet whole_node(const PlanInput& input);

/// Of this host `granted` has all of the node: its cores are known by name.
bool is_whole(const PlanInput& input, std::size_t host);

/// Cores that `granted` hardware threads of such a node are on, where as few as can be: batch systems give no two jobs
/// one core. 1 at least.
int granted_cores(const Topology& node, int granted);

/// `ranks` ranks in a grant: even neighbouring shares of its positions, one core longer in front,
/// --cpus-per-rank cores where that was typed. Slots are assigned in blocks.
/// Errors: `usage` with the host where ranks do not fit.
Result<NodeRanks> share_part(const PlanInput& input, const Slots& slots, std::string_view host,
                             int granted, int ranks, bool count_through);

/// For ranks whose cores have names: the positions of as many in a grant of `cores`.
void number_parts(int cores, NodeRanks& placed);

/// Ranks for each of the first `nodes` hosts, one at least: counted out node by node in turn, a full
/// node is passed over. That is srun's way, and keeps the smallest share large enough.
/// Errors: `usage` when they do not fit.
Result<std::vector<int>> distribute_over_parts(const PlanInput& input, int nodes, int ranks);

}  // namespace hpclaunch
