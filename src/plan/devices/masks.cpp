#include "plan/devices/masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

bool begins(const std::string& name, std::string_view with) {
  return !name.empty() && to_lower(name).starts_with(with);
}

enum class Match { none, one, unclear };

// The one of `from` that a name, in lower case, leads to. `unclear`: it may be one whose name is not known.
Match match_name(const Topology& node, const std::vector<Pick>& from, const std::string& wanted,
                 Pick& found) {
  const bool instances = wanted.starts_with("mig-");
  if (wanted.size() <= 4 || !(instances || wanted.starts_with("gpu-"))) return Match::none;
  int hits = 0;
  int known = 0;
  for (const Pick& pick : from) {
    const Device* device = node.find_device(pick.device);
    if (device == nullptr) continue;
    const auto names = instances ? device->instances : std::vector<std::string>{device->uuid};
    known += names.empty() || names.front().empty() ? 0 : 1;
    for (int i = 0; i < static_cast<int>(names.size()); ++i) {
      const bool ours = pick.part < 0 || (instances && pick.part == i);
      if (!ours || !begins(names[i], wanted)) continue;
      found = pick;
      if (instances) found.part = i;
      ++hits;
    }
  }
  if (hits == 1) return Match::one;
  if (wanted.starts_with("mig-gpu-")) {
    // MIG-GPU-<uuid>/<instance>/<compute instance>, before R470: the device is known, not which instance.
    const std::size_t slash = wanted.find('/');
    if (slash == std::string::npos) return Match::none;
    Pick device;
    if (match_name(node, from, wanted.substr(4, slash - 4), device) == Match::one)
      found.device = device.device;
    return Match::unclear;
  }
  const bool complete = instances ? known > 0 : known == static_cast<int>(from.size());
  return hits > 0 || complete ? Match::none : Match::unclear;
}

Match match_number(const std::vector<Pick>& from, long number, Pick& found) {
  const auto at = std::ranges::find(from, number, &Pick::number);
  if (at == from.end()) return Match::none;
  found = *at;
  return Match::one;
}

// PyTorch compares device names with their case; a name in another case is replaced by the device's own.
std::string own_spelling(const Topology& node, const Pick& pick, const std::string& entry) {
  const Device* device = node.find_device(pick.device);
  if (device == nullptr || pick.part >= 0 || !begins(device->uuid, to_lower(entry))) return entry;
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

Picked read_mask(const Topology& node, const std::vector<Pick>& from, std::string_view list,
                 MaskSyntax syntax) {
  const bool cuda = syntax == MaskSyntax::cuda;
  const bool names = list.starts_with("GPU-") || list.starts_with("MIG-");
  const std::string_view form = cuda && names ? list.substr(0, 4) : "";  // of every entry
  Picked read;
  std::set<std::string> texts;
  std::set<std::string> reached;
  bool open = true;
  const auto stop = [&](std::string_view entry) {
    if (read.stopped.empty() && !trim(entry).starts_with('-')) read.stopped = entry;
    open = false;
  };
  for (const std::string_view piece : split(list, ',')) {
    const auto number = form.empty() ? mask_number(piece, syntax) : std::nullopt;
    if (cuda && !(form.empty() ? number.has_value() : piece.starts_with(form))) {
      stop(piece);
      break;
    }
    const std::string entry =
        cuda && number ? std::to_string(*number) : std::string(cuda ? piece : trim(piece));
    if (cuda && !texts.insert(entry).second) return {{}, "", entry};
    if (!open) continue;
    Pick pick;
    const Match match =
        number ? match_number(from, *number, pick) : match_name(node, from, to_lower(entry), pick);
    // What an entry has led to; its text where that is not known.
    const std::string target = match == Match::one && pick.device >= 0
                                   ? fmt::format("{}/{}", pick.device, pick.part)
                               : !pick.name.empty() ? pick.name
                               : cuda               ? entry
                                                    : to_lower(entry);
    const bool repeated = match != Match::none && !reached.insert(target).second;
    if (cuda && repeated) return {{}, "", entry};
    if (match == Match::none || repeated) {
      stop(entry);
      continue;
    }
    if (!number) pick.name = cuda ? own_spelling(node, pick, entry) : entry;
    read.picks.push_back(std::move(pick));
  }
  return read;
}

bool counts_whole(const EnvSnapshot& env) {
  return env.get("ZE_FLAT_DEVICE_HIERARCHY") == "COMPOSITE";
}

std::vector<Pick> tiles_in(const Topology& node, const std::vector<Pick>& counted) {
  std::vector<Pick> tiles;
  for (std::size_t place = 0; place < counted.size(); ++place) {
    const int index = counted[place].device >= 0 ? counted[place].device : counted[place].number;
    const Device* device = node.find_device(index);
    for (int tile = 0; tile < (device == nullptr ? 1 : std::max(1, device->subdevices)); ++tile)
      tiles.push_back({index, tile, static_cast<int>(place), ""});
  }
  return tiles;
}

std::vector<Pick> read_tile_mask(const std::vector<Pick>& tiles, std::string_view list, bool whole,
                                 std::vector<std::string>& ignored) {
  std::set<std::size_t> left;
  for (const std::string_view piece : split(list, ',')) {
    const std::string_view entry = trim(piece);
    const std::size_t dot = entry.find('.');
    const bool part = dot != std::string_view::npos;
    const long number = parse_natural(entry.substr(0, dot)).value_or(-1);
    const long tile = part ? parse_natural(entry.substr(dot + 1)).value_or(-1) : -1;
    bool found = false;
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      const bool named = whole ? tiles[t].number == number && (!part || tiles[t].part == tile)
                               : !part && static_cast<long>(t) == number;
      if (named) left.insert(t);
      found = found || named;
    }
    if (!found) ignored.emplace_back(entry);
  }
  std::vector<Pick> picks;
  picks.reserve(left.size());
  for (const std::size_t t : left) picks.push_back(tiles[t]);
  return picks;
}

}  // namespace hpclaunch
