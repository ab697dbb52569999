// From the devices of a node to those that this launch may use: filters applied to its slots, one after the other
// (docs/reference/plan.md, "Granted devices").
#include "plan/devices/filters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "hpclaunch/text.h"
#include "plan/devices/masks.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

using List = std::vector<Slot>;

// Numbers and entries; parts of one device have its number, instances their names.
void number(const Topology& node, const MaskEntries& entries, Counted& counted) {
  const List parts = numbered(node, counted, entries.tiles);
  counted.slots = numbered(node, counted, false);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (Slot& slot = counted.slots[i]; !is_split(*node.find_device(slot.device)))
      slot.entry = entries.of(parts[i].unit, slot.unit, slot.part);
}

class Fold {
 public:
  Fold(const PlanInput& input, const MaskEntries& entries, Slots& out)
      : input_(input),
        node_(input.node),
        env_(input.env),
        entries_(entries),
        counted_(count_all(input.node, *out.vendor, entries)),
        all_(in_mode(std::vector<bool>(counted_.slots.size(), true))),
        out_(out) {}

  void run() {
    report_empty();
    apply_grants(input_, *out_.vendor, entries_, counted_, out_.reports);
    out_.given = counted_.by;
    std::set<int> granted;
    for (const Slot& slot : counted_.slots)
      if (counted_.leaves(slot.device)) granted.insert(counted_.unplaced ? -1 : slot.device);
    List left = out_.vendor->keeps_order() ? after_tile_mask() : after_masks();
    out_.seen = left;
    sort(left);
    if (std::ranges::any_of(left, is_instance))
      for (std::size_t i = 0; i < left.size(); ++i) left[i].unit = static_cast<int>(i);
    for (Slot& slot : left) {
      if (counted_.unplaced) slot = {slot.unit, -1, slot.part, slot.entry, {}};
      out_.list.push_back(group_of(node_, {slot}));
    }
    if (restricted()) add_choice();
    if (restricted() || out_.instances()) check_other_nodes();
    report_shortage(granted);
  }

 private:
  bool masked() const { return out_.given != counted_.by; }
  bool restricted() const { return masked() || !counted_.by.empty(); }
  std::string quoted(const std::string& name) const {
    return fmt::format("{}=\"{}\"", name, env_.get(name));
  }

  void warn(const char* id, std::string message, std::string fix) {
    out_.reports.push_back({id, Severity::warning, std::move(message), std::move(fix)});
  }

  // What ranks get of the parts that are kept: these, or Level Zero's cards with what is left of their tiles.
  List in_mode(const std::vector<bool>& kept) const {
    const List& slots = counted_.slots;
    const bool by_driver = device_vendor(node_.devices.front().vendor).keeps_order();
    const bool cards = by_driver && !entries_.tiles;
    const List tiles = by_driver ? numbered(node_, counted_, true) : List{};
    List made;
    for (std::size_t i = 0, end = 0; i < slots.size(); i = end) {
      Slot slot = slots[i];
      std::vector<std::string> names;
      for (end = i; end < slots.size() && slots[end].device == slot.device && (cards || end == i);
           ++end)
        if (kept[end]) names.push_back(fmt::format("{}.{}", slot.unit, slots[end].part));
      if (names.empty()) continue;
      if (by_driver) {
        const int place = slot.unit;
        if (!cards) slot.unit = tiles[i].unit;
        if (cards || node_.find_device(slot.device)->subdevices <= 1) slot.part = -1;
        slot.entry = names.size() < end - i ? fmt::format("{}", fmt::join(names, ","))
                                            : entries_.of(slot.unit, place, slot.part);
      }
      if (!slot.entry.empty()) made.push_back(std::move(slot));
    }
    return made;
  }

  // By the cores that they are near to, where that is known of each; else as the driver has them.
  void sort(List& slots) const {
    const auto known = [&](const Slot& slot) {
      return !slot.pus.empty() && std::ranges::any_of(all_, [&](const Slot& one) {
        return one.device == slot.device && one.part == slot.part;
      });
    };
    if (restricted() && !out_.vendor->keeps_order() && !std::ranges::all_of(slots, known)) return;
    std::ranges::stable_sort(slots, {}, [&](const Slot& slot) {
      const auto core = std::ranges::find_if(
          node_.cores, [&](const Core& one) { return one.pus.intersects(slot.pus); });
      return std::tuple(core - node_.cores.begin(), slot.device, slot.part);
    });
  }

