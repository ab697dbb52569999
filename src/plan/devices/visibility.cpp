#include "plan/devices/visibility.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

// The mask that reaches these units.
Result<std::string> mask_of(const Units& units, const std::vector<int>& numbers) {
  const std::vector<const Unit*> all = single_units(units);
  std::vector<std::string> entries;
  for (const int number : numbers) {
    const Unit& unit = **std::ranges::find(all, number, &Unit::unit);
    Facts facts;
    facts.rank = {{"unit", std::to_string(unit.unit)},
                  {"device", std::to_string(unit.place >= 0 ? unit.place : unit.device)},
                  {"subdevice", std::to_string(std::max(0, unit.subdevice))}};
    Result<std::string> entry = unit.name.empty() ? expand(units.mask_item, facts) : unit.name;
    if (!entry) return entry;
    entries.push_back(std::move(*entry));
  }
  return fmt::format("{}", fmt::join(entries, ","));
}

// One mask decides; the others are removed where they are set.
void clear_other_masks(const PlanInput& input, const Units& units, EnvSettings& settings) {
  for (const std::string_view name : units.vendor->masks)
    if (!name.empty() && name != units.mask && input.env.has(name))
      settings.add(
          std::string(name), Layer::computed, Unset{},
          fmt::format("only {} is used: a second mask would apply to the devices of the first",
                      units.mask));
}

// The driver's count in PCI order, for vendors that have another by default.
void add_pci_order(const Units& units, const char* why, EnvSettings& settings) {
  const VendorSetting& order = units.vendor->pci_order;
  if (order.name.empty()) return;
  settings.add(std::string(order.name), Layer::builtin, std::string(order.value), why);
}

void add_mask(const PlanInput& input, const Units& units, Value value, std::string why,
              EnvSettings& settings) {
  if (!units.given.empty()) why += "; from the devices of " + units.given;
  settings.add(units.mask, Layer::computed, std::move(value), std::move(why));
  add_pci_order(units, "the mask counts devices by PCI address", settings);
  clear_other_masks(input, units, settings);
}

Status add_own(const PlanInput& input, const Units& units, const Plan& placed,
               EnvSettings& settings) {
  PerRank mask;
  for (const NodeClass& one : placed.classes) {
    mask.items.emplace_back();
    for (const RankPlan& rank : one.ranks) {
      std::vector<int> numbers{rank.unit};
      for (const UnitRef& more : rank.more_units) numbers.push_back(more.unit);
      Result<std::string> list = mask_of(units, numbers);
      if (!list) return list.error();
      mask.items.back().push_back(std::move(*list));
    }
  }
  add_mask(input, units, std::move(mask),
           fmt::format("each rank sees only its own device{}", units.per_rank > 1 ? "s" : ""),
           settings);
  return Done{};
}

struct Order {
  std::vector<int> units;  // numbers, as the ranks have them, then the others
  bool natural = true;     // device i of the driver is already local rank i's
  bool ascending = true;
  std::size_t used = 0;
};

Order order_of(const Units& units, const std::vector<RankPlan>& ranks) {
  Order order;
  const auto add = [&](int unit) {
    if (std::ranges::count(order.units, unit) == 0) order.units.push_back(unit);
  };
  for (const RankPlan& rank : ranks) add(rank.unit);
  order.used = order.units.size();
  order.ascending = std::ranges::is_sorted(order.units);
  for (std::size_t i = 0; i < order.used; ++i)
    order.natural = order.natural && order.units[i] == static_cast<int>(i);
  for (const Unit& unit : units.list) add(unit.unit);
  std::sort(order.units.begin() + static_cast<std::ptrdiff_t>(order.used), order.units.end());
  return order;
}

// How a program that sees all devices finds its own, for each class of nodes: by a formula where one gives
// what the plan has, else by a list where that is short.
std::string how_to_divide(const std::vector<std::vector<int>>& places) {
  const auto everywhere = [&](auto device) {
    return std::ranges::all_of(places, [&](const std::vector<int>& ranks) {
      const int size = static_cast<int>(ranks.size());
      for (int r = 0; r < size; ++r)
        if (ranks[r] != device(r, size)) return false;
      return true;
    });
  };
  int most = 0;
  int devices = 0;
  for (const std::vector<int>& ranks : places) {
    most = std::max(most, static_cast<int>(ranks.size()));
    devices = std::max(devices, 1 + *std::ranges::max_element(ranks));
  }
  const int each = (most + devices - 1) / devices;
  constexpr int kMostListed = 16;
  if (everywhere([&](int r, int) { return r / each; }))
    return fmt::format("; use device LOCAL_RANK // {}", each);
  if (everywhere([&](int r, int size) { return r * devices / size; }))
    return fmt::format("; use device LOCAL_RANK * {} // LOCAL_WORLD_SIZE", devices);
  if (places.size() > 1 || most > kMostListed) return "";
  return fmt::format("; use device {} for LOCAL_RANK 0, 1, ...", fmt::join(places.front(), ", "));
}

