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

std::string called(const Device& device) {
  return device.pci.empty() ? fmt::format("device {}", device.index)
                            : fmt::format("device {} at {}", device.index, device.pci);
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
    const auto got =
        std::find_if(found.devices.begin(), found.devices.end(), [&](const Device& one) {
          return by_address ? one.pci == wanted.pci : one.index == wanted.index;
        });
    if (got == found.devices.end())
      missing.push_back(&wanted);
    else
      pairs.emplace_back(&wanted, &*got);
  }
  for (const Device& one : found.devices)
    if (std::none_of(pairs.begin(), pairs.end(),
                     [&](const auto& pair) { return pair.second == &one; }))
      more.push_back(&one);
  return pairs;
}

void say(const Device& device, const std::string& text, std::vector<Diagnostic>& out) {
  add(out, "devices", fmt::format("{} {}", called(device), text));
}

// NUMA numbers are comparable only where both nodes have the same NUMA nodes.
void compare_place(const Device& wanted, const Device& got, const CpuSet& common, bool same_numa,
                   std::vector<Diagnostic>& out) {
  if (!same_numa) return;
  if (wanted.numa >= 0 && got.numa >= 0 && wanted.numa != got.numa)
    say(wanted, fmt::format("is on NUMA node {}, planned {}", got.numa, wanted.numa), out);
  else if (!wanted.pus.empty() && !got.pus.empty() && (wanted.pus & common) != (got.pus & common))
    say(wanted, fmt::format("is near CPUs {}, planned {}", got.pus.to_list(), wanted.pus.to_list()),
        out);
}

void compare_parts(const Device& wanted, const Device& got, std::vector<Diagnostic>& out) {
  if (!wanted.partition.empty() && !got.partition.empty() && wanted.partition != got.partition)
    say(wanted, fmt::format("is in partition mode {}, planned {}", got.partition, wanted.partition),
        out);
  else if (wanted.subdevices > 0 && got.subdevices > 0 && wanted.subdevices != got.subdevices)
    say(wanted, fmt::format("has {} parts, planned {}", got.subdevices, wanted.subdevices), out);
  // Instances and UUIDs are known only where the vendor's library was asked.
  const bool asked = !got.uuid.empty() || !got.instances.empty() || !got.partition.empty();
  if (!asked || wanted.instances == got.instances) return;
  if (wanted.instances.size() == got.instances.size())
    say(wanted, "has instances of other names than planned", out);
  else
    say(wanted,
        fmt::format("has {}, planned {}",
                    counted(static_cast<long>(got.instances.size()), "instance"),
                    wanted.instances.size()),
        out);
}

void compare_pair(const Device& wanted, const Device& got, bool same_host,
                  std::vector<Diagnostic>& out) {
  if (wanted.vendor != got.vendor)
    say(wanted, fmt::format("is from {}, planned {}", got.vendor, wanted.vendor), out);
  else if (!wanted.pci.empty() && !got.pci.empty() && wanted.pci != got.pci)
    say(wanted, fmt::format("is at {}", got.pci), out);
  else if (same_host && !wanted.uuid.empty() && !got.uuid.empty() && wanted.uuid != got.uuid)
    say(wanted, fmt::format("has UUID {}, planned {}", got.uuid, wanted.uuid), out);
  if (!near_size(wanted.memory_bytes, got.memory_bytes))
    say(wanted,
        fmt::format("has {}, planned {}", human_bytes(got.memory_bytes),
                    human_bytes(wanted.memory_bytes)),
        out);
}

// Missing and added devices shift the numbers of others; only another order is reported.
void compare_numbers(const Pairs& pairs, bool all_there, std::vector<Diagnostic>& out) {
  std::vector<std::string> moved;
  int last = -1;
  for (const auto& [wanted, got] : pairs) {
    if (all_there ? wanted->index != got->index : got->index < last)
      moved.push_back(fmt::format("{} is number {}", called(*wanted), got->index));
    last = std::max(last, got->index);
  }
  if (!moved.empty())
    add(out, "devices",
        "devices are numbered in another way: " + fmt::format("{}", fmt::join(moved, ", ")));
}

void compare_links(const Topology& planned, const Topology& found, std::vector<Diagnostic>& out) {
  if (planned.links.empty() || found.links.empty()) return;
  using Key = std::tuple<int, int, std::string>;
  std::map<Key, std::pair<int, int>> lanes;
  for (const Link& link : planned.links) lanes[{link.from, link.to, link.kind}].first = link.lanes;
  for (const Link& link : found.links) lanes[{link.from, link.to, link.kind}].second = link.lanes;
  for (const auto& [key, both] : lanes) {
    const auto& [from, to, kind] = key;
    if (both.first == both.second) continue;
    const std::string between = fmt::format("{} between devices {} and {}", kind, from, to);
    add(out, "links",
        both.second == 0  ? fmt::format("no {}", between)
        : both.first == 0 ? fmt::format("unplanned {}", between)
                          : fmt::format("{} has {}, planned {}", between,
                                        counted(both.second, "lane"), both.first));
  }
}

