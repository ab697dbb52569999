#include "plan/devices/visibility.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

Result<std::string> entry_of(const Units& units, int unit_number) {
  for (const Unit* unit : single_units(units)) {
    if (unit->unit != unit_number) continue;
    if (!unit->name.empty()) return unit->name;
    Facts facts;
    facts.rank = {{"unit", std::to_string(unit->unit)},
                  {"device", std::to_string(unit->place >= 0 ? unit->place : unit->device)},
                  {"subdevice", std::to_string(std::max(0, unit->subdevice))}};
    return expand(units.mask_item, facts);
  }
  return std::string();
}

// The mask that reaches these units.
Result<std::string> mask_of(const Units& units, const std::vector<int>& numbers) {
  std::string mask;
  for (const int number : numbers) {
    Result<std::string> entry = entry_of(units, number);
    if (!entry) return entry;
    mask += (mask.empty() ? "" : ",") + *entry;
  }
  return mask;
}

// One mask decides; the others are removed where they are set.
void clear_other_masks(const PlanInput& input, const Units& units, EnvSettings& settings) {
  for (const std::string_view name : units.vendor->masks)
    if (!name.empty() && name != units.mask && input.env.has(name))
      settings.add(
          std::string(name), Layer::computed, Unset{},
          fmt::format("{} decides alone; a second mask would count what the first has left",
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
  if (!units.given.empty()) why += fmt::format("; chosen among what {} had left", units.given);
  settings.add(units.mask, Layer::computed, std::move(value), std::move(why));
  add_pci_order(units, "the mask counts devices in the order of their PCI addresses", settings);
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
           units.per_rank > 1 ? "each rank sees its own devices only"
                              : "each rank sees its own device only",
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
  for (const RankPlan& rank : ranks)
    if (std::find(order.units.begin(), order.units.end(), rank.unit) == order.units.end())
      order.units.push_back(rank.unit);
  order.used = order.units.size();
  std::vector<int> rest;
  for (const Unit& unit : units.list)
    if (std::find(order.units.begin(), order.units.end(), unit.unit) == order.units.end())
      rest.push_back(unit.unit);
  std::sort(rest.begin(), rest.end());
  for (std::size_t i = 0; i < order.used; ++i) {
    if (order.units[i] != static_cast<int>(i)) order.natural = false;
    if (i > 0 && order.units[i] < order.units[i - 1]) order.ascending = false;
  }
  order.units.insert(order.units.end(), rest.begin(), rest.end());
  return order;
}

// What device each rank's is among those that it sees.
std::vector<int> places_of(const std::vector<RankPlan>& ranks, const std::vector<int>& seen) {
  std::vector<int> places;
  places.reserve(ranks.size());
  for (const RankPlan& rank : ranks)
    places.push_back(
        static_cast<int>(std::find(seen.begin(), seen.end(), rank.unit) - seen.begin()));
  return places;
}

// How a program that sees all devices finds its own, for each class of nodes: by a formula where one gives
// what the plan has, else by a list where that is short.
std::string how_to_divide(const std::vector<std::vector<int>>& places) {
  const auto everywhere = [&](auto device) {
    return std::all_of(places.begin(), places.end(), [&](const std::vector<int>& ranks) {
      const int size = static_cast<int>(ranks.size());
      for (int r = 0; r < size; ++r)
        if (ranks[r] != device(r, size)) return false;
      return true;
    });
  };
  std::size_t most = 0;
  int devices = 0;
  for (const std::vector<int>& ranks : places) {
    most = std::max(most, ranks.size());
    devices = std::max(devices, 1 + *std::max_element(ranks.begin(), ranks.end()));
  }
  const int each = (static_cast<int>(most) + devices - 1) / devices;
  if (everywhere([&](int r, int) { return r / each; }))
    return fmt::format(": a program must take device LOCAL_RANK // {}", each);
  if (everywhere([&](int r, int size) { return r * devices / size; }))
    return fmt::format(": a program must take device LOCAL_RANK * {} // LOCAL_WORLD_SIZE", devices);
  constexpr std::size_t kMostListed = 16;
  if (places.size() > 1 || most > kMostListed) return "";
  return fmt::format(": a program must take device {} as LOCAL_RANK counts up",
                     fmt::join(places.front(), ", "));
}

// `places`: of ranks that share devices, by class; nullptr where none do.
void report_all(const Units& units, bool ascending, const std::vector<std::vector<int>>* places,
                Plan& placed) {
  if (units.vendor->keeps_order() && !ascending)
    placed.reports.push_back(
        {"device-order", Severity::warning,
         "the driver keeps its own order of devices, so that device LOCAL_RANK is not the one "
         "nearest to the rank",
         "--gpu-view own"});
  if (places != nullptr)
    placed.reports.push_back({"shared-devices", Severity::note,
                              fmt::format("{} share {}, and LOCAL_RANK goes beyond them{}",
                                          counted(placed.max_local_size(), "rank"),
                                          counted(units.used_by(placed.max_local_size()), "device"),
                                          how_to_divide(*places)),
                              "--gpu-view own makes device 0 the right one on every rank"});
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
    places.push_back(places_of(one.ranks, order.units));
    const Result<std::string> list = mask_of(units, order.units);
    if (!list) return list.error();
    mask.items.emplace_back(one.ranks.size(), *list);
  }
  report_all(units, ascending, shared ? &places : nullptr, placed);
  if (natural) {
    if (differing_models(input.node))
      add_pci_order(units,
                    "devices are counted in the order of their PCI addresses; by itself CUDA "
                    "takes the fastest model first",
                    settings);
    return Done{};
  }
  add_mask(input, units, constant_or_per_rank(std::move(mask)),
           !ascending && units.vendor->keeps_order()
               ? "the devices that ranks use stay visible, in the driver's own order"
               : why_all(units),
           settings);
  return Done{};
}

// What Level Zero counts. COMBINED counts and masks as FLAT does, and cards of one tile are the same in every
// hierarchy; there what was exported stays. Source: level-zero specification, ZE_FLAT_DEVICE_HIERARCHY.
void add_hierarchy(const PlanInput& input, const Units& units, EnvSettings& settings) {
  const std::string name(units.vendor->hierarchy);
  const bool tiles = units.mode == "tile";
  const bool depends = std::any_of(input.node.devices.begin(), input.node.devices.end(),
                                   [](const Device& device) { return device.subdevices > 1; });
  const std::string exported = input.env.get(name);
  if (!depends && !exported.empty())
    settings.add(name, Layer::computed, exported,
                 "as exported: cards of one tile are the same in every hierarchy");
  else if (tiles && exported == "COMBINED")
    settings.add(name, Layer::computed, exported,
                 "as exported: tiles are counted as devices here, in COMBINED as in FLAT");
  else
    settings.add(name, Layer::computed, std::string(tiles ? "FLAT" : "COMPOSITE"),
                 tiles ? "tiles are counted as devices here"
                       : "devices are counted whole here; unset, the driver counts their tiles");
}

// Devices that ranks were asked to leave alone. Sources: CUDA programming guide (an empty list hides
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
         fmt::format("--devices-per-rank 0: ranks still see the devices{}, since no mask of "
                     "this driver hides all",
                     vendors.size() > 1 ? " of " + name : ""),
         "tell the program to use the CPU"});
  }
}

