#include "plan/masks.h"

#include <algorithm>
#include <optional>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool begins(const std::string& name, std::string_view with) {
  return !name.empty() && lower(name).starts_with(with);
}

enum class Match { none, one, unclear };

// The one of `from` that a name leads to. `unclear`: it may be one whose name is not known.
Match match_gpu(const Topology& node, const std::vector<Pick>& from, const std::string& wanted,
                Pick& found) {
  int hits = 0;
  bool all_known = true;
  for (const Pick& pick : from) {
    const Device* device = find_device(node, pick.device);
    if (device == nullptr || device->uuid.empty()) {
      all_known = false;
      continue;
    }
    if (pick.instance >= 0 || !begins(device->uuid, wanted)) continue;
    found = pick;
    ++hits;
  }
  if (hits == 1) return Match::one;
  return hits == 0 && !all_known ? Match::unclear : Match::none;
}

Match match_instance(const Topology& node, const std::vector<Pick>& from, const std::string& wanted,
                     Pick& found) {
  int hits = 0;
  bool any_known = false;
  for (const Pick& pick : from) {
    const Device* device = find_device(node, pick.device);
    if (device == nullptr) continue;
    const auto& names = device->instances;
    any_known = any_known || !names.empty();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool ours = pick.instance < 0 || pick.instance == static_cast<int>(i);
      if (!ours || !begins(names[i], wanted)) continue;
      found = pick;
      found.instance = static_cast<int>(i);
      ++hits;
    }
  }
  if (hits == 1) return Match::one;
  return any_known ? Match::none : Match::unclear;
}

// MIG-GPU-<uuid>/<instance>/<compute instance>, as drivers before R470 name instances: the device is
// known by it, not which instance.
Match match_old_instance(const Topology& node, const std::vector<Pick>& from,
                         const std::string& wanted, Pick& found) {
  const std::size_t slash = wanted.find('/');
  if (slash == std::string::npos) return Match::none;
  Pick device;
  if (match_gpu(node, from, wanted.substr(4, slash - 4), device) == Match::one)
    found.device = device.device;
  return Match::unclear;
}

}  // namespace

const Device* find_device(const Topology& node, int index) {
  const auto found = std::find_if(node.devices.begin(), node.devices.end(),
                                  [&](const Device& device) { return device.index == index; });
  return found == node.devices.end() ? nullptr : &*found;
}

bool is_split(const Device& device) {
  return !device.instances.empty() || device.partition == "MIG";
}

Picked read_mask(const Topology& node, const std::vector<Pick>& from, std::string_view list) {
  Picked read;
  std::set<std::pair<int, int>> seen;
  std::set<std::string> unknown;
  for (const std::string_view piece : split(list, ',')) {
    const std::string entry(trim(piece));
    const std::string wanted = lower(entry);
    Pick pick;
    Match match = Match::none;
    if (const auto number = parse_natural(entry)) {
      const auto at = std::find_if(from.begin(), from.end(),
                                   [&](const Pick& one) { return one.number == *number; });
      if (at != from.end()) {
        pick = *at;
        match = Match::one;
      }
    } else if (wanted.size() > 4 && wanted.starts_with("gpu-")) {
      match = match_gpu(node, from, wanted, pick);
    } else if (wanted.starts_with("mig-gpu-")) {
      match = match_instance(node, from, wanted, pick);
      if (match != Match::one) match = match_old_instance(node, from, wanted, pick);
    } else if (wanted.size() > 4 && wanted.starts_with("mig-")) {
      match = match_instance(node, from, wanted, pick);
    }
    const bool known = match == Match::one && pick.device >= 0;
    const bool fresh = known ? seen.insert({pick.device, pick.instance}).second
                             : unknown.insert(pick.name.empty() ? wanted : pick.name).second;
    if (match == Match::none || !fresh) {
      if (!entry.empty() && entry.front() != '-') read.stopped = entry;
      break;
    }
    if (!parse_natural(entry)) pick.name = entry;
    read.picks.push_back(std::move(pick));
  }
  return read;
}

bool counts_whole(const EnvSnapshot& env) {
  return env.get("ZE_FLAT_DEVICE_HIERARCHY") == "COMPOSITE";
}

Tiles read_tile_mask(const Topology& node, const std::vector<int>& counted, std::string_view list,
                     bool whole, std::vector<std::string>& ignored) {
  std::vector<std::pair<int, int>> flat;  // device and tile by the driver's number of tiles
  std::vector<int> parts;
  for (const int index : counted) {
    const Device* device = find_device(node, index);
    parts.push_back(std::max(1, device == nullptr ? 1 : device->subdevices));
    for (int tile = 0; tile < parts.back(); ++tile) flat.emplace_back(index, tile);
  }
  Tiles left;
  for (const std::string_view piece : split(list, ',')) {
    const std::string_view entry = trim(piece);
    const std::size_t dot = entry.find('.');
    const auto first = parse_natural(entry.substr(0, dot));
    const bool card = dot == std::string_view::npos;
    const long tile = card ? -1 : parse_natural(entry.substr(dot + 1)).value_or(-1);
    const auto at = static_cast<std::size_t>(first.value_or(0));
    const std::size_t count = whole ? counted.size() : flat.size();
    const bool there = first && at < count && (card || (whole && tile >= 0 && tile < parts[at]));
    if (!there) {
      ignored.emplace_back(entry);
      continue;
    }
    if (!whole)
      left[flat[at].first].insert(flat[at].second);
    else if (!card)
      left[counted[at]].insert(static_cast<int>(tile));
    else
      for (int each = 0; each < parts[at]; ++each) left[counted[at]].insert(each);
  }
  return left;
}

}  // namespace hpclaunch
