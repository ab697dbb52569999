#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <climits>
#include <set>
#include <tuple>
#include <vector>

#include "hpclaunch/text.h"
#include "probe/hwloc_objects.h"
#include "probe/locality.h"

namespace hpclaunch::probe {

Result<CpuSet> to_cpu_set(hwloc_const_bitmap_t bitmap) {
  CpuSet set;
  if (bitmap == nullptr) return set;
  const int last = hwloc_bitmap_last(bitmap);
  if (hwloc_bitmap_weight(bitmap) < 0 || last >= CpuSet::kCapacity) {
    return Error{ErrorKind::unsupported,
                 fmt::format("the machine has a PU numbered above {}", CpuSet::kCapacity - 1)};
  }
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i)) set.add(i);
  return set;
}

std::string info(hwloc_obj_t object, const char* name) {
  const char* value = hwloc_obj_get_info_by_name(object, name);
  return value == nullptr ? "" : std::string(trim(value));
}

namespace {

std::string host_name(hwloc_topology_t topology) {
#if HWLOC_API_VERSION >= 0x00030000
  const char* value = hwloc_get_info_by_name(hwloc_topology_get_infos(topology), "HostName");
  if (value != nullptr) return std::string(trim(value));
#endif
  return info(hwloc_get_root_obj(topology), "HostName");
}

/// Cores in hwloc's logical order; a PU outside any core is one of its own.
Result<std::vector<Core>> read_cores(hwloc_topology_t topology) {
  std::vector<Core> cores;
  hwloc_obj_t last = nullptr;
  for (hwloc_obj_t pu = nullptr;
       (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr;) {
    const Result<CpuSet> set = to_cpu_set(pu->cpuset);
    if (!set) return set.error();
    if (set->empty()) continue;
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    if (core == nullptr || core != last) cores.emplace_back();
    cores.back().pus |= *set;
    last = core;
  }
  return cores;
}

/// Reads the sets of packages, NUMA nodes and caches, made of whole cores that exist.
class SetReader {
 public:
  explicit SetReader(const std::vector<Core>& cores) : cores_(cores) {}

  Result<CpuSet> read(hwloc_obj_t object) const {
    const Result<CpuSet> set = to_cpu_set(home(object)->cpuset);
    if (!set) return set.error();
    CpuSet whole;
    for (const Core& core : cores_) {
      if (core.pus.intersects(*set)) whole |= core.pus;
    }
    return whole;
  }

  /// Memory without CPUs belongs to the object above it, unless that is the machine (format 1 writes
  /// high-bandwidth memory like this). Memory whose CPUs are offline or outside the cgroup has none.
  static hwloc_obj_t home(hwloc_obj_t object) {
    if (object->complete_cpuset != nullptr && !hwloc_bitmap_iszero(object->complete_cpuset))
      return object;
    hwloc_obj_t at = object;
    while (at->parent != nullptr && (at->cpuset == nullptr || hwloc_bitmap_iszero(at->cpuset))) {
      at = at->parent;
    }
    return at->parent == nullptr ? object : at;
  }

  int cores_in(const CpuSet& pus) const {
    return static_cast<int>(std::count_if(
        cores_.begin(), cores_.end(), [&](const Core& core) { return core.pus.intersects(pus); }));
  }

 private:
  const std::vector<Core>& cores_;
};

/// Calls `take(object, pus)` for every object of the type, in logical order.
template <class Take>
Status each(hwloc_topology_t topology, hwloc_obj_type_t type, const SetReader& sets, Take take) {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    const Result<CpuSet> pus = sets.read(object);
    if (!pus) return pus.error();
    take(object, *pus);
  }
  return Done{};
}

/// Firmware may number packages twice or not at all: then all are numbered by position.
template <class Member>
void number_by_position_unless_unique(std::vector<Member>& members) {
  std::set<int> seen;
  const bool unique = std::all_of(members.begin(), members.end(), [&](const Member& member) {
    return member.os_index >= 0 && seen.insert(member.os_index).second;
  });
  if (unique) return;
  for (std::size_t i = 0; i < members.size(); ++i) members[i].os_index = static_cast<int>(i);
}

int to_index(unsigned os_index) {
  return os_index > static_cast<unsigned>(INT_MAX) ? -1 : static_cast<int>(os_index);
}

Status read_groups(hwloc_topology_t from, Topology& to) {
  const SetReader sets(to.cores);
  Status ok = each(from, HWLOC_OBJ_PACKAGE, sets, [&](hwloc_obj_t object, const CpuSet& pus) {
    if (pus.empty()) return;
    to.packages.push_back({to_index(object->os_index), info(object, "CPUModel"), pus});
  });
  if (!ok) return ok;
  ok = each(from, HWLOC_OBJ_NUMANODE, sets, [&](hwloc_obj_t object, const CpuSet& pus) {
    const std::uint64_t bytes = object->attr == nullptr ? 0 : object->attr->numanode.local_memory;
    to.numa_nodes.push_back({to_index(object->os_index), bytes, pus});
  });
  if (!ok) return ok;
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
    const int level = 2 + static_cast<int>(type) - static_cast<int>(HWLOC_OBJ_L2CACHE);
    ok = each(from, type, sets, [&](hwloc_obj_t object, const CpuSet& pus) {
      const std::uint64_t bytes = object->attr == nullptr ? 0 : object->attr->cache.size;
      if (sets.cores_in(pus) > 1) to.caches.push_back({level, bytes, pus});
    });
    if (!ok) return ok;
  }
  number_by_position_unless_unique(to.packages);
  number_by_position_unless_unique(to.numa_nodes);
  return Done{};
}

/// By position; of nodes with equal CPUs the lowest number first (DDR before HBM), which cores name.
void order_numa_nodes(Topology& topology) {
  const auto position = [&](const NumaNode& node) {
    const auto first =
        std::find_if(topology.cores.begin(), topology.cores.end(),
                     [&](const Core& core) { return core.pus.intersects(node.pus); });
    return std::tuple(first - topology.cores.begin(), -node.pus.count(), node.os_index);
  };
  std::sort(topology.numa_nodes.begin(), topology.numa_nodes.end(),
            [&](const NumaNode& a, const NumaNode& b) { return position(a) < position(b); });
}

void place_cores(Topology& topology) {
  for (Core& core : topology.cores) {
    for (const Package& package : topology.packages) {
      if (package.pus.contains(core.pus)) core.package = package.os_index;
    }
    core.numa = home_of(core.pus, topology);
  }
}

}  // namespace

Result<Topology> convert(hwloc_topology_t from) {
  Topology to;
  to.hostname = host_name(from);
  Result<std::vector<Core>> cores = read_cores(from);
  if (!cores) return cores.error();
  to.cores = *std::move(cores);
  if (const Status ok = read_groups(from, to); !ok) return ok.error();
  order_numa_nodes(to);
  place_cores(to);
  const Result<CpuSet> allowed = to_cpu_set(hwloc_topology_get_allowed_cpuset(from));
  if (!allowed) return allowed.error();
  to.allowed = *allowed & to.all_pus();
  return to;
}

}  // namespace hpclaunch::probe
