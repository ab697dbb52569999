#pragma once
// What ranks get of the devices: units, their order, and which rank gets which.
#include <algorithm>
#include <string>
#include <vector>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"

namespace hpclaunch {

/// What one rank gets: a device, or a part of one.
struct Unit {
  int unit = 0;                 ///< the driver's count in this mode: what a mask holds
  int device = 0;               ///< Device::index
  int subdevice = -1;           ///< -1: the whole device
  CpuSet pus;                   ///< nearest hardware threads; empty when unknown
  std::string name;             ///< entry that the batch system's mask has for it; "" without one
  std::vector<Unit> more = {};  ///< --devices-per-rank: the others of this group; `pus` is near all
  int place = -1;               ///< the device in the driver's count, where that is not `device`
  bool instance = false;        ///< of a split device (MIG): a process can have no second one
  bool lacks_cpus = false;      ///< no usable CPU is where the device is
  bool apart = false;           ///< a group whose devices are on several NUMA nodes
};

/// Why there are fewer units than the node has.
struct Shortage {
  int whole = 0;     ///< units of the node before any mask or grant
  std::string by;    ///< a clause with the numbers; "" where nothing is missing
  std::string fix;   ///< a clause: how to get more of them
  std::string mask;  ///< exported, and selects some of the job's devices; "" without one

  /// What to do for `needed` units: with fewer, as `fewer` says, or get more where the node has so many.
  std::string fix_for(int needed, const std::string& fewer) const;
};

/// The devices of a node as one launch sees them.
struct Units {
  std::vector<Unit> list;  ///< in the order of the cores they are near to; by number where unknown
  int devices = 0;         ///< whole ones of the job, also where a mask selects some of them
  int total = 0;           ///< units of the node, also where `list` has groups of them
  int per_rank = 1;        ///< units in one group
  std::vector<Unit> left;  ///< too few for a group
  bool hidden = false;     ///< --devices-per-rank 0: no rank gets any
  const DeviceVendor* vendor = &device_vendor("");
  std::string mode;       ///< device mode, "" where the profile has none
  bool own_mode = false;  ///< `mode` is ours and not a profile's, which has rules for it
  std::string view;       ///< "own", "all", "launcher"
  std::string mask;       ///< variable that restricts what a process sees
  std::string mask_item;  ///< template of one entry
  std::string given;      ///< what says which devices are ours: a variable; "" for none
  Shortage shortage;
  std::vector<Diagnostic> reports = {};  ///< about what is ours
  int ranks_per_unit = 0;                ///< the profile's; 0: not said
  int filled = 0;                        ///< ranks that were typed for each unit; 0: not typed
  bool compact = false;                  ///< fewer ranks than units take the first ones
  std::vector<Setting> choices;          ///< "device-mode", "gpu-view"

  /// "a node has 4 devices", or why it has fewer.
  std::string available() const;
  int count() const { return static_cast<int>(list.size()); }
  int used_by(int ranks) const;  ///< units that so many ranks of a node get
  bool instances() const;        ///< some unit is an instance of a split device
};

/// Those for which `same` holds together, in the order of their first.
template <class Item, class Same>
std::vector<std::vector<Item>> clustered(const std::vector<Item>& items, Same same) {
  std::vector<std::vector<Item>> clusters;
  for (const Item& item : items) {
    const auto found = std::ranges::find_if(
        clusters, [&](const auto& cluster) { return same(cluster.front(), item); });
    (found == clusters.end() ? clusters.emplace_back() : *found).push_back(item);
  }
  return clusters;
}

/// Errors: `usage` for a mode or view that there is not.
Result<Units> find_units(const PlanInput& input);

/// Leaves in `units.list` what was granted, instances of split devices (MIG) in their place, each with the entry of a rank's mask (`name`) that reaches it;
/// `units.shortage` says what has left less than there is.
void apply_allocation(const PlanInput& input, Units& units);

/// taken.cpp: leaves those that no other launch uses. Errors: `usage` where none is left.
Status leave_taken(const PlanInput& input, Units& units);

/// Puts `per_rank` units (2 or more) together that are near one another: near the same cores first,
/// then on one package, then any. Errors: `usage` when there are not so many, with what has left so few.
Status group_units(const Topology& node, int per_rank, Units& units);

/// Every unit of the node by itself: the groups' members one after the other, then what is left.
std::vector<const Unit*> single_units(const Units& units);

/// Lanes between two units, all members of groups counted; parts of one device are nearer than any link.
int lanes_between(const Topology& node, const Unit& a, const Unit& b);

/// The unit of each rank (position in `list`; -1 when there are none) in block order.
std::vector<int> assign_units(const Units& units, int ranks);

/// The same for ranks that are bound already: each gets a unit near its cores. Falls back to block order
/// where cores or units are near to nothing in particular.
std::vector<int> assign_units_near(const Units& units, const std::vector<RankPlan>& ranks);

}  // namespace hpclaunch
