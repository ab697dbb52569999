// A planned node and a found one: processors and memory.
#include "drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/rank_report.h"
#include "hpclaunch/text.h"

namespace hpclaunch::check {

namespace {

template <class Members>
std::string count_of(const Members& members, std::string_view noun) {
  return counted(std::ssize(members), noun);
}

// All threads but the first of each core of `with`, where a core has several.
CpuSet later_threads(const Topology& with) {
  CpuSet later;
  for (const Core& core : with.cores) {
    const std::vector<int> pus = core.pus.to_vector();
    for (std::size_t i = 1; i < pus.size(); ++i) later.add(pus[i]);
  }
  return later;
}

void compare_pus(Drift& nodes) {
  const CpuSet missing = nodes.planned.all_pus() - nodes.found.all_pus();
  const CpuSet more = nodes.found.all_pus() - nodes.planned.all_pus();
  if (!missing.empty() && !(nodes.scope.part_of_cpus && more.empty())) {
    const bool threads = missing == later_threads(nodes.planned);
    int cores = 0;
    for (const Core& core : nodes.planned.cores) cores += missing.contains(core.pus) ? 1 : 0;
    nodes.add("cpus", "{}{} {} missing{}", threads ? "hardware threads are off: " : "",
              cpus_text(missing), missing.count() == 1 ? "is" : "are",
              threads || cores == 0 ? "" : fmt::format(" ({} offline)", counted(cores, "core")));
  }
  if (!more.empty())
    nodes.add("cpus", "{} {} not planned{}", cpus_text(more), more.count() == 1 ? "was" : "were",
              more == later_threads(nodes.found) ? ": hardware threads are on" : "");
}

using Groups = std::set<std::vector<int>>;

// The groups inside `common`.
template <class Members>
Groups groups_of(const Members& members, const CpuSet& common) {
  Groups groups;
  for (const auto& one : members) {
    const CpuSet pus = one.pus & common;
    if (!pus.empty()) groups.insert(pus.to_vector());
  }
  return groups;
}

CpuSet group_with(const std::vector<Core>& cores, int pu) {
  for (const Core& core : cores)
    if (core.pus.has(pu)) return core.pus;
  return {};
}

void compare_threads(Drift& nodes) {
  const CpuSet& common = nodes.common;
  if (groups_of(nodes.planned.cores, common) == groups_of(nodes.found.cores, common)) return;
  for (const int pu : common.to_vector()) {
    const CpuSet wanted = group_with(nodes.planned.cores, pu) & common;
    const CpuSet got = group_with(nodes.found.cores, pu) & common;
    if (wanted == got) continue;
    return nodes.add("threads",
                     "CPUs are numbered in another way: the core of CPU {} has {}, planned {}", pu,
                     got.to_list(), wanted.to_list());
  }
}

void compare_packages(Drift& nodes) {
  const auto& [planned, found] = std::tie(nodes.planned.packages, nodes.found.packages);
  if (planned.empty() || found.empty()) return;
  if (planned.size() != found.size())
    return nodes.add("packages", "{}, planned {}", count_of(found, "package"), planned.size());
  for (const Package& wanted : planned) {
    const auto got = std::ranges::find(found, wanted.os_index, &Package::os_index);
    if (got == found.end())
      nodes.add("packages", "no package {}", wanted.os_index);
    else if ((got->pus & nodes.common) != (wanted.pus & nodes.common))
      nodes.add("packages", "package {} has {}, planned {}", wanted.os_index, cpus_text(got->pus),
                wanted.pus.to_list());
  }
}

// Unknown where the nodes have different CPUs.
const char* numa_mode(const Drift& nodes) {
  if (nodes.common != nodes.planned.all_pus()) return "";
  return groups_of(nodes.planned.numa_nodes, nodes.common) ==
                 groups_of(nodes.found.numa_nodes, nodes.common)
             ? ": another memory mode, or missing memory nodes"
             : ": another NUMA mode (NPS, sub-NUMA clustering)";
}

void compare_numa(Drift& nodes) {
  const auto& [planned, found] = std::tie(nodes.planned.numa_nodes, nodes.found.numa_nodes);
  const auto shown = [](const CpuSet& set) { return set.empty() ? "none" : set.to_list(); };
  if (planned.empty() || found.empty()) return;
  if (planned.size() != found.size())
    return nodes.add("numa", "{}, planned {}{}", count_of(found, "NUMA node"), planned.size(),
                     numa_mode(nodes));
  for (const NumaNode& wanted : planned) {
    const NumaNode* got = nodes.found.find_numa(wanted.os_index);
    if (got == nullptr) {
      nodes.add("numa", "NUMA node {} is missing", wanted.os_index);
      continue;
    }
    if ((got->pus & nodes.common) != (wanted.pus & nodes.common))
      nodes.add("numa", "NUMA node {} is near CPUs {}, planned {}", wanted.os_index,
                shown(got->pus), shown(wanted.pus));
    if (!near_size(wanted.memory_bytes, got->memory_bytes))
      nodes.add("memory", "NUMA node {} has {}, planned {}", wanted.os_index,
                human_bytes(got->memory_bytes), human_bytes(wanted.memory_bytes));
  }
}

void compare_caches(Drift& nodes) {
  if (nodes.planned.caches.empty() || nodes.found.caches.empty()) return;
  const CpuSet& common = nodes.common;
  std::map<int, std::pair<std::vector<Cache>, std::vector<Cache>>> levels;
  for (const Cache& cache : nodes.planned.caches) levels[cache.level].first.push_back(cache);
  for (const Cache& cache : nodes.found.caches) levels[cache.level].second.push_back(cache);
  for (const auto& [level, both] : levels) {
    const auto& [wanted, got] = both;
    if (wanted.empty()) continue;  // a model may have the last level only
    if (groups_of(wanted, common) != groups_of(got, common)) {
      if (wanted.size() == got.size())
        nodes.add("caches", "L{} caches are shared by other CPUs than planned", level);
      else
        nodes.add("caches", "{}, planned {}", count_of(got, fmt::format("L{} cache", level)),
                  wanted.size());
      continue;
    }
    for (const Cache& one : wanted)
      for (const Cache& other : got)
        if ((one.pus & common) == (other.pus & common) &&
            !near_size(one.size_bytes, other.size_bytes))
          return nodes.add("caches", "an L{} cache of {}, planned {}", level,
                           human_bytes(other.size_bytes), human_bytes(one.size_bytes));
  }
}

}  // namespace

bool near_size(std::uint64_t planned, std::uint64_t found) {
  if (planned == 0 || found == 0) return true;
  const std::uint64_t off = planned > found ? planned - found : found - planned;
  return off <= planned / 8;
}

}  // namespace hpclaunch::check

