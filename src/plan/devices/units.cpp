#include "plan/devices/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpclaunch/text.h"
#include "plan/cores/locality.h"
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
      unit.pus = near_device(node, device);
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

bool has_tiles(const Topology& node) {
  return std::ranges::any_of(node.devices, [](const Device& device) {
    return device_vendor(device.vendor).keeps_order() && device.subdevices > 1;
  });
}

bool profile_has_modes(const PlanInput& input) {
  return input.profile != nullptr && !input.profile->device_modes.empty();
}

Result<const DeviceMode*> find_mode(const PlanInput& input) {
  std::string wanted = input.request.device_mode;
  const bool by_profile = profile_has_modes(input);
  if (!by_profile && !has_tiles(input.node)) {
    if (wanted.empty()) return nullptr;
    return request_error(fmt::format("--device-mode {}: the profile has no device modes", wanted),
                         "omit it, or choose a profile with --profile");
  }
  const auto& modes = by_profile ? input.profile->device_modes : modes_of_tiles();
  if (wanted.empty() && by_profile) wanted = input.profile->device_mode;
  if (wanted.empty() && by_profile) return &modes.front();
  if (wanted.empty()) wanted = counts_whole(input.env) ? "gpu" : "tile";
  std::vector<std::string> names;
  for (const DeviceMode& mode : modes) {
    if (mode.name == wanted) return &mode;
    names.push_back(mode.name);
  }
  return request_error(fmt::format("{} has no device mode \"{}\"",
                                   by_profile ? input.profile->name : "this node", wanted),
                       suggest("--device-mode", wanted, names));
}

