#include "plan/devices/masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
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
    const Device* device = find_device(node, pick.device);
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

// What every entry has to begin with; "" for numbers.
std::string_view cuda_form(std::string_view list) {
  return list.starts_with("GPU-") || list.starts_with("MIG-") ? list.substr(0, 4) : "";
}

// PyTorch compares device names with their case; a name in another case is replaced by the device's own.
std::string own_spelling(const Topology& node, const Pick& pick, const std::string& entry) {
  const Device* device = find_device(node, pick.device);
  if (device == nullptr || pick.part >= 0 || !begins(device->uuid, to_lower(entry))) return entry;
  return device->uuid.starts_with(entry) ? entry : device->uuid;
}

// The number that CUDA reads at the front of an entry, as strtoul does: "1gpu2" is 1, "+3" 3, "-0" 0. nullopt
// for a negative number and where there is none.
std::optional<long> cuda_number(std::string_view entry) {
  constexpr long kBeyondAll = 2'147'483'647L;  // the number of no device
  entry = trim(entry);
  const bool minus = entry.starts_with('-');
  if (minus || entry.starts_with('+')) entry.remove_prefix(1);
  entry = entry.substr(0, entry.find_first_not_of("0123456789"));
  if (entry.empty()) return std::nullopt;
  const long number = parse_natural(entry).value_or(kBeyondAll);
  if (minus && number > 0) return std::nullopt;
  return number;
}

// X.Y: whatever is counted, X is a device.
bool has_parts(const EnvSnapshot& env) {
  return env.get("ZE_AFFINITY_MASK").find('.') != std::string::npos;
}

}  // namespace

bool is_split(const Device& device) {
  return !device.instances.empty() || device.partition == "MIG";
}

bool has_split(const Topology& node) { return std::ranges::any_of(node.devices, is_split); }

Picked read_mask(const Topology& node, const std::vector<Pick>& from, std::string_view list,
                 MaskSyntax syntax) {
  const bool cuda = syntax == MaskSyntax::cuda;
  const std::string_view form = cuda ? cuda_form(list) : "";
  Picked read;
  std::set<std::string> texts;
  std::set<std::string> reached;
  bool open = true;
  const auto stop = [&](std::string_view entry) {
    if (read.stopped.empty() && !trim(entry).starts_with('-')) read.stopped = entry;
    open = false;
  };
  for (const std::string_view piece : split(list, ',')) {
    const auto number = !cuda          ? parse_natural(trim(piece))
                        : form.empty() ? cuda_number(piece)
                                       : std::nullopt;
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
    const Device* device = find_device(node, index);
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

std::optional<DeviceList> parse_list(const EnvSnapshot& env, const char* name) {
  const std::string text(trim(env.get(name)));
  const Result<CpuSet> set = CpuSet::parse(text);
  if (!set) return std::nullopt;
  return DeviceList{name, text, set->to_vector()};
}

std::optional<DeviceList> slurm_list(const EnvSnapshot& env) {
  for (const char* name : kSlurmGpuLists)
    if (std::optional<DeviceList> list = parse_list(env, name)) return list;
  return std::nullopt;
}

FirstMask first_mask(const EnvSnapshot& env, const DeviceVendor& vendor) {
  std::vector<std::string_view> names(vendor.masks.begin(), vendor.masks.end());
  names.push_back(vendor.opencl_mask);
  const auto set = std::ranges::find_if(
      names, [&](std::string_view one) { return !one.empty() && env.has(one); });
  if (set == names.end()) return {};
  FirstMask mask{std::string(*set), {}};
  const bool cuda = vendor.syntax == MaskSyntax::cuda;
  const std::string value = env.get(mask.name);
  for (const std::string_view piece : split(value, ',')) {
    std::string_view entry = trim(piece);
    if (vendor.keeps_order()) entry = entry.substr(0, entry.find('.'));  // of X.Y, X is the device
    const auto number = cuda ? cuda_number(entry) : parse_natural(entry);
    if (!number && cuda && !mask.numbers.empty()) break;  // the list ends here
    if (!number) return {mask.name, {}};
    mask.numbers.push_back(static_cast<int>(*number));
  }
  return mask;
}

std::optional<DeviceList> cards_of_mask(const PlanInput& input) {
  const DeviceVendor& intel = device_vendor("intel");
  const Indices numbers = first_mask(input.env, intel).numbers;
  const std::optional<DeviceList> list = slurm_list(input.env);
  if (numbers.empty() || !list || counts_whole(input.env) || has_parts(input.env))
    return std::nullopt;
  Indices anew(list->devices.size());
  std::iota(anew.begin(), anew.end(), 0);
  const bool exist = std::ranges::all_of(
      list->devices, [&](int device) { return find_device(input.node, device) != nullptr; });
  return exist && (numbers == anew || numbers == list->devices) ? list : std::nullopt;
}

Indices entries_of(const PlanInput& input, const DeviceVendor& vendor, const std::vector<Pick>& all,
                   const DeviceList& list) {
  if (!vendor.keeps_order() || counts_whole(input.env) || has_parts(input.env) ||
      cards_of_mask(input))
    return list.devices;
  const std::vector<Pick> tiles = tiles_in(input.node, all);
  Indices entries;
  for (std::size_t t = 0; t < tiles.size(); ++t)
    if (std::ranges::count(list.devices, tiles[t].device) > 0)
      entries.push_back(static_cast<int>(t));
  return entries;
}

}  // namespace hpclaunch
