// The processors of made-up machines, as files of /sys: what hpclaunch reads, against hwloc on the same files.
#include <fmt/format.h>
#include <hwloc.h>

#include <cstdlib>
#include <fstream>

#include "hpclaunch/sys.h"
#include "probe/hwloc_objects.h"
#include "probe/tree.h"
#include "support/random_topology.h"

using namespace hpclaunch;
using test::Tree;

namespace {

/// The kernel's mask: words of 32 bits, the highest first.
std::string mask(const CpuSet& pus) {
  std::string text;
  for (int word = std::max(pus.last(), 0) / 32; word >= 0; --word) {
    std::uint32_t bits = 0;
    for (int bit = 0; bit < 32; ++bit)
      if (pus.has(32 * word + bit)) bits |= 1U << bit;
    text += fmt::format("{}{:08x}", text.empty() ? "" : ",", bits);
  }
  return text;
}

/// A set in both forms: hwloc reads masks.
void write_set(const Tree& tree, const std::string& path, const std::string& mask_name,
               const std::string& list_name, const CpuSet& pus) {
  tree.file(path + mask_name, mask(pus));
  tree.file(path + list_name, pus.to_list());
}

template <class Part>
const Part* around(const std::vector<Part>& parts, const CpuSet& pus) {
  for (const Part& part : parts)
    if (part.pus.contains(pus)) return &part;
  return nullptr;
}

/// The folder of a cache lies at its first PU; the others' are links to it.
void write_cache(const Tree& tree, int pu, int index, int level, const CpuSet& pus,
                 std::uint64_t bytes) {
  const auto folder = [&](int of) {
    return fmt::format("sys/devices/system/cpu/cpu{}/cache/index{}", of, index);
  };
  if (pu != pus.first()) return tree.link(folder(pu), folder(pus.first()));
  write_set(tree, folder(pu) + "/", "shared_cpu_map", "shared_cpu_list", pus);
  tree.file(folder(pu) + "/level", std::to_string(level));
  tree.file(folder(pu) + "/type", "Unified");
  tree.file(folder(pu) + "/size", fmt::format("{}K", bytes / 1024));
}

void write_caches(const Tree& tree, const Topology& machine, const Core& core, int pu) {
  for (int index = 0; index < 2; ++index) {
    const std::string level_1 =
        fmt::format("sys/devices/system/cpu/cpu{}/cache/index{}/", pu, index);
    tree.file(level_1 + "level", "1");
    tree.file(level_1 + "type", index == 0 ? "Data" : "Instruction");
  }
  int index = 2;
  bool has_level_2 = false;
  for (auto cache = machine.caches.rbegin(); cache != machine.caches.rend(); ++cache) {
    if (!cache->pus.contains(core.pus)) continue;
    if (cache->level > 2 && !has_level_2) write_cache(tree, pu, index++, 2, core.pus, 1 << 20);
    has_level_2 = true;
    write_cache(tree, pu, index++, cache->level, cache->pus, cache->size_bytes);
  }
  if (!has_level_2) write_cache(tree, pu, index, 2, core.pus, 1 << 20);
}

void write_core(const Tree& tree, const Topology& machine, std::size_t index) {
  const Core& core = machine.cores[index];
  const auto folder = [](int pu) {
    return fmt::format("sys/devices/system/cpu/cpu{}/topology", pu);
  };
  const std::string first = folder(core.pus.first());
  write_set(tree, first + "/", "core_cpus", "core_cpus_list", core.pus);
  tree.file(first + "/core_id", std::to_string(index));
  if (const Package* package = around(machine.packages, core.pus)) {
    write_set(tree, first + "/", "package_cpus", "package_cpus_list", package->pus);
    tree.file(first + "/physical_package_id", std::to_string(package->os_index));
  }
  for (const int pu : core.pus.to_vector()) {
    if (pu != core.pus.first()) tree.link(folder(pu), first);
    write_caches(tree, machine, core, pu);
  }
}

/// A node whose CPUs another one has too is memory without CPUs, and the other its initiator.
void write_nodes(const Tree& tree, const Topology& machine) {
  CpuSet numbers, taken;
  for (const NumaNode& node : machine.numa_nodes) {
    numbers.add(node.os_index);
    const std::string path = fmt::format("sys/devices/system/node/node{}/", node.os_index);
    const bool twin = node.pus.intersects(taken);
    write_set(tree, path, "cpumap", "cpulist", twin ? CpuSet() : node.pus);
    tree.file(path + "meminfo",
              fmt::format("Node {0} MemTotal:       {1} kB\nNode {0} MemFree:  1 kB", node.os_index,
                          node.memory_bytes / 1024));
    if (twin)
      for (const NumaNode& other : machine.numa_nodes)
        if (other.os_index != node.os_index && node.pus.contains(other.pus) && !other.pus.empty())
          tree.link(fmt::format("{}access0/initiators/node{}", path, other.os_index),
                    fmt::format("sys/devices/system/node/node{}", other.os_index));
    taken |= node.pus;
  }
  tree.file("sys/devices/system/node/online", numbers.to_list());
}

void write_machine(const Tree& tree, const Topology& machine) {
  tree.file("sys/devices/system/cpu/online", machine.all_pus().to_list());
  const bool threads =
      std::ranges::any_of(machine.cores, [](const Core& core) { return core.pus.count() > 1; });
  tree.file("sys/devices/system/cpu/smt/active", threads ? "1" : "0");
  tree.file("proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: Example\ncpu family\t: 6\nmodel name\t: Example CPU\n\n");
  for (std::size_t index = 0; index < machine.cores.size(); ++index)
    write_core(tree, machine, index);
  write_nodes(tree, machine);
}

/// hwloc on the same files.
Topology by_hwloc(const Tree& tree) {
  setenv("HWLOC_FSROOT", tree.root().c_str(), 1);
  setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  hwloc_topology_t topology = nullptr;
  REQUIRE(hwloc_topology_init(&topology) == 0);
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  REQUIRE(hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0);
  REQUIRE(hwloc_topology_load(topology) == 0);
  const Result<Topology> converted = probe::convert(topology);
  hwloc_topology_destroy(topology);
  unsetenv("HWLOC_FSROOT");
  unsetenv("HWLOC_COMPONENTS");
  REQUIRE(converted);
  Topology found = *converted;
  found.hostname = "";
  for (Package& package : found.packages)
    package.model = "Example CPU";  // hwloc asks uname for the architecture
  return found;
}

/// What the kernel can show: packages, and memory whose CPUs are known.
bool shown_by_a_kernel(const Topology& machine) {
  return !machine.packages.empty() && !machine.numa_nodes.empty() &&
         std::ranges::none_of(machine.numa_nodes,
                              [](const NumaNode& node) { return node.pus.empty(); });
}

Topology bare_processors(Topology machine) {
  machine.hostname = "";
  machine.devices.clear();
  machine.nics.clear();
  machine.links.clear();
  return machine;
}

void check_same(const Topology& machine) {
  const Tree tree;
  write_machine(tree, bare_processors(machine));
  const std::optional<Topology> got = probe::read_processors(tree.root());
  REQUIRE(got.has_value() == shown_by_a_kernel(machine));
  if (got) CHECK(topology_to_json(*got) == topology_to_json(by_hwloc(tree)));
}

/// Calls that name a file below `root` while the processors are read, by strace.
int count_calls(const std::string& root) {
  const std::string trace = root + "/trace";
  const auto done = sys::capture(
      {"/usr/bin/env", "HPCLAUNCH_TEST_ROOT=" + root, "strace", "-f", "-qq", "-e", "signal=none",
       "-e", "trace=%file", "-o", trace, sys::real_path("/proc/self/exe"), "[read_processors]"},
      60);
  static_cast<void>(done);
  std::ifstream file(trace);
  int calls = 0;
  for (std::string line; std::getline(file, line);)
    if (line.find("\"" + root + "/sys/") != std::string::npos ||
        line.find("\"" + root + "/proc/") != std::string::npos)
      ++calls;
  return calls;
}

}  // namespace

