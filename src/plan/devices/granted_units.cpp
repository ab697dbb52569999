// From the given masks to the units that ranks may get.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "plan/devices/allocation.h"
#include "plan/devices/masks.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

std::string quoted(const EnvSnapshot& env, const std::string& name) {
  return fmt::format("{}=\"{}\"", name, env.get(name));
}

bool is_instance_name(const std::string& name) {
  return name.size() > 4 && (name.starts_with("MIG-") || name.starts_with("mig-"));
}

// What one mask leaves of the devices, and what is to be said about it.
void read_stage(const PlanInput& input, const std::string& name, bool by_place,
                std::vector<Pick>& picks, Units& units) {
  std::vector<Pick> from = picks;
  for (std::size_t i = 0; by_place && i < from.size(); ++i) from[i].number = static_cast<int>(i);
  Picked read = units.vendor->syntax == MaskSyntax::cuda
                    ? read_cuda_mask(input.node, from, input.env.get(name))
                    : read_mask(input.node, from, input.env.get(name));
  for (Pick& pick : read.picks)  // back to the count before any mask
    if (by_place && pick.number >= 0) pick.number = picks[pick.number].number;
  picks = std::move(read.picks);
  units.given = name;
  if (!read.repeated.empty())
    units.reports.push_back(
        {"mask-repeats", Severity::warning,
         fmt::format(
             "{}: \"{}\" is repeated; CUDA and PyTorch see no device then, and neither does "
             "the plan",
             quoted(input.env, name), read.repeated),
         fmt::format("give {} each device once", name)});
  if (!read.stopped.empty() && !picks.empty())
    units.reports.push_back(
        {"mask-cut", Severity::warning,
         fmt::format("{}: \"{}\" {}; the driver and the plan ignore the rest of the list",
                     quoted(input.env, name), read.stopped,
                     units.vendor->syntax == MaskSyntax::cuda
                         ? "is not a visible device, or has another form than the first entry"
                         : "is not a visible device, or is repeated"),
         fmt::format(
             "give {} entries that are there{}, each once", name,
             units.vendor->syntax == MaskSyntax::cuda ? ", all numbers or all names" : "")});
}

// AMD's three: the first restricts what the second counts. Slurm and Flux set several of them alike.
void read_amd(const PlanInput& input, std::vector<Pick>& picks, Units& units) {
  const auto text = [&](const char* name) { return std::string(trim(input.env.get(name))); };
  const bool first = input.env.has("ROCR_VISIBLE_DEVICES");
  const std::vector<Pick> before = picks;
  if (first) read_stage(input, "ROCR_VISIBLE_DEVICES", false, picks, units);
  const char* second = !text("HIP_VISIBLE_DEVICES").empty()    ? "HIP_VISIBLE_DEVICES"
                       : !text("CUDA_VISIBLE_DEVICES").empty() ? "CUDA_VISIBLE_DEVICES"
                                                               : nullptr;
  if (second == nullptr) {
    if (!first && !text("GPU_DEVICE_ORDINAL").empty())
      read_stage(input, "GPU_DEVICE_ORDINAL", false, picks, units);
    return;
  }
  if (!first || text(second) != text("ROCR_VISIBLE_DEVICES")) {
    read_stage(input, second, first, picks, units);
    return;
  }
  const std::vector<Pick> once = picks;
  std::vector<Pick> twice = picks;
  for (std::size_t i = 0; i < twice.size(); ++i) twice[i].number = static_cast<int>(i);
  if (read_mask(input.node, twice, text(second)).picks.size() != once.size())
    units.reports.push_back(
        {"mask-twice", Severity::note,
         fmt::format("{} and ROCR_VISIBLE_DEVICES hold the same list, and the driver would count "
                     "the second among what the first leaves; the plan takes it for one grant said "
                     "twice, and leaves ranks one mask",
                     second),
         ""});
}

