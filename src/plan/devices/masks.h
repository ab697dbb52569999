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
#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

/// What is left of a list, and where the driver stopped reading it.
struct Left {
  std::vector<Slot> slots;
  std::string stopped;   ///< the entry that is no visible device; "" when all were read, or at -1
  std::string repeated;  ///< the entry whose repetition makes CUDA see no device
};

/// What a driver leaves of `from`, in the list's order (docs/reference/plan.md, "Granted devices"). Numbers are
/// Slot::unit, or with `anew` the places of the devices in `from`; names may be in any case. One that cannot be judged,
/// because names of devices are not known, is kept without a device. In CUDA's list a repetition counts even behind the
/// end, and blanks are part of a name.
Left read_mask(const Topology& node, const std::vector<Slot>& from, std::string_view list,
               MaskSyntax syntax, bool anew = false);

/// The number at the front of an entry. CUDA reads it as strtoul does: "1gpu2" is 1, "+3" 3, "-0" 0. nullopt for a
/// negative number and where there is none.
std::optional<long> mask_number(std::string_view entry, MaskSyntax syntax);

/// True when ZE_FLAT_DEVICE_HIERARCHY has masks count whole devices. Unset, and for any other text, a driver
/// of devices with tiles counts tiles.
bool counts_whole(const EnvSnapshot& env);

/// Which of `tiles` Level Zero leaves; Slot::unit is the number in a mask, of the tile, or of the card with `whole`.
/// `ignored`: the entries that are no device, and X.Y where tiles are counted; the others apply.
std::vector<bool> read_tile_mask(const std::vector<Slot>& tiles, std::string_view list, bool whole,
                                 std::vector<std::string>& ignored);

/// True for a device that processes use by instance (MIG), also while it has none.
bool is_split(const Device& device);
bool has_split(const Topology& node);

/// The slot is an instance: a process can use no second one.
bool is_instance(const Slot& slot);

/// Some term of SYCL's filter, or all together, may take devices from what the mask leaves. Source: the DPC++ compiler's
/// EnvironmentVariables.md, ONEAPI_DEVICE_SELECTOR ("!" excludes; the others select, all where there is none).
bool selects_some(std::string_view selector);

}  // namespace hpclaunch
