// From the given masks to the units that ranks may get.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "hpclaunch/text.h"
#include "plan/devices/masks.h"
#include "plan/devices/slots.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

std::string quoted(const EnvSnapshot& env, const std::string& name) {
  return fmt::format("{}=\"{}\"", name, env.get(name));
}

bool is_instance_name(const std::string& name) {
  return name.size() > 4 && (name.starts_with("MIG-") || name.starts_with("mig-"));
}

// A second mask counts what the first one leaves.
std::vector<Pick> counted_by_place(std::vector<Pick> picks) {
  for (std::size_t i = 0; i < picks.size(); ++i) picks[i].number = static_cast<int>(i);
  return picks;
}

// What one mask leaves of the devices, and what is to be said about it.
void read_stage(const PlanInput& input, const std::string& name, bool by_place,
                std::vector<Pick>& picks, Slots& units) {
  const bool cuda = units.vendor->syntax == MaskSyntax::cuda;
  Picked read = read_mask(input.node, by_place ? counted_by_place(picks) : picks,
                          input.env.get(name), units.vendor->syntax);
  for (Pick& pick : read.picks)  // back to the count before any mask
    if (by_place && pick.number >= 0) pick.number = picks[pick.number].number;
  picks = std::move(read.picks);
  units.given = name;
  const auto warn = [&](const char* id, std::string message, std::string fix) {
    units.reports.push_back({id, Severity::warning, std::move(message), std::move(fix)});
  };
  if (!read.repeated.empty())
    warn("mask-repeats",
         fmt::format("{}: \"{}\" is repeated, so CUDA and PyTorch see no device",
                     quoted(input.env, name), read.repeated),
         fmt::format("list each device once in {}", name));
  if (!read.stopped.empty() && !picks.empty())
    warn("mask-cut",
         fmt::format("{}: \"{}\" is not a visible device, or {}; the driver ignores the rest",
                     quoted(input.env, name), read.stopped,
                     cuda ? "differs in form from the first entry" : "is repeated"),
         fmt::format("list each visible device once in {}{}", name,
                     cuda ? ", all by number or all by name" : ""));
}

// The first mask of a row restricts what the second counts. Slurm and Flux set several of AMD's alike.
std::vector<Pick> read_masks(const PlanInput& input, std::vector<Pick> picks, Slots& units) {
  const DeviceVendor& vendor = *units.vendor;
  const auto text = [&](std::string_view name) { return std::string(trim(input.env.get(name))); };
  const std::string first(vendor.masks.front());
  const bool set = input.env.has(first);
  if (set) read_stage(input, first, false, picks, units);
  const auto next = std::ranges::find_if(vendor.masks.begin() + 1, vendor.masks.end(),
                                         [&](auto name) { return !text(name).empty(); });
  if (next == vendor.masks.end()) {
    if (!set && !text(vendor.opencl_mask).empty())
      read_stage(input, std::string(vendor.opencl_mask), false, picks, units);
    return picks;
  }
  const std::string second(*next);
  if (!set || text(second) != text(first)) {
    read_stage(input, second, set, picks, units);
    return picks;
  }
  const Picked twice = read_mask(input.node, counted_by_place(picks), text(second), vendor.syntax);
  if (twice.picks.size() != picks.size())
    units.reports.push_back(
        {"mask-twice", Severity::note,
         fmt::format("{} repeats the list of {}, and the driver would apply both in turn; the plan "
                     "applies it once, and ranks get one mask",
                     second, first),
         ""});
  return picks;
}

