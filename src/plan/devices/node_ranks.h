#pragma once
// The ranks of one node: cores, devices, and the rule that decided.
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/devices/units.h"

namespace hpclaunch {

/// A binding whose condition held and that fitted, overridden by a later one.
struct OverriddenBinding {
  const Binding* rule = nullptr;
  std::string condition;
  std::vector<RankPlan> ranks;
};

struct NodeRanks {
  std::vector<RankPlan> ranks;
  const Binding* rule = nullptr;              ///< the site's binding in use; nullptr for none
  std::string condition;                      ///< what made it hold
  std::vector<OverriddenBinding> overridden;  ///< strongest first
  std::vector<std::string> remarks;
  std::vector<Diagnostic> reports;
  int far = 0;  ///< ranks whose cores are not near their device
};

/// Writes down what each rank gets; `assigned`: positions in `units.list`, -1 for nothing.
void give_units(const Units& units, const std::vector<int>& assigned, std::vector<RankPlan>& ranks);

/// Errors: as match_units().
Result<NodeRanks> place_ranks(const PlanInput& input, const Facts& facts, const Units& units,
                              int ranks);

// ---- parts of nodes, of which only the number of granted hardware threads is known -----------------

/// The job has parts of shared nodes, and which cores those are is not known for every node.
bool nameless_cores(const PlanInput& input, int nodes);

/// nameless_cores, and how much of each node the job has is known: `granted` counts.
bool knows_amounts(const PlanInput& input, int nodes);

/// The rank can find its own share by counting through what it finds granted: each core has one
/// hardware thread, so that neighbours in the numbering are neighbours in nothing else, and ranks are
/// started by the batch system's means, not inside this process's CPUs.
bool can_count_through(const PlanInput& input, int nodes);

/// Why can_count_through is false; a clause.
std::string why_not_counted(const PlanInput& input);

/// Cores in `granted` hardware threads of such a node; 1 at least.
int granted_cores(const Topology& node, int granted);

/// `ranks` ranks in a grant: even neighbouring shares of its positions, one core longer in front,
/// --cpus-per-rank cores where that was typed. Units are assigned in blocks.
/// Errors: `usage` with the host where ranks do not fit.
Result<NodeRanks> share_part(const PlanInput& input, const Units& units, std::string_view host,
                             int granted, int ranks, bool count_through);

/// Ranks for each of the first `nodes` hosts, one at least: counted out node by node in turn, a full
/// node is passed over. That is srun's way, and keeps the smallest share large enough.
/// Errors: `usage` when they do not fit.
Result<std::vector<int>> distribute_over_parts(const PlanInput& input, int nodes, int ranks);

}  // namespace hpclaunch
