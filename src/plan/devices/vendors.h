#pragma once
// A node with devices of several vendors: a process uses one vendor's, and masks count those alone.
#include <optional>
#include <vector>

#include "hpclaunch/make_plan.h"

namespace hpclaunch {

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
void restore_indices(const OneVendor& kept, Plan& plan);

}  // namespace hpclaunch
