#include "plan/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/text.h"
#include "plan/fold.h"

namespace hpclaunch {

namespace {

Setting chosen(std::string name, Layer layer, std::string value, SourceRef where, std::string why) {
  Decision decision;
  decision.layer = layer;
  decision.value = std::move(value);
  decision.where = std::move(where);
  decision.why = std::move(why);
  return Setting{std::move(name), {std::move(decision)}};
}

// Position of each PU's core, so that devices can stand in the order of the cores they are near to.
std::vector<int> core_positions(const Topology& node) {
  std::vector<int> at(CpuSet::kCapacity, CpuSet::kCapacity);
  for (std::size_t c = 0; c < node.cores.size(); ++c)
    for (const int pu : node.cores[c].pus.to_vector())
      at[static_cast<std::size_t>(pu)] = static_cast<int>(c);
  return at;
}

std::vector<Unit> all_units(const Topology& node, bool subdevices) {
  const std::vector<int> at = core_positions(node);
  const auto near = [&](const Device& device) {
    if (!device.pus.empty() || device.numa < 0) return device.pus;
    for (const NumaNode& numa : node.numa_nodes)
      if (numa.os_index == device.numa) return numa.pus;
    return CpuSet{};
  };
  const auto place_of = [&](const Device& device) {
    int place = CpuSet::kCapacity;
    for (const int pu : near(device).to_vector())
      place = std::min(place, at[static_cast<std::size_t>(pu)]);
    return place;
  };
  std::vector<const Device*> order;
  for (const Device& device : node.devices) order.push_back(&device);
  std::stable_sort(order.begin(), order.end(),
                   [&](const Device* a, const Device* b) { return place_of(*a) < place_of(*b); });
  std::vector<Unit> units;
  for (const Device* device : order) {
    const int parts = subdevices ? std::max(1, device->subdevices) : 1;
    for (int part = 0; part < parts; ++part) {
      Unit unit;
      unit.unit = device->index * parts + part;
      unit.device = device->index;
      unit.subdevice = parts > 1 ? part : -1;
      unit.pus = near(*device);
      units.push_back(std::move(unit));
    }
  }
  return units;
}

// A mask that the batch system has set names what is ours. Numbers select among the units; other
// entries (UUIDs, MIG names) stand for units of which nothing is known.
void heed_given_mask(const EnvSnapshot& env, Units& units) {
  for (const std::string& name : mask_variables(units.vendor)) {
    const std::string* value = env.find(name);
    if (value == nullptr) continue;
    // CUDA takes an empty list for no device at all; the other drivers for no list.
    if (trim(*value).empty() && units.vendor != "nvidia") continue;
    std::vector<Unit> ours;
    int next = 0;
    for (const std::string_view piece : split(*value, ',')) {
      const std::string entry(trim(piece));
      Unit unit;
      if (const auto number = parse_natural(entry)) {
        const auto found = std::find_if(units.list.begin(), units.list.end(),
                                        [&](const Unit& u) { return u.unit == *number; });
        const bool twice =
            std::any_of(ours.begin(), ours.end(), [&](const Unit& u) { return u.unit == *number; });
        // As the drivers do: what follows a device that is not there does not count.
        if (found == units.list.end() || twice) break;
        unit = *found;
      } else if (entry.empty() || entry.front() == '-') {
        break;
      } else {
        const auto named = std::find_if(units.list.begin(), units.list.end(), [&](const Unit& u) {
          return entry == fmt::format("{}.{}", u.device, u.subdevice);
        });
        if (named != units.list.end()) {
          unit = *named;
        } else {
          unit.unit = next;
          unit.device = -1;  // a UUID: which device that is, nobody has said
        }
      }
      ++next;
      unit.name = entry;
      ours.push_back(std::move(unit));
    }
    units.given = name;
    if (ours.empty()) {
      units.list.clear();
      return;
    }
    std::vector<Unit> ordered;  // known ones keep the order of their cores
    for (const Unit& unit : units.list)
      for (const Unit& mine : ours)
        if (mine.unit == unit.unit && !mine.pus.empty()) ordered.push_back(mine);
    units.list = ordered.size() == ours.size() ? std::move(ordered) : std::move(ours);
    return;
  }
}

Result<const DeviceMode*> find_mode(const PlanInput& input) {
  const std::string& typed = input.options.device_mode;
  const Profile* profile = input.profile;
  if (profile == nullptr || profile->device_modes.empty()) {
    if (typed.empty()) return nullptr;
    return Error{ErrorKind::usage,
                 fmt::format("--device-mode {}: no profile in use has modes", typed),
                 "leave it out, or name a profile with --profile", kCommandLine};
  }
  const std::string& wanted = typed.empty() ? profile->device_mode : typed;
  if (wanted.empty()) return &profile->device_modes.front();
  if (const DeviceMode* mode = profile->find_mode(wanted)) return mode;
  std::vector<std::string> names;
  for (const DeviceMode& mode : profile->device_modes) names.push_back(mode.name);
  const auto near = nearest(wanted, names);
  return Error{ErrorKind::usage, fmt::format("{} has no device mode \"{}\"", profile->name, wanted),
               near ? fmt::format("did you mean --device-mode {}?", *near)
                    : fmt::format("one of {}", fmt::join(names, ", ")),
               kCommandLine};
}

}  // namespace

const std::vector<std::string>& mask_variables(const std::string& vendor) {
  static const std::map<std::string, std::vector<std::string>> kMasks = {
      {"amd", {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}},
      {"intel", {"ZE_AFFINITY_MASK"}},
      {"nvidia", {"CUDA_VISIBLE_DEVICES"}},
  };
  static const std::vector<std::string> kNone;
  const auto found = kMasks.find(vendor);
  return found == kMasks.end() ? kNone : found->second;
}

Result<Units> find_units(const PlanInput& input) {
  Result<const DeviceMode*> mode = find_mode(input);
  if (!mode) return mode.error();
  Units units;
  if (input.node.devices.empty()) {
    if (input.options.ranks_per_device || !input.options.gpu_view.empty())
      return Error{
          ErrorKind::usage,
          fmt::format("{}: the node has no devices that hpclaunch knows of",
                      input.options.ranks_per_device ? "--ranks-per-device" : "--gpu-view"),
          "leave it out, or plan for a node with devices: --profile or --topology", kCommandLine};
    return units;
  }
  units.vendor = input.node.devices.front().vendor;
  units.list = all_units(input.node, *mode != nullptr && (*mode)->subdevices);
  const std::vector<std::string>& masks = mask_variables(units.vendor);
  units.mask = masks.empty() ? "" : masks.front();
  units.mask_item = "${unit}";
  if (*mode != nullptr) {
    units.mode = (*mode)->name;
    if (!(*mode)->mask.empty()) units.mask = (*mode)->mask;
    if (!(*mode)->mask_item.empty()) units.mask_item = (*mode)->mask_item;
    const bool typed = !input.options.device_mode.empty();
    units.choices.push_back(chosen("device-mode",
                                   typed ? Layer::command_line : Layer::profile_default, units.mode,
                                   typed ? kCommandLine : (*mode)->origin.where, (*mode)->doc));
  }
  heed_given_mask(input.env, units);
  std::set<int> devices;
  for (const Unit& unit : units.list) devices.insert(unit.device);
  units.devices = static_cast<int>(devices.size());
  const int by_profile = input.profile != nullptr ? input.profile->ranks_per_device : 0;
  units.ranks_per_unit = input.options.ranks_per_device.value_or(by_profile);
  units.compact = input.profile != nullptr && input.profile->fill == "compact";
  return units;
}

void decide_view(const PlanInput& input, int ranks_per_node, Units& units) {
  if (units.list.empty()) return;
  const std::string& typed = input.options.gpu_view;
  const std::string by_profile = input.profile != nullptr ? input.profile->gpu_view : "";
  const bool shared = ranks_per_node > units.count();
  // A mask of parts is the only way to one: a process without it sees whole devices.
  const bool masked_parts = units.mask_item.find("subdevice") != std::string::npos;
  Setting setting{"gpu-view", {}};
  const auto decide = [&](Layer layer, const std::string& view, const SourceRef& where,
                          const std::string& why) {
    setting.history.push_back(chosen("", layer, view, where, why).history.front());
    units.view = view;
  };
  if (masked_parts)
    decide(Layer::builtin, "own", kRule,
           "without a mask a process sees whole devices in this mode, and not their parts");
  else if (shared)
    decide(Layer::builtin, "own", kRule,
           "ranks share devices, and LOCAL_RANK must index what the program sees");
  else
    decide(Layer::builtin, "all", kRule,
           "every device stays visible, the one nearest to local rank i as device i");
  if (!by_profile.empty() && !(masked_parts && by_profile == "all"))
    decide(Layer::profile_default, by_profile, input.profile->where,
           fmt::format("what {} recommends", input.profile->name));
  if (!typed.empty()) decide(Layer::command_line, typed, kCommandLine, "--gpu-view");
  units.choices.push_back(std::move(setting));
}

std::vector<int> deal_units(const Units& units, int ranks) {
  std::vector<int> result;
  const long count = units.count();
  for (long r = 0; r < ranks; ++r) {
    if (count == 0)
      result.push_back(-1);
    else if (units.compact && ranks < count)
      result.push_back(static_cast<int>(r));
    else
      result.push_back(static_cast<int>(r * count / ranks));
  }
  return result;
}

std::vector<int> deal_units_near(const Units& units, const std::vector<RankPlan>& ranks) {
  const int n = static_cast<int>(ranks.size());
  std::vector<int> block = deal_units(units, n);
  // Units with the same neighbours form a group; each rank must lie in exactly one.
  std::vector<std::vector<int>> groups;
  for (int u = 0; u < units.count(); ++u) {
    const CpuSet& pus = units.list[static_cast<std::size_t>(u)].pus;
    if (pus.empty()) return block;
    const auto same = [&](const std::vector<int>& group) {
      return units.list[static_cast<std::size_t>(group.front())].pus == pus;
    };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end())
      groups.push_back({u});
    else
      found->push_back(u);
  }
  std::vector<std::vector<int>> members(groups.size());
  for (int r = 0; r < n; ++r) {
    const CpuSet& cpus = ranks[static_cast<std::size_t>(r)].cpus;
    const auto holds_rank = [&](const std::vector<int>& group) {
      return units.list[static_cast<std::size_t>(group.front())].pus.contains(cpus);
    };
    const auto found = std::find_if(groups.begin(), groups.end(), holds_rank);
    if (cpus.empty() || found == groups.end()) return block;
    members[static_cast<std::size_t>(found - groups.begin())].push_back(r);
  }
  std::vector<int> result(static_cast<std::size_t>(n), -1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t have = groups[g].size();
    const std::size_t want = members[g].size();
    for (std::size_t i = 0; i < want; ++i)
      result[static_cast<std::size_t>(members[g][i])] =
          groups[g][units.compact && want < have ? i : i * have / want];
  }
  return result;
}

}  // namespace hpclaunch
