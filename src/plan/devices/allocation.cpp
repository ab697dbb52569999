// What a driver counts before any mask.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "hpclaunch/text.h"
#include "plan/devices/masks.h"

namespace hpclaunch {

namespace {

bool has(const Indices& all, int one) { return std::ranges::count(all, one) > 0; }

constexpr const char* kOtherNode =
    "hpclaunch topo shows this node's devices; --topology or --node-type plan for another";

void warn(const char* id, std::string message, std::string fix, Allocation& allocation) {
  allocation.reports.push_back({id, Severity::warning, std::move(message), std::move(fix)});
}

void report_unclear(const DeviceList& list, const std::string& message, Allocation& allocation) {
  warn("grant-unclear", fmt::format("{}: {}", list.shown(), message),
       "keep the batch system's device mask, or plan on the node with its vendor's library "
       "installed, "
       "which gives devices their names",
       allocation);
}

// All of a node: Device::index is the driver's count.
std::vector<Pick> picks_of(const Indices& devices) {
  std::vector<Pick> picks;
  for (const int device : devices) picks.push_back({device, -1, device, std::to_string(device)});
  return picks;
}

// A driver that sees these alone counts them from 0.
std::vector<Pick> counted_anew(const Indices& devices) {
  std::vector<Pick> picks = picks_of(devices);
  for (std::size_t i = 0; i < picks.size(); ++i) {
    picks[i].number = static_cast<int>(i);
    picks[i].name = std::to_string(i);
  }
  return picks;
}

// A list that this node can have.
std::optional<DeviceList> read_list(const PlanInput& input, const char* name, const Indices& all,
                                    Allocation& allocation) {
  std::optional<DeviceList> listed = parse_list(input.env, name);
  // Where devices are split, each instance is a resource of its own and is counted as one.
  if (!listed || has_split(input.node)) return std::nullopt;
  const auto missing =
      std::ranges::find_if(listed->devices, [&](int device) { return !has(all, device); });
  if (missing == listed->devices.end()) return listed;
  warn("grant-contradicts",
       fmt::format("ignoring {}: it names device {}, and the node has {}", listed->shown(),
                   *missing, counted(all.size(), "device")),
       kOtherNode, allocation);
  return std::nullopt;
}

bool names_known(const PlanInput& input, const Indices& devices) {
  return std::ranges::all_of(devices, [&](int index) {
    const Device* device = find_device(input.node, index);
    return device != nullptr && !device->uuid.empty();
  });
}

// A list and no mask: whether the driver counts the list alone is not known.
void count_without_mask(const PlanInput& input, const DeviceList& list, bool by_name,
                        Allocation& allocation) {
  if (by_name && names_known(input, list.devices) && !spans_nodes(input)) {
    for (Pick& pick : allocation.counted)
      if (const Device* device = find_device(input.node, pick.device); !device->uuid.empty())
        pick.name = device->uuid;
    allocation.why = list.shown() +
                     " lists them; masks use their UUIDs, which are the same inside and outside of "
                     "a device control group";
    return;
  }
  allocation.why = list.shown() + " lists them, by the node's own numbers";
  report_unclear(list,
                 "no device mask is set, so the driver's numbers are not known; masks use the "
                 "node's numbers, which reach granted devices or none",
                 allocation);
}

// A list beside a mask of numbers. `group`: a device control group has the driver count the list alone.
void count_with_mask(const PlanInput& input, const DeviceList& list, const Indices& entries,
                     const Indices& numbers, const std::string& mask, bool group,
                     Allocation& allocation) {
  const std::string set = mask + "=" + input.env.get(mask);
  const int count = static_cast<int>(entries.size());
  const bool among = std::ranges::all_of(numbers, [&](int n) { return has(entries, n); });
  if (among && std::ranges::any_of(numbers, [&](int n) { return n >= count; })) {
    allocation.why = fmt::format("{} has the node's own numbers, as {} does", set, list.shown());
    return;
  }
  allocation.mine.reset();
  if (group) {
    allocation.counted = counted_anew(list.devices);
    allocation.why = fmt::format(
        "{} counts the devices of {} only, as inside a device control group", set, list.shown());
    return;
  }
  for (Pick& pick : allocation.counted) pick.device = -1;
  if (among)
    report_unclear(list,
                   fmt::format("{} counts either these or all devices of the node; the plan keeps "
                               "its entries, and device locality is unknown",
                               set),
                   allocation);
  else
    warn("grant-contradicts",
         fmt::format("{} contradicts {}: it is no part of it, and does not count these {}; the "
                     "plan keeps its entries, and device locality is unknown",
                     set, list.shown(), count),
         fmt::format("unset {}, or restore the batch system's value", mask), allocation);
}

// A list of the node's numbers beside a mask that may count these alone.
void count_list(const PlanInput& input, const DeviceVendor& vendor, const DeviceList& list,
                Allocation& allocation) {
  const Indices entries = entries_of(input, vendor, list);
  const int count = static_cast<int>(entries.size());
  allocation.by = list.name;
  allocation.mine = list.devices;
  std::string mask;
  const std::optional<Indices> numbers = mask_numbers(input, vendor, mask);
  // All can be opened: no control group has the driver count anew.
  const bool open = input.reachable && input.reachable->size() == allocation.counted.size();
  const bool group = numbers && std::ranges::all_of(*numbers, [&](int n) { return n < count; }) &&
                     std::ranges::any_of(*numbers, [&](int n) { return !has(entries, n); });
  if (entries.back() == count - 1 || (open && !group))
    allocation.why = list.shown() + " lists them";
  else if (numbers)
    count_with_mask(input, list, entries, *numbers, mask, group, allocation);
  else if (mask.empty())  // a mask of names needs no numbers
    count_without_mask(input, list, !vendor.keeps_order(), allocation);
}

// Names of a container's devices; nullopt where it has numbers, or says nothing.
std::optional<std::vector<Pick>> container_names(const PlanInput& input,
                                                 const std::vector<Pick>& all) {
  const std::string text(trim(input.env.get("NVIDIA_VISIBLE_DEVICES")));
  if (text.find("GPU-") == std::string::npos && text.find("MIG-") == std::string::npos)
    return std::nullopt;
  std::vector<Pick> picks = read_mask(input.node, all, text, MaskSyntax::rocm).picks;
  if (picks.empty()) return std::nullopt;
  std::ranges::stable_sort(picks, {}, [](const Pick& pick) {
    return std::pair(pick.device, pick.instance);
  });  // inside they are counted by address again
  for (std::size_t i = 0; i < picks.size(); ++i) picks[i].number = static_cast<int>(i);
  return picks;
}

// A number of devices; which ones is not known.
void count_number(const PlanInput& input, Allocation& allocation) {
  const DeviceList said{kSlurmGpuCount, input.env.get(kSlurmGpuCount), {}};
  const auto count = static_cast<std::size_t>(parse_natural(said.text).value_or(0));
  if (count == 0 || count >= allocation.counted.size()) return;
  allocation.by = said.name;
  allocation.why = said.shown() + " gives a number of devices, not which ones";
  allocation.counted.resize(count);
  for (Pick& pick : allocation.counted) pick.device = -1;
  report_unclear(said,
                 "which devices of the node these are is not known; the plan counts them from 0, "
                 "and their locality is unknown",
                 allocation);
}

// ---- split devices (MIG) --------------------------------------------------------------------------

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

// Instances in place of devices, when no mask names them. Slurm counts them by the names of their device files
// (_sort_gpu_by_file in its gres_gpu plugin), which is the order of the devices, and of the instances
// of each as long as their numbers have as many digits.
void count_instances(const PlanInput& input, Allocation& allocation) {
  const DeviceList said =
      slurm_list(input.env).value_or(DeviceList{kSlurmGpuCount, input.env.get(kSlurmGpuCount), {}});
  const std::size_t count = said.devices.empty()
                                ? static_cast<std::size_t>(parse_natural(said.text).value_or(0))
                                : said.devices.size();
  const std::vector<Pick> all = instances_of(input.node);
  std::vector<Pick> mine;
  std::vector<Pick> listed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto here = std::ranges::find(allocation.counted, all[i].device, &Pick::device);
    if (here == allocation.counted.end()) continue;
    mine.push_back(all[i]);
    if (all[i].instance < 0) mine.back().number = here->number;
    if (mine.back().name.empty()) mine.back().name = here->name;
    if (has(said.devices, static_cast<int>(i))) listed.push_back(mine.back());
  }
  if (count == 0 || count == mine.size()) return;  // no part of what is here
  if (count > mine.size())
    return warn("grant-contradicts",
                fmt::format("ignoring {}: it grants {}, {} found", said.shown(),
                            counted(count, "instance"), mine.size()),
                kOtherNode, allocation);
  allocation.by = said.name;
  const bool placed = listed.size() == count;
  allocation.counted = placed ? listed : mine;
  allocation.counted.resize(count);
  allocation.why = said.shown() + " counts instances of split devices (MIG)";
  report_unclear(said,
                 placed ? "no mask names the instances; the plan counts them in the order of their "
                          "devices"
                        : "no mask names the instances; which ones these are is not known, and the "
                          "plan takes the first ones",
                 allocation);
}

// Less than the node has can be opened here: drivers count these alone.
bool count_open(const PlanInput& input, const Indices& all, Allocation& allocation) {
  if (!input.reachable) return false;
  Indices there;
  std::ranges::copy_if(all, std::back_inserter(there),
                       [&](int index) { return has(*input.reachable, index); });
  if (there.size() == all.size()) return false;
  allocation.counted = counted_anew(there);
  allocation.by = "this process";
  allocation.why =
      fmt::format("this process can open {} of the node's {}; drivers count only these",
                  there.size(), counted(all.size(), "device"));
  return true;
}

// What NVIDIA_VISIBLE_DEVICES says of a container.
bool count_container(const PlanInput& input, const DeviceVendor& vendor, const Indices& all,
                     Allocation& allocation) {
  const std::string name(vendor.container_list);
  if (name.empty()) return false;
  if (auto names = container_names(input, allocation.counted)) {
    allocation.counted = std::move(*names);
    allocation.by = name;
    allocation.why = name + " names the container's devices";
    return true;
  }
  const auto list = read_list(input, name.c_str(), all, allocation);
  if (!list) return false;
  std::string mask;
  if (list->devices.size() == all.size()) return true;
  if (mask_numbers(input, vendor, mask)) {
    count_list(input, vendor, *list, allocation);
    return true;
  }
  allocation.by = list->name;
  allocation.counted = counted_anew(list->devices);
  allocation.why = list->shown() + " lists the container's devices; its drivers count only these";
  return true;
}

}  // namespace

