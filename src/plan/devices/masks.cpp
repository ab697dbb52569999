#include "plan/devices/masks.h"

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

Match match_number(const std::vector<Pick>& from, long number, Pick& found) {
  const auto at =
      std::find_if(from.begin(), from.end(), [&](const Pick& one) { return one.number == number; });
  if (at == from.end()) return Match::none;
  found = *at;
  return Match::one;
}

// `wanted` is in lower case.
Match match_name(const Topology& node, const std::vector<Pick>& from, const std::string& wanted,
                 Pick& found) {
  if (wanted.size() > 4 && wanted.starts_with("gpu-")) return match_gpu(node, from, wanted, found);
  if (wanted.size() <= 4 || !wanted.starts_with("mig-")) return Match::none;
  const Match match = match_instance(node, from, wanted, found);
  if (match == Match::one || !wanted.starts_with("mig-gpu-")) return match;
  return match_old_instance(node, from, wanted, found);
}

// What entries have led to; by their text where that is not known.
class Seen {
 public:
  /// False when it has been there before.
  bool add(Match match, const Pick& pick, const std::string& entry) {
    if (match == Match::one && pick.device >= 0)
      return known_.insert({pick.device, pick.instance}).second;
    return unknown_.insert(pick.name.empty() ? entry : pick.name).second;
  }

 private:
  std::set<std::pair<int, int>> known_;
  std::set<std::string> unknown_;
};

// What every entry has to begin with; "" for numbers.
std::string_view cuda_form(std::string_view list) {
  for (const std::string_view name : {"GPU-", "MIG-"})
    if (list.starts_with(name)) return name;
  return "";
}

// PyTorch compares device names with their case; a name in another case is replaced by the device's own.
std::string own_spelling(const Topology& node, const Pick& pick, const std::string& entry) {
  const Device* device = find_device(node, pick.device);
  if (device == nullptr || pick.instance >= 0 || !begins(device->uuid, lower(entry))) return entry;
  return device->uuid.starts_with(entry) ? entry : device->uuid;
}

constexpr long kBeyondAll = 2'147'483'647L;  // the number of no device

}  // namespace

const Device* find_device(const Topology& node, int index) {
  const auto found = std::find_if(node.devices.begin(), node.devices.end(),
                                  [&](const Device& device) { return device.index == index; });
  return found == node.devices.end() ? nullptr : &*found;
}

int tiles_of(const Topology& node, int index) {
  const Device* device = find_device(node, index);
  return device == nullptr ? 1 : std::max(1, device->subdevices);
}

bool is_split(const Device& device) {
  return !device.instances.empty() || device.partition == "MIG";
}

bool has_split(const Topology& node) {
  return std::any_of(node.devices.begin(), node.devices.end(), is_split);
}

Picked read_mask(const Topology& node, const std::vector<Pick>& from, std::string_view list) {
  Picked read;
  Seen seen;
  for (const std::string_view piece : split(list, ',')) {
    const std::string entry(trim(piece));
    const auto number = parse_natural(entry);
    Pick pick;
    const Match match =
        number ? match_number(from, *number, pick) : match_name(node, from, lower(entry), pick);
    if (match == Match::none || !seen.add(match, pick, lower(entry))) {
      if (!entry.empty() && entry.front() != '-') read.stopped = entry;
      break;
    }
    if (!number) pick.name = entry;
    read.picks.push_back(std::move(pick));
  }
  return read;
}

std::optional<long> cuda_number(std::string_view entry) {
  entry = trim(entry);
  const bool minus = !entry.empty() && entry.front() == '-';
  if (minus || (!entry.empty() && entry.front() == '+')) entry.remove_prefix(1);
  std::size_t digits = 0;
  while (digits < entry.size() && entry[digits] >= '0' && entry[digits] <= '9') ++digits;
  if (digits == 0) return std::nullopt;
  const long number = parse_natural(entry.substr(0, digits)).value_or(kBeyondAll);
  if (minus && number > 0) return std::nullopt;
  return number;
}

