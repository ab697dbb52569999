#pragma once
// The ranks of one node: cores, devices, and who said so.
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/devices/units.h"

namespace hpclaunch {

/// A binding that held and fitted, and was overruled by a later one.
struct OverruledBinding {
  const Binding* rule = nullptr;
  std::string condition;
  std::vector<RankPlan> ranks;
};

struct NodeRanks {
  std::vector<RankPlan> ranks;
  const Binding* rule = nullptr;            ///< the site's binding in use; nullptr for none
  std::string condition;                    ///< what made it hold
  std::vector<OverruledBinding> overruled;  ///< strongest first
  std::vector<std::string> remarks;
  std::vector<Diagnostic> reports;
  int far = 0;  ///< ranks whose cores are not near their device
};

/// Writes down what each rank gets; `assigned`: positions in `units.list`, -1 for nothing.
void give_units(const Units& units, const std::vector<int>& assigned, std::vector<RankPlan>& ranks);

/// Errors: as place().
Result<NodeRanks> place_ranks(const PlanInput& input, const Facts& facts, const Units& units,
                              int ranks);

}  // namespace hpclaunch