// Options about devices that contradict one another, or the node.
Status check_typed(const PlanInput& input) {
  const Request& typed = input.request;
  const int each = typed.devices_per_rank.value_or(0);
  if (input.node.devices.empty() && (typed.ranks_per_device || !typed.gpu_view.empty() || each > 0))
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
  const bool typed = !input.request.device_mode.empty();
  const bool by_profile = profile_has_modes(input);
  const Layer layer = typed        ? Layer::command_line
                      : by_profile ? Layer::profile_default
                                   : Layer::builtin;
  units.choices.push_back(choice("device-mode", layer, units.mode, mode.doc));
  if (layer == Layer::profile_default)
    units.choices.back().history.back().where = mode.origin.where;
  units.own_mode = !by_profile;
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
  if (input.request.devices_per_rank == 0) {
    units.list.clear();
    units.hidden = true;
    return units;
  }
  split_instances(input.node, units);
  apply_allocation(input, units);
  if (units.instances() && input.request.devices_per_rank.value_or(1) > 1)
    return request_error(
        fmt::format("--devices-per-rank {}: the node's devices are in MIG mode, and a process can "
                    "use one instance only",
                    *input.request.devices_per_rank),
        "omit it: each rank gets one instance");
  std::set<int> devices;
  for (const Unit& unit : units.list) devices.insert(unit.device);
  units.devices = static_cast<int>(devices.size());
  units.total = units.count();
  units.ranks_per_unit = input.profile != nullptr ? input.profile->ranks_per_device : 0;
  if (!units.list.empty()) units.filled = input.request.ranks_per_device.value_or(0);
  units.compact = input.profile != nullptr && input.profile->fill == "compact";
  if (input.request.devices_per_rank.value_or(1) > 1) {
    units.ranks_per_unit = 1;
    const Status grouped = group_units(input.node, *input.request.devices_per_rank, units);
    if (!grouped) return grouped.error();
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

Units units_for(const Units& units, int ranks) {
  Units used = units;
  if (units.filled > 0) used.list.resize(static_cast<std::size_t>(units.used_by(ranks)));
  return used;
}

const char* why_all(const Units& units) {
  return units.vendor->keeps_order()
             ? "each rank sees the devices that ranks use; device i is nearest to local rank i"
             : "each rank sees all devices; device i is nearest to local rank i";
}

void decide_own(Units& units, const char* why) {
  units.view = "own";
  for (Setting& setting : units.choices)
    if (setting.name == "gpu-view")
      setting.history.push_back(decided(Layer::computed, units.view, why));
}

void decide_view(const PlanInput& input, int ranks_per_node, Units& units) {
  if (units.list.empty()) return;
  const std::string& typed = input.request.gpu_view;
  const std::string by_profile = input.profile != nullptr ? input.profile->gpu_view : "";
  const bool shared = ranks_per_node > units.used_by(ranks_per_node);
  // A mask of parts is the only way to one: a process without it sees whole devices.
  const bool masked_parts = units.mask_item.find("subdevice") != std::string::npos;
  Setting setting{"gpu-view", {}};
  const auto decide = [&](Layer layer, const std::string& view, const std::string& why) {
    setting.history.push_back(decided(layer, view, why));
    units.view = view;
  };
  if (masked_parts)
    decide(Layer::builtin, "own", "only a mask can select parts of devices in this mode");
  else if (shared)
    decide(Layer::builtin, "own", "ranks share devices, and LOCAL_RANK must be a visible device");
  else
    decide(Layer::builtin, "all", why_all(units));
  if (!by_profile.empty() && !(masked_parts && by_profile == "all")) {
    decide(Layer::profile_default, by_profile,
           fmt::format("recommended by {}", input.profile->name));
    setting.history.back().where = input.profile->where;
  }
  if (units.view == "launcher" && ranks_per_node < units.filled * units.count())
    decide(Layer::computed, "own",
           "the launcher's flags spread ranks over all devices, --ranks-per-device fills some");
  if (units.view == "launcher" && !units.shortage.mask.empty())
    decide(Layer::computed, "own",
           fmt::format("the launcher's flags give out all devices, and {} selects some",
                       units.shortage.mask));
  if (units.instances())
    decide(Layer::computed, "own", "a process sees only the first of several MIG instances");
  if (units.per_rank > 1)
    decide(Layer::computed, "own",
           "each rank has several devices and sees only these, as 0 to N-1");
  if (!typed.empty()) decide(Layer::command_line, typed, "--gpu-view");
  units.choices.push_back(std::move(setting));
}

std::vector<int> assign_units(const Units& units, int ranks) {
  // Devices without CPUs, and groups that are apart, come last: when the others have a rank each.
  std::vector<int> order;
  std::vector<int> last;
  const bool all_apart = std::ranges::all_of(units.list, &Unit::apart);
  for (int u = 0; u < units.count(); ++u) {
    const Unit& unit = units.list[u];
    (unit.lacks_cpus || (unit.apart && !all_apart) ? last : order).push_back(u);
  }
  const bool only_local = ranks <= static_cast<int>(order.size()) && !order.empty();
  const long count = only_local ? static_cast<long>(order.size()) : units.count();
  order.insert(order.end(), last.begin(), last.end());
  std::vector<int> result;
  for (long r = 0; r < ranks; ++r) {
    if (count == 0)
      result.push_back(-1);
    else if (units.filled > 0)
      result.push_back(static_cast<int>(r) / units.filled);
    else if ((units.compact || !last.empty()) && ranks < count)
      result.push_back(order[r]);
    else if (only_local)
      result.push_back(order[r * count / ranks]);
    else
      result.push_back(static_cast<int>(r * count / ranks));
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::vector<int>> units_by_place(const Units& units) {
  std::vector<std::vector<int>> groups;
  for (int u = 0; u < units.count(); ++u) {
    const auto same = std::ranges::find_if(groups, [&](const std::vector<int>& group) {
      return units.list[group.front()].pus == units.list[u].pus;
    });
    (same == groups.end() ? groups.emplace_back() : *same).push_back(u);
  }
  return groups;
}

std::vector<int> assign_units_near(const Units& units, const std::vector<RankPlan>& ranks) {
  const int n = static_cast<int>(ranks.size());
  std::vector<int> block = assign_units(units, n);
  if (std::ranges::any_of(units.list, [](const Unit& unit) { return unit.pus.empty(); }))
    return block;
  const std::vector<std::vector<int>> groups = units_by_place(units);  // a rank must lie in one
  std::vector<std::vector<int>> members(groups.size());
  for (int r = 0; r < n; ++r) {
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