// Instances for the device that has them; a device by its place; an unknown name as it is.
std::vector<Unit> units_of(const Topology& node, const std::vector<Unit>& all,
                           const std::vector<Pick>& picks, bool by_number) {
  std::vector<Unit> ours;
  std::vector<std::size_t> unknown;
  for (const Pick& pick : picks) {
    const Device* device = find_device(node, pick.device);
    const bool instance = pick.instance >= 0;
    const bool known = device != nullptr && !(is_instance_name(pick.name) && !instance);
    if (!known) {
      Unit unit;
      unit.device = pick.device;
      unit.name = pick.name;
      for (const Unit& one : all)
        if (pick.device >= 0 && one.device == pick.device) unit.pus = one.pus;
      unit.instance = is_instance_name(pick.name);
      unknown.push_back(ours.size());
      ours.push_back(std::move(unit));
      continue;
    }
    for (Unit unit : all) {
      if (unit.device != pick.device || (instance && unit.subdevice != pick.instance)) continue;
      if (!unit.instance) unit.unit = pick.number;
      if (!unit.instance || instance)
        unit.name = by_number && !instance ? std::to_string(pick.number) : pick.name;
      ours.push_back(std::move(unit));
    }
  }
  const auto taken = [&](int number) {
    for (std::size_t i = 0; i < ours.size(); ++i)
      if (ours[i].unit == number && std::find(unknown.begin(), unknown.end(), i) == unknown.end())
        return true;
    return false;
  };
  int next = 0;
  for (const std::size_t at : unknown) {
    while (taken(next)) ++next;
    ours[at].unit = next++;
  }
  return ours;
}

// As they stand in `all`, by their cores, where that is known of each; else as the mask has them.
std::vector<Unit> in_order(const std::vector<Unit>& all, const std::vector<Unit>& ours) {
  std::vector<Unit> ordered;
  for (const Unit& unit : all)
    for (const Unit& mine : ours)
      if (mine.device == unit.device && mine.subdevice == unit.subdevice && !mine.pus.empty())
        ordered.push_back(mine);
  return ordered.size() == ours.size() ? ordered : ours;
}

// ---- Level Zero: tiles ----------------------------------------------------------------------------

// Entries that name tiles are right for COMPOSITE, and nothing in every other hierarchy.
Diagnostic ignored_entries(const PlanInput& input, const std::vector<int>& counted,
                           const std::string& name, const std::vector<std::string>& ignored) {
  const bool whole = counts_whole(input.env);
  std::vector<std::string> nothing;
  read_tile_mask(input.node, counted, input.env.get(name), true, nothing);
  const bool of_composite = !whole && nothing.empty();
  const bool dotted = std::any_of(ignored.begin(), ignored.end(), [](const std::string& entry) {
    return entry.find('.') != std::string::npos;
  });
  return {"mask-cut", Severity::warning,
          fmt::format(
              "{}: the driver ignores {}{}", quoted(input.env, name), fmt::join(ignored, ", "),
              whole || !dotted ? ""
                               : ", since masks count tiles while ZE_FLAT_DEVICE_HIERARCHY is not "
                                 "COMPOSITE"),
          of_composite ? "export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE: there X is a device and X.Y a "
                         "tile of it, and all of these are there"
                       : "give it entries that are there"};
}

Tiles granted_tiles(const PlanInput& input, const std::vector<int>& counted, Units& units) {
  const std::string mask(trim(input.env.get("ZE_AFFINITY_MASK")));
  const bool whole = counts_whole(input.env);
  std::vector<std::string> ignored;
  if (mask.empty() || mask == "default") {
    Tiles all;
    for (const int index : counted)
      for (int tile = 0; tile < tiles_of(input.node, index); ++tile) all[index].insert(tile);
    return all;
  }
  units.given = "ZE_AFFINITY_MASK";
  const std::optional<DeviceList> cards = cards_of_mask(input);
  Tiles left = read_tile_mask(input.node, counted, mask, whole || cards, ignored);
  if (cards && left != read_tile_mask(input.node, counted, mask, false, ignored))
    units.reports.push_back(
        {"mask-counts-tiles", Severity::note,
         fmt::format("{} is what Slurm writes for the cards of {}={}, but the driver would count "
                     "tiles by it; the plan takes these cards, with all their tiles",
                     quoted(input.env, units.given), cards->name, cards->text),
         "export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE to have masks count cards; X.Y names a tile "
         "then"});
  else if (!ignored.empty())
    units.reports.push_back(ignored_entries(input, counted, units.given, ignored));
  return left;
}

