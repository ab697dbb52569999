#include "plan/devices/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/text.h"
#include "plan/cores/locality.h"
#include "plan/devices/allocation.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

// Position of each PU's core, so that devices can stand in the order of the cores they are near to.
std::vector<int> core_positions(const Topology& node) {
  std::vector<int> at(CpuSet::kCapacity, CpuSet::kCapacity);
  for (std::size_t c = 0; c < node.cores.size(); ++c)
    for (const int pu : node.cores[c].pus.to_vector()) at[pu] = static_cast<int>(c);
  return at;
}

// The driver's number of each device's first part: it counts them through.
std::map<int, int> first_parts(const Topology& node) {
  std::map<int, int> first;
  int next = 0;
  int index = 0;
  for (const Device& device : node.devices) {
    const int parts = std::max(1, device.subdevices);
    next += (device.index - index) * parts;  // devices that the description leaves out
    first[device.index] = next;
    next += parts;
    index = device.index + 1;
  }
  return first;
}

std::vector<Unit> all_units(const Topology& node, bool subdevices) {
  const std::vector<int> at = core_positions(node);
  const auto place_of = [&](const Device& device) {
    int place = CpuSet::kCapacity;
    for (const int pu : near_device(node, device).to_vector()) place = std::min(place, at[pu]);
    return place;
  };
  std::vector<const Device*> order;
  for (const Device& device : node.devices) order.push_back(&device);
  std::stable_sort(order.begin(), order.end(),
                   [&](const Device* a, const Device* b) { return place_of(*a) < place_of(*b); });
  const std::map<int, int> first = first_parts(node);
  std::vector<Unit> units;
  for (const Device* device : order) {
    const int parts = subdevices ? std::max(1, device->subdevices) : 1;
    for (int part = 0; part < parts; ++part) {
      Unit unit;
      unit.unit = subdevices ? first.at(device->index) + part : device->index;
      unit.device = device->index;
      unit.subdevice = parts > 1 ? part : -1;
      unit.pus = near_device(node, *device);
      unit.lacks_cpus = lacks_cpus(node, *device);
      units.push_back(std::move(unit));
    }
  }
  return units;
}

// What a node without a profile's modes can do: where Level Zero finds tiles, it counts these or whole
// devices (its specification, ZE_FLAT_DEVICE_HIERARCHY; FLAT is what it does by itself).
const std::vector<DeviceMode>& modes_of_tiles() {
  static const std::vector<DeviceMode> kModes = {
      {"tile", "a rank gets a tile, as Level Zero counts by itself (FLAT)", true, "", "", {}},
      {"gpu", "a rank gets a whole device with all its tiles (COMPOSITE)", false, "", "", {}}};
  return kModes;
}

bool has_tiles(const Topology& node) {
  return std::any_of(node.devices.begin(), node.devices.end(), [](const Device& device) {
    return device_vendor(device.vendor).keeps_order() && device.subdevices > 1;
  });
}

Result<const DeviceMode*> find_tile_mode(const PlanInput& input) {
  const std::string& typed = input.request.device_mode;
  const std::vector<DeviceMode>& modes = modes_of_tiles();
  if (typed.empty()) return &modes[counts_whole(input.env) ? 1 : 0];
  for (const DeviceMode& mode : modes)
    if (mode.name == typed) return &mode;
  return request_error(fmt::format("this node has no device mode \"{}\"", typed),
                       "one of tile, gpu");
}

Result<const DeviceMode*> find_mode(const PlanInput& input) {
  const std::string& typed = input.request.device_mode;
  const Profile* profile = input.profile;
  if (profile == nullptr || profile->device_modes.empty()) {
    if (has_tiles(input.node)) return find_tile_mode(input);
    if (typed.empty()) return nullptr;
    return request_error(fmt::format("--device-mode {}: no profile in use has modes", typed),
                         "leave it out, or name a profile with --profile");
  }
  const std::string& wanted = typed.empty() ? profile->device_mode : typed;
  if (wanted.empty()) return &profile->device_modes.front();
  if (const DeviceMode* mode = profile->find_mode(wanted)) return mode;
  std::vector<std::string> names;
  for (const DeviceMode& mode : profile->device_modes) names.push_back(mode.name);
  return request_error(fmt::format("{} has no device mode \"{}\"", profile->name, wanted),
                       suggest("--device-mode", wanted, names));
}