Status add_all(const PlanInput& input, const Units& units, Plan& placed, EnvSettings& settings) {
  PerRank mask;
  bool natural = units.given.empty();
  bool ascending = true;
  bool shared = false;
  std::vector<std::vector<int>> places;
  for (const NodeClass& one : placed.classes) {
    Order order = order_of(units, one.ranks);
    shared = shared || order.used < one.ranks.size();
    natural = natural && order.natural;
    ascending = ascending && order.ascending;
    if (units.vendor->keeps_order() && !order.natural) {
      order.units.resize(order.used);
      std::sort(order.units.begin(), order.units.end());
    }
    places.emplace_back();  // of each rank's device among those that it sees
    for (const RankPlan& rank : one.ranks)
      places.back().push_back(
          static_cast<int>(std::ranges::find(order.units, rank.unit) - order.units.begin()));
    const Result<std::string> list = mask_of(units, order.units);
    if (!list) return list.error();
    mask.items.emplace_back(one.ranks.size(), *list);
  }
  if (units.vendor->keeps_order() && !ascending)
    placed.reports.push_back(
        {"device-order", Severity::warning,
         "the driver keeps its own device order: device LOCAL_RANK is not the one nearest to the "
         "rank",
         "--gpu-view own"});
  if (const int ranks = placed.max_local_size(); shared)
    placed.reports.push_back(
        {"shared-devices", Severity::note,
         fmt::format("{} share {}: LOCAL_RANK is not always a device number{}",
                     counted(ranks, "rank"), counted(units.used_by(ranks), "device"),
                     how_to_divide(places)),
         "--gpu-view own: each rank uses device 0"});
  if (natural) {
    if (differing_models(input.node))
      add_pci_order(units,
                    "the plan counts devices by PCI address; CUDA's default is fastest first",
                    settings);
    return Done{};
  }
  add_mask(input, units, constant_or_per_rank(std::move(mask)),
           !ascending && units.vendor->keeps_order()
               ? "each rank sees the devices that ranks use, in the driver's own order"
               : why_all(units),
           settings);
  return Done{};
}

// What Level Zero counts. COMBINED counts and masks as FLAT does, and cards of one tile are the same in every
// hierarchy; there what was exported stays. Source: level-zero specification, ZE_FLAT_DEVICE_HIERARCHY.
void add_hierarchy(const PlanInput& input, const Units& units, EnvSettings& settings) {
  const std::string name(units.vendor->hierarchy);
  const bool tiles = units.mode == "tile";
  const bool depends = std::ranges::any_of(
      input.node.devices, [](const Device& device) { return device.subdevices > 1; });
  std::string value = input.env.get(name);
  const char* why = tiles ? "the plan counts tiles as devices"
                          : "the plan counts whole devices; the driver's default is tiles";
  if (!depends && !value.empty())
    why = "as exported; devices of one tile are the same in every hierarchy";
  else if (tiles && value == "COMBINED")
    why = "as exported; COMBINED counts tiles as devices, as FLAT does";
  else
    value = tiles ? "FLAT" : "COMPOSITE";
  settings.add(name, Layer::computed, value, why);
}

// --devices-per-rank 0. Sources: CUDA programming guide (an empty list hides
// all), ROCm's HIP runtime (an index that is not there ends the list). Level Zero has no such value.
void hide_all(const Topology& node, Plan& placed, EnvSettings& settings) {
  const std::string why = "--devices-per-rank 0: ranks see no device";
  std::set<std::string> vendors;
  for (const Device& device : node.devices) vendors.insert(device.vendor);
  for (const std::string& name : vendors) {
    const VendorSetting& hide = device_vendor(name).hide_all;
    if (!hide.name.empty()) {
      settings.add(std::string(hide.name), Layer::computed, std::string(hide.value), why);
      continue;
    }
    placed.reports.push_back(
        {"devices-visible", Severity::note,
         fmt::format("--devices-per-rank 0: no mask of the driver hides all devices{}, so ranks "
                     "still see them",
                     vendors.size() > 1 ? " of " + name : ""),
         "tell the program to use the CPU"});
  }
}

