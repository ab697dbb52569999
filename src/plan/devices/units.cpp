#include "plan/devices/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/masks.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

std::vector<Unit> all_units(const Topology& node, bool subdevices) {
  std::vector<Unit> units;
  int next = 0;  // the driver counts parts through
  int index = 0;
  for (const Device& device : node.devices) {
    const int parts = subdevices ? std::max(1, device.subdevices) : 1;
    next += (device.index - index) * parts;  // devices that the description leaves out
    for (int part = 0; part < parts; ++part) {
      Unit unit;
      unit.unit = next++;
      unit.device = device.index;
      unit.subdevice = parts > 1 ? part : -1;
      unit.pus = node.near(device);
      unit.lacks_cpus = lacks_cpus(node, device);
      units.push_back(std::move(unit));
    }
    index = device.index + 1;
  }
  std::ranges::stable_sort(units, {}, [&](const Unit& unit) {
    return std::ranges::find_if(node.cores,
                                [&](const Core& core) { return core.pus.intersects(unit.pus); }) -
           node.cores.begin();
  });
  return units;
}

// Without a profile's modes: where Level Zero finds tiles, it counts these or whole devices (its specification,
// ZE_FLAT_DEVICE_HIERARCHY; FLAT is its default).
const std::vector<DeviceMode>& modes_of_tiles() {
  static const std::vector<DeviceMode> kModes = {
      {"tile", "one tile per rank, Level Zero's default (FLAT)", true, "", "", {}},
      {"gpu", "one device with all its tiles per rank (COMPOSITE)", false, "", "", {}}};
  return kModes;
}

bool profile_has_modes(const PlanInput& input) {
  return input.profile != nullptr && !input.profile->device_modes.empty();
}

Result<const DeviceMode*> find_mode(const PlanInput& input) {
  const bool by_profile = profile_has_modes(input);
  const bool tiles = std::ranges::any_of(input.node.devices, [](const Device& device) {
    return device_vendor(device.vendor).keeps_order() && device.subdevices > 1;
  });
  std::string wanted = input.request->device_mode;
  if (!by_profile && !tiles) {
    if (wanted.empty()) return nullptr;
    return request_error(fmt::format("--device-mode {}: the profile has no device modes", wanted),
                         "omit it, or choose a profile with --profile");
  }
  const auto& modes = by_profile ? input.profile->device_modes : modes_of_tiles();
  if (wanted.empty())
    wanted = by_profile ? input.profile->device_mode : counts_whole(input.env) ? "gpu" : "tile";
  if (wanted.empty()) return &modes.front();
  if (const DeviceMode* mode = find_named(modes, wanted)) return mode;
  return request_error(fmt::format("{} has no device mode \"{}\"",
                                   by_profile ? input.profile->name : "this node", wanted),
                       suggest("--device-mode", wanted, names_of(modes)));
}

// Options about devices that contradict one another, or the node.
Status check_typed(const PlanInput& input) {
  const Request& typed = *input.request;
  const int each = typed.devices_per_rank.value_or(0);
  if (input.node.devices.empty() &&
      (typed.ranks_per_device || (!typed.gpu_view.empty() && !typed.view_is_implied) || each > 0))
    return request_error(fmt::format("{}: the node has no known devices",
                                     typed.ranks_per_device ? "--ranks-per-device"
                                     : each > 0             ? "--devices-per-rank"
                                                            : "--gpu-view"),
                         "omit it, or plan for a node with devices (--profile, --topology)");
  if (typed.devices_per_rank && typed.ranks_per_device)
    return request_error("--devices-per-rank and --ranks-per-device exclude each other",
                         "omit one of them");
  if (typed.devices_per_rank == 0 && !typed.gpu_view.empty())
    return request_error(
        fmt::format("--devices-per-rank 0 and --gpu-view {} exclude each other", typed.gpu_view),
        "omit one of them");
  if (each > 1 && !typed.gpu_view.empty() && typed.gpu_view != "own")
    return request_error(fmt::format("--gpu-view {} does not work with several devices per rank: "
                                     "device LOCAL_RANK would be another rank's",
                                     typed.gpu_view),
                         "omit it: each rank sees its own devices, as 0 to N-1");
  return Done{};
}

// A device mode's name, mask and choice.
void choose_mode(const PlanInput& input, const DeviceMode& mode, Units& units) {
  units.mode = mode.name;
  if (!mode.mask.empty()) units.mask = mode.mask;
  if (!mode.mask_item.empty()) units.mask_item = mode.mask_item;
  units.own_mode = !profile_has_modes(input);
  const Layer layer = !input.request->device_mode.empty() ? Layer::command_line
                      : units.own_mode                    ? Layer::builtin
                                                          : Layer::profile_default;
  units.choices.push_back(choice("device-mode", layer, units.mode, mode.doc));
  if (layer == Layer::profile_default)
    units.choices.back().history.back().where = mode.origin.where;
}

}  // namespace

