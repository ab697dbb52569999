#include "plan/devices/visibility.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "hpclaunch/text.h"
#include "plan/devices/masks.h"

namespace hpclaunch {

namespace {

using Reports = std::vector<Diagnostic>;

// What the view of all gives ranks.
const char* why_all(const Slots& slots) {
  return slots.vendor->keeps_order()
             ? "each rank sees the devices that ranks use; device i is nearest to local rank i"
             : "each rank sees all devices; device i is nearest to local rank i";
}

// Slots::choices end with "gpu-view".
void decide(Slots& slots, Layer layer, const std::string& view, const std::string& why) {
  slots.choices.back().history.push_back(decided(layer, view, why));
  slots.view = view;
}

// The mask that reaches these slots.
std::string mask_of(const std::vector<Slot>& slots) {
  std::string mask;
  for (const Slot& slot : slots) mask += (mask.empty() ? "" : ",") + slot.entry;
  return mask;
}

// The driver's count in PCI order, for vendors that have another by default.
void add_pci_order(const Slots& slots, const char* why, EnvSettings& settings) {
  const VendorSetting& order = slots.vendor->pci_order;
  if (order.name.empty()) return;
  settings.add(std::string(order.name), Layer::builtin, std::string(order.value), why);
}

// One mask decides, ours or the launcher's; the others are removed where they are set.
void remove_other_masks(const PlanInput& input, const Slots& slots, EnvSettings& settings) {
  for (const std::string_view name : slots.vendor->masks())
    if (name != slots.mask && input.env.has(name))
      settings.add(
          std::string(name), Layer::computed, Unset{},
          fmt::format("only {} is used: a second mask would apply to the devices of the first",
                      slots.mask));
}

void add_mask(const PlanInput& input, const Slots& slots, Value value, std::string why,
              EnvSettings& settings) {
  if (!slots.given.empty()) why += "; from the devices of " + slots.given;
  settings.add(slots.mask, Layer::computed, std::move(value), std::move(why));
  add_pci_order(slots, "the mask counts devices by PCI address", settings);
  remove_other_masks(input, slots, settings);
}

struct Order {
  std::vector<Slot> slots;  // as the ranks have them, then the others by number
  std::size_t used = 0;
  bool ascending = true;
  bool natural = true;  // device i of the driver is already local rank i's
};

Order order_of(const Slots& all, const std::vector<RankPlan>& ranks) {
  Order order;
  const auto add = [&](const Slot& slot) {
    if (std::ranges::count(order.slots, slot) == 0) order.slots.push_back(slot);
  };
  for (const RankPlan& rank : ranks) add(rank.slots.front());
  order.used = order.slots.size();
  order.ascending = std::ranges::is_sorted(order.slots, {}, &Slot::unit);
  order.natural = order.ascending && order.slots.back().unit == std::ssize(order.slots) - 1;
  for (const SlotGroup& group : all.list) add(group.first());
  std::ranges::sort(order.slots.begin() + static_cast<std::ptrdiff_t>(order.used),
                    order.slots.end(), {}, &Slot::unit);
  return order;
}

// How a program that sees all devices finds its own, for each class of nodes: by a formula where one gives
// what the plan has, else by a list where that is short.
std::string how_to_divide(const std::vector<std::vector<int>>& places) {
  int most = 0;
  int devices = 0;
  for (const std::vector<int>& ranks : places) {
    most = std::max(most, static_cast<int>(ranks.size()));
    devices = std::max(devices, 1 + std::ranges::max(ranks));
  }
  const int each = (most + devices - 1) / devices;
  bool by_block = true;
  bool by_share = true;
  for (const std::vector<int>& ranks : places)
    for (int r = 0, size = static_cast<int>(ranks.size()); r < size; ++r) {
      by_block = by_block && ranks[r] == r / each;
      by_share = by_share && ranks[r] == r * devices / size;
    }
  constexpr int kMostListed = 16;
  if (by_block) return fmt::format("; use device LOCAL_RANK // {}", each);
  if (by_share) return fmt::format("; use device LOCAL_RANK * {} // LOCAL_WORLD_SIZE", devices);
  if (places.size() > 1 || most > kMostListed) return "";
  return fmt::format("; use device {} for LOCAL_RANK 0, 1, ...", fmt::join(places.front(), ", "));
}

void add_all(const PlanInput& input, const Slots& slots, const Placement& placed, Reports& reports,
             EnvSettings& settings) {
  const bool keeps_order = slots.vendor->keeps_order();
  PerRank mask;
  bool natural = slots.given.empty();
  bool ascending = true;
  bool shared = false;
  std::vector<std::vector<int>> places;  // of each rank's device among those that it sees
  for (const NodeClass& one : placed.classes) {
    const Slots& here = slots.of(one.grant);
    if (here.list.empty()) {  // the job has none on these nodes
      mask.items.emplace_back(one.ranks.size(), "");
      continue;
    }
    Order order = order_of(here, one.ranks);
    if (input.request->free && order.used < order.slots.size()) {  // the others are for others
      order.slots.resize(order.used);
      natural = false;
    }
    shared = shared || order.used < one.ranks.size();
    natural = natural && order.natural;
    ascending = ascending && order.ascending;
    if (keeps_order && !order.natural) {
      order.slots.resize(order.used);
      std::ranges::sort(order.slots, {}, &Slot::unit);
    }
    places.emplace_back();
    for (const RankPlan& rank : one.ranks)
      places.back().push_back(static_cast<int>(std::ranges::find(order.slots, rank.slots.front()) -
                                               order.slots.begin()));
    mask.items.emplace_back(one.ranks.size(), mask_of(order.slots));
  }
  if (keeps_order && !ascending)
    reports.push_back(
        {"device-order", Severity::warning,
         "the driver keeps its own device order: device LOCAL_RANK is not the one nearest to the "
         "rank",
         "--gpu-view own"});
  if (const int ranks = placed.max_local_size(); shared)
    reports.push_back(
        {"shared-devices", Severity::note,
         fmt::format("{} share {}: device LOCAL_RANK may not exist{}", counted(ranks, "rank"),
                     counted(slots.used_by(ranks), "device"), how_to_divide(places)),
         "--gpu-view own: each rank uses device 0"});
  if (!natural)
    add_mask(input, slots, constant_or_per_rank(std::move(mask)),
             keeps_order && !ascending
                 ? "each rank sees the devices that ranks use, in the driver's own order"
                 : why_all(slots),
             settings);
  else if (differing_models(input.node))
    add_pci_order(slots, "the plan counts devices by PCI address; CUDA's default is fastest first",
                  settings);
}

void remove_selector(const PlanInput& input, const Slots& slots, EnvSettings& settings) {
  const std::string name(slots.vendor->selector);
  const std::string value = to_lower(trim(input.env.get(name)));
  if (!value.empty() && selects_some(value))
    settings.add(name, Layer::computed, Unset{},
                 fmt::format("\"{}\" would hide devices of ranks: it selects among those that {} "
                             "leaves",
                             value, slots.mask));
}

// A typed mask is the same for all ranks of a node; without the plan's, each would see all of them as its own.
void report_typed_masks(const PlanInput& input, const Slots& slots, Reports& reports) {
  for (const std::string_view name : slots.vendor->masks()) {
    const bool removed = slots.view == "own" && name == slots.mask &&
                         std::ranges::count(input.request->unset, name) > 0;
    const bool set = std::ranges::count(input.request->set, name, &TypedVariable::name) > 0;
    if (!set && !removed) continue;
    reports.push_back(
        {"mask-typed", Severity::error,
         fmt::format("{} on the command line is the same for all ranks of a node: some would have "
                     "no device of their own",
                     name),
         fmt::format("omit it; export {} to plan for a part of the devices", name)});
  }
}

// What Level Zero counts. COMBINED counts and masks as FLAT does, and cards of one tile are the same in every
// hierarchy; there what was exported stays. Source: level-zero specification, ZE_FLAT_DEVICE_HIERARCHY.
void add_hierarchy(const PlanInput& input, const Slots& slots, EnvSettings& settings) {
  const std::string name(slots.vendor->hierarchy);
  const bool tiles = slots.mode == "tile";
  const bool depends = std::ranges::any_of(
      input.node.devices, [](int n) { return n > 1; }, &Device::subdevices);
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
void hide_all(const Topology& node, Reports& reports, EnvSettings& settings) {
  const std::string why = "--devices-per-rank 0: ranks see no device";
  std::set<std::string> vendors;
  for (const Device& device : node.devices) vendors.insert(device.vendor);
  for (const std::string& name : vendors) {
    const VendorSetting& hide = device_vendor(name).hide_all;
    if (!hide.name.empty()) {
      settings.add(std::string(hide.name), Layer::computed, std::string(hide.value), why);
      continue;
    }
    reports.push_back(
        {"devices-visible", Severity::note,
         fmt::format("--devices-per-rank 0: no mask of the driver hides all devices{}, so ranks "
                     "still see them",
                     vendors.size() > 1 ? " of " + name : ""),
         "tell the program to use the CPU"});
  }
}

void add_local_rank(const PlanInput& input, const Slots& slots, EnvSettings& settings) {
  const bool sees_one = slots.view == "own" || slots.view == "launcher";
  if (!sees_one || input.request->local_rank == "node")
    return settings.add("LOCAL_RANK", Layer::computed, RankFact::local_rank,
                        sees_one
                            ? "--local-rank node: local rank, although the rank sees one device"
                            : "local rank; most programs use it as the device number");
  const std::string sees = slots.per_rank > 1 ? fmt::format("its {} devices, as 0 to {}",
                                                            slots.per_rank, slots.per_rank - 1)
                                              : std::string("one device, as device 0");
  settings.add("LOCAL_RANK", Layer::computed, std::string("0"),
               fmt::format("the rank sees {}; HPCLAUNCH_LOCAL_RANK is its local rank", sees));
}

// By default JAX takes the device with the number of Slurm's or Open MPI's local rank, which only rank 0 sees here.
void add_taken(const Slots& slots, int count, EnvSettings& settings) {
  if (slots.vendor->taken.empty()) return;
  std::vector<int> seen(static_cast<std::size_t>(count));
  std::iota(seen.begin(), seen.end(), 0);
  settings.add(std::string(slots.vendor->taken), Layer::computed,
               fmt::format("{}", fmt::join(seen, ",")),
               "JAX takes what the rank sees, not the device with the number of its local rank");
}

// --agent: what the filters leave, in the driver's order, by which workers take devices.
void add_agent(const PlanInput& input, const Slots& slots, const Placement& placed,
               Reports& reports, EnvSettings& settings) {
  add_taken(slots, slots.seen_by_agent(), settings);
  if (slots.instances() && slots.total > 1)
    reports.push_back({"parts-need-masks", Severity::note,
                       fmt::format("a process sees only the first of {} MIG instances: each worker "
                                   "needs one of them in {}",
                                   slots.total, slots.mask),
                       ""});
  const std::string first(slots.vendor->masks().front());
  if (slots.mask != first)  // some launchers set it for their ranks
    settings.add(first, Layer::computed, Unset{},
                 fmt::format("the program reads {} only", slots.mask));
  PerRank masks;
  for (const NodeClass& one : placed.classes)
    masks.items.emplace_back(one.ranks.size(), mask_of(slots.of(one.grant).seen));
  if (!slots.given.empty())
    add_mask(input, slots, constant_or_per_rank(std::move(masks)),
             "the process sees all devices of the job", settings);
  else if (differing_models(input.node))
    add_pci_order(slots, "masks of workers count devices by PCI address", settings);
}

// Parts of devices in a view that has whole ones.
void report_parts(const Slots& slots, Reports& reports) {
  std::vector<std::string> messages;
  if (slots.only_by_mask)
    messages.push_back(
        fmt::format("--gpu-view all does not work in device mode {}: only a mask selects parts "
                    "of devices",
                    slots.mode));
  if (slots.instances() && slots.count() > 1)
    messages.emplace_back(
        "--gpu-view all does not work in MIG mode: a process sees only the first instance");
  for (const std::string& message : messages)
    reports.push_back({"parts-need-masks", Severity::error, message, "--gpu-view own"});
}

}  // namespace

void decide_view(const PlanInput& input, int ranks_per_node, Slots& slots) {
  if (slots.list.empty()) return;
  slots.choices.push_back(Setting{"gpu-view", {}});
  if (input.request->agent)
    return decide(slots, Layer::command_line, "all", "--agent: one process with all devices");
  const std::string& typed = input.request->gpu_view;
  const std::string by_profile = input.profile != nullptr ? input.profile->gpu_view : "";
  int used = slots.used_by(ranks_per_node);
  for (const Slots& other : slots.others) used = std::min(used, other.used_by(ranks_per_node));
  const bool shared = ranks_per_node > used;
  const bool masked_parts = slots.only_by_mask;
  if (masked_parts)
    decide(slots, Layer::builtin, "own", "only a mask can select parts of devices in this mode");
  else if (shared)
    decide(slots, Layer::builtin, "own",
           "ranks share devices, and LOCAL_RANK must be a visible device");
  else
    decide(slots, Layer::builtin, "all", why_all(slots));
  if (!by_profile.empty() && !(masked_parts && by_profile == "all")) {
    decide(slots, Layer::profile_default, by_profile,
           fmt::format("recommended by {}", input.profile->name));
    slots.choices.back().history.back().where = input.profile->where;
  }
  if (slots.view == "launcher" && ranks_per_node < slots.filled * slots.count())
    decide(slots, Layer::computed, "own",
           "the launcher's flags spread ranks over all devices, --ranks-per-device fills some");
  if (slots.view == "launcher" && !slots.shortage.mask.empty())
    decide(slots, Layer::computed, "own",
           fmt::format("the launcher's flags give out all devices, and {} selects some",
                       slots.shortage.mask));
  if (slots.instances())
    decide(slots, Layer::computed, "own", "a process sees only the first of several MIG instances");
  if (slots.per_rank > 1)
    decide(slots, Layer::computed, "own",
           "each rank has several devices and sees only these, as 0 to N-1");
  if (!typed.empty()) decide(slots, Layer::command_line, typed, "--gpu-view");
}

bool differing_models(const Topology& node) {
  return std::ranges::any_of(node.devices, [&](const Device& device) {
    return device.model != node.devices.front().model;
  });
}

bool follow_driver_order(const PlanInput& input, const std::vector<NodeClass>& classes,
                         Slots& slots) {
  const auto ascends = [&](const NodeClass& one) {
    const Slots& here = slots.of(one.grant);
    return here.list.empty() || order_of(here, one.ranks).ascending;
  };
  if (!slots.vendor->keeps_order() || slots.view != "all" || !input.request->gpu_view.empty() ||
      std::ranges::all_of(classes, ascends))
    return false;
  decide(slots, Layer::computed, "own",
         "the driver keeps its own device order: with all devices visible, device LOCAL_RANK "
         "would not be the nearest");
  return true;
}

void add_visibility(const PlanInput& input, const Slots& slots, const Placement& placed,
                    Reports& reports, EnvSettings& settings) {
  if (!input.request->agent) add_local_rank(input, slots, settings);
  if (slots.hidden) {
    hide_all(input.node, reports, settings);
    return;
  }
  std::ranges::copy_if(slots.reports, std::back_inserter(reports), [&](const Diagnostic& one) {
    const bool masks = slots.view != "launcher" && !(input.request->agent && slots.given.empty());
    return masks || one.id != "names-of-one-node";  // no names of ours then
  });
  if (slots.list.empty() && !slots.given.empty()) {
    const auto batch = input.of_batch.find(slots.given);
    const bool named = input.env.has(slots.given);
    const std::string setter =
        batch == input.of_batch.end() ? "" : fmt::format(" ({})", batch->second);
    const std::string who =
        named ? fmt::format("{}=\"{}\"{} selects", slots.given, input.env.get(slots.given), setter)
        : slots.given == input.grants_by ? slots.given + " grants"
                                         : "this process can open";
    reports.push_back(
        {"no-device-left", Severity::warning, who + " no device of this node: the plan has none",
         fmt::format("{}request devices",
                     named && setter.empty() ? fmt::format("unset {}, or ", slots.given) : "")});
  }
  const bool sees_own = slots.view == "own" || slots.view == "launcher";
  if (!slots.list.empty() && sees_own) add_taken(slots, slots.per_rank, settings);
  if (slots.list.empty() || slots.mask.empty()) return;
  if (!slots.vendor->hierarchy.empty() && (slots.mode.empty() || slots.own_mode))
    add_hierarchy(input, slots, settings);
  remove_selector(input, slots, settings);
  if (placed.max_local_size() > 1) report_typed_masks(input, slots, reports);
  if (slots.view == "launcher") remove_other_masks(input, slots, settings);
  if (input.request->agent) return add_agent(input, slots, placed, reports, settings);
  if (slots.view == "own")
    add_mask(input, slots,
             per_rank(placed, [](const RankPlan& rank) { return mask_of(rank.slots); }),
             fmt::format("each rank sees only its own device{}", slots.per_rank > 1 ? "s" : ""),
             settings);
  if (slots.view != "all") return;
  report_parts(slots, reports);
  add_all(input, slots, placed, reports, settings);
}

}  // namespace hpclaunch
