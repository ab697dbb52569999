#include "plan/devices/masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

using SlotList = std::vector<Slot>;

bool begins(const std::string& name, std::string_view with) {
  return !name.empty() && to_lower(name).starts_with(with);
}

// What an entry leads to: the parts of one device, or one instance.
struct Match {
  SlotList slots = {};
  bool unclear = false;  // it may be one whose name is not known
};

// `wanted` is in lower case.
Match match_name(const Topology& node, const SlotList& from, const std::string& wanted) {
  const bool instances = wanted.starts_with("mig-");
  if (wanted.size() <= 4 || !(instances || wanted.starts_with("gpu-"))) return {};
  Match match;
  std::size_t known = 0;
  for (const Slot& slot : from) {
    const Device* device = node.find_device(slot.device);
    if (device == nullptr) continue;
    const std::string& name = instances ? slot.entry : device->uuid;
    known += instances ? is_instance(slot) : !name.empty();
    if (begins(name, wanted)) match.slots.push_back(slot);
  }
  const bool one =
      !match.slots.empty() && (instances ? match.slots.size() == 1
                                         : match.slots.front().device == match.slots.back().device);
  if (one) return match;
  if (wanted.starts_with("mig-gpu-")) {
    // MIG-GPU-<uuid>/<instance>/<compute instance>, before R470: the device is known, not which instance.
    const std::size_t slash = wanted.find('/');
    if (slash == std::string::npos) return {};
    match = match_name(node, from, wanted.substr(4, slash - 4));
    match.slots.resize(std::min<std::size_t>(1, match.slots.size()));
    for (Slot& slot : match.slots) slot.unit = slot.part = -1;
    return {match.slots, true};
  }
  const bool complete = instances ? known > 0 : known == from.size();
  return {{}, match.slots.empty() && !complete};
}

// The parts of the device with this number.
Match match_number(const SlotList& from, long number, bool anew) {
  Match match;
  long place = -1;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i == 0 || from[i].device < 0 || from[i].device != from[i - 1].device) ++place;
    if ((anew ? place : from[i].unit) == number) match.slots.push_back(from[i]);
  }
  return match;
}

// PyTorch compares device names with their case; a name in another case is replaced by the device's own.
std::string own_spelling(const Topology& node, const Slot& slot, const std::string& entry) {
  const Device* device = node.find_device(slot.device);
  if (device == nullptr || !begins(device->uuid, to_lower(entry))) return entry;
  return device->uuid.starts_with(entry) ? entry : device->uuid;
}

}  // namespace

bool is_split(const Device& device) {
  return !device.instances.empty() || device.partition == "MIG";
}

std::optional<long> mask_number(std::string_view entry, MaskSyntax syntax) {
  constexpr long kBeyondAll = 2'147'483'647L;  // the number of no device
  entry = trim(entry);
  if (syntax != MaskSyntax::cuda) return parse_natural(entry);
  const bool minus = entry.starts_with('-');
  if (minus || entry.starts_with('+')) entry.remove_prefix(1);
  entry = entry.substr(0, entry.find_first_not_of("0123456789"));
  if (entry.empty()) return std::nullopt;
  const long number = parse_natural(entry).value_or(kBeyondAll);
  if (minus && number > 0) return std::nullopt;
  return number;
}

bool has_split(const Topology& node) { return std::ranges::any_of(node.devices, is_split); }

bool is_instance(const Slot& slot) {
  return slot.entry.size() > 4 && to_lower(slot.entry.substr(0, 4)) == "mig-";
}

Left read_mask(const Topology& node, const SlotList& from, std::string_view list, MaskSyntax syntax,
               bool anew) {
  const bool cuda = syntax == MaskSyntax::cuda;
  const bool names = list.starts_with("GPU-") || list.starts_with("MIG-");
  const std::string_view form = cuda && names ? list.substr(0, 4) : "";  // of every entry
  Left read;
  std::set<std::string> texts;
  std::set<std::string> reached;
  bool open = true;
  const auto stop = [&](std::string_view entry) {
    if (read.stopped.empty() && !trim(entry).starts_with('-')) read.stopped = entry;
    open = false;
  };
  for (const std::string_view piece : split(list, ',')) {
    const std::optional<long> read_number =
        form.empty() ? mask_number(piece, syntax) : std::nullopt;
    const long number = read_number ? *read_number : -1;  // -1: a name
    if (cuda && !(form.empty() ? number >= 0 : piece.starts_with(form))) {
      stop(piece);
      break;
    }
    const std::string entry =
        cuda && number >= 0 ? std::to_string(number) : std::string(cuda ? piece : trim(piece));
    if (cuda && !texts.insert(entry).second) return {{}, "", entry};
    if (!open) continue;
    Match match =
        number >= 0 ? match_number(from, number, anew) : match_name(node, from, to_lower(entry));
    const bool none = match.slots.empty() && !match.unclear;
    if (match.unclear && match.slots.empty()) match.slots.emplace_back();
    bool repeated = false;
    for (const Slot& slot : match.slots) {
      const bool known = slot.device >= 0 && !match.unclear;
      const std::string text = !slot.entry.empty() && !match.unclear ? slot.entry
                               : cuda                                ? entry
                                                                     : to_lower(entry);
      const std::string key = known ? fmt::format("{}/{}", slot.device, slot.part) : text;
      repeated = !reached.insert(key).second || repeated;
    }
    if (cuda && repeated) return {{}, "", entry};
    if (none || repeated) {
      stop(entry);
      continue;
    }
    const bool by_instance = to_lower(entry).starts_with("mig-");
    for (Slot& slot : match.slots) {
      const bool usable = match.unclear || !slot.entry.empty();
      if (number < 0 && usable && (by_instance || !is_instance(slot)))
        slot.entry = cuda ? own_spelling(node, slot, entry) : entry;
      read.slots.push_back(std::move(slot));
    }
  }
  return read;
}

bool counts_whole(const EnvSnapshot& env) {
  return env.get("ZE_FLAT_DEVICE_HIERARCHY") == "COMPOSITE";
}

std::vector<bool> read_tile_mask(const SlotList& tiles, std::string_view list, bool whole,
                                 std::vector<std::string>& ignored) {
  std::vector<bool> left(tiles.size());
  for (const std::string_view piece : split(list, ',')) {
    const std::string_view entry = trim(piece);
    const std::size_t dot = entry.find('.');
    const bool part = dot != std::string_view::npos;
    const long number = parse_natural(entry.substr(0, dot)).value_or(-1);
    const long tile = part ? parse_natural(entry.substr(dot + 1)).value_or(-1) : -1;
    bool found = false;
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      if (tiles[t].unit != number || (part && (!whole || tiles[t].part != tile))) continue;
      left[t] = found = true;
    }
    if (!found) ignored.emplace_back(entry);
  }
  return left;
}

bool selects_some(std::string_view selector) {
  const std::vector<std::string_view> terms = split(selector, ';');
  const auto excludes = [](std::string_view term) { return term.starts_with('!'); };
  const auto is_all = [](std::string_view term) {
    return term == "*:*" || term == "*:gpu" || term == "level_zero:*" || term == "level_zero:gpu" ||
           term == "level_zero";
  };
  const bool takes_away = std::ranges::any_of(
      terms, [&](std::string_view term) { return excludes(term) && !term.starts_with("!opencl"); });
  return takes_away ||
         (!std::ranges::all_of(terms, excludes) && std::ranges::none_of(terms, is_all));
}

}  // namespace hpclaunch
