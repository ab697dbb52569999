// What a driver counts before any mask.
#include "plan/devices/allocation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "plan/devices/masks.h"

namespace hpclaunch {

namespace {

bool has(const Indices& all, int one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

constexpr const char* kOtherNode =
    "hpclaunch topo shows this node's devices; --topology or --node-type plan for another";

void warn(const char* id, std::string message, std::string fix, Allocation& allocation) {
  allocation.reports.push_back({id, Severity::warning, std::move(message), std::move(fix)});
}

void report_unclear(const DeviceList& list, const std::string& message, Allocation& allocation) {
  warn("grant-unclear", fmt::format("{}: {}", list.shown(), message),
       "keep the batch system's mask of devices, or plan on the node with its vendor's library "
       "installed, so that devices are known by name",
       allocation);
}

// All of a node: Device::index is the driver's count.
std::vector<Pick> picks_of(const Indices& devices, bool known = true) {
  std::vector<Pick> picks;
  picks.reserve(devices.size());
  for (const int device : devices)
    picks.push_back({known ? device : -1, -1, device, std::to_string(device)});
  return picks;
}

// A driver that sees these alone counts them anew.
std::vector<Pick> counted_anew(const Indices& devices) {
  std::vector<Pick> picks;
  for (const int device : devices) {
    const int number = static_cast<int>(picks.size());
    picks.push_back({device, -1, number, std::to_string(number)});
  }
  return picks;
}

// A list that this node can have.
std::optional<DeviceList> read_list(const PlanInput& input, const char* name, const Indices& all,
                                    Allocation& allocation) {
  std::optional<DeviceList> listed = parse_list(input.env, name);
  // Where devices are split, each instance is a resource of its own and is counted as one.
  if (!listed || has_split(input.node)) return std::nullopt;
  for (const int device : listed->devices) {
    if (has(all, device)) continue;
    warn("grant-contradicts",
         fmt::format("ignoring {}: it names device {}, and the node has {}", listed->shown(),
                     device, counted(all.size(), "device")),
         kOtherNode, allocation);
    return std::nullopt;
  }
  return listed;
}

bool names_known(const PlanInput& input, const Indices& devices) {
  return std::all_of(devices.begin(), devices.end(), [&](int index) {
    const Device* device = find_device(input.node, index);
    return device != nullptr && !device->uuid.empty();
  });
}

bool all_below(const Indices& numbers, int count) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int n) { return n < count; });
}

bool all_in(const Indices& numbers, const Indices& list) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int n) { return has(list, n); });
}

// A list and no mask: whether the driver counts the list alone is not known.
void count_without_mask(const PlanInput& input, const DeviceList& list, const Indices& all,
                        bool by_name, Allocation& allocation) {
  allocation.counted = picks_of(all);
  allocation.mine = list.devices;
  if (by_name && names_known(input, list.devices) && !spans_nodes(input)) {
    for (Pick& pick : allocation.counted)
      if (const Device* device = find_device(input.node, pick.device); !device->uuid.empty())
        pick.name = device->uuid;
    allocation.why = list.shown() +
                     " lists them; they are called by name, which holds inside and outside a "
                     "device control group";
    return;
  }
  allocation.why = list.shown() + " lists them, by the node's own numbers";
  report_unclear(
      list,
      "no mask of devices is set, so whether the driver counts these alone is not known; "
      "masks use the node's numbers, which never lead beyond the grant but may lead to none",
      allocation);
}

