#pragma once
// What each process sees of the devices, and what LOCAL_RANK means then. docs/reference/plan.md, "Devices".
#include "hpclaunch/make_plan.h"
#include "plan/devices/slots.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

/// Decides the view once the number of ranks is known, and says why.
void decide_view(const PlanInput& input, int ranks_per_node, Slots& slots);

/// Where the driver keeps an order of its own, and device i would not be local rank i's, has each rank see its
/// own unless --gpu-view was typed, and returns true. `classes` have slots.
bool follow_driver_order(const PlanInput& input, const std::vector<NodeClass>& classes,
                         Slots& slots);

/// Adds the mask, removes what would restrict a second time, and adds LOCAL_RANK. `placed` has slots.
void add_visibility(const PlanInput& input, const Slots& slots, const Placement& placed,
                    std::vector<Diagnostic>& reports, EnvSettings& settings);

/// True for a node on which CUDA by itself counts in another order than that of PCI addresses.
bool differing_models(const Topology& node);

}  // namespace hpclaunch
