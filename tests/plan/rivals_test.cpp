// Ours against other planners, on every recorded machine and on thousands of made-up ones.
#include "plan/rivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "hpclaunch/probe.h"
#include "plan/jobs.h"
#include "plan/match.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

using test::Measure;
using test::RivalPlan;

RivalPlan ours(const Topology& node, int ranks) {
  const Units units = test::units_of(node);
  const auto matched = match_units(node, units, {ranks});
  REQUIRE(matched);
  RivalPlan plan;
  for (std::size_t r = 0; r < matched->ranks.size(); ++r)
    plan.push_back(
        {matched->ranks[r].cpus, {units.list[static_cast<std::size_t>(matched->dealt[r])].device}});
  return plan;
}

struct Rival {
  const char* name;
  std::optional<RivalPlan> (*place)(const Topology&, int);
};
constexpr Rival kRivals[] = {{"mpibind", test::mpibind},
                             {"PRRTE by numa", test::prrte_by_numa},
                             {"PRRTE by device", test::prrte_by_device}};

std::string text(const Measure& one) {
  return fmt::format("without {} crowded {} uneven {} far {} split {} worst-off {} cores {}",
                     one.without, one.crowded, one.uneven, one.far, one.split, one.worst_off,
                     one.cores_used);
}

// What may never be worse, the first that differs decides; and among what is left nobody is as good in
// everything and better in something.
void compare(const Topology& node, int ranks) {
  const Measure mine = test::measure(node, ours(node, ranks));
  CHECK(mine.without == 0);
  CHECK(mine.crowded == 0);
  for (const Rival& rival : kRivals) {
    const auto plan = rival.place(node, ranks);
    if (!plan) continue;
    const Measure theirs = test::measure(node, *plan);
    INFO(rival.name << ", " << ranks << " ranks\n  ours   " << text(mine) << "\n  theirs "
                    << text(theirs));
    const auto first = [](const Measure& one) {
      return std::tuple(one.without, one.crowded, one.uneven, one.far);
    };
    CHECK(first(mine) <= first(theirs));
    if (first(mine) < first(theirs)) continue;
    const bool as_good = theirs.split <= mine.split && theirs.worst_off >= mine.worst_off &&
                         theirs.cores_used >= mine.cores_used;
    const bool same = theirs.split == mine.split && theirs.worst_off == mine.worst_off &&
                      theirs.cores_used == mine.cores_used;
    CHECK_FALSE((as_good && !same));
  }
}

// A machine that was recorded without devices gets as many for each NUMA node.
Topology with_devices(Topology node, int each) {
  if (!node.devices.empty()) return node;
  for (const NumaNode& numa : node.numa_nodes)
    for (int i = 0; i < each && !numa.pus.empty(); ++i) {
      Device device;
      device.index = static_cast<int>(node.devices.size());
      device.vendor = "amd";
      device.numa = numa.os_index;
      device.pus = numa.pus;
      node.devices.push_back(device);
    }
  return node;
}

}  // namespace

namespace {

struct Shape {
  const char* name;
  int packages, numa, cores;  // numa per package, cores per NUMA node
  std::vector<int> near;      // NUMA node of each device
  const char* reserved;
  std::vector<int> ranks;
};

// Nodes as their sites' pages draw them. The last but one has devices on one package only, the last one core
// for two devices.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> kShapes = {
      {"MI250X blade, 8 cores reserved",
       1,
       4,
       16,
       {3, 3, 1, 1, 0, 0, 2, 2},
       "0,8,16,24,32,40,48,56",
       {8, 4, 16}},
      {"PVC node, 2 cores reserved", 2, 1, 52, {0, 0, 0, 1, 1, 1}, "0,52", {6, 12, 4}},
      {"A100 node, 4 GPUs", 1, 4, 16, {3, 2, 1, 0}, "", {4, 8, 3}},
      {"A100 node, 8 GPUs", 2, 4, 16, {3, 3, 1, 1, 7, 7, 5, 5}, "", {8, 4, 16}},
      {"POWER9, 6 V100", 2, 1, 22, {0, 0, 0, 1, 1, 1}, "0,22", {6, 4, 7}},
      {"T4 node, 8 GPUs", 2, 1, 24, {0, 0, 0, 0, 1, 1, 1, 1}, "", {8, 5, 12}},
      {"GH200, 4 sockets", 4, 1, 72, {0, 1, 2, 3}, "", {4, 8, 6}},
      {"4 GPUs on package 1 of 2", 2, 1, 32, {1, 1, 1, 1}, "", {4, 8, 2}},
      {"4 GPUs, 2 of them near one core", 1, 2, 8, {0, 0, 1, 1}, "1-7", {4, 2, 8}},
  };
  return kShapes;
}

