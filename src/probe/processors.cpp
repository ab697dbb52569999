// Packages, NUMA nodes, caches and cores as /sys/devices/system shows them: one file for each core and each cache,
// where hwloc reads more than ten for each hardware thread.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "hpclaunch/text.h"
#include "probe/locality.h"
#include "probe/sysfs.h"

namespace hpclaunch::probe {
namespace {

class ProcessorReader {
 public:
  explicit ProcessorReader(const std::string& root)
      : root_(root), online_(cpus_in(root + "/sys/devices/system/cpu/online")) {}

  /// False where the files leave a question open.
  bool read(Topology& to) {
    if (online_.empty() || !read_cores(to)) return false;
    read_kinds(to);
    return read_packages(to) && read_nodes(to) && read_caches(to);
  }

 private:
  std::string of_cpu(int pu, std::string_view file) const {
    return fmt::format("{}/sys/devices/system/cpu/cpu{}/{}", root_, pu, file);
  }

  /// The groups that `file` names, each read at its first PU only. False when they overlap.
  template <class Take>
  bool each_group(const std::string& file, Take take) const {
    for (CpuSet left = online_; !left.empty();) {
      const int first = left.first();
      CpuSet group = cpus_in(of_cpu(first, file)) & online_;
      if (!left.contains(group) || group.first() > first || !take(first, group)) return false;
      group.add(first);
      left -= group;
    }
    return true;
  }

  bool read_cores(Topology& to) {
    const int first = online_.first();
    new_names_ = exists(of_cpu(first, "topology/core_cpus_list"));
    const std::string file =
        new_names_ ? "topology/core_cpus_list" : "topology/thread_siblings_list";
    const CpuSet siblings = cpus_in(of_cpu(first, file)) & online_;
    if (!siblings.has(first)) return false;
    const auto core_id = [&](int pu) { return read_small(of_cpu(pu, "topology/core_id")); };
    // AMD's family 15h shows the two cores of a compute unit like this.
    if (siblings.count() > 1 && core_id(siblings.first()) != core_id(siblings.last())) return false;
    if (siblings.count() == 1 && read_small(root_ + "/sys/devices/system/cpu/smt/active") == "0") {
      for (const int pu : online_.to_vector()) to.cores.emplace_back().pus.add(pu);
      return true;
    }
    return each_group(file, [&](int pu, const CpuSet& pus) {
      to.cores.push_back({-1, -1, pus});
      return pus.has(pu);
    });
  }

  /// Intel's hybrid processors have a unit of performance counters for each kind of core.
  void read_kinds(Topology& to) const {
    const CpuSet slow = cpus_in(root_ + "/sys/devices/cpu_atom/cpus");
    if (!slow.intersects(online_) || slow.contains(online_)) return;
    for (Core& core : to.cores) core.kind = slow.intersects(core.pus) ? 0 : 1;
  }

  bool read_packages(Topology& to) const {
    const std::string model = processor_model();
    const char* const file =
        new_names_ ? "topology/package_cpus_list" : "topology/core_siblings_list";
    return each_group(file, [&](int pu, const CpuSet& pus) {
      const auto number = number_in(read_small(of_cpu(pu, "topology/physical_package_id")));
      to.packages.push_back({number ? static_cast<int>(*number) : -1, model, pus});
      return pus.has(pu);
    });
  }

  /// The name of the first processor; a node's processors are alike.
  std::string processor_model() const {
    std::ifstream file(root_ + "/proc/cpuinfo");
    for (std::string line; std::getline(file, line) && !line.empty();) {
      const std::string_view text = line;
      const std::size_t colon = std::min(text.find(':'), text.size());
      const std::string_view key = trim(text.substr(0, colon));
      for (const char* const name : {"model name", "Model Name", "Processor", "cpu"})
        if (key == name) return std::string(trim(text.substr(std::min(colon + 1, text.size()))));
    }
    return "";
  }

  /// Memory without CPUs is near those of its initiators (ACPI's HMAT).
  bool read_nodes(Topology& to) const {
    const std::string folder = root_ + "/sys/devices/system/node";
    for (const int number : cpus_in(folder + "/online").to_vector()) {
      const std::string path = fmt::format("{}/node{}", folder, number);
      NumaNode node{number, memory_of(path), cpus_in(path + "/cpulist") & online_};
      if (node.pus.empty()) node.pus = cpus_of_initiators(folder, path);
      if (node.pus.empty()) return false;  // hwloc asks distances and drivers
      to.numa_nodes.push_back(node);
    }
    return !to.numa_nodes.empty();
  }

  CpuSet cpus_of_initiators(const std::string& folder, const std::string& node) const {
    for (const char* const access : {"/access1/initiators", "/access0/initiators"}) {
      CpuSet cpus;
      for (const std::string& name : numbered_in(node + access, "node"))
        cpus |= cpus_in(below(below(folder, name), "cpulist")) & online_;
      if (!cpus.empty()) return cpus;
    }
    return {};
  }

