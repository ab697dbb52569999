#pragma once
// What ranks get of the devices: units, their order, and which rank gets which.
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"

namespace hpclaunch {

/// What one rank gets: a device, or a part of one.
struct Unit {
  int unit = 0;        ///< the driver's count in this mode: what a mask holds
  int device = 0;      ///< Device::index
  int subdevice = -1;  ///< -1: the whole device
  CpuSet pus;          ///< nearest hardware threads; empty when unknown
  std::string name;    ///< entry that the batch system's mask has for it; "" without one
};

/// The devices of a node as one launch sees them.
struct Units {
  std::vector<Unit> list;  ///< in the order of the cores they are near to; by number where unknown
  int devices = 0;         ///< whole devices among them
  std::string vendor;
  std::string mode;        ///< device mode, "" where the profile has none
  std::string view;        ///< "own", "all", "launcher"
  std::string mask;        ///< variable that restricts what a process sees
  std::string mask_item;   ///< template of one entry
  std::string given;       ///< variable of the batch system's mask that holds already; "" for none
  int ranks_per_unit = 0;  ///< typed or the profile's; 0: not said
  bool compact = false;    ///< fewer ranks than units take the first ones
  std::vector<Setting> choices;  ///< "device-mode", "gpu-view"

  int count() const { return static_cast<int>(list.size()); }
};

/// Variables that restrict devices, by vendor: the one we own first, then those that would restrict a
/// second time. Sources: CUDA programming guide (environment variables), ROCm docs (GPU isolation),
/// Level Zero specification (environment variables).
const std::vector<std::string>& mask_variables(const std::string& vendor);

/// Errors: `usage` for a mode or view that there is not.
Result<Units> find_units(const PlanInput& input);

/// Decides the view once the number of ranks is known, and says why.
void decide_view(const PlanInput& input, int ranks_per_node, Units& units);

/// The unit of each rank (position in `list`; -1 when there are none) in block order.
std::vector<int> deal_units(const Units& units, int ranks);

/// The same for ranks that are bound already: each gets a unit near its cores. Falls back to block order
/// where cores or units are near to nothing in particular.
std::vector<int> deal_units_near(const Units& units, const std::vector<RankPlan>& ranks);

}  // namespace hpclaunch
