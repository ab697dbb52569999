#pragma once
// Ranks on nodes: classes of nodes, and who binds the ranks there.
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/devices/node_ranks.h"
#include "plan/devices/units.h"

namespace hpclaunch {

struct LaidOut {
  std::vector<const Binding*> rules;  ///< one per class; nullptr where none was used
  std::string condition;              ///< of the first class
  std::vector<OverriddenBinding> overridden;
  std::vector<std::string> remarks;
  std::vector<Diagnostic> reports;
  int far = 0;  ///< most ranks of a node that are not near their device
  int far_of = 0;
};

/// Sets Plan::classes and Plan::layout, one class per number of ranks on a node and size of its granted part;
/// neighbouring nodes of one class form a run. Where the driver's order of devices asks for another view,
/// sets it in `units` and `facts`, and lays out again. Errors: as place().
Result<LaidOut> lay_out(const PlanInput& input, const std::vector<int>& ranks_on, Units& units,
                        Facts& facts, Plan& plan);

/// Sets Plan::bind_via, and adds the choices "cpu-bind" and "bind-via".
/// Errors: `unsupported` for what was typed and is not possible.
Status decide_binding(const PlanInput& input, const Units& units, const LaidOut& laid, Plan& plan);

}  // namespace hpclaunch
