// What a driver counts before any mask.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "hpclaunch/text.h"
#include "plan/devices/masks.h"

namespace hpclaunch {

namespace {

using Indices = std::vector<int>;

bool has(const Indices& all, int one) { return std::ranges::count(all, one) > 0; }

/// A variable with the node's own numbers of devices, or a mask.
struct NumberList {
  std::string name = {};  // "" for none
  std::string text = {};
  Indices numbers =
      {};  // of a list ascending; of a mask as the driver reads them, none where it has anything else

  std::string shown() const { return name + "=" + text; }
};

// nullopt where the variable is not set, or has anything but numbers and ranges of them.
std::optional<NumberList> parse_list(const EnvSnapshot& env, const char* name) {
  const std::string text(trim(env.get(name)));
  const Result<CpuSet> set = CpuSet::parse(text);
  if (!set) return std::nullopt;
  return NumberList{name, text, set->to_vector()};
}

std::optional<NumberList> slurm_list(const EnvSnapshot& env) {
  for (const char* name : kSlurmGpuLists)
    if (std::optional<NumberList> list = parse_list(env, name)) return list;
  return std::nullopt;
}

// The first mask of a vendor that is set.
NumberList first_mask(const EnvSnapshot& env, const DeviceVendor& vendor) {
  std::vector<std::string_view> names(vendor.masks.begin(), vendor.masks.end());
  names.push_back(vendor.opencl_mask);
  const auto set = std::ranges::find_if(
      names, [&](std::string_view one) { return !one.empty() && env.has(one); });
  if (set == names.end()) return {};
  NumberList mask{std::string(*set), env.get(*set)};
  for (std::string_view entry : split(mask.text, ',')) {
    if (vendor.keeps_order()) entry = entry.substr(0, entry.find('.'));  // of X.Y, X is the device
    const auto number = mask_number(entry, vendor.syntax);
    // CUDA's list ends at the first entry of another form.
    if (!number && vendor.syntax == MaskSyntax::cuda && !mask.numbers.empty()) break;
    if (!number) return {mask.name, mask.text};
    mask.numbers.push_back(static_cast<int>(*number));
  }
  return mask;
}

constexpr const char* kOtherNode =
    "hpclaunch topo shows this node's devices; --topology or --node-type plan for another";

// What Slurm counts where it has asked NVML: an instance is a resource of its own, a split device without
// any is none.
std::vector<Pick> instances_of(const Topology& node) {
  std::vector<Pick> picks;
  for (const Device& device : node.devices) {
    for (std::size_t i = 0; i < device.instances.size(); ++i)
      picks.push_back({device.index, static_cast<int>(i), -1, device.instances[i]});
    if (!is_split(device)) picks.push_back({device.index, -1, device.index, device.uuid});
  }
  return picks;
}

class Finding {
 public:
  Finding(const PlanInput& input, const DeviceVendor& vendor)
      : input_(input), vendor_(vendor), mask_(first_mask(input.env, vendor)) {
    for (const Device& device : input.node.devices) all_.push_back(device.index);
    for (const int device : all_) out_.counted.push_back(entry(device, device));
    if (vendor.keeps_order() && !counts_whole(input.env)) find_cards();
  }

  Allocation find() {
    const bool split = has_split(input_.node);
    const bool masked = !mask_.name.empty();
    if (count_open()) {
      if (split && !masked) count_instances();
      return out_;
    }
    for (const char* name : kSlurmGpuLists)
      if (const auto list = read_list(name)) {
        if (list->numbers.size() < all_.size()) count_list(*list);
        return out_;
      }
    if (count_container() || masked) return out_;
    split ? count_instances() : count_number();
    return out_;
  }

 private:
  static Pick entry(int device, int number) { return {device, -1, number, std::to_string(number)}; }

  // A driver that sees these alone counts them from 0.
  void count_anew(const Indices& devices) {
    out_.counted.clear();
    for (const int device : devices)
      out_.counted.push_back(entry(device, static_cast<int>(out_.counted.size())));
  }

  void forget_devices() {
    for (Pick& pick : out_.counted) pick.device = -1;
  }

  void warn(const char* id, std::string message, std::string fix) {
    out_.reports.push_back({id, Severity::warning, std::move(message), std::move(fix)});
  }

  void report_unclear(const NumberList& list, const std::string& message) {
    warn("grant-unclear", fmt::format("{}: {}", list.shown(), message),
         "keep the batch system's device mask, or plan on the node with its vendor's library "
         "installed, "
         "which gives devices their names");
  }