// Instances for the device that has them; a device by its place; an unknown name as it is.
std::vector<SlotGroup> units_of(const Topology& node, const std::vector<SlotGroup>& all,
                                const std::vector<Pick>& picks, bool by_number) {
  std::vector<SlotGroup> ours;
  std::set<int> taken;  // numbers
  for (const Pick& pick : picks) {
    const Device* device = node.find_device(pick.device);
    const bool instance = pick.part >= 0;
    if (device == nullptr || (is_instance_name(pick.name) && !instance)) {  // not known which
      SlotGroup unit;
      unit.unit = -1;
      unit.device = pick.device;
      unit.name = pick.name;
      const auto whole = std::ranges::find(all, pick.device, &SlotGroup::device);
      if (pick.device >= 0 && whole != all.end()) unit.pus = whole->pus;
      unit.instance = is_instance_name(pick.name);
      ours.push_back(std::move(unit));
      continue;
    }
    for (SlotGroup unit : all) {
      if (unit.device != pick.device || (instance && unit.subdevice != pick.part)) continue;
      if (!unit.instance) unit.unit = pick.number;
      if (!unit.instance || instance)
        unit.name = by_number && !instance ? std::to_string(pick.number) : pick.name;
      taken.insert(unit.unit);
      ours.push_back(std::move(unit));
    }
  }
  for (SlotGroup& unit : ours)  // the lowest free number
    for (int next = 0; unit.unit < 0; ++next)
      if (taken.insert(next).second) unit.unit = next;
  return ours;
}

// As they stand in `all`, by their cores, where that is known of each; else as the mask has them.
std::vector<SlotGroup> in_order(const std::vector<SlotGroup>& all,
                                const std::vector<SlotGroup>& ours) {
  std::vector<SlotGroup> ordered;
  for (const SlotGroup& unit : all)
    std::ranges::copy_if(ours, std::back_inserter(ordered), [&](const SlotGroup& mine) {
      return mine.device == unit.device && mine.subdevice == unit.subdevice && !mine.pus.empty();
    });
  return ordered.size() == ours.size() ? ordered : ours;
}

// ---- Level Zero: tiles ----------------------------------------------------------------------------

// Entries that name tiles are right for COMPOSITE, and ignored in every other hierarchy.
void report_ignored(const std::string& set, bool whole, bool right_for_whole,
                    const std::vector<std::string>& ignored, Slots& units) {
  const bool dotted = std::ranges::any_of(
      ignored, [](const std::string& entry) { return entry.find('.') != std::string::npos; });
  units.reports.push_back(
      {"mask-cut", Severity::warning,
       fmt::format("{}: the driver ignores {}{}", set, fmt::join(ignored, ", "),
                   whole || !dotted
                       ? ""
                       : "; masks count tiles unless ZE_FLAT_DEVICE_HIERARCHY is COMPOSITE"),
       whole || !right_for_whole
           ? "list visible devices only"
           : "export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE: X is a device there, and X.Y its tile"});
}

std::vector<Pick> granted_tiles(const PlanInput& input, const Allocation& allocation,
                                const std::vector<Pick>& tiles, Slots& units) {
  const std::string mask(trim(input.env.get("ZE_AFFINITY_MASK")));
  if (mask.empty() || mask == "default") return tiles;
  units.given = "ZE_AFFINITY_MASK";
  const std::string set = quoted(input.env, units.given);
  std::vector<std::string> ignored;
  std::vector<std::string> ignored_whole;
  const std::vector<Pick> by_tile = read_tile_mask(tiles, mask, false, ignored);
  const std::vector<Pick> by_card = read_tile_mask(tiles, mask, true, ignored_whole);
  const std::string& cards = allocation.cards;
  const bool whole = counts_whole(input.env);
  if (!cards.empty() && by_card != by_tile)
    units.reports.push_back(
        {"mask-counts-tiles", Severity::note,
         fmt::format(
             "{} is Slurm's list of cards {}, but the driver reads it as tiles; the plan takes "
             "whole cards",
             set, cards),
         "export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE: masks count cards then, and X.Y is a tile"});
  else if (const auto& entries = whole ? ignored_whole : ignored; !entries.empty())
    report_ignored(set, whole, ignored_whole.empty(), entries, units);
  return whole || !cards.empty() ? by_card : by_tile;
}

