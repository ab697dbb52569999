#include "plan/devices/slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hpclaunch/text.h"
#include "plan/devices/filters.h"
#include "plan/devices/masks.h"
#include "plan/devices/node_ranks.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

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

// A mode for the exported mask where ZE_FLAT_DEVICE_HIERARCHY beside it has it count otherwise than the profile's own
// mode does. Alone that variable may be a default of the site's modules, and Slurm writes masks by itself.
const DeviceMode* mode_of_mask(const PlanInput& input) {
  const std::vector<DeviceMode>& modes = input.profile->device_modes;
  const std::string& usual = input.profile->device_mode;
  const DeviceVendor& vendor = device_vendor(input.node.devices.front().vendor);
  const EnvSnapshot& env = input.env;
  if (!vendor.keeps_order() || env.get(vendor.hierarchy).empty() ||
      trim(env.get(vendor.masks().front())).empty() ||
      std::ranges::any_of(kSlurmGpuLists, [&](const char* list) { return env.has(list); }))
    return nullptr;
  const auto counts_cards = [](const DeviceMode& mode) {
    return !mode.subdevices || mode.mask_item.find("${subdevice}") != std::string::npos;
  };
  const bool cards = counts_whole(env);
  const DeviceMode* const own = usual.empty() ? &modes.front() : find_named(modes, usual);
  if (own == nullptr || counts_cards(*own) == cards) return nullptr;
  const auto other = std::ranges::find_if(modes, [&](const DeviceMode& mode) {
    return counts_cards(mode) == cards && mode.subdevices == !cards;
  });
  return other == modes.end() ? nullptr : &*other;
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
  if (by_profile && wanted.empty() && !input.node.devices.empty())
    if (const DeviceMode* mode = mode_of_mask(input)) return mode;
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
void choose_mode(const PlanInput& input, const DeviceMode& mode, Slots& slots) {
  slots.mode = mode.name;
  if (!mode.mask.empty()) slots.mask = mode.mask;
  slots.own_mode = !profile_has_modes(input);
  const bool typed = !input.request->device_mode.empty();
  const bool exported = !typed && !slots.own_mode && mode_of_mask(input) != nullptr;
  const Layer layer = typed            ? Layer::command_line
                      : slots.own_mode ? Layer::builtin
                      : exported       ? Layer::environment
                                       : Layer::profile_default;
  const std::string hierarchy(slots.vendor->hierarchy);
  const std::string by = fmt::format("{}={} says how the exported {} counts: ", hierarchy,
                                     input.env.get(hierarchy), slots.mask);
  slots.choices.push_back(
      choice("device-mode", layer, slots.mode, (exported ? by : "") + mode.doc));
  if (layer == Layer::profile_default)
    slots.choices.back().history.back().where = mode.origin.where;
}

// As find_slots, for one grant.
Result<Slots> slots_of_node(const PlanInput& input) {
  Result<const DeviceMode*> mode = find_mode(input);
  if (!mode) return mode.error();
  Slots slots;
  if (const Status typed = check_typed(input); !typed) return typed.error();
  if (input.node.devices.empty()) return slots;
  slots.vendor = &device_vendor(input.node.devices.front().vendor);
  const std::vector<std::string_view> masks = slots.vendor->masks();
  if (!masks.empty()) slots.mask = masks.front();
  MaskEntries entries{"${unit}", *mode != nullptr && (*mode)->subdevices};
  if (*mode != nullptr) choose_mode(input, **mode, slots);
  if (*mode != nullptr && !(*mode)->mask_item.empty()) entries.item = (*mode)->mask_item;
  for (const std::string& read : input.agent_masks)
    if (std::ranges::count(masks, read) > 0) slots.mask = read;
  slots.only_by_mask = entries.item.find("subdevice") != std::string::npos;
  if (const Status known = entries.check(); !known) return known.error();
  if (input.request->devices_per_rank == 0) {
    slots.hidden = true;
    return slots;
  }
  filter_slots(input, entries, slots);
  if (const Status free = leave_taken(input, slots); !free) return free.error();
  const int per_rank = input.request->devices_per_rank.value_or(1);
  if (slots.instances() && per_rank > 1)
    return request_error(
        fmt::format("--devices-per-rank {}: the node's devices are in MIG mode, and a process can "
                    "use one instance only",
                    per_rank),
        "omit it: each rank gets one instance");
  slots.total = slots.count();
  slots.ranks_per_slot = input.profile != nullptr ? input.profile->ranks_per_device : 0;
  if (!slots.list.empty()) slots.filled = input.request->ranks_per_device.value_or(0);
  slots.compact = input.profile != nullptr && input.profile->fill == "compact";
  if (input.request->agent && slots.total > 1) {  // owns all of them
    std::vector<Slot> all = single_slots(slots);
    std::ranges::sort(all, {}, &Slot::unit);
    slots.list = {group_of(input.node, all)};
    slots.per_rank = slots.total;
  }
  if (per_rank > 1) {
    slots.ranks_per_slot = 1;
    if (const Status done = group_slots(input.node, per_rank, slots); !done) return done.error();
  }
  return slots;
}

}  // namespace

