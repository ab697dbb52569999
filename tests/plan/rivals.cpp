#include "plan/rivals.h"

#include <algorithm>
#include <map>

#include "plan/cores/cores.h"

namespace hpclaunch::test {

namespace {

using Cores = std::vector<CpuSet>;  // the PUs of each

Cores cores_in(const Topology& node, const CpuSet& pus) {
  Cores cores;
  for (const Core& core : usable_part(node).cores)
    if (core.pus.intersects(pus)) cores.push_back(core.pus);
  return cores;
}

CpuSet near_of(const Topology& node, const Device& device) {
  if (!device.pus.empty()) return device.pus;
  for (const NumaNode& numa : node.numa_nodes)
    if (numa.os_index == device.numa) return numa.pus;
  return {};
}

// hwloc hangs a device of unknown place below the machine.
CpuSet locality_of(const Topology& node, const Device& device) {
  const CpuSet near = near_of(node, device);
  return near.empty() ? node.all_pus() : near;
}

// Places with CPUs that we may use; without NUMA nodes the machine is one. Nodes on the same CPUs are one.
Cores numa_places(const Topology& node) {
  Cores places;
  for (const NumaNode& numa : node.numa_nodes)
    if (numa.pus.intersects(node.allowed) &&
        std::find(places.begin(), places.end(), numa.pus) == places.end())
      places.push_back(numa.pus);
  if (places.empty()) places.push_back(node.all_pus());
  return places;
}

// Items in `parts` runs that differ by one at most, the longer ones first.
template <class Item>
std::vector<std::vector<Item>> runs(const std::vector<Item>& items, std::size_t parts) {
  std::vector<std::vector<Item>> out;
  auto at = items.begin();
  for (std::size_t p = 0; p < parts; ++p) {
    const std::size_t size = items.size() / parts + (p < items.size() % parts ? 1 : 0);
    out.emplace_back(at, at + static_cast<std::ptrdiff_t>(size));
    at += static_cast<std::ptrdiff_t>(size);
  }
  return out;
}

// As runs; with fewer items than parts neighbouring parts have one together.
template <class Item>
std::vector<std::vector<Item>> buckets(const std::vector<Item>& items, std::size_t parts) {
  if (items.size() >= parts || items.empty()) return runs(items, parts);
  std::vector<std::size_t> part(parts);
  for (std::size_t p = 0; p < parts; ++p) part[p] = p;
  std::vector<std::vector<Item>> out;
  const auto shared = runs(part, items.size());
  for (std::size_t i = 0; i < shared.size(); ++i)
    for (std::size_t p = 0; p < shared[i].size(); ++p) out.push_back({items[i]});
  return out;
}

std::vector<int> devices_inside(const Topology& node, const CpuSet& place) {
  std::vector<int> devices;
  for (const Device& device : node.devices)
    if (place.contains(locality_of(node, device))) devices.push_back(device.index);
  return devices;
}

CpuSet sum(const Cores& cores) {
  CpuSet all;
  for (const CpuSet& core : cores) all |= core;
  return all;
}

// The widest share that each of these ranks can have of the cores near it, in turn.
std::optional<RivalPlan> with_equal_width(const Topology& node, const Cores& near, RivalPlan plan) {
  std::vector<Cores> cores;
  for (const CpuSet& one : near) cores.push_back(cores_in(node, one));
  std::optional<RivalPlan> best;
  for (std::size_t width = 1;; ++width) {
    RivalPlan now = plan;
    CpuSet taken;
    for (std::size_t r = 0; r < now.size(); ++r) {
      std::size_t have = 0;
      for (const CpuSet& core : cores[r]) {
        if (have == width) break;
        if (taken.has(core.first())) continue;
        now[r].cpus |= core;
        taken |= core;
        ++have;
      }
      if (have < width) return best;
    }
    best = std::move(now);
  }
}

}  // namespace

std::optional<RivalPlan> mpibind(const Topology& node, int ranks) {
  const Cores places = numa_places(node);
  RivalPlan plan;
  if (static_cast<std::size_t>(ranks) < places.size()) {  // greedy
    for (const Cores& mine : runs(places, static_cast<std::size_t>(ranks))) {
      RivalRank rank;
      for (const CpuSet& place : mine) {
        rank.cpus |= place & node.allowed;
        for (const int device : devices_inside(node, place)) rank.devices.push_back(device);
      }
      plan.push_back(std::move(rank));
    }
    return plan;
  }
  Cores with_devices;
  for (const CpuSet& place : places)
    if (std::any_of(node.devices.begin(), node.devices.end(), [&](const Device& device) {
          return locality_of(node, device).intersects(place);
        }))
      with_devices.push_back(place);
  if (with_devices.empty()) return std::nullopt;
  std::vector<int> all(static_cast<std::size_t>(ranks));
  const auto tasks = runs(all, with_devices.size());
  for (std::size_t p = 0; p < with_devices.size(); ++p) {
    const std::size_t here = tasks[p].size();
    if (here == 0) continue;
    const auto cores = buckets(cores_in(node, with_devices[p]), here);
    const auto devices = buckets(devices_inside(node, with_devices[p]), here);
    for (std::size_t t = 0; t < here; ++t) plan.push_back({sum(cores[t]), devices[t]});
  }
  return plan;
}

std::optional<RivalPlan> prrte_by_numa(const Topology& node, int ranks) {
  const Cores places = numa_places(node);
  Cores near;
  RivalPlan plan;
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
    near.push_back(places[r % places.size()]);
    plan.push_back({{}, {node.devices[r % node.devices.size()].index}});
  }
  return with_equal_width(node, near, std::move(plan));
}

