#pragma once
// The steps of make_plan.cpp that are not about devices, cores or environment: one source file each.
#include <optional>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/devices/node_ranks.h"
#include "plan/devices/slots.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

// ---- devices/vendors.cpp: a node with devices of several vendors; a process uses one's, and masks count those alone

/// What is planned for in place of such a node.
struct OneVendor {
  PlanInput input;         ///< with one vendor's devices only, numbered as their driver counts them
  std::vector<int> index;  ///< by that number: Device::index on the node as it was given
  Diagnostic report;       ///< who gets nothing
};

/// The vendor whose mask the device mode sets (Level Zero's for a mode of tiles), else that of all of the
/// profile's kinds of nodes, where the node has it; else the one that the node lists first. nullopt where there
/// is nothing to choose: one vendor, or --devices-per-rank 0. Of the live node only that vendor's are kept, too.
std::optional<OneVendor> keep_one_vendor(const PlanInput& input);

/// Gives the devices of a plan for `kept` back the numbers that they have on the node as it was given.
void restore_indices(const OneVendor& kept, Placement& placement);

// ---- counts.cpp: how many ranks on how many nodes --------------------------------------------------

/// A number, and who decided it.
struct Count {
  int value = 0;
  Layer layer = Layer::builtin;
  std::string why;
};

struct Counts {
  std::vector<int> ranks_on;  ///< one entry per node used, in host order; each >= 1
  Count nodes, per_node, ranks;

  int most() const;  ///< ranks on the fullest node
  bool even() const;
  std::vector<Setting> choices() const;  ///< "nodes", "ranks-per-node", "ranks"
};

/// What was typed, what the allocation says, what the node suggests.
/// Errors: `usage` when the counts contradict each other, or exceed the nodes or their devices; `unsupported`
/// for several nodes under a launcher of one machine.
Result<Counts> decide_counts(const PlanInput& input, const Slots& slots);

// ---- devices/node_ranks.cpp, bind_via.cpp: ranks on nodes, and who binds them ----------------------------------

struct LaidOut {
  Placement placement;           ///< without BindVia
  std::vector<NodeRanks> nodes;  ///< one per class
  std::vector<Diagnostic> reports;
};

/// One class per number of ranks on a node and size of its granted part; neighbouring nodes of one class form a run.
/// Where the driver's order of devices asks for another view, sets it in `slots` and `facts`, and lays out again.
/// Errors: as match_slots().
Result<LaidOut> lay_out(const PlanInput& input, const Counts& counts, Slots& slots, Facts& facts);

/// With the choices "cpu-bind" and "bind-via". Errors: `unsupported` for what was typed and is not possible.
Result<Made<BindVia>> decide_binding(const PlanInput& input, const Slots& slots, int nodes,
                                     const LaidOut& laid);

/// PlanInput::cpu_quota where it is less than what the node allows; else 0.
int limiting_quota(const PlanInput& input);

/// Divides a limiting quota by the ranks of each node, at least one thread each. nullopt: there is none.
std::optional<Diagnostic> keep_to_quota(const PlanInput& input, Placement& placement);

// ---- words.cpp: what each rank of a node gets, in words --------------------------------------------

/// The choices "devices" and "nics", where there are any, and "placement": for each local rank "GPU 2 on NUMA node 1,
/// NIC cxi1, CPUs 17-23 (7 cores); CPU 16 is reserved for the system". Neighbouring ranks that differ in nothing but
/// their cores have one text.
std::vector<Setting> describe(const PlanInput& input, const Slots& slots, const LaidOut& laid);

// ---- reports.cpp ---------------------------------------------------------------------------------------

/// On some node two ranks have the same device, or what `number` says of them; -1 is none.
bool two_have_the_same(const Placement& placement, int (RankPlan::*number)() const);

/// Cores of services that ranks are bound to, a launcher's view without flags, more nodes than the site has. `plan` is
/// complete but for its wire.
std::vector<Diagnostic> report_placement(const PlanInput& input, const Facts& facts,
                                         const Slots& slots, const Plan& plan);

}  // namespace hpclaunch