// A list beside a mask of numbers. `group`: a device control group has the driver count the list alone.
void count_with_mask(const PlanInput& input, const DeviceList& list, const Indices& all,
                     const Indices& entries, const Indices& numbers, const std::string& mask,
                     bool group, Allocation& allocation) {
  const std::string set = mask + "=" + input.env.get(mask);
  const bool among = all_in(numbers, entries);
  allocation.counted = picks_of(all);
  if (among && !all_below(numbers, static_cast<int>(entries.size()))) {
    allocation.why = fmt::format("{} has the node's own numbers, as {} does", set, list.shown());
    return;
  }
  allocation.mine.reset();
  allocation.counted = group ? counted_anew(list.devices) : picks_of(all, false);
  if (group)
    allocation.why =
        fmt::format("{} counts among the devices of {} alone, as inside a device control group",
                    set, list.shown());
  else if (among)
    report_unclear(
        list,
        fmt::format("{} may count these alone or all devices of the node; its entries are kept, "
                    "and where the devices are is not known",
                    set),
        allocation);
  else
    warn("grant-contradicts",
         fmt::format("{} is neither a part of {} nor counts among these {}: its entries are kept, "
                     "and where the devices are is not known",
                     set, list.shown(), entries.size()),
         fmt::format("unset {}, or give it the batch system's value again", mask), allocation);
}

// A list of the node's numbers beside a mask that may count these alone.
void count_list(const PlanInput& input, const DeviceVendor& vendor, const DeviceList& list,
                const Indices& all, Allocation& allocation) {
  const Indices entries = entries_of(input, vendor, list);
  const int count = static_cast<int>(entries.size());
  const bool first_ones = entries.back() == count - 1;
  allocation.by = list.name;
  allocation.mine = list.devices;
  std::string mask;
  const std::optional<Indices> numbers = mask_numbers(input, vendor, mask);
  // All can be opened: no control group has the driver count anew.
  const bool open = input.reachable && input.reachable->size() == all.size();
  const bool group = numbers && all_below(*numbers, count) && !all_in(*numbers, entries);
  if (first_ones || (open && !group)) {
    allocation.counted = picks_of(all);
    allocation.why = list.shown() + " lists them";
    return;
  }
  if (numbers)
    count_with_mask(input, list, all, entries, *numbers, mask, group, allocation);
  else if (!mask.empty())
    allocation.counted = picks_of(all);  // a mask of names needs no numbers
  else
    count_without_mask(input, list, all, !vendor.keeps_order(), allocation);
}

// Names of a container's devices; nullopt where it has numbers, or says nothing.
std::optional<std::vector<Pick>> container_names(const PlanInput& input, const Indices& all) {
  const std::string text(trim(input.env.get("NVIDIA_VISIBLE_DEVICES")));
  if (text.find("GPU-") == std::string::npos && text.find("MIG-") == std::string::npos)
    return std::nullopt;
  std::vector<Pick> picks = read_mask(input.node, picks_of(all), text).picks;
  if (picks.empty()) return std::nullopt;
  const auto order = [](const Pick& a, const Pick& b) {
    return std::pair(a.device, a.instance) < std::pair(b.device, b.instance);
  };
  std::stable_sort(picks.begin(), picks.end(), order);  // inside they are counted by address again
  for (std::size_t i = 0; i < picks.size(); ++i) picks[i].number = static_cast<int>(i);
  return picks;
}