  // A list that this node can have. Where devices are split, each instance is a resource of its own and is counted
  // as one.
  std::optional<NumberList> read_list(const char* name) {
    std::optional<NumberList> listed = parse_list(input_.env, name);
    if (!listed || has_split(input_.node)) return std::nullopt;
    const auto missing =
        std::ranges::find_if(listed->numbers, [&](int device) { return !has(all_, device); });
    if (missing == listed->numbers.end()) return listed;
    warn("grant-contradicts",
         fmt::format("ignoring {}: it names device {}, and the node has {}", listed->shown(),
                     *missing, counted(all_.size(), "device")),
         kOtherNode);
    return std::nullopt;
  }

  // Less than the node has can be opened here: drivers count these alone.
  bool count_open() {
    Indices there;
    std::ranges::copy_if(all_, std::back_inserter(there), [&](int index) {
      return !input_.reachable || has(*input_.reachable, index);
    });
    if (there.size() == all_.size()) return false;
    count_anew(there);
    out_.by = "this process";
    out_.why = fmt::format("this process can open {} of the node's {}; drivers count only these",
                           there.size(), counted(all_.size(), "device"));
    return true;
  }

  // X.Y: whatever is counted, X is a device.
  bool mask_has_parts() const { return mask_.text.find('.') != std::string::npos; }

  void find_cards() {
    const std::optional<NumberList> list = slurm_list(input_.env);
    if (mask_.numbers.empty() || !list || mask_has_parts()) return;
    Indices anew(list->numbers.size());
    std::iota(anew.begin(), anew.end(), 0);
    const bool exist =
        std::ranges::all_of(list->numbers, [&](int device) { return has(all_, device); });
    if (exist && (mask_.numbers == anew || mask_.numbers == list->numbers))
      out_.cards = list->shown();
  }

  // What the mask would hold for all of the list where the driver counts all of the node: the devices' numbers, or
  // those of their tiles where ZE_AFFINITY_MASK counts tiles and says no X.Y. Ascending.
  Indices entries_of(const NumberList& list) const {
    if (!vendor_.keeps_order() || counts_whole(input_.env) || mask_has_parts() ||
        !out_.cards.empty())
      return list.numbers;
    const std::vector<Pick> tiles = tiles_in(input_.node, out_.counted);
    Indices entries;
    for (std::size_t t = 0; t < tiles.size(); ++t)
      if (has(list.numbers, tiles[t].device)) entries.push_back(static_cast<int>(t));
    return entries;
  }

  // A list of the node's numbers beside a mask that may count these alone.
  void count_list(const NumberList& list) {
    const Indices entries = entries_of(list);
    const auto count = static_cast<int>(entries.size());
    const Indices& numbers = mask_.numbers;
    const bool among = std::ranges::all_of(numbers, [&](int n) { return has(entries, n); });
    const bool low = std::ranges::all_of(numbers, [&](int n) { return n < count; });
    const bool group = low && !among;  // a device control group has the driver count the list alone
    // All can be opened: no control group has the driver count anew.
    const bool open = input_.reachable && input_.reachable->size() == out_.counted.size();
    const std::string set = mask_.shown();
    out_.by = list.name;
    out_.mine = list.numbers;
    if (entries.back() == count - 1 || (open && !group)) {
      out_.why = list.shown() + " lists them";
      return;
    }
    if (numbers.empty()) {  // a mask of names needs no numbers
      if (mask_.name.empty()) count_without_mask(list);
      return;
    }
    if (among && !low) {
      out_.why = fmt::format("{} has the node's own numbers, as {} does", set, list.shown());
      return;
    }
    out_.mine.reset();
    if (group) {
      count_anew(list.numbers);
      out_.why = fmt::format("{} counts the devices of {} only, as inside a device control group",
                             set, list.shown());
      return;
    }
    forget_devices();
    if (among)
      return report_unclear(list, set +
                                      " counts either these or all devices of the node; the plan "
                                      "keeps its entries, and device locality is unknown");
    warn("grant-contradicts",
         fmt::format(
             "{} contradicts {}: it names other devices, and is not an index into these {}; the "
             "plan keeps its entries, and device locality is unknown",
             set, list.shown(), count),
         fmt::format("unset {}, or restore the batch system's value", mask_.name));
  }

  // A list and no mask: whether the driver counts the list alone is not known.
  void count_without_mask(const NumberList& list) {
    const auto uuid = [&](int device) { return input_.node.find_device(device)->uuid; };
    const bool named = std::ranges::all_of(list.numbers, [&](int d) { return !uuid(d).empty(); });
    if (!vendor_.keeps_order() && named && !spans_nodes(input_)) {
      for (Pick& pick : out_.counted)
        if (const std::string name = uuid(pick.device); !name.empty()) pick.name = name;
      out_.why = list.shown() +
                 " lists them; masks use their UUIDs, which are the same inside and outside of a "
                 "device control group";
      return;
    }
    out_.why = list.shown() + " lists them, by the node's own numbers";
    report_unclear(list,
                   "no device mask is set, so the driver's numbers are not known; masks use the "
                   "node's numbers, which reach granted devices or none");
  }