namespace hpclaunch {

std::vector<Diagnostic> find_drift(const Topology& planned, const Topology& found,
                                   DriftScope scope) {
  check::Drift nodes{planned, found, scope};
  check::compare_pus(nodes);
  check::compare_threads(nodes);
  check::compare_packages(nodes);
  check::compare_numa(nodes);
  check::compare_caches(nodes);
  check::drift_of_devices(nodes);
  check::drift_of_nics(nodes);
  return std::move(nodes.out);
}

std::string node_fingerprint(const Topology& node) {
  Topology plain = node;
  plain.hostname.clear();
  plain.no_devices = false;
  plain.allowed = plain.all_pus();
  for (Package& package : plain.packages) package.model.clear();
  for (NumaNode& numa : plain.numa_nodes) numa.memory_bytes = 0;
  for (Device& device : plain.devices) {
    device.model.clear();
    device.uuid.clear();
    device.memory_bytes = 0;
    for (std::size_t i = 0; i < device.instances.size(); ++i)
      device.instances[i] = fmt::format("{}", i);
  }
  for (Nic& nic : plain.nics) {
    nic.addresses.clear();
    nic.provider.clear();
    nic.state.clear();
    nic.speed_mbps = 0;
  }
  return fingerprint(topology_to_json(plain));
}

}  // namespace hpclaunch