// A number of devices; which ones is not known.
void count_number(const PlanInput& input, const Indices& all, Allocation& allocation) {
  const auto count = parse_natural(input.env.get("SLURM_GPUS_ON_NODE"));
  if (!count || *count == 0 || *count >= static_cast<long>(all.size())) return;
  const DeviceList said{"SLURM_GPUS_ON_NODE", input.env.get("SLURM_GPUS_ON_NODE"), {}};
  allocation.by = said.name;
  allocation.why = said.shown() + " gives a number of devices, not which ones";
  allocation.counted = picks_of(Indices(all.begin(), all.begin() + *count), false);
  report_unclear(said,
                 "which of the node's devices these are is not known, so that they are near to "
                 "no cores in particular and counted from 0",
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

// Numbers or a number of Slurm's resources; `count` is 0 where nothing is said.
struct Counted {
  DeviceList list;
  std::size_t count = 0;
};

Counted slurm_counts(const PlanInput& input) {
  for (const char* name : kSlurmGpuLists) {
    std::optional<DeviceList> list = parse_list(input.env, name);
    if (!list) continue;
    const std::size_t count = list->devices.size();
    return {std::move(*list), count};
  }
  const char* name = "SLURM_GPUS_ON_NODE";
  const auto count = parse_natural(input.env.get(name));
  return {{name, input.env.get(name), {}}, static_cast<std::size_t>(count.value_or(0))};
}

// Instances in place of devices, when no mask names them. Slurm counts them by the names of their device files
// (_sort_gpu_by_file in its gres_gpu plugin), which is the order of the devices, and of the instances
// of each as long as their numbers have as many digits.
void count_instances(const PlanInput& input, Allocation& allocation) {
  const Counted said = slurm_counts(input);
  const std::vector<Pick> all = instances_of(input.node);
  std::vector<Pick> mine;
  std::vector<Pick> listed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto here = std::find_if(allocation.counted.begin(), allocation.counted.end(),
                                   [&](const Pick& one) { return one.device == all[i].device; });
    if (here == allocation.counted.end()) continue;
    mine.push_back(all[i]);
    if (all[i].instance < 0) mine.back().number = here->number;
    if (mine.back().name.empty()) mine.back().name = here->name;
    if (has(said.list.devices, static_cast<int>(i))) listed.push_back(mine.back());
  }
  if (said.count == 0 || said.count == mine.size()) return;  // no part of what is here
  if (said.count > mine.size()) {
    warn("grant-contradicts",
         fmt::format("ignoring {}: it grants {}, and {} found here", said.list.shown(),
                     counted(said.count, "instance"),
                     mine.size() == 1 ? "1 is" : fmt::format("{} are", mine.size())),
         kOtherNode, allocation);
    return;
  }
  allocation.by = said.list.name;
  const bool placed = listed.size() == said.count;
  allocation.counted = placed ? listed : mine;
  allocation.counted.resize(said.count);
  allocation.why = said.list.shown() + " counts instances of split devices (MIG)";
  report_unclear(
      said.list,
      placed ? "no mask names the instances, so they are taken to be counted in the order "
               "of their devices"
             : "no mask names the instances, and which ones these are is not known: as many "
               "are taken, the first ones",
      allocation);
}

// Less than the node has can be opened here: drivers count these alone.
bool count_open(const PlanInput& input, const Indices& all, Allocation& allocation) {
  if (!input.reachable) return false;
  Indices there;
  for (const int index : all)
    if (has(*input.reachable, index)) there.push_back(index);
  if (there.size() == all.size()) return false;
  allocation.counted = counted_anew(there);
  allocation.by = "this process";
  allocation.why =
      fmt::format("{} of the node's {} can be opened here, and drivers count these alone",
                  there.size(), counted(all.size(), "device"));
  return true;
}

// What NVIDIA_VISIBLE_DEVICES says of a container.
bool count_container(const PlanInput& input, const DeviceVendor& vendor, const Indices& all,
                     Allocation& allocation) {
  const char* name = "NVIDIA_VISIBLE_DEVICES";
  if (vendor.container_list.empty()) return false;
  if (auto names = container_names(input, all)) {
    allocation.counted = std::move(*names);
    allocation.by = name;
    allocation.why = "NVIDIA_VISIBLE_DEVICES names what the container has";
    return true;
  }
  const auto list = read_list(input, name, all, allocation);
  if (!list) return false;
  std::string mask;
  if (list->devices.size() == all.size()) return true;
  if (mask_numbers(input, vendor, mask)) {
    count_list(input, vendor, *list, all, allocation);
    return true;
  }
  allocation.by = list->name;
  allocation.counted = counted_anew(list->devices);
  allocation.why =
      list->shown() + " lists what the container has, and its drivers count these alone";
  return true;
}

}  // namespace

bool Allocation::leaves(int device) const { return !mine || has(*mine, device); }

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
      if (list->devices.size() < all.size()) count_list(input, vendor, *list, all, allocation);
      return allocation;
    }
  if (count_container(input, vendor, all, allocation) || masked) return allocation;
  if (split)
    count_instances(input, allocation);
  else
    count_number(input, all, allocation);
  return allocation;
}

}  // namespace hpclaunch
