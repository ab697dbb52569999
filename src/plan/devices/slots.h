#pragma once
// What ranks get of the devices: slots, their order, and which rank gets which.
#include <algorithm>
#include <string>
#include <vector>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/profile.h"

namespace hpclaunch {

/// What one rank gets: a slot, or with --devices-per-rank several that are near one another.
struct SlotGroup {
  std::vector<Slot> slots;  ///< never empty
  CpuSet pus;               ///< near all of them; empty when unknown
  bool lacks_cpus = false;  ///< no usable CPU is where the device is
  bool apart = false;       ///< its devices are on several NUMA nodes

  const Slot& first() const { return slots.front(); }
};

/// Why there are fewer slots than the node has.
struct Shortage {
  int whole = 0;     ///< slots of the node before any mask or grant
  std::string by;    ///< a clause with the numbers; "" where nothing is missing
  std::string fix;   ///< a clause: how to get more of them
  std::string mask;  ///< exported, and selects some of the job's devices; "" without one

  /// What to do for `needed` slots: with fewer, as `fewer` says, or get more where the node has so many.
  std::string fix_for(int needed, const std::string& fewer) const;
};

/// The devices of a node as one launch sees them.
struct Slots {
  std::vector<SlotGroup>
      list;                ///< in the order of the cores they are near to; by number where unknown
  int devices = 0;         ///< whole ones of the job, also where a mask selects some of them
  int total = 0;           ///< slots of the node, also where `list` has groups of them
  int per_rank = 1;        ///< slots in one group
  std::vector<Slot> left;  ///< too few for a group
  bool hidden = false;     ///< --devices-per-rank 0: no rank gets any
  const DeviceVendor* vendor = &device_vendor("");
  std::string mode;           ///< device mode, "" where the profile has none
  bool own_mode = false;      ///< `mode` is ours and not a profile's, which has rules for it
  std::string view;           ///< "own", "all", "launcher"
  std::string mask;           ///< variable that restricts what a process sees
  bool only_by_mask = false;  ///< an entry of the mask is the only way to a slot
  std::vector<Slot> seen;     ///< all of them, in the driver's order
  std::string given;          ///< what says which devices are ours: a variable; "" for none
  Shortage shortage;
  std::vector<Diagnostic> reports = {};  ///< about what is ours
  int ranks_per_slot = 0;                ///< the profile's; 0: not said
  int filled = 0;                        ///< ranks that were typed for each slot; 0: not typed
  bool compact = false;                  ///< fewer ranks than slots take the first ones
  std::vector<Setting> choices;          ///< "device-mode", "gpu-view"
  std::vector<Slots> others = {};        ///< on hosts with PlanInput::grants 1, 2, ...

  /// Those of hosts with this grant.
  const Slots& of(int grant) const {
    return grant == 0 ? *this : others[static_cast<std::size_t>(grant - 1)];
  }

  /// "a node has 4 devices", or why it has fewer.
  std::string available() const;
  int count() const { return static_cast<int>(list.size()); }
  int used_by(int ranks) const;  ///< groups that so many ranks of a node get
  bool instances() const;        ///< some slot is an instance of a split device
  int seen_by_agent() const;     ///< devices, as a process counts them that gets all slots
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

/// The node of hosts with this grant; as it is where none is by name.
PlanInput with_grant(PlanInput input, int grant);

/// Errors: `usage` for a mode or view that there is not; `invalid` for a mask's entry with an unknown fact.
Result<Slots> find_slots(const PlanInput& input);

struct MaskEntries;

/// filters.cpp: the node's slots and what grants and masks leave of them, one in each group; with `devices`, `seen`,
/// `given`, `shortage`, reports and the choice "granted-devices".
void filter_slots(const PlanInput& input, const MaskEntries& entries, Slots& slots);

/// taken.cpp: leaves those that no other launch uses. Errors: `usage` where none is left.
Status leave_taken(const PlanInput& input, Slots& slots);

/// True for a plan of several nodes, of which only this one's grant is known.
bool spans_nodes(const PlanInput& input);

/// Puts `per_rank` slots (2 or more) together that are near one another: near the same cores first,
/// then on one package, then any. Errors: `usage` when there are not so many, with what has left so few.
Status group_slots(const Topology& node, int per_rank, Slots& slots);

/// They are near one another, or one.
SlotGroup group_of(const Topology& node, const std::vector<Slot>& slots);

/// Every slot of the node by itself: those of each group, then what is left.
std::vector<Slot> single_slots(const Slots& slots);

/// Lanes between two groups; parts of one device are nearer than any link.
int lanes_between(const Topology& node, const std::vector<Slot>& a, const std::vector<Slot>& b);

/// The group of each rank (position in `list`; -1 when there are none) in block order.
std::vector<int> assign_slots(const Slots& slots, int ranks);

/// The same for ranks that are bound already: each gets slots near its cores. Falls back to block order
/// where cores or slots are near to nothing in particular.
std::vector<int> assign_slots_near(const Slots& slots, const std::vector<RankPlan>& ranks);

}  // namespace hpclaunch