void apply_tiles(const PlanInput& input, const Allocation& allocation, Units& units) {
  std::vector<int> counted;
  for (const Pick& pick : allocation.counted)
    counted.push_back(pick.device >= 0 ? pick.device : pick.number);
  const Tiles tiles = granted_tiles(input, counted, units);
  std::map<int, int> place;  // in what the driver counts
  std::map<int, int> first;  // flat number of its first tile
  int flat = 0;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    place[counted[i]] = static_cast<int>(i);
    first[counted[i]] = flat;
    flat += tiles_of(input.node, counted[i]);
  }
  const bool by_tile = std::any_of(units.list.begin(), units.list.end(),
                                   [](const Unit& unit) { return unit.subdevice >= 0; });
  std::vector<Unit> ours;
  for (Unit unit : units.list) {
    const auto left = tiles.find(unit.device);
    if (left == tiles.end()) continue;
    if (!allocation.leaves(unit.device) ||
        (unit.subdevice >= 0 && left->second.count(unit.subdevice) == 0))
      continue;
    const int at = place.at(unit.device);
    unit.unit = by_tile ? first.at(unit.device) + std::max(0, unit.subdevice) : at;
    unit.place = at;
    if (unit.subdevice < 0 &&
        static_cast<int>(left->second.size()) < tiles_of(input.node, unit.device)) {
      std::vector<std::string> entries;
      for (const int tile : left->second) entries.push_back(fmt::format("{}.{}", at, tile));
      unit.name = fmt::format("{}", fmt::join(entries, ","));
    }
    ours.push_back(std::move(unit));
  }
  const bool unplaced = std::any_of(allocation.counted.begin(), allocation.counted.end(),
                                    [](const Pick& pick) { return pick.device < 0; });
  if (unplaced)
    for (Unit& unit : ours) {
      unit.device = -1;
      unit.pus = CpuSet{};
    }
  units.list = std::move(ours);
}

// ---- choices and reports ---------------------------------------------------------------------------------

void add_granted_choice(const PlanInput& input, const Allocation& allocation, Units& units) {
  std::set<std::string> names;
  std::vector<std::string> shown;
  for (const Unit& unit : units.list) {
    const std::string name =
        unit.device < 0 || unit.instance ? unit.name : std::to_string(unit.device);
    if (names.insert(name).second) shown.push_back(name);
  }
  std::vector<std::string> why;
  if (!allocation.why.empty()) why.push_back(allocation.why);
  if (input.env.has(units.given) && units.given != allocation.by &&
      allocation.why.find(units.given + "=") == std::string::npos)
    why.push_back(fmt::format("{} leaves these", quoted(input.env, units.given)));
  if (why.empty()) return;
  units.choices.push_back(choice("granted-devices", Layer::environment,
                                 shown.empty() ? "none" : fmt::format("{}", fmt::join(shown, ",")),
                                 fmt::format("{}; of the node's {}", fmt::join(why, "; "),
                                             counted(input.node.devices.size(), "device"))));
}

// Units of the node that the allocation alone leaves.
std::size_t in_allocation(const Allocation& allocation, const std::vector<Unit>& all) {
  const auto counted_here = [&](int device) {
    return std::any_of(allocation.counted.begin(), allocation.counted.end(),
                       [&](const Pick& pick) { return pick.device < 0 || pick.device == device; });
  };
  const auto ours = [&](const Unit& unit) {
    return allocation.mine ? allocation.leaves(unit.device) : counted_here(unit.device);
  };
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), ours));
}

// The source that leaves the fewest: a mask where it removes devices of the allocation.
Shortage why_fewer(const PlanInput& input, const Allocation& allocation,
                   const std::vector<Unit>& all, const Units& units) {
  const std::size_t left = units.list.size();
  Shortage result{static_cast<int>(all.size()), "", ""};
  if (left >= all.size()) return result;
  const bool masked = input.env.has(units.given) && units.given != allocation.by &&
                      (allocation.by.empty() || left < in_allocation(allocation, all));
  const std::string& by = masked ? units.given : allocation.by;
  const bool tiles = std::all_of(all.begin(), all.end(), [](const Unit& unit) {
    return unit.subdevice >= 0 && !unit.instance;
  });
  result.by = fmt::format("{} {} of the node's {}",
                          input.env.has(by) ? fmt::format("{}={} leaves", by, input.env.get(by))
                                            : "what can be opened here is",
                          left == 0 ? "none" : std::to_string(left),
                          counted(result.whole, tiles ? "tile" : "device"));
  result.fix = masked ? fmt::format("let {} have more of them", by)
                      : "ask the batch system for more of them";
  return result;
}

