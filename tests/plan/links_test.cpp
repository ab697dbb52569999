// Linked devices side by side.
#include <algorithm>
#include <numeric>

#include "plan/devices/node_ranks.h"
#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

// `packages` packages of one NUMA node with eight cores; device i is near package near[i].
Topology machine(int packages, const std::vector<int>& near) {
  Topology node;
  for (int p = 0; p < packages; ++p) {
    CpuSet pus;
    for (int c = 0; c < 8; ++c) {
      Core core{p, p, {}};
      core.pus.add(p * 8 + c);
      pus |= core.pus;
      node.cores.push_back(core);
    }
    node.packages.push_back({p, "", pus});
    node.numa_nodes.push_back({p, 0, pus});
  }
  node.allowed = node.all_pus();
  for (std::size_t d = 0; d < near.size(); ++d) {
    Device device;
    device.index = static_cast<int>(d);
    device.vendor = "nvidia";
    device.numa = near[d];
    node.devices.push_back(device);
  }
  return node;
}

void link(Topology& node, int a, int b, int lanes = 1) {
  node.links.push_back({std::min(a, b), std::max(a, b), "nvlink", lanes});
  std::sort(node.links.begin(), node.links.end(), [](const Link& x, const Link& y) {
    return std::pair(x.from, x.to) < std::pair(y.from, y.to);
  });
}

std::vector<int> devices(const Topology& node, int ranks) {
  const Slots units = test::units_of(node);
  const auto matched = match_slots(node, units, {ranks});
  REQUIRE(matched);
  std::vector<int> result;
  for (const int unit : matched->assigned)
    result.push_back(units.list[static_cast<std::size_t>(unit)].first().device);
  return result;
}

int linked(const Topology& node, int a, int b) {
  return std::any_of(node.links.begin(), node.links.end(),
                     [&](const Link& one) {
                       return one.from == std::min(a, b) && one.to == std::max(a, b);
                     })
             ? 1
             : 0;
}

int linked_neighbours(const Topology& node, const std::vector<int>& ring) {
  int count = 0;
  for (std::size_t i = 0; i + 1 < ring.size(); ++i) count += linked(node, ring[i], ring[i + 1]);
  if (ring.size() > 2) count += linked(node, ring.back(), ring.front());
  return count;
}

using Devices = std::vector<int>;

}  // namespace

TEST_CASE("a cube of eight devices is walked along its links", "[links]") {
  // Two squares with diagonals, and one link from each corner to the other square, as in machines with
  // eight V100: the driver's order 0, 1, 2, ... 7 does not go along links.
  Topology node = machine(2, {0, 0, 0, 0, 1, 1, 1, 1});
  for (const int base : {0, 4}) {
    link(node, base, base + 1);
    link(node, base, base + 2);
    link(node, base, base + 3, 2);
    link(node, base + 1, base + 2, 2);
    link(node, base + 1, base + 3);
    link(node, base + 2, base + 3, 2);
  }
  link(node, 0, 4, 2);
  link(node, 1, 5, 2);
  link(node, 2, 6);
  link(node, 3, 7);
  const Devices ring = devices(node, 8);
  CHECK(linked_neighbours(node, {0, 1, 2, 3, 4, 5, 6, 7}) == 6);
  CHECK(linked_neighbours(node, ring) == 8);
  CHECK(std::all_of(ring.begin(), ring.begin() + 4, [](int d) { return d < 4; }));
  // Fewer ranks take the ones that are linked.
  CHECK(linked_neighbours(node, devices(node, 4)) == 4);
  // Two ranks for each device keep the order.
  const Devices twice = devices(node, 16);
  for (std::size_t r = 0; r < 16; ++r) CHECK(twice[r] == ring[r / 2]);
}

