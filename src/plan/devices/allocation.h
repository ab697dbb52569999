#pragma once
// What of a node's devices is this job's. Facts: Slurm gres.html and sbatch(1), output environment variables
// (ids of SLURM_JOB_GPUS and SLURM_STEP_GPUS are the node's, also inside a device control group, where
// CUDA_VISIBLE_DEVICES counts from 0); NVIDIA container toolkit (NVIDIA_VISIBLE_DEVICES).
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/devices/masks.h"
#include "plan/devices/units.h"

namespace hpclaunch {

/// What a driver counts before any mask, and what of that is ours.
struct Allocation {
  std::vector<Pick> counted;             ///< in the driver's order
  std::optional<std::vector<int>> mine;  ///< Device::index, ascending; nullopt: all that is counted
  std::string by;                        ///< the variable that says so; "" for none
  std::string why;                       ///< a clause; "" when nothing is to be said
  std::vector<Diagnostic> reports;

  bool leaves(int device) const;  ///< one that is counted is ours
};

/// Pure.
Allocation find_allocation(const PlanInput& input, const DeviceVendor& vendor);

/// True for a plan of several nodes, of which only this one's grant is known.
bool spans_nodes(const PlanInput& input);

/// Puts the instances of split devices (MIG) in their place; numbers units anew where there are any.
void split_instances(const Topology& node, Units& units);

/// Leaves in `units.list` what was granted, each with the entry of a rank's mask (`name`) that reaches it;
/// `units.shortage` says what has left less than there is.
void apply_allocation(const PlanInput& input, Units& units);

}  // namespace hpclaunch