PlanInput with_grant(PlanInput input, int grant) {
  if (input.grants.empty()) return input;
  input.grant = grant;
  input.node.allowed = whole_node(input) & input.grants[static_cast<std::size_t>(grant)].cpus;
  return input;
}

Result<Slots> find_slots(const PlanInput& input) {
  Result<Slots> slots = slots_of_node(input);
  for (std::size_t grant = 1; slots && grant < input.grants.size(); ++grant) {
    Result<Slots> other = slots_of_node(with_grant(input, static_cast<int>(grant)));
    if (!other) return other.error();
    slots->others.push_back(*std::move(other));
  }
  return slots;
}

std::string Shortage::fix_for(int needed, const std::string& fewer) const {
  return by.empty() || needed > whole ? fewer : fmt::format("{}, or {}", fix, fewer);
}

std::string Slots::available() const {
  return shortage.by.empty() ? fmt::format("a node has {}", counted(total, "device")) : shortage.by;
}

bool Slots::instances() const { return std::ranges::any_of(list, is_instance, &SlotGroup::first); }

int Slots::seen_by_agent() const {
  if (instances()) return 1;
  return only_by_mask ? devices : total;
}

int Slots::used_by(int ranks) const {
  return std::min(count(), filled > 0 ? (ranks + filled - 1) / filled : ranks);
}

std::vector<int> assign_slots(const Slots& slots, int ranks) {
  const long count = slots.count();
  const bool all_apart = std::ranges::all_of(slots.list, &SlotGroup::apart);
  std::vector<int> order(slots.list.size());
  std::iota(order.begin(), order.end(), 0);
  // Devices without CPUs, and groups that are apart, come last: when the others have a rank each.
  const auto last = std::stable_partition(order.begin(), order.end(), [&](int u) {
    return !slots.list[u].lacks_cpus && (all_apart || !slots.list[u].apart);
  });
  const bool first_ones = ranks <= count && (slots.compact || last != order.end());
  std::vector<int> result;
  result.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r)
    result.push_back(count == 0         ? -1
                     : slots.filled > 0 ? r / slots.filled
                     : first_ones       ? order[r]
                                        : static_cast<int>(r * count / ranks));
  std::ranges::sort(result);
  return result;
}

std::vector<int> assign_slots_near(const Slots& slots, const std::vector<RankPlan>& ranks) {
  const int n = static_cast<int>(ranks.size());
  std::vector<int> block = assign_slots(slots, n);
  if (std::ranges::any_of(slots.list, &CpuSet::empty, &SlotGroup::pus)) return block;
  std::vector<int> all(slots.list.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::vector<int>> groups =
      clustered(all, [&](int a, int b) { return slots.list[a].pus == slots.list[b].pus; });
  std::vector<std::vector<int>> members(groups.size());
  for (int r = 0; r < n; ++r) {  // each rank must lie in one place
    const auto found = std::ranges::find_if(groups, [&](const std::vector<int>& group) {
      return slots.list[group.front()].pus.contains(ranks[r].cpus);
    });
    if (ranks[r].cpus.empty() || found == groups.end()) return block;
    members[found - groups.begin()].push_back(r);
  }
  std::vector<int> result(ranks.size(), -1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t have = groups[g].size();
    const std::size_t want = members[g].size();
    // With a unit for each rank none is shared, be it far from some.
    if (n <= slots.count() && want > have) return block;
    for (std::size_t i = 0; i < want; ++i)
      result[members[g][i]] = groups[g][slots.compact && want < have ? i : i * have / want];
  }
  return result;
}

}  // namespace hpclaunch