  static std::uint64_t memory_of(const std::string& node) {
    constexpr std::string_view kTotal = "MemTotal:";  // "Node 0 MemTotal:  65536 kB"
    const std::string text = read_small(node + "/meminfo");
    const std::size_t at = text.find(kTotal);
    if (at == std::string::npos) return 0;
    const std::string_view value = trim(std::string_view(text).substr(at + kTotal.size()));
    const auto kib = number_in(std::string(value.substr(0, value.find(' '))));
    return kib.value_or(0) * 1024;
  }

  /// Processors have their caches in the same folders; one may lack some, so one of each NUMA node is looked at.
  bool read_caches(Topology& to) const {
    struct Folder {
      unsigned long level;
      std::string name;
    };
    std::vector<Folder> folders;
    for (int index = 0;; ++index) {
      std::string folder = fmt::format("cache/index{}/", index);
      const auto with = std::ranges::find_if(to.numa_nodes, [&](const NumaNode& node) {
        return exists(of_cpu(node.pus.first(), folder));
      });
      if (with == to.numa_nodes.end()) break;
      const std::string path = of_cpu(with->pus.first(), folder);
      const unsigned long level = number_in(read_small(path + "level")).value_or(0);
      if (level >= 2 && read_small(path + "type") != "Instruction")
        folders.push_back({level, std::move(folder)});
    }
    std::ranges::sort(folders, std::greater(), &Folder::level);
    return std::ranges::all_of(folders, [&](const Folder& folder) {
      return each_group(folder.name + "shared_cpu_list", [&](int pu, const CpuSet& pus) {
        if (pus.empty()) return true;
        const auto core = std::ranges::lower_bound(to.cores, pu, {},
                                                   [](const Core& one) { return one.pus.first(); });
        if (core == to.cores.end() || core->pus.first() != pu) return false;
        if (core->pus.contains(pus)) return true;
        const std::string size = read_small(of_cpu(pu, folder.name + "size"));  // "32768K"
        const auto kib = number_in(size.substr(0, size.find('K')));
        to.caches.push_back({static_cast<int>(folder.level), kib.value_or(0) * 1024, pus});
        return number_in(read_small(of_cpu(pu, folder.name + "level"))) == folder.level;
      });
    });
  }

  const std::string& root_;
  const CpuSet online_;
  bool new_names_ = true;  ///< since Linux 5.3
};

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

/// hwloc's order: by the first PU of every part that contains a core, the largest part first.
void order_cores(Topology& topology) {
  std::vector<const CpuSet*> parts;
  for (const auto& one : topology.packages) parts.push_back(&one.pus);
  for (const auto& one : topology.numa_nodes) parts.push_back(&one.pus);
  for (const auto& one : topology.caches) parts.push_back(&one.pus);
  std::ranges::stable_sort(parts, std::greater(), &CpuSet::count);
  std::vector<std::pair<std::vector<int>, Core>> keyed;
  for (const Core& core : topology.cores) {
    std::vector<int> key;
    for (const CpuSet* const part : parts)
      if (part->contains(core.pus)) key.push_back(part->first());
    key.push_back(core.pus.first());
    keyed.emplace_back(std::move(key), core);
  }
  std::ranges::sort(keyed, {}, &std::pair<std::vector<int>, Core>::first);
  std::ranges::transform(keyed, topology.cores.begin(), [](const auto& one) { return one.second; });
}

}  // namespace

void settle(Topology& topology) {
  const auto position = [&](const auto& part) {
    const auto first = std::ranges::find_if(
        topology.cores, [&](const Core& core) { return core.pus.intersects(part.pus); });
    return first - topology.cores.begin();
  };
  std::ranges::stable_sort(topology.packages, {}, position);
  std::ranges::stable_sort(topology.numa_nodes, {}, [&](const NumaNode& node) {
    return std::tuple(position(node), -node.pus.count(), node.os_index);
  });
  std::ranges::stable_sort(topology.caches, {}, [&](const Cache& cache) {
    return std::pair(-cache.level, position(cache));
  });
  number_by_position_unless_unique(topology.packages);
  number_by_position_unless_unique(topology.numa_nodes);
  for (Core& core : topology.cores) {
    for (const Package& package : topology.packages)
      if (package.pus.contains(core.pus)) core.package = package.os_index;
    core.numa = home_of(core.pus, topology);
  }
}

std::optional<Topology> read_processors(const std::string& root) {
  Topology topology;
  if (!ProcessorReader(root).read(topology)) return {};
  topology.allowed = topology.all_pus();
  order_cores(topology);
  settle(topology);
  if (!check_topology(topology)) return {};
  return topology;
}

}  // namespace hpclaunch::probe
