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
  if (!listed) return std::nullopt;
  // Where devices are split, each instance is a resource of its own and is counted as one.
  if (std::any_of(input.node.devices.begin(), input.node.devices.end(), is_split))
    return std::nullopt;
  for (const int device : listed->devices) {
    if (has(all, device)) continue;
    allocation.reports.push_back(
        {"grant-contradicts", Severity::warning,
         fmt::format("ignoring {}={}: it names device {}, and the node has {}", name, listed->text,
                     device, counted(static_cast<long>(all.size()), "device")),
         "hpclaunch topo shows this node's devices; --topology or --node-type plan for another"});
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

void report_unclear(const DeviceList& list, std::string message, Allocation& allocation) {
  allocation.reports.push_back(
      {"grant-unclear", Severity::warning, fmt::format("{}={}: {}", list.name, list.text, message),
       "keep the batch system's mask of devices, or plan on the node with its vendor's library "
       "installed, so that devices are known by name"});
}

// A list and no mask: whether the driver counts the list alone, nobody says.
void count_without_mask(const PlanInput& input, const DeviceList& list, const Indices& all,
                        bool by_name, Allocation& allocation) {
  allocation.counted = picks_of(all);
  allocation.mine = list.devices;
  if (by_name && names_known(input, list.devices) && !spans_nodes(input)) {
    for (Pick& pick : allocation.counted)
      pick.name = find_device(input.node, pick.device)->uuid.empty()
                      ? pick.name
                      : find_device(input.node, pick.device)->uuid;
    allocation.why = fmt::format(
        "{}={} lists them; they are called by name, which holds inside and "
        "outside a device control group",
        list.name, list.text);
    return;
  }
  allocation.why = fmt::format("{}={} lists them, by the node's own numbers", list.name, list.text);
  report_unclear(
      list,
      "no mask of devices is set, so whether the driver counts these alone is not known; "
      "masks use the node's numbers, which never lead beyond the grant but may lead to none",
      allocation);
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
    allocation.why = fmt::format("{}={} lists them", list.name, list.text);
    return;
  }
  if (!numbers) {
    // A mask of names needs no numbers.
    if (!mask.empty())
      allocation.counted = picks_of(all);
    else
      count_without_mask(input, list, all, !vendor.keeps_order(), allocation);
    return;
  }
  const bool among = all_in(*numbers, entries);
  if (group) {
    allocation.counted = counted_anew(list.devices);
    allocation.mine.reset();
    allocation.why = fmt::format(
        "{}={} counts among the devices of {}={} alone, as inside a device "
        "control group",
        mask, input.env.get(mask), list.name, list.text);
  } else if (among && !all_below(*numbers, count)) {
    allocation.counted = picks_of(all);
    allocation.why = fmt::format("{}={} has the node's own numbers, as {}={} does", mask,
                                 input.env.get(mask), list.name, list.text);
  } else {
    allocation.counted = picks_of(all, false);
    allocation.mine.reset();
    if (among)
      report_unclear(
          list,
          fmt::format("{}={} may count these alone or all devices of the node; its entries "
                      "are kept, and where the devices are is not known",
                      mask, input.env.get(mask)),
          allocation);
    else
      allocation.reports.push_back(
          {"grant-contradicts", Severity::warning,
           fmt::format("{}={} is neither a part of {}={} nor counts among these {}: its entries "
                       "are kept, and where the devices are is not known",
                       mask, input.env.get(mask), list.name, list.text, count),
           fmt::format("unset {}, or give it the batch system's value again", mask)});
  }
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

// Only how many: which ones is the batch system's secret.
void count_number(const PlanInput& input, const Indices& all, Allocation& allocation) {
  const auto count = parse_natural(input.env.get("SLURM_GPUS_ON_NODE"));
  if (!count || *count == 0 || *count >= static_cast<long>(all.size())) return;
  const DeviceList said{"SLURM_GPUS_ON_NODE", input.env.get("SLURM_GPUS_ON_NODE"), {}};
  allocation.by = said.name;
  allocation.why =
      fmt::format("{}={} gives a number of devices, not which ones", said.name, said.text);
  allocation.counted =
      picks_of(Indices(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(*count)), false);
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
    allocation.reports.push_back(
        {"grant-contradicts", Severity::warning,
         fmt::format("ignoring {}={}: it grants {}, and {} found here", said.list.name,
                     said.list.text, counted(static_cast<long>(said.count), "instance"),
                     mine.size() == 1 ? "1 is" : fmt::format("{} are", mine.size())),
         "hpclaunch topo shows this node's devices; --topology or --node-type plan for another"});
    return;
  }
  allocation.by = said.list.name;
  const bool placed = listed.size() == said.count;
  allocation.counted = placed ? listed : mine;
  allocation.counted.resize(said.count);
  allocation.why =
      fmt::format("{}={} counts instances of split devices (MIG)", allocation.by, said.list.text);
  report_unclear(
      said.list,
      placed ? "no mask names the instances, so they are taken to be counted in the order "
               "of their devices"
             : "no mask names the instances, and which ones these are is not known: as many "
               "are taken, the first ones",
      allocation);
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
  const bool split = std::any_of(input.node.devices.begin(), input.node.devices.end(), is_split);
  if (input.reachable) {
    Indices there;
    for (const int index : all)
      if (has(*input.reachable, index)) there.push_back(index);
    if (there.size() < all.size()) {
      allocation.counted = counted_anew(there);
      allocation.by = "this process";
      allocation.why =
          fmt::format("{} of the node's {} can be opened here, and drivers count these alone",
                      there.size(), counted(static_cast<long>(all.size()), "device"));
      if (split && !masked) count_instances(input, allocation);
      return allocation;
    }
  }
  for (const char* name : kSlurmGpuLists)
    if (const auto list = read_list(input, name, all, allocation)) {
      if (list->devices.size() < all.size()) count_list(input, vendor, *list, all, allocation);
      return allocation;
    }
  if (!vendor.container_list.empty()) {
    if (auto names = container_names(input, all)) {
      allocation.counted = std::move(*names);
      allocation.by = "NVIDIA_VISIBLE_DEVICES";
      allocation.why = "NVIDIA_VISIBLE_DEVICES names what the container has";
      return allocation;
    }
    if (const auto list = read_list(input, "NVIDIA_VISIBLE_DEVICES", all, allocation)) {
      if (list->devices.size() == all.size()) return allocation;
      if (mask_numbers(input, vendor, mask)) {
        count_list(input, vendor, *list, all, allocation);
      } else {
        allocation.by = list->name;
        allocation.counted = counted_anew(list->devices);
        allocation.why = fmt::format(
            "{}={} lists what the container has, and its drivers count these "
            "alone",
            list->name, list->text);
      }
      return allocation;
    }
  }
  if (masked) return allocation;
  if (split)
    count_instances(input, allocation);
  else
    count_number(input, all, allocation);
  return allocation;
}

}  // namespace hpclaunch