bool Allocation::leaves(int device) const { return !mine || has(*mine, device); }

bool Allocation::unplaced() const {
  return std::ranges::any_of(counted, [](const Pick& pick) { return pick.device < 0; });
}

bool spans_nodes(const PlanInput& input) {
  if (input.hosts.size() <= 1 || input.request.nodes.value_or(2) == 1) return false;
  return input.request.ranks.value_or(2) > 1;
}

Allocation find_allocation(const PlanInput& input, const DeviceVendor& vendor) {
  Allocation allocation;
  Indices all;
  for (const Device& device : input.node.devices) all.push_back(device.index);
  allocation.counted = picks_of(all);
  std::string mask;
  mask_numbers(input, vendor, mask);
  const bool masked = !mask.empty();
  const bool split = has_split(input.node);
  if (count_open(input, all, allocation)) {
    if (split && !masked) count_instances(input, allocation);
    return allocation;
  }
  for (const char* name : kSlurmGpuLists)
    if (const auto list = read_list(input, name, all, allocation)) {
      if (list->devices.size() < all.size()) count_list(input, vendor, *list, allocation);
      return allocation;
    }
  if (count_container(input, vendor, all, allocation) || masked) return allocation;
  split ? count_instances(input, allocation) : count_number(input, allocation);
  return allocation;
}

}  // namespace hpclaunch