TEST_CASE("processors of recorded machines are read as hwloc reads them", "[probe][processors]") {
  for (const char* const name :
       {"xeon-2x52-smt2.xml", "epyc-1x64-nps4.xml", "power9-4x20-smt4.xml", "arm-80-nosmt.xml",
        "laptop-8.xml", "knl-snc4-flat.xml", "single-pu.xml", "pu-4-no-cores.xml",
        "hbm-2x48-snc4.json", "xeon-2x8-offline-holes.xml", "documented/epyc-9654-2x.xml",
        "documented/power9-2x22-v100.xml", "documented/gh200-4x.xml", "recorded/epyc-2x32-dies.xml",
        "recorded/xeon-snc2.xml"}) {
    INFO(name);
    check_same(test::machine(name));
  }
}

TEST_CASE("processors of random machines are read as hwloc reads them", "[probe][processors]") {
  int read = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    const Topology machine = test::random_topology(seed);
    if (machine.all_pus().count() > 200) continue;
    check_same(machine);
    read += shown_by_a_kernel(machine) ? 1 : 0;
  }
  CHECK(read > 10);
}

TEST_CASE("[reads the tree of another process]", "[.read_processors]") {
  CHECK(probe::read_processors(std::getenv("HPCLAUNCH_TEST_ROOT")));
}

