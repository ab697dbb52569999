#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <climits>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/text.h"
#include "probe/hwloc_objects.h"
#include "probe/locality.h"

namespace hpclaunch::probe {

CpuSet to_cpu_set(hwloc_const_bitmap_t bitmap) {
  CpuSet set;
  if (bitmap == nullptr) return set;
  for (int i = hwloc_bitmap_first(bitmap); i >= 0 && i < CpuSet::kCapacity;
       i = hwloc_bitmap_next(bitmap, i))
    set.add(i);
  return set;
}

std::string info(hwloc_obj_t object, const char* name) {
  const char* value = hwloc_obj_get_info_by_name(object, name);
  return value == nullptr ? "" : std::string(trim(value));
}

std::string machine_info(hwloc_topology_t topology, const char* name) {
#if HWLOC_API_VERSION >= 0x00030000
  const char* value = hwloc_get_info_by_name(hwloc_topology_get_infos(topology), name);
  if (value != nullptr) return std::string(trim(value));
#endif
  return info(hwloc_get_root_obj(topology), name);
}

namespace {

/// Cores in hwloc's logical order; a PU outside any core is one of its own.
std::vector<Core> read_cores(hwloc_topology_t topology) {
  std::vector<Core> cores;
  hwloc_obj_t last = nullptr;
  for (hwloc_obj_t pu = nullptr;
       (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr;) {
    const CpuSet set = to_cpu_set(pu->cpuset);
    if (set.empty()) continue;
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    if (core == nullptr || core != last) cores.emplace_back();
    cores.back().pus |= set;
    last = core;
  }
  return cores;
}

bool has_cpus(hwloc_const_bitmap_t set) { return set != nullptr && !hwloc_bitmap_iszero(set); }

/// The object whose CPUs are this one's: its own, or for memory that shows none those of the next object above that
/// has CPUs and other memory, unless that is the machine (format 1 writes high-bandwidth memory like this). Memory
/// alone whose CPUs are offline, outside the cgroup or removed (lstopo --restrict) has none.
hwloc_obj_t home(hwloc_obj_t object) {
  if (object->type != HWLOC_OBJ_NUMANODE || has_cpus(object->complete_cpuset)) return object;
  hwloc_obj_t at = object->parent;
  while (at->parent != nullptr && !has_cpus(at->cpuset) && hwloc_bitmap_weight(at->nodeset) > 1)
    at = at->parent;
  return at->parent == nullptr ? object : at;
}

/// Calls `take(object, pus, cores)` for every object of the type, in logical order, with its whole cores that
/// exist and their number.
template <class Take>
void each(hwloc_topology_t topology, hwloc_obj_type_t type, const std::vector<Core>& cores,
          Take take) {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    const CpuSet set = to_cpu_set(home(object)->cpuset);
    CpuSet whole;
    int count = 0;
    for (const Core& core : cores) {
      if (!core.pus.intersects(set)) continue;
      whole |= core.pus;
      ++count;
    }
    take(object, whole, count);
  }
}

int to_index(unsigned os_index) {
  return os_index > static_cast<unsigned>(INT_MAX) ? -1 : static_cast<int>(os_index);
}

void read_groups(hwloc_topology_t from, Topology& to) {
  each(from, HWLOC_OBJ_PACKAGE, to.cores, [&](hwloc_obj_t object, const CpuSet& pus, int cores) {
    if (cores > 0)
      to.packages.push_back({to_index(object->os_index), info(object, "CPUModel"), pus});
  });
  each(from, HWLOC_OBJ_NUMANODE, to.cores, [&](hwloc_obj_t object, const CpuSet& pus, int) {
    const std::uint64_t bytes = object->attr == nullptr ? 0 : object->attr->numanode.local_memory;
    to.numa_nodes.push_back({to_index(object->os_index), bytes, pus});
  });
  // Nodes outside the cgroup are not in a file, but devices are near them.
  const hwloc_const_bitmap_t all = hwloc_get_root_obj(from)->complete_nodeset;
  for (int node = hwloc_bitmap_first(all); node >= 0 && node <= hwloc_bitmap_last(all);
       node = hwloc_bitmap_next(all, node))
    if (hwloc_get_numanode_obj_by_os_index(from, static_cast<unsigned>(node)) == nullptr)
      to.numa_nodes.push_back({node, 0, {}});
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
    const int level = 2 + static_cast<int>(type) - static_cast<int>(HWLOC_OBJ_L2CACHE);
    each(from, type, to.cores, [&](hwloc_obj_t object, const CpuSet& pus, int cores) {
      const std::uint64_t bytes = object->attr == nullptr ? 0 : object->attr->cache.size;
      if (cores > 1) to.caches.push_back({level, bytes, pus});
    });
  }
}

// Of hybrid processors alone: servers of one kind may have cores of slightly different clocks.
void read_kinds([[maybe_unused]] hwloc_topology_t from, [[maybe_unused]] Topology& to) {
#if HWLOC_API_VERSION >= 0x00020400
  const int kinds = hwloc_cpukinds_get_nr(from, 0);
  std::vector<std::pair<CpuSet, int>> found;
  hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
  for (int k = 0; k < kinds; ++k) {
    int efficiency = -1;
#if HWLOC_API_VERSION >= 0x00030000
    hwloc_infos_s* infos = nullptr;
    hwloc_cpukinds_get_info(from, static_cast<unsigned>(k), cpus, &efficiency, &infos, 0);
    const unsigned count = infos == nullptr ? 0 : infos->count;
    const hwloc_info_s* const info = infos == nullptr ? nullptr : infos->array;
#else
    unsigned count = 0;
    hwloc_info_s* info = nullptr;
    hwloc_cpukinds_get_info(from, static_cast<unsigned>(k), cpus, &efficiency, &count, &info, 0);
#endif
    const bool by_design = std::any_of(info, info + count, [](const hwloc_info_s& one) {
      return one.name == std::string_view("CoreType") ||
             one.name == std::string_view("LinuxCapacity");
    });
    if (by_design && efficiency >= 0) found.emplace_back(to_cpu_set(cpus), efficiency);
  }
  hwloc_bitmap_free(cpus);
  if (found.size() < 2) return;
  for (Core& core : to.cores)
    for (const auto& [pus, kind] : found)
      if (pus.contains(core.pus)) core.kind = kind;
#endif
}

}  // namespace

Result<Topology> convert(hwloc_topology_t from) {
  if (hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(from)) >= CpuSet::kCapacity)
    return Error{ErrorKind::unsupported,
                 fmt::format("the machine has a PU numbered above {}", CpuSet::kCapacity - 1)};
  Topology to;
  to.hostname = machine_info(from, "HostName");
  to.cores = read_cores(from);
  read_kinds(from, to);
  read_groups(from, to);
  settle(to);
  to.allowed = to_cpu_set(hwloc_topology_get_allowed_cpuset(from)) & to.all_pus();
  return to;
}

}  // namespace hpclaunch::probe