// The driver keeps its order: units stay as they stand, with its numbers for those that are left.
std::vector<SlotGroup> units_of_tiles(const std::vector<SlotGroup>& all,
                                      const std::vector<Pick>& tiles,
                                      const std::vector<Pick>& left) {
  const bool by_tile =
      std::ranges::any_of(all, [](const SlotGroup& unit) { return unit.subdevice >= 0; });
  std::vector<SlotGroup> ours;
  for (SlotGroup unit : all) {
    std::vector<std::string> names;
    const Pick* first = nullptr;
    for (const Pick& tile : left) {
      if (tile.device != unit.device || (unit.subdevice >= 0 && tile.part != unit.subdevice))
        continue;
      if (first == nullptr) first = &tile;
      names.push_back(fmt::format("{}.{}", tile.number, tile.part));
    }
    if (first == nullptr) continue;
    unit.place = first->number;
    unit.unit =
        by_tile ? static_cast<int>(std::ranges::find(tiles, *first) - tiles.begin()) : unit.place;
    const auto parts = std::ranges::count(tiles, unit.device, &Pick::device);
    if (unit.subdevice < 0 && std::ssize(names) < parts)
      unit.name += fmt::format("{}", fmt::join(names, ","));
    ours.push_back(std::move(unit));
  }
  return ours;
}

void add_granted_choice(const PlanInput& input, const Allocation& allocation, Slots& units) {
  std::vector<std::string> shown;
  for (const SlotGroup& unit : units.list) {
    const std::string name =
        unit.device < 0 || unit.instance ? unit.name : std::to_string(unit.device);
    if (std::ranges::count(shown, name) == 0) shown.push_back(name);
  }
  std::string why = allocation.why;
  if (input.env.has(units.given) && units.given != allocation.by &&
      why.find(units.given + "=") == std::string::npos)
    why +=
        fmt::format("{}{} selects these", why.empty() ? "" : "; ", quoted(input.env, units.given));
  if (why.empty()) return;
  units.choices.push_back(choice(
      "granted-devices", Layer::environment,
      shown.empty() ? "none" : fmt::format("{}", fmt::join(shown, ",")),
      fmt::format("{}; of the node's {}", why, counted(input.node.devices.size(), "device"))));
}

void apply_tiles(const PlanInput& input, const Allocation& allocation, Slots& units) {
  if (allocation.by.empty() && trim(input.env.get("ZE_AFFINITY_MASK")).empty()) return;
  const std::vector<Pick> tiles = tiles_in(input.node, allocation.counted);
  std::vector<Pick> left = granted_tiles(input, allocation, tiles, units);
  std::erase_if(left, [&](const Pick& tile) { return !allocation.leaves(tile.device); });
  units.list = units_of_tiles(units.list, tiles, left);
  for (SlotGroup& unit : units.list)
    if (allocation.unplaced()) {
      unit.device = -1;
      unit.pus = CpuSet{};
    }
  add_granted_choice(input, allocation, units);
}

// The source that leaves the fewest: a mask where it removes devices of the allocation.
Shortage why_fewer(const PlanInput& input, const Allocation& allocation,
                   const std::vector<SlotGroup>& all, const Slots& units) {
  const std::size_t left = units.list.size();
  Shortage result;
  result.whole = static_cast<int>(all.size());
  if (left >= all.size()) return result;
  const auto granted = std::ranges::count_if(all, [&](const SlotGroup& unit) {
    if (allocation.mine) return allocation.leaves(unit.device);
    return allocation.unplaced() ||
           std::ranges::count(allocation.counted, unit.device, &Pick::device) > 0;
  });
  const bool masked = input.env.has(units.given) && units.given != allocation.by &&
                      (allocation.by.empty() || static_cast<long>(left) < granted);
  const std::string& by = masked ? units.given : allocation.by;
  const bool tiles = std::ranges::all_of(
      all, [](const SlotGroup& unit) { return unit.subdevice >= 0 && !unit.instance; });
  result.by = fmt::format("{} {} of the node's {}",
                          input.env.has(by) ? fmt::format("{}={} selects", by, input.env.get(by))
                                            : "this process can open",
                          left == 0 ? "none" : std::to_string(left),
                          counted(result.whole, tiles ? "tile" : "device"));
  result.fix = masked ? fmt::format("add devices to {}", by) : "request more devices";
  if (masked && left > 0) result.mask = by;
  return result;
}

