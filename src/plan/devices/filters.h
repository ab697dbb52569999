#pragma once
// The value that filters change, one after the other: from all of a node to what a launch may use.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/devices/slots.h"

namespace hpclaunch {

/// How a mask reaches a slot. Tile 1 of card 2 by "${device}.${subdevice}": "2.1".
struct MaskEntries {
  std::string item;    ///< template of one entry
  bool tiles = false;  ///< a slot is a tile

  std::string of(int unit, int place, int part) const;  ///< of a template that check() accepts
  Status check() const;                                 ///< Errors: `invalid`, for an unknown fact
};

/// What a driver counts, and what of it is the job's.
struct Counted {
  std::vector<Slot> slots;  ///< in the driver's order; Slot::unit is its number of the device
  bool anew = false;        ///< these alone, from 0
  bool unplaced = false;    ///< which devices these are is not known
  std::optional<std::vector<int>> mine;  ///< Device::index, ascending; nullopt: all that is counted
  std::string by;                        ///< the variable that says so; "" for none
  std::string why;                       ///< a clause; "" when nothing is to be said
  /// Slurm's list of cards ("SLURM_JOB_GPUS=0,1") that ZE_AFFINITY_MASK was written from; "" for any other mask.
  std::string cards;

  bool leaves(int device) const;  ///< one that is counted is ours
};

/// All of the node: tiles one by one, instances of split devices, whole devices. A split one without instances is
/// counted, but of no use: it has no entry.
Counted count_all(const Topology& node, const DeviceVendor& vendor, const MaskEntries& entries);

/// The driver sees these devices alone, and counts them from 0.
void count_anew(const Topology& node, const std::vector<int>& devices, const MaskEntries& entries,
                Counted& counted);

/// With the driver's numbers of tiles, or of whole devices.
std::vector<Slot> numbered(const Topology& node, const Counted& counted, bool by_tile);

/// grants.cpp: what can be opened here, else what the batch system, else what a container's runtime says.
void apply_grants(const PlanInput& input, const DeviceVendor& vendor, const MaskEntries& entries,
                  Counted& counted, std::vector<Diagnostic>& reports);

}  // namespace hpclaunch