Result<Units> find_units(const PlanInput& input) {
  Result<const DeviceMode*> mode = find_mode(input);
  if (!mode) return mode.error();
  Units units;
  if (const Status typed = check_typed(input); !typed) return typed.error();
  if (input.node.devices.empty()) return units;
  units.vendor = &device_vendor(input.node.devices.front().vendor);
  units.list = all_units(input.node, *mode != nullptr && (*mode)->subdevices);
  units.mask = units.vendor->masks.front();
  units.mask_item = "${unit}";
  if (*mode != nullptr) choose_mode(input, **mode, units);
  if (input.request->devices_per_rank == 0) {
    units.list.clear();
    units.hidden = true;
    return units;
  }
  apply_allocation(input, units);
  if (const Status free = leave_taken(input, units); !free) return free.error();
  const int per_rank = input.request->devices_per_rank.value_or(1);
  if (units.instances() && per_rank > 1)
    return request_error(
        fmt::format("--devices-per-rank {}: the node's devices are in MIG mode, and a process can "
                    "use one instance only",
                    per_rank),
        "omit it: each rank gets one instance");
  units.total = units.count();
  units.ranks_per_unit = input.profile != nullptr ? input.profile->ranks_per_device : 0;
  if (!units.list.empty()) units.filled = input.request->ranks_per_device.value_or(0);
  units.compact = input.profile != nullptr && input.profile->fill == "compact";
  if (per_rank > 1) {
    units.ranks_per_unit = 1;
    if (const Status done = group_units(input.node, per_rank, units); !done) return done.error();
  }
  return units;
}

std::string Shortage::fix_for(int needed, const std::string& fewer) const {
  return by.empty() || needed > whole ? fewer : fmt::format("{}, or {}", fix, fewer);
}

std::string Units::available() const {
  return shortage.by.empty() ? fmt::format("a node has {}", counted(total, "device")) : shortage.by;
}

bool Units::instances() const { return std::ranges::any_of(list, &Unit::instance); }

int Units::used_by(int ranks) const {
  return std::min(count(), filled > 0 ? (ranks + filled - 1) / filled : ranks);
}

std::vector<int> assign_units(const Units& units, int ranks) {
  const long count = units.count();
  const bool all_apart = std::ranges::all_of(units.list, &Unit::apart);
  std::vector<int> order(units.list.size());
  std::iota(order.begin(), order.end(), 0);
  // Devices without CPUs, and groups that are apart, come last: when the others have a rank each.
  const auto last = std::stable_partition(order.begin(), order.end(), [&](int u) {
    return !units.list[u].lacks_cpus && (all_apart || !units.list[u].apart);
  });
  const bool first_ones = ranks <= count && (units.compact || last != order.end());
  std::vector<int> result;
  result.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r)
    result.push_back(count == 0         ? -1
                     : units.filled > 0 ? r / units.filled
                     : first_ones       ? order[r]
                                        : static_cast<int>(r * count / ranks));
  std::ranges::sort(result);
  return result;
}

std::vector<int> assign_units_near(const Units& units, const std::vector<RankPlan>& ranks) {
  const int n = static_cast<int>(ranks.size());
  std::vector<int> block = assign_units(units, n);
  if (std::ranges::any_of(units.list, &CpuSet::empty, &Unit::pus)) return block;
  std::vector<int> all(units.list.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::vector<int>> groups =
      clustered(all, [&](int a, int b) { return units.list[a].pus == units.list[b].pus; });
  std::vector<std::vector<int>> members(groups.size());
  for (int r = 0; r < n; ++r) {  // each rank must lie in one place
    const auto found = std::ranges::find_if(groups, [&](const std::vector<int>& group) {
      return units.list[group.front()].pus.contains(ranks[r].cpus);
    });
    if (ranks[r].cpus.empty() || found == groups.end()) return block;
    members[found - groups.begin()].push_back(r);
  }
  std::vector<int> result(ranks.size(), -1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t have = groups[g].size();
    const std::size_t want = members[g].size();
    // With a unit for each rank none is shared, be it far from some.
    if (n <= units.count() && want > have) return block;
    for (std::size_t i = 0; i < want; ++i)
      result[members[g][i]] = groups[g][units.compact && want < have ? i : i * have / want];
  }
  return result;
}

}  // namespace hpclaunch