// Options about devices that contradict one another, or the node.
Status check_typed(const PlanInput& input) {
  const Request& typed = input.request;
  const int each = typed.devices_per_rank.value_or(0);
  if (input.node.devices.empty() && (typed.ranks_per_device || !typed.gpu_view.empty() || each > 0))
    return request_error(fmt::format("{}: the node has no devices that hpclaunch knows of",
                                     typed.ranks_per_device ? "--ranks-per-device"
                                     : each > 0             ? "--devices-per-rank"
                                                            : "--gpu-view"),
                         "leave it out, or plan for a node with devices: --profile or --topology");
  if (typed.devices_per_rank && typed.ranks_per_device)
    return request_error("--devices-per-rank and --ranks-per-device contradict each other",
                         "a rank has several devices, or a device several ranks: leave one out");
  if (typed.devices_per_rank == 0 && !typed.gpu_view.empty())
    return request_error(
        fmt::format("--devices-per-rank 0 leaves nothing for --gpu-view {}", typed.gpu_view),
        "leave one of them out");
  if (each > 1 && !typed.gpu_view.empty() && typed.gpu_view != "own")
    return request_error(
        fmt::format("--gpu-view {} cannot give a rank several devices: device LOCAL_RANK "
                    "would be another rank's",
                    typed.gpu_view),
        "leave it out: each rank sees its own devices, as 0 to N-1");
  return Done{};
}

// A device mode's name, mask and choice.
void choose_mode(const PlanInput& input, const DeviceMode& mode, Units& units) {
  units.mode = mode.name;
  if (!mode.mask.empty()) units.mask = mode.mask;
  if (!mode.mask_item.empty()) units.mask_item = mode.mask_item;
  const bool typed = !input.request.device_mode.empty();
  const bool by_profile = input.profile != nullptr && !input.profile->device_modes.empty();
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
        fmt::format("--devices-per-rank {}: devices of the node are split into instances "
                    "(MIG), and a process can have one of them",
                    *input.request.devices_per_rank),
        "leave it out: each rank gets one instance");
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

bool Units::instances() const {
  return std::any_of(list.begin(), list.end(), [](const Unit& unit) { return unit.instance; });
}

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
             ? "the devices that ranks use stay visible, the one nearest to local rank i as device "
               "i"
             : "every device stays visible, the one nearest to local rank i as device i";
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
    decide(Layer::builtin, "own",
           "without a mask a process sees whole devices in this mode, and not their parts");
  else if (shared)
    decide(Layer::builtin, "own",
           "ranks share devices, and LOCAL_RANK must index what the program sees");
  else
    decide(Layer::builtin, "all", why_all(units));
  if (!by_profile.empty() && !(masked_parts && by_profile == "all")) {
    decide(Layer::profile_default, by_profile,
           fmt::format("what {} recommends", input.profile->name));
    setting.history.back().where = input.profile->where;
  }
  if (units.view == "launcher" && ranks_per_node < units.filled * units.count())
    decide(Layer::computed, "own",
           "the launcher's flags spread ranks over all devices, and --ranks-per-device fills them");
  if (units.instances())
    decide(Layer::computed, "own",
           "devices are split into instances (MIG), and of several a process sees only the first");
  if (units.per_rank > 1)
    decide(Layer::computed, "own",
           "a rank with several devices sees these and no others, as 0 to N-1");
  if (!typed.empty()) decide(Layer::command_line, typed, "--gpu-view");
  units.choices.push_back(std::move(setting));
}

std::vector<int> assign_units(const Units& units, int ranks) {
  // Devices without CPUs come last: they get ranks when the others have one each.
  std::vector<int> order;
  std::vector<int> last;
  for (int u = 0; u < units.count(); ++u) (units.list[u].lacks_cpus ? last : order).push_back(u);
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
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<int>& g) {
      return units.list[g.front()].pus == units.list[u].pus;
    });
    if (same == groups.end())
      groups.push_back({u});
    else
      same->push_back(u);
  }
  return groups;
}

std::vector<int> assign_units_near(const Units& units, const std::vector<RankPlan>& ranks) {
  const int n = static_cast<int>(ranks.size());
  std::vector<int> block = assign_units(units, n);
  if (std::any_of(units.list.begin(), units.list.end(),
                  [](const Unit& unit) { return unit.pus.empty(); }))
    return block;
  const std::vector<std::vector<int>> groups = units_by_place(units);  // a rank must lie in one
  std::vector<std::vector<int>> members(groups.size());
  for (int r = 0; r < n; ++r) {
    const CpuSet& cpus = ranks[r].cpus;
    const auto holds_rank = [&](const std::vector<int>& group) {
      return units.list[group.front()].pus.contains(cpus);
    };
    const auto found = std::find_if(groups.begin(), groups.end(), holds_rank);
    if (cpus.empty() || found == groups.end()) return block;
    members[found - groups.begin()].push_back(r);
  }
  // With a unit for each rank none is shared, be it far from some.
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (n <= units.count() && members[g].size() > groups[g].size()) return block;
  std::vector<int> result(static_cast<std::size_t>(n), -1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t have = groups[g].size();
    const std::size_t want = members[g].size();
    for (std::size_t i = 0; i < want; ++i)
      result[members[g][i]] = groups[g][units.compact && want < have ? i : i * have / want];
  }
  return result;
}

}  // namespace hpclaunch