  // ---- masks ---------------------------------------------------------------------------------------------

  // The first mask of a row restricts what the second counts. Slurm and Flux set several of AMD's alike.
  List after_masks() {
    if (counted_.unplaced)
      for (Slot& slot : counted_.slots) slot = {slot.unit, -1, -1, slot.entry, {}};
    const DeviceFilter* before = nullptr;
    for (const DeviceFilter& filter : out_.vendor->filters) {
      const std::string name(filter.variable);
      const std::string text(trim(env_.get(name)));
      const bool inner = filter.kind == DeviceFilter::inner;
      const bool applies =
          filter.kind == DeviceFilter::mask ? env_.has(name)
          : inner ? !text.empty() && (before == nullptr || before->kind != filter.kind)
                  : filter.kind == DeviceFilter::fallback && !text.empty() && before == nullptr;
      if (!applies || (!input_.grants_mask.empty() && text == input_.grants_mask)) continue;
      if (before == nullptr || text != trim(env_.get(before->variable)))
        apply_mask(name, before != nullptr);
      else if (read_mask(node_, counted_.slots, text, out_.vendor->syntax, true).slots.size() !=
               counted_.slots.size())
        out_.reports.push_back(
            {"mask-twice", Severity::note,
             fmt::format("{} repeats the list of {}, and the driver would apply both in turn; the "
                         "plan applies it once, and ranks get one mask",
                         name, before->variable),
             ""});
      before = &filter;
    }
    const auto outside = std::erase_if(counted_.slots, [&](const Slot& slot) {
      return slot.device >= 0 && !counted_.leaves(slot.device);
    });
    if (masked() && outside > 0)
      warn("grant-contradicts",
           fmt::format("ignoring the devices of {} that {} does not grant", quoted(out_.given),
                       quoted(counted_.by)),
           fmt::format("unset {}, or request these devices", out_.given));
    std::erase_if(counted_.slots, [](const Slot& slot) { return slot.entry.empty(); });
    if (!restricted()) counted_.slots = numbered(node_, counted_, entries_.tiles);
    std::set<int> taken;
    for (Slot& slot : counted_.slots) {
      const Device* device = node_.find_device(slot.device);
      const bool whole = device != nullptr && !is_instance(slot);
      if (whole && !restricted() && has_split(node_))
        slot.entry = device->uuid.empty() ? std::to_string(slot.device) : device->uuid;
      else if (whole && restricted() && spans_nodes(input_))
        slot.entry = entries_.of(slot.unit, slot.unit, 0);
      if (slot.device < 0) slot.unit = -1;
      if (slot.unit >= 0) taken.insert(slot.unit);
    }
    for (Slot& slot : counted_.slots)  // the lowest free number
      for (int next = 0; slot.unit < 0; ++next)
        if (taken.insert(next).second) slot.unit = next;
    return std::move(counted_.slots);
  }

  // What one mask leaves of the devices, and what is to be said about it.
  void apply_mask(const std::string& name, bool anew) {
    const bool cuda = out_.vendor->syntax == MaskSyntax::cuda;
    Left read = read_mask(node_, counted_.slots, env_.get(name), out_.vendor->syntax, anew);
    counted_.slots = std::move(read.slots);
    out_.given = name;
    if (!read.repeated.empty())
      warn("mask-repeats",
           fmt::format("{}: \"{}\" is repeated, so CUDA and PyTorch see no device", quoted(name),
                       read.repeated),
           fmt::format("list each device once in {}", name));
    if (!read.stopped.empty() && !counted_.slots.empty())
      warn("mask-cut",
           fmt::format("{}: \"{}\" is not a visible device, or {}; the driver ignores the rest",
                       quoted(name), read.stopped,
                       cuda ? "differs in form from the first entry" : "is repeated"),
           fmt::format("list each visible device once in {}{}", name,
                       cuda ? ", all by number or all by name" : ""));
  }

  // Entries that name tiles are right for COMPOSITE, and ignored in every other hierarchy.
  void report_ignored(bool whole, bool right_for_whole, const std::vector<std::string>& ignored) {
    const bool dotted = std::ranges::any_of(
        ignored, [](const std::string& entry) { return entry.find('.') != std::string::npos; });
    warn("mask-cut",
         fmt::format("{}: the driver ignores {}{}", quoted(out_.given), fmt::join(ignored, ", "),
                     whole || !dotted
                         ? ""
                         : "; masks count tiles unless ZE_FLAT_DEVICE_HIERARCHY is COMPOSITE"),
         whole || !right_for_whole
             ? "list visible devices only"
             : "export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE: X is a device there, and X.Y its tile");
  }

