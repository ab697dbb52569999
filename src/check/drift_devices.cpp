// A planned node and a found one: devices, links, network cards.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "drift.h"
#include "hpclaunch/text.h"

namespace hpclaunch::check {

namespace {

std::string name_of(const Device& device) {
  return fmt::format("device {}{}{}", device.index, device.pci.empty() ? "" : " at ", device.pci);
}

bool all_have_addresses(const std::vector<Device>& devices) {
  std::set<std::string> addresses;
  for (const Device& device : devices) addresses.insert(device.pci);
  return addresses.size() == devices.size() && addresses.count("") == 0;
}

using Pairs = std::vector<std::pair<const Device*, const Device*>>;

// By PCI address; partitions of one device share it, and are matched by number.
Pairs match(const Topology& planned, const Topology& found, std::vector<const Device*>& missing,
            std::vector<const Device*>& more) {
  const bool by_address = all_have_addresses(planned.devices) && all_have_addresses(found.devices);
  Pairs pairs;
  for (const Device& wanted : planned.devices) {
    const auto got = by_address ? std::ranges::find(found.devices, wanted.pci, &Device::pci)
                                : std::ranges::find(found.devices, wanted.index, &Device::index);
    if (got == found.devices.end())
      missing.push_back(&wanted);
    else
      pairs.emplace_back(&wanted, &*got);
  }
  for (const Device& one : found.devices)
    if (std::ranges::count(pairs, &one, &Pairs::value_type::second) == 0) more.push_back(&one);
  return pairs;
}

template <class... Values>
void add(Drift& nodes, const Device& device, fmt::format_string<Values...> text,
         Values&&... values) {
  nodes.add("devices", "{} {}", name_of(device),
            fmt::format(text, std::forward<Values>(values)...));
}

// NUMA numbers are comparable only where both nodes have the same NUMA nodes.
bool same_numa_nodes(const Drift& nodes) {
  if (nodes.planned.numa_nodes.empty() || nodes.found.numa_nodes.empty()) return true;
  return nodes.planned.numa_nodes.size() == nodes.found.numa_nodes.size();
}

void compare_device(Drift& nodes, const Device& wanted, const Device& got) {
  constexpr const char* kKind = "devices";
  const std::string who = name_of(wanted);
  const bool one_host =
      !nodes.planned.hostname.empty() && nodes.planned.hostname == nodes.found.hostname;
  const bool other =
      nodes.differ(kKind, "{} is from {}, planned {}", who, wanted.vendor, got.vendor);
  if (!other && !wanted.pci.empty() && !got.pci.empty() && wanted.pci != got.pci)
    add(nodes, wanted, "is at {}", got.pci);
  else if (!other && one_host)
    nodes.differ(kKind, "{} has UUID {}, planned {}", who, wanted.uuid, got.uuid);
  if (!near_size(wanted.memory_bytes, got.memory_bytes))
    add(nodes, wanted, "has {}, planned {}", human_bytes(got.memory_bytes),
        human_bytes(wanted.memory_bytes));
  if (same_numa_nodes(nodes) &&
      !nodes.differ(kKind, "{} is on NUMA node {}, planned {}", who, wanted.numa, got.numa, -1))
    nodes.differ_in_cpus(kKind, who, wanted.pus, got.pus);
  if (!nodes.differ(kKind, "{} is in partition mode {}, planned {}", who, wanted.partition,
                    got.partition))
    nodes.differ(kKind, "{} has {} parts, planned {}", who, wanted.subdevices, got.subdevices, 0);
  // Instances and UUIDs are known only where the vendor's library was asked.
  const bool asked = !got.uuid.empty() || !got.instances.empty() || !got.partition.empty();
  if (!asked || wanted.instances == got.instances) return;
  if (wanted.instances.size() == got.instances.size())
    add(nodes, wanted, "has instances of other names than planned");
  else
    add(nodes, wanted, "has {}, planned {}", counted(got.instances.size(), "instance"),
        wanted.instances.size());
}

// Missing and added devices shift the numbers of others; only another order is reported.
void compare_numbers(Drift& nodes, const Pairs& pairs, bool all_there) {
  std::vector<std::string> moved;
  int last = -1;
  for (const auto& [wanted, got] : pairs) {
    if (all_there ? wanted->index != got->index : got->index < last)
      moved.push_back(fmt::format("{} is number {}", name_of(*wanted), got->index));
    last = std::max(last, got->index);
  }
  if (!moved.empty())
    nodes.add("devices", "devices are numbered in another way: {}", fmt::join(moved, ", "));
}

void compare_links(Drift& nodes) {
  const auto& [planned, found] = std::tie(nodes.planned.links, nodes.found.links);
  if (planned.empty() || found.empty()) return;
  using Key = std::tuple<int, int, std::string>;
  std::map<Key, std::pair<int, int>> lanes;
  for (const Link& link : planned) lanes[{link.from, link.to, link.kind}].first = link.lanes;
  for (const Link& link : found) lanes[{link.from, link.to, link.kind}].second = link.lanes;
  for (const auto& [key, both] : lanes) {
    const auto& [from, to, kind] = key;
    if (both.first == both.second) continue;
    const std::string between = fmt::format("{} between devices {} and {}", kind, from, to);
    if (both.second == 0)
      nodes.add("links", "no {}", between);
    else if (both.first == 0)
      nodes.add("links", "unplanned {}", between);
    else
      nodes.add("links", "{} has {}, planned {}", between, counted(both.second, "lane"),
                both.first);
  }
}

// The best match: ports of a bond share its name, and ports of one card its fabric.
const Nic* counterpart(const Nic& wanted, const std::vector<Nic>& nics) {
  const auto likeness = [&](const Nic& one) {
    const bool fabric = !wanted.fabric.empty() && one.fabric == wanted.fabric;
    const bool name = !wanted.name.empty() && one.name == wanted.name;
    return fabric || name ? 1 + fabric + name + (one.pci == wanted.pci) : 0;
  };
  const auto best = std::ranges::max_element(nics, {}, likeness);
  return best == nics.end() || likeness(*best) == 0 ? nullptr : &*best;
}

}  // namespace

void drift_of_devices(Drift& nodes) {
  const Topology& planned = nodes.planned;
  const Topology& found = nodes.found;
  const auto known = [](const Topology& node) { return node.no_devices || !node.devices.empty(); };
  if (!known(planned) || !known(found)) return;
  if (!planned.no_devices && found.no_devices)
    return nodes.add("devices", "no device, planned {}", planned.devices.size());
  if (planned.no_devices && !found.no_devices)
    return nodes.add("devices", "{}, planned none", counted(found.devices.size(), "device"));
  std::vector<const Device*> missing;
  std::vector<const Device*> more;
  const Pairs pairs = match(planned, found, missing, more);
  const bool all_there = missing.empty() && more.empty();
  if (!nodes.scope.part_of_devices)
    for (const Device* device : missing) add(nodes, *device, "is missing");
  for (const Device* device : more) add(nodes, *device, "was not planned");
  compare_numbers(nodes, pairs, all_there);
  for (const auto& [wanted, got] : pairs) compare_device(nodes, *wanted, *got);
  if (all_there) compare_links(nodes);
}

void drift_of_nics(Drift& nodes) {
  constexpr const char* kKind = "nics";
  if (nodes.found.nics.empty()) return;
  for (const Nic& wanted : nodes.planned.nics) {
    const std::string card =
        "network card " + (wanted.fabric.empty() ? wanted.name : wanted.fabric);
    if (wanted.fabric.empty() && wanted.name.empty()) continue;
    const Nic* got = counterpart(wanted, nodes.found.nics);
    if (got == nullptr) {
      nodes.add(kKind, "{} is missing", card);
      continue;
    }
    if (got->state == "down" && wanted.state != "down") nodes.add(kKind, "{} is down", card);
    nodes.differ(kKind, "{} is at {}, planned {}", card, wanted.pci, got->pci);
    if (same_numa_nodes(nodes))
      nodes.differ(kKind, "{} is on NUMA node {}, planned {}", card, wanted.numa, got->numa, -1);
    nodes.differ_in_cpus(kKind, card, wanted.pus, got->pus);
    nodes.differ(kKind, "{} is of {}, planned {}", card, wanted.kind, got->kind);
    nodes.differ(kKind, "{} has {} Mbit/s, planned {}", card, wanted.speed_mbps, got->speed_mbps,
                 0);
  }
}

}  // namespace hpclaunch::check