// What a name says of one node says nothing of the next.
void check_other_nodes(const PlanInput& input, Units& units) {
  if (!spans_nodes(input) || units.list.empty()) return;
  bool names = false;
  for (const Unit& unit : units.list) names = names || unit.name.find('-') != std::string::npos;
  if (names)
    units.reports.push_back(
        {"names-of-one-node", Severity::error,
         fmt::format("the plan has several nodes, and devices go by names of one node's ({}): "
                     "ranks on the others would find none",
                     units.list.front().name),
         "plan for one node (--nodes 1), or --gpu-view launcher and let the batch system give each "
         "rank its device"});
}

void apply_vendor(const PlanInput& input, const Allocation& allocation, Units& units) {
  units.reports.insert(units.reports.end(), allocation.reports.begin(), allocation.reports.end());
  units.given = allocation.by;
  if (units.vendor->syntax == MaskSyntax::level_zero) {
    if (allocation.by.empty() && trim(input.env.get("ZE_AFFINITY_MASK")).empty()) return;
    apply_tiles(input, allocation, units);
    add_granted_choice(input, allocation, units);
    return;
  }
  std::vector<Pick> picks = allocation.counted;
  const std::string before = units.given;
  bool masked = false;
  if (units.vendor->syntax == MaskSyntax::rocm) {
    read_amd(input, picks, units);
    masked = units.given != before;
  } else if (input.env.has("CUDA_VISIBLE_DEVICES")) {
    read_stage(input, "CUDA_VISIBLE_DEVICES", false, picks, units);
    masked = true;
  }
  const auto outside = std::stable_partition(picks.begin(), picks.end(), [&](const Pick& pick) {
    return pick.device < 0 || allocation.leaves(pick.device);
  });
  if (masked && outside != picks.end())
    units.reports.push_back(
        {"grant-contradicts", Severity::warning,
         fmt::format("{} has devices that {} does not grant: they are left out",
                     quoted(input.env, units.given), quoted(input.env, allocation.by)),
         fmt::format("unset {}, or ask the batch system for these devices", units.given)});
  picks.erase(outside, picks.end());
  if (!masked && allocation.by.empty()) {
    if (units.instances()) check_other_nodes(input, units);
  } else {
    const bool names = std::any_of(units.list.begin(), units.list.end(),
                                   [](const Unit& unit) { return unit.instance; });
    const std::vector<Unit> ours = units_of(input.node, units.list, picks, spans_nodes(input));
    units.list = in_order(units.list, ours);
    if (names || spans_nodes(input)) check_other_nodes(input, units);
    add_granted_choice(input, allocation, units);
  }
  if (!units.instances()) return;
  for (std::size_t i = 0; i < units.list.size(); ++i) units.list[i].unit = static_cast<int>(i);
}

}  // namespace

void split_instances(const Topology& node, Units& units) {
  if (!has_split(node)) return;
  std::vector<Unit> split;
  for (const Unit& unit : units.list) {
    const Device* device = find_device(node, unit.device);
    if (device == nullptr || !is_split(*device)) {
      split.push_back(unit);
      if (device != nullptr)
        split.back().name = device->uuid.empty() ? std::to_string(device->index) : device->uuid;
      continue;
    }
    for (std::size_t i = 0; i < device->instances.size(); ++i) {
      split.push_back(unit);
      split.back().subdevice = static_cast<int>(i);
      split.back().name = device->instances[i];
      split.back().instance = true;
    }
    if (device->instances.empty())
      units.reports.push_back(
          {"no-instances", Severity::warning,
           fmt::format("device {}{} is split (MIG) and has no instance: no process can use it",
                       device->index, device->pci.empty() ? "" : " at " + device->pci),
           "create instances (nvidia-smi mig -cgi), switch MIG off, or ask the site"});
  }
  units.list = std::move(split);
}

void apply_allocation(const PlanInput& input, Units& units) {
  const Allocation allocation = find_allocation(input, *units.vendor);
  const std::vector<Unit> all = units.list;
  apply_vendor(input, allocation, units);
  units.shortage = why_fewer(input, allocation, all, units);
}

}  // namespace hpclaunch