  // The driver keeps its order: slots stay as they stand, with its numbers for those that are left.
  List after_tile_mask() {
    const std::string name(out_.vendor->masks().front());
    const std::string mask(trim(env_.get(name)));
    std::vector<bool> kept(counted_.slots.size(), true);
    if (!mask.empty() && mask != "default") {
      out_.given = name;
      std::vector<std::string> ignored;
      std::vector<std::string> ignored_whole;
      kept = read_tile_mask(numbered(node_, counted_, true), mask, false, ignored);
      const std::vector<bool> by_card = read_tile_mask(counted_.slots, mask, true, ignored_whole);
      const bool whole = counts_whole(env_);
      if (!counted_.cards.empty() && by_card != kept)
        out_.reports.push_back(
            {"mask-counts-tiles", Severity::note,
             fmt::format(
                 "{} is Slurm's list of cards {}, but the driver reads it as tiles; the plan takes "
                 "whole cards",
                 quoted(name), counted_.cards),
             "export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE: masks count cards then, and X.Y is a "
             "tile"});
      else if (const auto& entries = whole ? ignored_whole : ignored; !entries.empty())
        report_ignored(whole, ignored_whole.empty(), entries);
      if (whole || !counted_.cards.empty()) kept = by_card;
    }
    for (std::size_t i = 0; i < counted_.slots.size(); ++i)
      if (!counted_.leaves(counted_.slots[i].device)) kept[i] = false;
    return in_mode(kept);
  }

  // ---- what is to be said ----------------------------------------------------------------------------------

  void report_empty() {
    for (const Device& device : node_.devices)
      if (!out_.vendor->keeps_order() && is_split(device) && device.instances.empty())
        warn("no-instances",
             fmt::format("device {}{} is in MIG mode and has no instance: no process can use it",
                         device.index, device.pci.empty() ? "" : " at " + device.pci),
             "create instances (nvidia-smi mig -cgi), or switch MIG mode off");
  }

  void add_choice() {
    std::vector<std::string> shown;
    for (const SlotGroup& group : out_.list) {
      const Slot& slot = group.first();
      const std::string name =
          slot.device < 0 || is_instance(slot) ? slot.entry : std::to_string(slot.device);
      if (std::ranges::count(shown, name) == 0) shown.push_back(name);
    }
    std::string why = counted_.why;
    if (env_.has(out_.given) && masked() && why.find(out_.given + "=") == std::string::npos)
      why += fmt::format("{}{} selects these", why.empty() ? "" : "; ", quoted(out_.given));
    if (why.empty()) return;
    out_.choices.push_back(
        choice("granted-devices", Layer::environment,
               shown.empty() ? "none" : fmt::format("{}", fmt::join(shown, ",")),
               fmt::format("{}; of the node's {}", why, counted(node_.devices.size(), "device"))));
  }

  // UUIDs of this node's devices are no other node's.
  void check_other_nodes() {
    const bool names = std::ranges::any_of(out_.list, [](const SlotGroup& group) {
      return group.first().entry.find('-') != std::string::npos;
    });
    if (!spans_nodes(input_) || !names) return;
    out_.reports.push_back(
        {"names-of-one-node", Severity::error,
         fmt::format("the plan has several nodes, but devices are known by one node's UUIDs ({}), "
                     "which other nodes do not have",
                     out_.list.front().first().entry),
         "--nodes 1, or --gpu-view launcher if the batch system gives each rank its device"});
  }