void one_has_none(const Topology& planned, const Topology& found, std::vector<Diagnostic>& out) {
  const auto count = [](const Topology& node) { return static_cast<long>(node.devices.size()); };
  add(out, "devices",
      found.no_devices ? fmt::format("no device, planned {}", count(planned))
                       : fmt::format("{}, planned none", counted(count(found), "device")));
}

bool same_numa_nodes(const Topology& planned, const Topology& found) {
  if (planned.numa_nodes.empty() || found.numa_nodes.empty()) return true;
  return planned.numa_nodes.size() == found.numa_nodes.size();
}

}  // namespace

void drift_of_devices(const Topology& planned, const Topology& found, const CpuSet& common,
                      bool part, std::vector<Diagnostic>& out) {
  const auto known = [](const Topology& node) { return node.no_devices || !node.devices.empty(); };
  if (!known(planned) || !known(found)) return;
  if (planned.no_devices != found.no_devices) return one_has_none(planned, found, out);
  std::vector<const Device*> missing;
  std::vector<const Device*> more;
  const Pairs pairs = match(planned, found, missing, more);
  if (part) missing.clear();
  for (const Device* device : missing) say(*device, "is missing", out);
  for (const Device* device : more) say(*device, "was not planned", out);
  compare_numbers(pairs, pairs.size() == planned.devices.size() && more.empty(), out);
  const bool one_host = !planned.hostname.empty() && planned.hostname == found.hostname;
  for (const auto& [wanted, got] : pairs) {
    compare_pair(*wanted, *got, one_host, out);
    compare_place(*wanted, *got, common, same_numa_nodes(planned, found), out);
    compare_parts(*wanted, *got, out);
  }
  if (pairs.size() == planned.devices.size() && more.empty()) compare_links(planned, found, out);
}

// The best match: ports of a bond share its name, and ports of one card its fabric.
std::vector<Nic>::const_iterator counterpart(const Nic& wanted, const std::vector<Nic>& nics) {
  const auto likeness = [&](const Nic& one) {
    const bool fabric = !wanted.fabric.empty() && one.fabric == wanted.fabric;
    const bool name = !wanted.name.empty() && one.name == wanted.name;
    if (!fabric && !name) return 0;
    return 1 + fabric + name + (one.pci == wanted.pci);
  };
  const auto best = std::max_element(nics.begin(), nics.end(), [&](const Nic& a, const Nic& b) {
    return likeness(a) < likeness(b);
  });
  return best == nics.end() || likeness(*best) == 0 ? nics.end() : best;
}

void drift_of_nics(const Topology& planned, const Topology& found, std::vector<Diagnostic>& out) {
  if (planned.nics.empty() || found.nics.empty()) return;
  const CpuSet common = planned.all_pus() & found.all_pus();
  for (const Nic& wanted : planned.nics) {
    const std::string name = wanted.fabric.empty() ? wanted.name : wanted.fabric;
    const auto got = counterpart(wanted, found.nics);
    const auto report = [&](const std::string& text) {
      add(out, "nics", fmt::format("network card {} {}", name, text));
    };
    if (name.empty()) continue;
    if (got == found.nics.end()) {
      report("is missing");
      continue;
    }
    if (got->state == "down" && wanted.state != "down") report("is down");
    if (!wanted.pci.empty() && !got->pci.empty() && wanted.pci != got->pci)
      report(fmt::format("is at {}, planned {}", got->pci, wanted.pci));
    if (same_numa_nodes(planned, found) && wanted.numa >= 0 && got->numa >= 0 &&
        wanted.numa != got->numa)
      report(fmt::format("is on NUMA node {}, planned {}", got->numa, wanted.numa));
    if (!wanted.pus.empty() && !got->pus.empty() && (wanted.pus & common) != (got->pus & common))
      report(fmt::format("is near CPUs {}, planned {}", got->pus.to_list(), wanted.pus.to_list()));
    if (!wanted.kind.empty() && !got->kind.empty() && wanted.kind != got->kind)
      report(fmt::format("is of {}, planned {}", got->kind, wanted.kind));
    if (wanted.speed_mbps > 0 && got->speed_mbps > 0 && wanted.speed_mbps != got->speed_mbps)
      report(fmt::format("has {} Mbit/s, planned {}", got->speed_mbps, wanted.speed_mbps));
  }
}

}  // namespace hpclaunch::check