Topology build(const Shape& shape) {
  Topology node;
  for (int p = 0; p < shape.packages; ++p) {
    Package package{p, "", {}};
    for (int n = 0; n < shape.numa; ++n) {
      NumaNode numa{p * shape.numa + n, 0, {}};
      for (int c = 0; c < shape.cores; ++c) {
        Core core{p, numa.os_index, {}};
        core.pus.add(static_cast<int>(node.cores.size()));
        numa.pus |= core.pus;
        node.cores.push_back(core);
      }
      package.pus |= numa.pus;
      node.numa_nodes.push_back(numa);
    }
    node.packages.push_back(package);
  }
  node.allowed = node.all_pus();
  if (*shape.reserved != '\0') node.allowed -= *CpuSet::parse(shape.reserved);
  for (std::size_t d = 0; d < shape.near.size(); ++d) {
    Device device;
    device.index = static_cast<int>(d);
    device.vendor = "amd";
    device.numa = shape.near[d];
    node.devices.push_back(device);
  }
  REQUIRE(check_topology(node));
  return node;
}

std::string cell(const Topology& node, const std::optional<RivalPlan>& plan) {
  if (!plan) return "refuses";
  const Measure one = test::measure(node, *plan);
  if (one.without > 0) return fmt::format("{} without a device", one.without);
  if (one.crowded > 0) return fmt::format("{} share a core", one.crowded);
  return fmt::format("{}, {}, {}, {}", one.uneven, one.far, one.worst_off, one.cores_used);
}

}  // namespace

TEST_CASE("docs/placement.md has the numbers of the comparison", "[rivals][docs]") {
  std::ifstream file(HPCLAUNCH_SOURCE_DIR "/docs/placement.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::string missing;
  for (const Shape& shape : shapes())
    for (const int ranks : shape.ranks) {
      const Topology node = build(shape);
      compare(node, ranks);
      const std::string line = fmt::format(
          "| {} | {} | {} | {} | {} | {} |\n", shape.name, ranks, cell(node, ours(node, ranks)),
          cell(node, test::mpibind(node, ranks)), cell(node, test::prrte_by_device(node, ranks)),
          cell(node, test::prrte_by_numa(node, ranks)));
      if (page.find(line) == std::string::npos) missing += line;
    }
  CHECK(missing == "");
}

TEST_CASE("never worse than other planners on recorded machines", "[rivals][law]") {
  int machines = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(HPCLAUNCH_SOURCE_DIR "/tests/machines")) {
    const std::string name = file.path().filename().string();
    if (!name.ends_with(".xml") && !name.ends_with(".json")) continue;
    const Result<Topology> node = read_topology(file.path().string());
    REQUIRE(node);
    for (const int each : {1, 2}) {
      const Topology with = with_devices(*node, each);
      if (with.devices.empty()) continue;
      ++machines;
      const int most =
          std::min(static_cast<int>(with.devices.size()) * 2 + 1, with.allowed.count());
      const int step = most > 12 ? 3 : 1;
      for (int ranks = 1; ranks <= most; ranks += step) {
        INFO(name << ", " << with.devices.size() << " devices");
        if (ranks <= static_cast<int>(with.cores.size())) compare(with, ranks);
      }
    }
  }
  CHECK(machines >= 15);
}

TEST_CASE("never worse than other planners on made-up machines", "[rivals][law]") {
  test::Random random(17);
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    Topology node = test::random_node(seed);
    for (Device& device : node.devices) device.subdevices = 0;
    const auto cores = std::count_if(node.cores.begin(), node.cores.end(), [&](const Core& core) {
      return core.pus.intersects(node.allowed);
    });
    INFO("seed " << seed);
    compare(node, random.in(1, std::min(static_cast<int>(cores), 16)));
  }
}
