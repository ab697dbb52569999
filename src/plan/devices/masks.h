#pragma once
// How each driver reads its mask. Sources: CUDA programming guide (CUDA_VISIBLE_DEVICES) and PyTorch's
// torch/cuda/__init__.py (_parse_visible_devices, _transform_uuid_to_ordinals), which device_count()
// goes by and whose tests were made to match driver 525 (pytorch/pytorch#92315); NVIDIA MIG user guide
// (device names, enumeration), ROCR-Runtime amd_filter_device.cpp, ROCm clr rocdevice.cpp,
// Level Zero specification and compute-runtime execution_environment.cpp (parseAffinityMask).
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/make_plan.h"

namespace hpclaunch {

/// A device, or a part of one, as a process can be given it.
struct Pick {
  int device = -1;   ///< Device::index; -1: unknown
  int part = -1;     ///< position in Device::instances, or tile; -1: the whole device
  int number = -1;   ///< in the driver's count of devices before this mask
  std::string name;  ///< what the first mask holds to reach it
  friend bool operator==(const Pick&, const Pick&) = default;
};

/// What is left of a list, and where the driver stopped reading it.
struct Picked {
  std::vector<Pick> picks;
  std::string stopped;   ///< the entry that is no visible device; "" when all were read, or at -1
  std::string repeated;  ///< the entry whose repetition makes CUDA see no device
};

/// What a driver leaves of `from`, in the list's order (docs/reference/plan.md, "Granted devices"). Numbers are
/// Pick::number; names may be in any case. One that cannot be judged, because names of devices are not known, is kept
/// without a device. In CUDA's list a repetition counts even behind the end, and blanks are part of a name.
Picked read_mask(const Topology& node, const std::vector<Pick>& from, std::string_view list,
                 MaskSyntax syntax);

/// The number at the front of an entry. CUDA reads it as strtoul does: "1gpu2" is 1, "+3" 3, "-0" 0. nullopt for a
/// negative number and where there is none.
std::optional<long> mask_number(std::string_view entry, MaskSyntax syntax);

/// True when ZE_FLAT_DEVICE_HIERARCHY has masks count whole devices. Unset, and for any other text, a driver
/// of devices with tiles counts tiles.
bool counts_whole(const EnvSnapshot& env);

/// Tiles of `counted` devices in the driver's order; Pick::number is the device's place there. A device without tiles
/// has tile 0.
std::vector<Pick> tiles_in(const Topology& node, const std::vector<Pick>& counted);

/// What Level Zero leaves of `tiles`, in their order. `ignored`: the entries that are no device, and X.Y where tiles
/// are counted; the others apply.
std::vector<Pick> read_tile_mask(const std::vector<Pick>& tiles, std::string_view list, bool whole,
                                 std::vector<std::string>& ignored);

/// True for a device that processes use by instance (MIG), also while it has none.
bool is_split(const Device& device);
bool has_split(const Topology& node);

// ---- allocation.cpp: what of a node's devices is this job's. Facts: Slurm gres.html and sbatch(1), output environment
// variables (ids of SLURM_JOB_GPUS and SLURM_STEP_GPUS are the node's, also inside a device control group, where
// CUDA_VISIBLE_DEVICES counts from 0); NVIDIA container toolkit (NVIDIA_VISIBLE_DEVICES).

/// What a driver counts before any mask, and what of that is ours.
struct Allocation {
  std::vector<Pick> counted;             ///< in the driver's order
  std::optional<std::vector<int>> mine;  ///< Device::index, ascending; nullopt: all that is counted
  std::string by;                        ///< the variable that says so; "" for none
  std::string why;                       ///< a clause; "" when nothing is to be said
  /// Slurm's list of cards ("SLURM_JOB_GPUS=0,1") that ZE_AFFINITY_MASK was written from; "" for any other mask. Slurm
  /// knows no tiles, whatever the driver counts: it writes the numbers of its list, ascending, or 0 to k-1 where a
  /// device control group has the driver count these k alone (gres_common.c, use_local_dev_index; "intel_gpu_env" of
  /// gres.conf(5)).
  std::string cards;
  std::vector<Diagnostic> reports;

  bool leaves(int device) const;  ///< one that is counted is ours
  bool unplaced() const;          ///< some are counted, and which they are is not known
};

/// Pure.
Allocation find_allocation(const PlanInput& input, const DeviceVendor& vendor);

/// True for a plan of several nodes, of which only this one's grant is known.
bool spans_nodes(const PlanInput& input);

}  // namespace hpclaunch
