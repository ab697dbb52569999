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

std::string cpus(const CpuSet& set) {
  return fmt::format("CPU{} {}", set.count() == 1 ? "" : "s", set.to_list());
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

void compare_pus(const Topology& planned, const Topology& found, bool part,
                 std::vector<Diagnostic>& out) {
  const CpuSet missing = planned.all_pus() - found.all_pus();
  const CpuSet more = found.all_pus() - planned.all_pus();
  const auto with_verb = [](const CpuSet& set, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", cpus(set), set.count() == 1 ? one : many);
  };
  if (!missing.empty() && !(part && more.empty())) {
    int cores = 0;
    for (const Core& core : planned.cores) cores += missing.contains(core.pus) ? 1 : 0;
    std::string text = with_verb(missing, "is missing", "are missing");
    if (missing == later_threads(planned))
      text = "hardware threads are off: " + text;
    else if (cores > 0)
      text += fmt::format(" ({} offline)", counted(cores, "core"));
    add(out, "cpus", std::move(text));
  }
  if (!more.empty())
    add(out, "cpus",
        with_verb(more, "was not planned", "were not planned") +
            (more == later_threads(found) ? ": hardware threads are on" : ""));
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

void compare_threads(const Topology& planned, const Topology& found, const CpuSet& common,
                     std::vector<Diagnostic>& out) {
  if (groups_of(planned.cores, common) == groups_of(found.cores, common)) return;
  for (const int pu : common.to_vector()) {
    const CpuSet wanted = group_with(planned.cores, pu) & common;
    const CpuSet got = group_with(found.cores, pu) & common;
    if (wanted == got) continue;
    add(out, "threads",
        fmt::format("CPUs are numbered in another way: the core of CPU {} has {}, "
                    "planned {}",
                    pu, got.to_list(), wanted.to_list()));
    return;
  }
}

void compare_packages(const Topology& planned, const Topology& found, const CpuSet& common,
                      std::vector<Diagnostic>& out) {
  if (planned.packages.empty() || found.packages.empty()) return;
  if (planned.packages.size() != found.packages.size()) {
    add(out, "packages",
        fmt::format("{}, planned {}", counted(static_cast<long>(found.packages.size()), "package"),
                    planned.packages.size()));
    return;
  }
  for (const Package& wanted : planned.packages) {
    const auto got =
        std::find_if(found.packages.begin(), found.packages.end(),
                     [&](const Package& one) { return one.os_index == wanted.os_index; });
    if (got == found.packages.end())
      add(out, "packages", fmt::format("no package {}", wanted.os_index));
    else if ((got->pus & common) != (wanted.pus & common))
      add(out, "packages",
          fmt::format("package {} has {}, planned {}", wanted.os_index, cpus(got->pus),
                      wanted.pus.to_list()));
  }
}

std::string numa_counts(const Topology& planned, const Topology& found, const CpuSet& common) {
  const auto count = static_cast<long>(found.numa_nodes.size());
  std::string counts =
      fmt::format("{}, planned {}", counted(count, "NUMA node"), planned.numa_nodes.size());
  if (common != planned.all_pus()) return counts;  // NUMA nodes without CPUs of both
  const bool same_groups =
      groups_of(planned.numa_nodes, common) == groups_of(found.numa_nodes, common);
  return fmt::format("{}: {}", counts,
                     same_groups ? "another memory mode, or missing memory nodes"
                                 : "another NUMA mode (NPS, sub-NUMA clustering)");
}

void compare_numa(const Topology& planned, const Topology& found, const CpuSet& common,
                  std::vector<Diagnostic>& out) {
  if (planned.numa_nodes.empty() || found.numa_nodes.empty()) return;
  if (planned.numa_nodes.size() != found.numa_nodes.size()) {
    add(out, "numa", numa_counts(planned, found, common));
    return;
  }
  for (const NumaNode& wanted : planned.numa_nodes) {
    const auto got =
        std::find_if(found.numa_nodes.begin(), found.numa_nodes.end(),
                     [&](const NumaNode& one) { return one.os_index == wanted.os_index; });
    if (got == found.numa_nodes.end()) {
      add(out, "numa", fmt::format("no NUMA node {}", wanted.os_index));
      continue;
    }
    if ((got->pus & common) != (wanted.pus & common))
      add(out, "numa",
          fmt::format("NUMA node {} is near CPUs {}, planned {}", wanted.os_index,
                      got->pus.empty() ? "none" : got->pus.to_list(),
                      wanted.pus.empty() ? "none" : wanted.pus.to_list()));
    if (!near_size(wanted.memory_bytes, got->memory_bytes))
      add(out, "memory",
          fmt::format("NUMA node {} has {}, planned {}", wanted.os_index,
                      human_bytes(got->memory_bytes), human_bytes(wanted.memory_bytes)));
  }
}

void compare_caches(const Topology& planned, const Topology& found, const CpuSet& common,
                    std::vector<Diagnostic>& out) {
  if (planned.caches.empty() || found.caches.empty()) return;
  std::map<int, std::pair<std::vector<Cache>, std::vector<Cache>>> levels;
  for (const Cache& cache : planned.caches) levels[cache.level].first.push_back(cache);
  for (const Cache& cache : found.caches) levels[cache.level].second.push_back(cache);
  for (const auto& [level, both] : levels) {
    const auto& [wanted, got] = both;
    if (wanted.empty()) continue;  // a model may have the last level only
    if (groups_of(wanted, common) != groups_of(got, common)) {
      add(out, "caches",
          wanted.size() == got.size()
              ? fmt::format("L{} caches are shared by other CPUs than planned", level)
              : fmt::format("{}, planned {}",
                            counted(static_cast<long>(got.size()), fmt::format("L{} cache", level)),
                            wanted.size()));
      continue;
    }
    for (const Cache& one : wanted)
      for (const Cache& other : got)
        if ((one.pus & common) == (other.pus & common) &&
            !near_size(one.size_bytes, other.size_bytes)) {
          add(out, "caches",
              fmt::format("an L{} cache of {}, planned {}", level, human_bytes(other.size_bytes),
                          human_bytes(one.size_bytes)));
          return;
        }
  }
}

}  // namespace

void add(std::vector<Diagnostic>& out, std::string kind, std::string message) {
  out.push_back({std::move(kind), Severity::warning, std::move(message)});
}

bool near_size(std::uint64_t planned, std::uint64_t found) {
  if (planned == 0 || found == 0) return true;
  const std::uint64_t off = planned > found ? planned - found : found - planned;
  return off <= planned / 8;
}

}  // namespace hpclaunch::check

namespace hpclaunch {

std::vector<Diagnostic> find_drift(const Topology& planned, const Topology& found,
                                   DriftScope scope) {
  std::vector<Diagnostic> out;
  const CpuSet common = planned.all_pus() & found.all_pus();
  check::compare_pus(planned, found, scope.part_of_cpus, out);
  check::compare_threads(planned, found, common, out);
  check::compare_packages(planned, found, common, out);
  check::compare_numa(planned, found, common, out);
  check::compare_caches(planned, found, common, out);
  check::drift_of_devices(planned, found, common, scope.part_of_devices, out);
  check::drift_of_nics(planned, found, out);
  return out;
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