void add_local_rank(const PlanInput& input, const Units& units, EnvSettings& settings) {
  const bool sees_one = units.view == "own" || units.view == "launcher";
  if (sees_one && input.request.local_rank != "node")
    settings.add("LOCAL_RANK", Layer::computed, std::string("0"),
                 units.per_rank > 1 ? fmt::format("the rank sees its {} devices, as 0 to {}; "
                                                  "HPCLAUNCH_LOCAL_RANK is its place on the node",
                                                  units.per_rank, units.per_rank - 1)
                                    : std::string("the rank sees one device, as device 0; "
                                                  "HPCLAUNCH_LOCAL_RANK is its place on the node"));
  else
    settings.add("LOCAL_RANK", Layer::computed, RankFact::local_rank,
                 sees_one
                     ? "--local-rank node: place on the node, although the rank sees one device"
                     : "place on the node; the device index of most programs");
}

// Parts of devices in a view that has whole ones.
void report_parts(const Units& units, Plan& placed) {
  if (units.view != "all") return;
  if (units.mask_item.find("subdevice") != std::string::npos)
    placed.reports.push_back(
        {"parts-need-masks", Severity::error,
         fmt::format("device mode {} has no view of all: without a mask a process "
                     "sees whole devices",
                     units.mode),
         "--gpu-view own"});
  if (units.instances() && units.count() > 1)
    placed.reports.push_back({"parts-need-masks", Severity::error,
                              "devices are split into instances (MIG): a process that is given "
                              "several sees only the first",
                              "--gpu-view own"});
}

}  // namespace

bool differing_models(const Topology& node) {
  return std::any_of(node.devices.begin(), node.devices.end(), [&](const Device& device) {
    return device.model != node.devices.front().model;
  });
}

bool follow_driver_order(const PlanInput& input, const std::vector<NodeClass>& classes,
                         Units& units) {
  if (!units.vendor->keeps_order() || units.view != "all" || !input.request.gpu_view.empty())
    return false;
  if (std::all_of(classes.begin(), classes.end(),
                  [&](const NodeClass& one) { return order_of(units, one.ranks).ascending; }))
    return false;
  decide_own(
      units,
      "the driver keeps its own order of devices: with all of them visible device LOCAL_RANK "
      "would not be the one nearest to the rank");
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
  for (const Diagnostic& said : units.reports)  // the launcher's devices have no names of ours
    if (units.view != "launcher" || said.id != "names-of-one-node") placed.reports.push_back(said);
  const bool named = input.env.has(units.given);
  if (units.list.empty() && !units.given.empty())
    placed.reports.push_back(
        {"no-device-left", Severity::warning,
         fmt::format("{} leaves no device of this node: ranks are placed as on a node without",
                     named ? fmt::format("{}=\"{}\"", units.given, input.env.get(units.given))
                           : "what can be opened here"),
         named ? fmt::format("unset {}, or ask the batch system for devices", units.given)
               : "ask the batch system for devices"});
  if (units.list.empty() || units.mask.empty()) return Done{};
  if (!units.vendor->hierarchy.empty() && (units.mode.empty() || units.own_mode))
    add_hierarchy(input, units, settings);
  report_parts(units, placed);
  if (units.view == "own") return add_own(input, units, placed, settings);
  if (units.view == "all") return add_all(input, units, placed, settings);
  return Done{};
}

}  // namespace hpclaunch