Picked read_cuda_mask(const Topology& node, const std::vector<Pick>& from, std::string_view list) {
  const std::string_view form = cuda_form(list);
  Picked none;
  Picked read;
  std::vector<std::string> entries;
  for (const std::string_view piece : split(list, ',')) {
    const std::optional<long> number = form.empty() ? cuda_number(piece) : std::nullopt;
    if (form.empty() ? !number : !piece.starts_with(form)) {
      if (!trim(piece).starts_with('-')) read.stopped = piece;
      break;
    }
    none.repeated = number ? std::to_string(*number) : std::string(piece);
    if (std::find(entries.begin(), entries.end(), none.repeated) != entries.end()) return none;
    entries.push_back(none.repeated);
  }
  Seen seen;
  for (const std::string& entry : entries) {
    Pick pick;
    const Match match = form.empty() ? match_number(from, *parse_natural(entry), pick)
                                     : match_name(node, from, lower(entry), pick);
    if (match == Match::none) {
      read.stopped = entry;
      break;
    }
    none.repeated = entry;
    if (!seen.add(match, pick, entry)) return none;
    if (!form.empty()) pick.name = own_spelling(node, pick, entry);
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
    parts.push_back(tiles_of(node, index));
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

std::optional<DeviceList> parse_list(const EnvSnapshot& env, const char* name) {
  const std::string text(trim(env.get(name)));
  const Result<CpuSet> set = CpuSet::parse(text);
  if (text.empty() || !set || set->empty()) return std::nullopt;
  return DeviceList{name, text, set->to_vector()};
}

std::optional<Indices> mask_numbers(const PlanInput& input, const DeviceVendor& vendor,
                                    std::string& name) {
  std::vector<std::string_view> names(vendor.masks.begin(), vendor.masks.end());
  names.push_back(vendor.opencl_mask);
  for (const std::string_view one : names) {
    if (one.empty() || !input.env.has(one)) continue;
    name = one;
    Indices numbers;
    const std::string value = input.env.get(one);
    for (const std::string_view piece : split(value, ',')) {
      const std::string_view entry = trim(piece);
      // Of X.Y of Level Zero X is the device.
      const auto number = vendor.syntax == MaskSyntax::cuda ? cuda_number(entry)
                          : vendor.syntax == MaskSyntax::level_zero
                              ? parse_natural(entry.substr(0, entry.find('.')))
                              : parse_natural(entry);
      if (!number && vendor.syntax == MaskSyntax::cuda && !numbers.empty())
        return numbers;  // the list ends here
      if (!number) return std::nullopt;
      numbers.push_back(static_cast<int>(*number));
    }
    return numbers;
  }
  return std::nullopt;
}

std::optional<DeviceList> cards_of_mask(const PlanInput& input) {
  std::string name;
  const std::optional<Indices> numbers = mask_numbers(input, device_vendor("intel"), name);
  const bool parts = input.env.get("ZE_AFFINITY_MASK").find('.') != std::string::npos;
  if (!numbers || parts || counts_whole(input.env)) return std::nullopt;
  for (const char* variable : kSlurmGpuLists) {
    std::optional<DeviceList> list = parse_list(input.env, variable);
    if (!list) continue;
    bool anew = numbers->size() == list->devices.size();
    for (std::size_t i = 0; i < list->devices.size(); ++i) {
      if (find_device(input.node, list->devices[i]) == nullptr) return std::nullopt;
      anew = anew && (*numbers)[i] == static_cast<int>(i);
    }
    if (!anew && *numbers != list->devices) return std::nullopt;
    return list;
  }
  return std::nullopt;
}

Indices entries_of(const PlanInput& input, const DeviceVendor& vendor, const DeviceList& list) {
  const bool parts = input.env.get("ZE_AFFINITY_MASK").find('.') != std::string::npos;
  if (vendor.syntax != MaskSyntax::level_zero || parts || counts_whole(input.env) ||
      cards_of_mask(input))
    return list.devices;
  Indices tiles;
  int next = 0;
  for (const Device& device : input.node.devices)
    for (int tile = 0; tile < std::max(1, device.subdevices); ++tile, ++next)
      if (std::find(list.devices.begin(), list.devices.end(), device.index) != list.devices.end())
        tiles.push_back(next);
  return tiles;
}

}  // namespace hpclaunch