  // The source that leaves the fewest: a mask where it removes devices of the allocation, which are `granted`; with -1
  // which they are is not known.
  void report_shortage(const std::set<int>& granted) {
    const auto ours = [&](const Slot& slot) {
      return granted.contains(-1) || granted.contains(slot.device);
    };
    const auto left = std::ssize(out_.list);
    Shortage& shortage = out_.shortage;
    shortage.whole = static_cast<int>(all_.size());
    const bool by_mask = left < shortage.whole && env_.has(out_.given) && masked() &&
                         (counted_.by.empty() || left < std::ranges::count_if(all_, ours));
    if (left < shortage.whole) {
      const std::string& by = by_mask ? out_.given : counted_.by;
      const bool tiles = std::ranges::all_of(
          all_, [](const Slot& slot) { return slot.part >= 0 && !is_instance(slot); });
      shortage.by = fmt::format("{} {} of the node's {}",
                                env_.has(by) ? fmt::format("{}={} selects", by, env_.get(by))
                                : by == input_.grants_by ? by + " grants"
                                                         : "this process can open",
                                left == 0 ? "none" : std::to_string(left),
                                counted(shortage.whole, tiles ? "tile" : "device"));
      // The batch system's own list is what it granted, where nothing else says that.
      const bool users = by_mask && !(counted_.by.empty() && input_.of_batch.contains(by));
      shortage.fix = users ? fmt::format("add devices to {}", by) : "request more devices";
      if (users && left > 0) shortage.mask = by;
    }
    std::set<int> devices;  // of the job
    for (const SlotGroup& group : out_.list) devices.insert(group.first().device);
    if (!shortage.mask.empty()) devices.clear();
    for (const Slot& slot : all_)
      if (!shortage.mask.empty() && ours(slot)) devices.insert(slot.device);
    out_.devices = static_cast<int>(devices.size());
    if (shortage.mask.empty()) return;
    out_.reports.push_back(
        {"mask-restricts", Severity::note, shortage.by,
         fmt::format(fmt::runtime(input_.job.scheduler == "none"
                                      ? "unset {} to use all devices"
                                      : "request more devices, or unset {} if exported by you"),
                     shortage.mask)});
  }

  const PlanInput& input_;
  const Topology& node_;
  const EnvSnapshot& env_;
  const MaskEntries& entries_;
  Counted counted_;
  const List all_;  // of the node, before any filter
  Slots& out_;
};

}  // namespace

std::string MaskEntries::of(int unit, int place, int part) const {
  Facts facts;
  facts.rank = {{"unit", std::to_string(unit)},
                {"device", std::to_string(place)},
                {"subdevice", std::to_string(std::max(0, part))}};
  return *expand(item, facts);
}

Status MaskEntries::check() const {
  Facts facts;
  facts.rank = {{"unit", ""}, {"device", ""}, {"subdevice", ""}};
  const Result<std::string> text = expand(item, facts);
  return text ? Status(Done{}) : Status(text.error());
}

bool Counted::leaves(int device) const { return !mine || std::ranges::count(*mine, device) > 0; }

Counted count_all(const Topology& node, const DeviceVendor& vendor, const MaskEntries& entries) {
  Counted counted;
  for (const Device& device : node.devices) {
    const bool tiles = vendor.keeps_order() || (entries.tiles && device.subdevices > 1);
    const int count =
        tiles ? std::max(1, device.subdevices) : static_cast<int>(device.instances.size());
    for (int part = 0; part < std::max(1, count); ++part)
      counted.slots.push_back(
          {-1, device.index, part < count ? part : -1,
           !tiles && part < count ? device.instances[static_cast<std::size_t>(part)] : "",
           node.near(device)});
  }
  number(node, entries, counted);
  return counted;
}

void count_anew(const Topology& node, const std::vector<int>& devices, const MaskEntries& entries,
                Counted& counted) {
  std::erase_if(counted.slots,
                [&](const Slot& slot) { return std::ranges::count(devices, slot.device) == 0; });
  counted.anew = true;
  number(node, entries, counted);
}

std::vector<Slot> numbered(const Topology& node, const Counted& counted, bool by_tile) {
  std::vector<Slot> slots = counted.slots;
  int unit = -1;
  int before = -1;
  for (Slot& slot : slots) {
    const bool next = slot.device != before;
    const int parts = by_tile ? std::max(1, node.find_device(slot.device)->subdevices) : 1;
    if (next && !counted.anew) unit += (slot.device - before - 1) * parts;  // of no description
    if (next || by_tile) ++unit;
    slot.unit = unit;
    before = slot.device;
  }
  return slots;
}

bool spans_nodes(const PlanInput& input) {
  if (input.hosts.size() <= 1 || input.request->nodes.value_or(2) == 1) return false;
  return input.request->ranks.value_or(2) > 1;
}

void filter_slots(const PlanInput& input, const MaskEntries& entries, Slots& slots) {
  Fold(input, entries, slots).run();
}

}  // namespace hpclaunch