void add_local_rank(const PlanInput& input, const Units& units, EnvSettings& settings) {
  const bool sees_one = units.view == "own" || units.view == "launcher";
  if (!sees_one || input.request.local_rank == "node")
    return settings.add("LOCAL_RANK", Layer::computed, RankFact::local_rank,
                        sees_one
                            ? "--local-rank node: local rank, although the rank sees one device"
                            : "local rank; most programs use it as the device number");
  const std::string sees = units.per_rank > 1 ? fmt::format("its {} devices, as 0 to {}",
                                                            units.per_rank, units.per_rank - 1)
                                              : std::string("one device, as device 0");
  settings.add("LOCAL_RANK", Layer::computed, std::string("0"),
               fmt::format("the rank sees {}; HPCLAUNCH_LOCAL_RANK is its local rank", sees));
}

// By default JAX takes the device with the number of Slurm's or Open MPI's local rank, which only rank 0 sees here.
void add_taken(const Units& units, EnvSettings& settings) {
  std::vector<int> seen(static_cast<std::size_t>(units.per_rank));
  std::iota(seen.begin(), seen.end(), 0);
  settings.add(std::string(units.vendor->taken), Layer::computed,
               fmt::format("{}", fmt::join(seen, ",")),
               "JAX takes what the rank sees, not the device with the number of its local rank");
}

// Parts of devices in a view that has whole ones.
void report_parts(const Units& units, Plan& placed) {
  const auto report = [&](std::string message) {
    placed.reports.push_back(
        {"parts-need-masks", Severity::error, std::move(message), "--gpu-view own"});
  };
  if (units.view != "all") return;
  if (units.mask_item.find("subdevice") != std::string::npos)
    report(
        fmt::format("--gpu-view all does not work in device mode {}: only a mask selects parts "
                    "of devices",
                    units.mode));
  if (units.instances() && units.count() > 1)
    report("--gpu-view all does not work in MIG mode: a process sees only the first instance");
}

}  // namespace

bool differing_models(const Topology& node) {
  return std::ranges::any_of(node.devices, [&](const Device& device) {
    return device.model != node.devices.front().model;
  });
}

bool follow_driver_order(const PlanInput& input, const std::vector<NodeClass>& classes,
                         Units& units) {
  if (!units.vendor->keeps_order() || units.view != "all" || !input.request.gpu_view.empty() ||
      std::ranges::all_of(
          classes, [&](const NodeClass& one) { return order_of(units, one.ranks).ascending; }))
    return false;
  decide_own(units,
             "the driver keeps its own device order: with all devices visible, device LOCAL_RANK "
             "would not be the nearest");
  return true;
}

Status add_visibility(const PlanInput& input, const Units& units, Plan& placed,
                      EnvSettings& settings) {
  add_local_rank(input, units, settings);
  if (units.hidden) {
    hide_all(input.node, placed, settings);
    return Done{};
  }
  report_left(units, placed.reports);
  std::ranges::copy_if(
      units.reports, std::back_inserter(placed.reports), [&](const Diagnostic& one) {
        return units.view != "launcher" || one.id != "names-of-one-node";  // no names of ours then
      });
  const bool named = input.env.has(units.given);
  if (units.list.empty() && !units.given.empty())
    placed.reports.push_back(
        {"no-device-left", Severity::warning,
         fmt::format("{} no device of this node: the plan has none",
                     named
                         ? fmt::format("{}=\"{}\" selects", units.given, input.env.get(units.given))
                         : "this process can open"),
         fmt::format("{}request devices", named ? fmt::format("unset {}, or ", units.given) : "")});
  const bool sees_own = units.view == "own" || units.view == "launcher";
  if (!units.list.empty() && sees_own && !units.vendor->taken.empty()) add_taken(units, settings);
  if (units.list.empty() || units.mask.empty()) return Done{};
  if (!units.vendor->hierarchy.empty() && (units.mode.empty() || units.own_mode))
    add_hierarchy(input, units, settings);
  report_parts(units, placed);
  if (units.view == "own") return add_own(input, units, placed, settings);
  if (units.view == "all") return add_all(input, units, placed, settings);
  return Done{};
}

}  // namespace hpclaunch