std::optional<RivalPlan> prrte_by_device(const Topology& node, int ranks) {
  Cores near;
  RivalPlan plan;
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
    const Device& device = node.devices[r % node.devices.size()];
    near.push_back(locality_of(node, device));
    plan.push_back({{}, {device.index}});
  }
  return with_equal_width(node, near, std::move(plan));
}

namespace {

// Cores of `place` in its largest shared caches, larger ones first; all of them where none is known.
Cores complexes(const Topology& node, const CpuSet& place) {
  Cores groups;
  for (const Cache& cache : node.caches)
    if (cache.level == node.caches.front().level && cache.pus.intersects(place & node.allowed))
      groups.push_back(cache.pus & place & node.allowed);
  if (groups.empty()) groups.push_back(place & node.allowed);
  std::stable_sort(groups.begin(), groups.end(), [](const CpuSet& a, const CpuSet& b) {
    return std::pair(-a.count(), a.first()) < std::pair(-b.count(), b.first());
  });
  return groups;
}

CpuSet package_of(const Topology& node, const CpuSet& place) {
  CpuSet all;
  for (const Package& package : node.packages)
    if (package.pus.has((place & node.allowed).first())) all = package.pus;
  return all & node.allowed;
}

}  // namespace

std::optional<RivalPlan> torchrun(const Topology& node, int ranks, std::string_view mode) {
  if (ranks > static_cast<int>(node.devices.size())) return std::nullopt;
  RivalPlan plan;
  for (int r = 0; r < ranks; ++r) {
    const Device& device = node.devices[static_cast<std::size_t>(r)];
    const CpuSet place = near_of(node, device);
    std::vector<int> beside;  // devices of the NUMA node
    for (const Device& other : node.devices)
      if (other.numa == device.numa) beside.push_back(other.index);
    const auto at = static_cast<std::size_t>(std::find(beside.begin(), beside.end(), device.index) -
                                             beside.begin());
    CpuSet cpus = place & node.allowed;
    if (mode == "socket") cpus = package_of(node, place);
    if (mode == "exclusive") {
      const Cores cores = cores_in(node, place);
      if (cores.size() < beside.size()) return std::nullopt;
      cpus = sum(runs(cores, beside.size())[at]);
    }
    if (mode == "core-complex") {
      const Cores groups = complexes(node, place);
      cpus = groups[at % groups.size()];
    }
    if (cpus.empty()) return std::nullopt;
    plan.push_back({cpus, {device.index}});
  }
  return plan;
}

namespace {

bool is_split(const Topology& node, const CpuSet& cpus) {
  const auto straddles = [&](const CpuSet& domain) {
    const CpuSet inside = cpus & domain;
    return !inside.empty() && inside != cpus && inside != (domain & node.allowed);
  };
  return std::any_of(node.packages.begin(), node.packages.end(),
                     [&](const Package& one) { return straddles(one.pus); }) ||
         std::any_of(node.numa_nodes.begin(), node.numa_nodes.end(),
                     [&](const NumaNode& one) { return straddles(one.pus); }) ||
         std::any_of(node.caches.begin(), node.caches.end(),
                     [&](const Cache& one) { return straddles(one.pus); });
}

int farthest(const Topology& node, const RivalRank& rank) {
  int far = kNear;
  for (const Device& device : node.devices)
    if (std::find(rank.devices.begin(), rank.devices.end(), device.index) != rank.devices.end())
      for (const Core& core : node.cores)
        if (core.pus.intersects(rank.cpus))
          far = std::max(far, distance(node, near_of(node, device), core.pus & rank.cpus));
  return far;
}

}  // namespace

Measure measure(const Topology& node, const RivalPlan& plan) {
  Measure result;
  std::map<int, int> on;
  for (const Device& device : node.devices) on[device.index] = 0;
  for (const RivalRank& rank : plan) {
    for (const int device : rank.devices) ++on[device];
    result.without += rank.devices.empty() ? 1 : 0;
    result.far += farthest(node, rank);
    result.split += is_split(node, rank.cpus) ? 1 : 0;
  }
  int most = 0;
  int least = static_cast<int>(plan.size());
  for (const auto& [device, ranks] : on) {
    most = std::max(most, ranks);
    least = std::min(least, ranks);
  }
  result.uneven = plan.size() < node.devices.size() ? std::max(0, most - 1) : most - least;
  const auto [few, many] = std::minmax_element(
      plan.begin(), plan.end(),
      [](const RivalRank& a, const RivalRank& b) { return a.devices.size() < b.devices.size(); });
  result.uneven += static_cast<int>(many->devices.size() - few->devices.size());
  std::vector<double> share(plan.size(), 0);
  for (const Core& core : usable_part(node).cores) {
    const auto users = std::count_if(plan.begin(), plan.end(), [&](const RivalRank& rank) {
      return rank.cpus.intersects(core.pus);
    });
    if (users == 0) continue;
    ++result.cores_used;
    for (std::size_t r = 0; r < plan.size(); ++r)
      if (plan[r].cpus.intersects(core.pus)) share[r] += 1.0 / static_cast<double>(users);
  }
  result.crowded = static_cast<int>(
      std::count_if(share.begin(), share.end(), [](double cores) { return cores < 1 - 1e-9; }));
  result.worst_off = static_cast<int>(*std::min_element(share.begin(), share.end()) + 1e-9);
  result.best_off = static_cast<int>(*std::max_element(share.begin(), share.end()) + 1e-9);
  return result;
}

}  // namespace hpclaunch::test
