#pragma once
// How each driver reads its mask. Sources: CUDA programming guide (CUDA_VISIBLE_DEVICES) and PyTorch's
// torch/cuda/__init__.py (_parse_visible_devices, _transform_uuid_to_ordinals), which device_count()
// goes by and whose tests were made to match driver 525 (pytorch/pytorch#92315); NVIDIA MIG user guide
// (device names, enumeration), ROCR-Runtime amd_filter_device.cpp, ROCm clr rocdevice.cpp,
// Level Zero specification and compute-runtime execution_environment.cpp (parseAffinityMask).
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/make_plan.h"

namespace hpclaunch {

/// A device, or an instance of one, as a process can be given it.
struct Pick {
  int device = -1;    ///< Device::index; -1: unknown
  int instance = -1;  ///< position in Device::instances; -1: the whole device
  int number = -1;    ///< in the driver's count before this mask
  std::string name;   ///< what the first mask holds to reach it
  friend bool operator==(const Pick&, const Pick&) = default;
};

/// What is left of a list, and where the driver stopped reading it.
struct Picked {
  std::vector<Pick> picks;
  std::string stopped;   ///< the entry that is nothing here; "" when all were read, or at -1
  std::string repeated;  ///< the entry that has made CUDA's list none by coming a second time
};

/// What ROCr and HIP leave of `from`, in the list's order. Numbers are Pick::number, names (GPU-, MIG-, unique
/// beginnings of them, any case) lead to the device or instance that has them. The first entry that is
/// nothing, or that comes again, ends the list. A name that cannot be judged, because names of devices
/// are not known, is kept without a device.
Picked read_mask(const Topology& node, const std::vector<Pick>& from, std::string_view list);

/// The number that CUDA reads at the front of an entry, as strtoul does: "1gpu2" is 1, "+3" 3, "-0" 0. nullopt
/// for a negative number and where there is none.
std::optional<long> cuda_number(std::string_view entry);

/// What CUDA and PyTorch leave of `from`, in the list's order. All entries have the form of the first: names that
/// begin with "GPU-", names that begin with "MIG-", or numbers; one of another form ends the list, and so does
/// one that is nothing. One that comes a second time, be it after one that is nothing here, leaves none.
/// Blanks are part of a name. A name that cannot be judged is kept without a device.
Picked read_cuda_mask(const Topology& node, const std::vector<Pick>& from, std::string_view list);

/// Tiles by Device::index; a device without tiles has tile 0.
using Tiles = std::map<int, std::set<int>>;

/// True when ZE_FLAT_DEVICE_HIERARCHY has masks count whole devices. Unset, and for any other text, a driver
/// of devices with tiles counts tiles.
bool counts_whole(const EnvSnapshot& env);

/// What Level Zero leaves of `counted` devices (Device::index in the driver's order). An entry that is nothing
/// does not count, the others do; so do X.Y where tiles are counted. `ignored`: these entries.
Tiles read_tile_mask(const Topology& node, const std::vector<int>& counted, std::string_view list,
                     bool whole, std::vector<std::string>& ignored);

/// nullptr for a device that is not there.
const Device* find_device(const Topology& node, int index);

/// Tiles of a device; 1 where it has none, or is not there.
int tiles_of(const Topology& node, int index);

/// True for a device that processes can have in instances only (MIG), also while it has none.
bool is_split(const Device& device);
bool has_split(const Topology& node);

// ---- lists of devices as batch systems, containers and users write them --------------------------

using Indices = std::vector<int>;

/// A list of the node's own numbers of devices.
struct DeviceList {
  std::string name;  ///< the variable
  std::string text;
  Indices devices;  ///< ascending, one at least

  std::string shown() const { return name + "=" + text; }
};

/// nullopt where the variable is not set, or has anything but numbers and ranges of them.
std::optional<DeviceList> parse_list(const EnvSnapshot& env, const char* name);

/// Numbers of the first mask of the vendor that is set, in its order, as its driver reads them; nullopt where it has
/// anything else, or none is set. `name` is the mask's, or as it was.
std::optional<Indices> mask_numbers(const PlanInput& input, const DeviceVendor& vendor,
                                    std::string& name);

/// The list of cards that ZE_AFFINITY_MASK was written from, where Slurm wrote it. Slurm knows no tiles,
/// whatever the driver counts: it writes the numbers of its list, ascending, or 0 to k-1 where a device
/// control group has the driver count these k alone (gres_common.c, use_local_dev_index; "intel_gpu_env"
/// of gres.conf(5)). nullopt for any other mask.
std::optional<DeviceList> cards_of_mask(const PlanInput& input);

/// What the first mask would hold for all of `list` where the driver counts the whole node: the devices'
/// numbers, or those of their tiles where ZE_AFFINITY_MASK counts tiles and says no X.Y. Ascending.
Indices entries_of(const PlanInput& input, const DeviceVendor& vendor, const DeviceList& list);

}  // namespace hpclaunch