  // What NVIDIA_VISIBLE_DEVICES says of a container: names, or numbers.
  bool count_container() {
    const std::string name(vendor_.container_list);
    const std::string text(trim(input_.env.get(name)));
    if (text.empty()) return false;
    if (text.find("GPU-") != std::string::npos || text.find("MIG-") != std::string::npos) {
      std::vector<Pick> picks = read_mask(input_.node, out_.counted, text, MaskSyntax::rocm).picks;
      std::ranges::stable_sort(picks, {}, [](const Pick& pick) {
        return std::pair(pick.device, pick.part);
      });  // inside they are counted by address again
      for (std::size_t i = 0; i < picks.size(); ++i) picks[i].number = static_cast<int>(i);
      if (!picks.empty()) {
        out_.counted = std::move(picks);
        out_.by = name;
        out_.why = name + " names the container's devices";
        return true;
      }
    }
    const auto list = read_list(name.c_str());
    if (!list || list->numbers.size() == all_.size()) return list.has_value();
    if (!mask_.numbers.empty()) {
      count_list(*list);
      return true;
    }
    count_anew(list->numbers);
    out_.by = name;
    out_.why = list->shown() + " lists the container's devices; its drivers count only these";
    return true;
  }

  // What Slurm says without any mask: its list, else the number of devices; and how many these are.
  std::pair<NumberList, std::size_t> said(std::optional<NumberList> list) const {
    if (list) return {*list, list->numbers.size()};
    const std::string text = input_.env.get(kSlurmGpuCount);
    return {{kSlurmGpuCount, text, {}}, static_cast<std::size_t>(parse_natural(text).value_or(0))};
  }

  // A number of devices; which ones is not known.
  void count_number() {
    const auto [list, count] = said(std::nullopt);
    if (count == 0 || count >= out_.counted.size()) return;
    out_.by = list.name;
    out_.why = list.shown() + " gives a number of devices, not which ones";
    out_.counted.resize(count);
    forget_devices();
    report_unclear(list,
                   "which devices of the node these are is not known; the plan counts them from 0, "
                   "and their locality is unknown");
  }

  // Instances of split devices in place of devices, when no mask names them. Slurm counts them by the names of their
  // device files (_sort_gpu_by_file in its gres_gpu plugin), which is the order of the devices, and of the instances
  // of each as long as their numbers have as many digits.
  void count_instances() {
    const auto [list, count] = said(slurm_list(input_.env));
    const std::vector<Pick> all = instances_of(input_.node);
    std::vector<Pick> mine;
    std::vector<Pick> listed;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto here = std::ranges::find(out_.counted, all[i].device, &Pick::device);
      if (here == out_.counted.end()) continue;
      mine.push_back(all[i]);
      if (all[i].part < 0) mine.back().number = here->number;
      if (mine.back().name.empty()) mine.back().name = here->name;
      if (has(list.numbers, static_cast<int>(i))) listed.push_back(mine.back());
    }
    if (count == 0 || count == mine.size()) return;  // no part of what is here
    if (count > mine.size())
      return warn("grant-contradicts",
                  fmt::format("ignoring {}: it grants {}, {} found", list.shown(),
                              counted(count, "instance"), mine.size()),
                  kOtherNode);
    const bool placed = listed.size() == count;
    out_.by = list.name;
    out_.counted = placed ? listed : mine;
    out_.counted.resize(count);
    out_.why = list.shown() + " counts instances of split devices (MIG)";
    report_unclear(list,
                   placed ? "no mask names the instances; the plan counts them in the order of "
                            "their devices"
                          : "no mask names the instances; which ones these are is not known, and "
                            "the plan takes the first ones");
  }

  const PlanInput& input_;
  const DeviceVendor& vendor_;
  NumberList mask_;
  Indices all_;  // Device::index
  Allocation out_;
};

}  // namespace

bool Allocation::leaves(int device) const { return !mine || has(*mine, device); }

bool Allocation::unplaced() const {
  return std::ranges::any_of(counted, [](const Pick& pick) { return pick.device < 0; });
}

bool spans_nodes(const PlanInput& input) {
  if (input.hosts.size() <= 1 || input.request->nodes.value_or(2) == 1) return false;
  return input.request->ranks.value_or(2) > 1;
}

Allocation find_allocation(const PlanInput& input, const DeviceVendor& vendor) {
  return Finding(input, vendor).find();
}

}  // namespace hpclaunch
