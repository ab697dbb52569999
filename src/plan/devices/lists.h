#pragma once
// Lists of devices as batch systems, containers and users write them, before anybody says what they count.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/make_plan.h"

namespace hpclaunch {

using Indices = std::vector<int>;

/// A list of the node's own numbers of devices.
struct Listed {
  std::string name;  ///< the variable
  std::string text;
  Indices devices;  ///< ascending, one at least
};

/// nullopt where the variable is not set, or has anything but numbers and ranges of them.
std::optional<Listed> parse_list(const EnvSnapshot& env, const char* name);

/// Numbers of the first mask of the vendor that is set, in its order, as its driver reads them; nullopt where it has
/// anything else, or none is set. `name` is the mask's, or as it was.
std::optional<Indices> mask_numbers(const PlanInput& input, const DeviceVendor& vendor,
                                    std::string& name);

/// The list of cards that ZE_AFFINITY_MASK was written from, where Slurm wrote it. Slurm knows no tiles,
/// whatever the driver counts: it writes the numbers of its list, ascending, or 0 to k-1 where a device
/// control group has the driver count these k alone (gres_common.c, use_local_dev_index; "intel_gpu_env"
/// of gres.conf(5)). Any other mask is somebody else's, and nullopt.
std::optional<Listed> cards_of_mask(const PlanInput& input);

/// What the first mask would hold for all of `list` where the driver counts the whole node: the devices'
/// numbers, or those of their tiles where ZE_AFFINITY_MASK counts tiles and says no X.Y. Ascending.
Indices entries_of(const PlanInput& input, const DeviceVendor& vendor, const Listed& list);

}  // namespace hpclaunch