TEST_CASE("processors cost at most two calls that name a file for each PU", "[probe][processors]") {
  for (const char* const name : {"xeon-2x52-smt2.xml", "epyc-1x64-nps4.xml",
                                 "documented/epyc-9654-2x.xml", "documented/epyc-9654-h100.xml"}) {
    const Tree tree;
    const Topology machine = bare_processors(test::machine(name));
    write_machine(tree, machine);
    const int calls = count_calls(tree.root());
    if (calls == 0) {
      WARN("no strace: not checked");
      return;
    }
    const int pus = machine.all_pus().count();
    INFO(name << ": " << calls << " calls, " << pus << " PUs");
    CHECK(calls + 30 <= 2 * pus);  // which leaves some to devices and interfaces
  }
}

TEST_CASE("hybrid processors have two kinds of cores", "[probe][processors]") {
  const auto kinds = [](const char* slow) {
    const Tree tree;
    write_machine(tree, bare_processors(test::machine("laptop-8.xml")));
    tree.file("sys/devices/cpu_atom/cpus", slow);
    const auto machine = probe::read_processors(tree.root());
    REQUIRE(machine);
    std::vector<int> found;
    for (const Core& core : machine->cores) found.push_back(core.kind);
    return found;
  };
  CHECK(kinds("2-3,6-7") == std::vector<int>{1, 1, 0, 0, 1, 1, 0, 0});
  CHECK(kinds("0-7") == std::vector<int>(8, -1));
  CHECK(kinds("") == std::vector<int>(8, -1));
}

TEST_CASE("hwloc is asked where files are missing or contradict each other",
          "[probe][processors]") {
  const auto read_without = [](const std::string& path, const std::string& text) {
    const Tree tree;
    write_machine(tree, bare_processors(test::machine("laptop-8.xml")));
    if (text.empty())
      std::filesystem::remove(tree.root() + "/" + path);
    else
      tree.file(path, text);
    return probe::read_processors(tree.root()).has_value();
  };
  const std::string cpu = "sys/devices/system/cpu/";
  CHECK(read_without(cpu + "smt/active", ""));
  CHECK(read_without("proc/cpuinfo", ""));
  CHECK_FALSE(read_without(cpu + "online", ""));
  CHECK_FALSE(read_without(cpu + "cpu0/topology/core_cpus_list", ""));
  CHECK_FALSE(read_without(cpu + "cpu0/topology/package_cpus_list", ""));
  CHECK_FALSE(read_without(cpu + "cpu0/topology/package_cpus_list", "1-3"));
  CHECK_FALSE(read_without(cpu + "cpu0/topology/package_cpus_list", "0-3"));
  CHECK_FALSE(read_without(cpu + "cpu0/cache/index3/shared_cpu_list", "0-4"));
  CHECK_FALSE(read_without("sys/devices/system/node/online", ""));
  CHECK_FALSE(read_without("sys/devices/system/node/node0/cpulist", ""));
}