TEST_CASE("without links ranks go in the order of the cores", "[links]") {
  CHECK(devices(machine(4, {3, 3, 1, 1, 0, 0, 2, 2}), 8) == Devices{4, 5, 2, 3, 6, 7, 0, 1});
  CHECK(devices(machine(4, {3, 3, 1, 1, 0, 0, 2, 2}), 4) == Devices{4, 2, 6, 0});
}

TEST_CASE("a driver that keeps its order gets it", "[links]") {
  Topology node = machine(1, {0, 0, 0, 0});
  for (Device& device : node.devices) device.vendor = "intel";
  link(node, 0, 2);
  link(node, 1, 3);
  Slots units = test::units_of(node);
  units.view = "all";
  CHECK(match_slots(node, units, {4})->assigned == std::vector<int>{0, 1, 2, 3});
  units.view = "own";
  CHECK(match_slots(node, units, {4})->assigned == std::vector<int>{0, 2, 1, 3});
}

TEST_CASE("links that say nothing change nothing", "[links]") {
  Topology node = machine(2, {0, 0, 1, 1});
  CHECK(devices(node, 4) == Devices{0, 1, 2, 3});
  for (int a = 0; a < 4; ++a)
    for (int b = a + 1; b < 4; ++b) link(node, a, b, 4);
  CHECK(devices(node, 4) == Devices{0, 1, 2, 3});
}

TEST_CASE("more lanes are nearer, and CPU locality comes first", "[links]") {
  Topology node = machine(2, {0, 0, 1, 1});
  link(node, 0, 2);
  link(node, 1, 3);
  link(node, 0, 1);
  link(node, 2, 3);
  CHECK(devices(node, 4) == Devices{0, 1, 3, 2});
  // The best ring of all would mix packages: 0 2 1 3.
  Topology mixed = machine(2, {0, 0, 1, 1});
  link(mixed, 0, 2, 8);
  link(mixed, 2, 1, 8);
  link(mixed, 1, 3, 8);
  const Devices order = devices(mixed, 4);
  CHECK((order[0] < 2 && order[1] < 2));
}

TEST_CASE("devices of one rank are linked ones", "[links]") {
  Topology node = machine(1, {0, 0, 0, 0, 0});
  link(node, 0, 3, 4);
  link(node, 1, 4, 4);
  link(node, 0, 1, 1);
  const Slots units = test::units_of(node, 2);
  REQUIRE(units.list.size() == 2);
  CHECK(units.list[0].first().device == 0);
  CHECK(units.list[0].slots[1].device == 3);
  CHECK(units.list[1].first().device == 1);
  CHECK(units.list[1].slots[1].device == 4);
  REQUIRE(units.left.size() == 1);
  CHECK(units.left.front().device == 2);
}

// A greedy ring, and not the best one (a travelling salesman's): links count last (docs/reference/placement.md), and on
// the machines that exist (all to all, squares and cubes as above) the two are the same. Here: random links.
TEST_CASE("never fewer linked neighbours than the order of the cores has, and nearly the most",
          "[links][law]") {
  int better = 0;
  int most = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    test::Random random(seed);
    const int count = random.in(3, 6);
    Topology node = machine(1, std::vector<int>(static_cast<std::size_t>(count), 0));
    for (int a = 0; a < count; ++a)
      for (int b = a + 1; b < count; ++b)
        if (random.chance(50)) link(node, a, b);
    Devices order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    const int natural = linked_neighbours(node, order);
    int best = 0;
    do {
      best = std::max(best, linked_neighbours(node, order));
    } while (std::next_permutation(order.begin(), order.end()));
    INFO("seed " << seed);
    const Devices ours = devices(node, count);
    CHECK(linked_neighbours(node, ours) >= natural);
    CHECK(linked_neighbours(node, ours) >= best - 2);
    if (best == natural) CHECK(std::is_sorted(ours.begin(), ours.end()));
    most += linked_neighbours(node, ours) == best ? 1 : 0;
    better += linked_neighbours(node, ours) > natural ? 1 : 0;
  }
  CHECK(better > 50);
  CHECK(most > 300);
}
