#include "probe/hwloc.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sys/utsname.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "hpclaunch/text.h"

namespace hpclaunch::probe {
namespace {

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

Error failed(const char* call) {
  return Error{ErrorKind::system, fmt::format("{}: {}", call, std::strerror(errno))};
}

// ---- hwloc's objects to ours
// -----------------------------------------------------------------------

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

  /// Memory without CPUs of its own belongs to the part of the machine that it hangs below, unless
  /// that is all of it (format 1 writes high-bandwidth memory like this).
  static hwloc_obj_t home(hwloc_obj_t object) {
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

/// By position; where several hold the same CPUs, the lowest number first (DDR before HBM), which
/// is the one that cores will name.
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
    int fewest = INT_MAX;
    for (const NumaNode& node : topology.numa_nodes) {
      if (!node.pus.contains(core.pus) || node.pus.count() >= fewest) continue;
      fewest = node.pus.count();
      core.numa = node.os_index;
    }
  }
}

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

// ---- loading
// ---------------------------------------------------------------------------------------

/// Only what `convert` asks for; the rest costs time. A library older than its header refuses some
/// flags, so the last resort is the one that matters.
Status restrict_to_needs(hwloc_topology_t topology) {
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  // Groups are not read, but a NUMA node smaller than a package hangs below one: without them hwloc
  // would give it the CPUs of the whole package.
  constexpr std::pair<hwloc_obj_type_t, hwloc_type_filter_e> kKept[] = {
      {HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL},
      {HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE},
      {HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL},
      {HWLOC_OBJ_L2CACHE, HWLOC_TYPE_FILTER_KEEP_ALL},
      {HWLOC_OBJ_L3CACHE, HWLOC_TYPE_FILTER_KEEP_ALL},
      {HWLOC_OBJ_L4CACHE, HWLOC_TYPE_FILTER_KEEP_ALL},
      {HWLOC_OBJ_L5CACHE, HWLOC_TYPE_FILTER_KEEP_ALL},
  };
  for (const auto& [type, filter] : kKept) {
    if (hwloc_topology_set_type_filter(topology, type, filter) != 0) {
      return failed("hwloc_topology_set_type_filter");
    }
  }
  constexpr unsigned long kNeeded = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
#if HWLOC_API_VERSION >= 0x00020800
  constexpr unsigned long kCheap = HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                                   HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                   HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
  if (hwloc_topology_set_flags(topology, kNeeded | kCheap) == 0) return Done{};
#endif
  if (hwloc_topology_set_flags(topology, kNeeded) == 0) return Done{};
  return failed("hwloc_topology_set_flags");
}

/// Plugins are shared libraries of vendors and of X11, looked for and opened at every start: a file
/// that is no folder keeps hwloc from looking. nullptr lets it look.
void choose_components(const char* components, const char* plugins) {
  const auto choose = [](const char* name, const char* value) {
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  };
  choose("HWLOC_COMPONENTS", components);
  choose("HWLOC_PLUGINS_PATH", plugins);
}

constexpr const char* kNoPlugins = "/dev/null";

Result<Handle> load(const std::string* xml) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return failed("hwloc_topology_init");
  Handle topology(raw);
  if (xml != nullptr) {
    const int size = static_cast<int>(xml->size()) + 1;
    if (hwloc_topology_set_xmlbuffer(raw, xml->c_str(), size) != 0) {
      return failed("hwloc_topology_set_xmlbuffer");
    }
  }
  if (const Status ok = restrict_to_needs(raw); !ok) return ok.error();
  if (hwloc_topology_load(raw) != 0) return failed("hwloc_topology_load");
  return topology;
}

/// What sched_setaffinity or a batch system left to this process; all that exist where nobody can
/// say.
CpuSet affinity_of_this_process(const CpuSet& existing) {
#ifdef __linux__
  for (std::size_t cpus = 8192; cpus <= std::size_t{1} << 20; cpus *= 2) {
    std::vector<cpu_set_t> mask(cpus / CPU_SETSIZE);
    const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) != 0) {
      if (errno == EINVAL) continue;  // the kernel's own mask is longer
      return existing;
    }
    CpuSet set;
    for (const int pu : existing.to_vector()) {
      if (CPU_ISSET_S(static_cast<std::size_t>(pu), bytes, mask.data())) set.add(pu);
    }
    return set;
  }
#endif
  return existing;
}

/// The version that an XML text gives itself, for a message; "1" where it gives none.
std::string xml_version(std::string_view xml) {
  const std::size_t element = xml.find("<topology");
  if (element == std::string_view::npos) return "";
  const std::string_view head = xml.substr(element, xml.find('>', element) - element);
  const std::size_t key = head.find("version=\"");
  if (key == std::string_view::npos) return "1";
  const std::string_view value = head.substr(key + 9);
  return std::string(value.substr(0, std::min<std::size_t>(value.find('"'), 20)));
}

}  // namespace

Result<Topology> load_live() {
#ifdef __linux__
  choose_components("linux,stop", kNoPlugins);
  Result<Handle> handle = load(nullptr);
  const bool enough = handle && hwloc_get_nbobjs_by_type(handle->get(), HWLOC_OBJ_CORE) > 0;
#else
  Result<Handle> handle = Error{};
  const bool enough = false;
#endif
  if (!enough) {  // no usable /sys: let every component of hwloc have a say
    handle = Error{};
    choose_components(nullptr, nullptr);
    handle = load(nullptr);
  }
  if (!handle) return handle.error();
  Result<Topology> topology = convert(handle->get());
  if (!topology) return topology;
  utsname names{};
  if (uname(&names) == 0) topology->hostname = names.nodename;
  const CpuSet affinity = affinity_of_this_process(topology->all_pus());
  if (!affinity.intersects(topology->allowed)) {
    return Error{
        ErrorKind::system,
        fmt::format("no CPU is left to this process: the cgroup allows {}, the affinity mask {}",
                    topology->allowed.to_list(), affinity.to_list())};
  }
  topology->allowed &= affinity;
  return topology;
}

Result<Topology> load_xml(const std::string& text) {
  const std::string version = xml_version(text);
  if (version.empty()) {
    return Error{ErrorKind::invalid, "XML, but not of hwloc: it has no <topology> element",
                 "write one with: lstopo --of xml FILE"};
  }
  choose_components(nullptr, kNoPlugins);
  Result<Handle> handle = load(&text);
  if (!handle) {  // hwloc's own small parser takes what hwloc wrote; libxml2 takes the rest
    choose_components(nullptr, nullptr);
    handle = load(&text);
  }
  if (!handle) {
    const unsigned api = hwloc_get_api_version();
    return Error{ErrorKind::invalid,
                 fmt::format("hwloc {}.{} cannot read it (format version {})", api >> 16,
                             (api >> 8) & 0xff, version),
                 "is it whole, and as lstopo --of xml writes it?"};
  }
  return convert(handle->get());
}

}  // namespace hpclaunch::probe