// UUIDs of this node's devices are no other node's.
void check_other_nodes(const PlanInput& input, Slots& units) {
  const bool names = std::ranges::any_of(
      units.list, [](const SlotGroup& unit) { return unit.name.find('-') != std::string::npos; });
  if (!spans_nodes(input) || !names) return;
  units.reports.push_back(
      {"names-of-one-node", Severity::error,
       fmt::format("the plan has several nodes, but devices are known by one node's UUIDs ({}), "
                   "which other nodes do not have",
                   units.list.front().name),
       "--nodes 1, or --gpu-view launcher if the batch system gives each rank its device"});
}

void apply_masks(const PlanInput& input, const Allocation& allocation, Slots& units) {
  std::vector<Pick> picks = read_masks(input, allocation.counted, units);
  const bool masked = units.given != allocation.by;
  const auto outside = std::erase_if(
      picks, [&](const Pick& pick) { return pick.device >= 0 && !allocation.leaves(pick.device); });
  if (masked && outside > 0)
    units.reports.push_back(
        {"grant-contradicts", Severity::warning,
         fmt::format("ignoring the devices of {} that {} does not grant",
                     quoted(input.env, units.given), quoted(input.env, allocation.by)),
         fmt::format("unset {}, or request these devices", units.given)});
  const bool restricted = masked || !allocation.by.empty();
  if (restricted) {
    units.list = in_order(units.list, units_of(input.node, units.list, picks, spans_nodes(input)));
    add_granted_choice(input, allocation, units);
  }
  if (restricted || units.instances()) check_other_nodes(input, units);
  if (!units.instances()) return;
  for (std::size_t i = 0; i < units.list.size(); ++i) units.list[i].unit = static_cast<int>(i);
}

// Puts the instances of split devices (MIG) in their place.
void split_instances(const Topology& node, Slots& units) {
  if (!has_split(node)) return;
  std::vector<SlotGroup> split;
  for (const SlotGroup& unit : units.list) {
    const Device& device = *node.find_device(unit.device);
    if (!is_split(device)) {
      split.push_back(unit);
      split.back().name = device.uuid.empty() ? std::to_string(device.index) : device.uuid;
      continue;
    }
    for (std::size_t i = 0; i < device.instances.size(); ++i) {
      split.push_back(unit);
      split.back().subdevice = static_cast<int>(i);
      split.back().name = device.instances[i];
      split.back().instance = true;
    }
    if (device.instances.empty())
      units.reports.push_back(
          {"no-instances", Severity::warning,
           fmt::format("device {}{} is in MIG mode and has no instance: no process can use it",
                       device.index, device.pci.empty() ? "" : " at " + device.pci),
           "create instances (nvidia-smi mig -cgi), or switch MIG mode off"});
  }
  units.list = std::move(split);
}

}  // namespace

void apply_allocation(const PlanInput& input, Slots& units) {
  split_instances(input.node, units);
  const Allocation allocation = find_allocation(input, *units.vendor);
  const std::vector<SlotGroup> all = units.list;
  units.reports.insert(units.reports.end(), allocation.reports.begin(), allocation.reports.end());
  units.given = allocation.by;
  const auto apply = units.vendor->keeps_order() ? apply_tiles : apply_masks;
  apply(input, allocation, units);
  units.shortage = why_fewer(input, allocation, all, units);
  const bool masked = !units.shortage.mask.empty();
  std::set<int> devices;
  for (const SlotGroup& unit : masked ? all : units.list)
    if (!masked || allocation.leaves(unit.device)) devices.insert(unit.device);
  units.devices = static_cast<int>(devices.size());
  if (!masked) return;
  units.reports.push_back(
      {"mask-restricts", Severity::note, units.shortage.by,
       fmt::format(fmt::runtime(input.job.scheduler == "none"
                                    ? "unset {} to use all devices"
                                    : "request more devices, or unset {} if exported by you"),
                   units.shortage.mask)});
}

}  // namespace hpclaunch
