#include "hpclaunch/topology.h"

#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

CpuSet cpus(const char* list) { return *CpuSet::parse(list); }

/// One package, two NUMA nodes, an L3 for each, four cores of two PUs.
Topology lawful() {
  Topology topology;
  topology.hostname = "n";
  topology.packages = {{0, "cpu", cpus("0-7")}};
  topology.numa_nodes = {{0, 1, cpus("0-1,4-5")}, {1, 1, cpus("2-3,6-7")}};
  topology.caches = {{3, 1, cpus("0-1,4-5")}, {3, 1, cpus("2-3,6-7")}};
  topology.cores = {
      {0, 0, cpus("0,4")}, {0, 0, cpus("1,5")}, {0, 1, cpus("2,6")}, {0, 1, cpus("3,7")}};
  topology.allowed = cpus("0-7");
  return topology;
}

struct Complaint {
  std::string message;
  std::string pointer;
};

Complaint complaint(const Topology& topology) {
  const Status status = check_topology(topology);
  REQUIRE_FALSE(status);
  CHECK(status.error().kind == ErrorKind::invalid);
  REQUIRE(status.error().where);
  return {status.error().message, status.error().where->pointer};
}

}  // namespace

TEST_CASE("a lawful topology passes, and so does the least one", "[topology]") {
  CHECK(check_topology(lawful()));
  Topology least;
  least.cores = {{-1, -1, cpus("4095")}};
  least.allowed = cpus("4095");
  CHECK(check_topology(least));
  CHECK(least.all_pus().to_list() == "4095");
}

TEST_CASE("HBM beside DDR and memory near no CPU are lawful", "[topology]") {
  Topology topology = lawful();
  topology.numa_nodes.push_back({2, 1, topology.numa_nodes[0].pus});
  topology.numa_nodes.push_back({3, 1, {}});
  CHECK(check_topology(topology));
}

TEST_CASE("a NUMA node may hold several packages", "[topology]") {
  Topology topology = lawful();
  topology.packages = {{0, "", cpus("0-1,4-5")}, {1, "", cpus("2-3,6-7")}};
  topology.numa_nodes = {{0, 1, cpus("0-7")}};
  topology.cores = {
      {0, 0, cpus("0,4")}, {0, 0, cpus("1,5")}, {1, 0, cpus("2,6")}, {1, 0, cpus("3,7")}};
  CHECK(check_topology(topology));
}

TEST_CASE("breaches about cores and PUs are named", "[topology]") {
  Topology topology = lawful();
  SECTION("no core") {
    topology.cores.clear();
    CHECK(complaint(topology).pointer == "/cores");
  }
  SECTION("a core without PU") {
    topology.cores[2].pus = {};
    CHECK(complaint(topology).message == "core 2 has no PU");
  }
  SECTION("a PU in two cores") {
    topology.cores[1].pus.add(4);
    const Complaint got = complaint(topology);
    CHECK(got.message == "PU 4 is in two cores");
    CHECK(got.pointer == "/cores/1/pus");
  }
  SECTION("nothing allowed") {
    topology.allowed = {};
    CHECK(complaint(topology).message == "no PU is allowed");
  }
  SECTION("allowed PUs that do not exist") {
    topology.allowed = cpus("0-1,8-9");
    CHECK(complaint(topology).message == "allowed PUs 8-9 are in no core");
  }
  SECTION("a package that does not hold its core") {
    topology.packages = {{0, "", cpus("0-1,4-5")}, {1, "", cpus("2-3,6-7")}};
    const Complaint got = complaint(topology);
    CHECK(got.message == "core 2 names package 0, which does not contain its PUs 2,6");
    CHECK(got.pointer == "/cores/2/package");
  }
  SECTION("a NUMA node that does not exist") {
    topology.cores[0].numa = 7;
    CHECK(complaint(topology).message == "core 0 names NUMA node 7, which does not exist");
  }
}

TEST_CASE("breaches about packages, NUMA nodes and caches are named", "[topology]") {
  Topology topology = lawful();
  SECTION("a part of a core") {
    topology.caches[0].pus -= *CpuSet::parse("4");
    const Complaint got = complaint(topology);
    CHECK(got.message == "L3 cache with PUs 0-1,5 has only a part of the core with PUs 0,4");
    CHECK(got.pointer == "/caches/0/pus");
  }
  SECTION("a PU that does not exist") {
    topology.numa_nodes[1].pus.add(9);
    CHECK(complaint(topology).message == "NUMA node 1 has PU 9, which is in no core");
  }
  SECTION("overlap") {
    topology.caches[0].pus = cpus("1-2,5-6");
    CHECK(complaint(topology).message ==
          "L3 cache with PUs 1-2,5-6 and NUMA node 1 overlap, and neither contains the other");
  }
  SECTION("two of the same number") {
    topology.numa_nodes[1].os_index = 0;
    CHECK(complaint(topology).message == "two NUMA nodes have the number 0");
  }
  SECTION("a negative number") {
    topology.packages[0].os_index = -1;
    CHECK(complaint(topology).pointer == "/packages/0/os_index");
  }
  SECTION("a cache that no two cores share by its level") {
    topology.caches[0].level = 1;
    CHECK(complaint(topology).message == "cache level 1 is below 2");
  }
  SECTION("levels out of order") {
    topology.caches[0].level = 2;
    CHECK(complaint(topology).message == "an L3 cache follows an L2 cache");
  }
  SECTION("a package without PU") {
    topology.packages.push_back({1, "", {}});
    CHECK(complaint(topology).message == "package 1 has no PU");
  }
}

TEST_CASE("breaches about devices and interfaces are named", "[topology][devices]") {
  Topology good = lawful();
  Device device;
  device.vendor = "nvidia";
  device.pus = cpus("0-1,4-5");
  device.numa = 0;
  good.devices = {device};
  good.nics = {{"hsn0", "cxi0", "", 1}};
  CHECK(check_topology(good));

  Topology bad = good;
  bad.devices.push_back(device);
  CHECK(complaint(bad).pointer == "/devices/1/index");
  bad = good;
  bad.devices[0].vendor = "acme";
  CHECK(complaint(bad).pointer == "/devices/0/vendor");
  bad = good;
  bad.devices[0].pus = cpus("6-8");
  CHECK_THAT(complaint(bad).message, ContainsSubstring("near PUs 8"));
  bad = good;
  bad.devices[0].numa = 7;
  CHECK(complaint(bad).pointer == "/devices/0/numa");
  bad = good;
  bad.devices[0].subdevices = 65;
  CHECK(complaint(bad).pointer == "/devices/0/subdevices");
  bad = good;
  bad.nics[0].numa = 9;
  CHECK_THAT(complaint(bad).message, ContainsSubstring("interface hsn0"));
  bad.nics[0].numa = -1;
  bad.nics[0].pus = cpus("0-8");
  CHECK_THAT(complaint(bad).message, ContainsSubstring("interface hsn0 is near PUs 8"));
  bad.nics[0].pus = cpus("0-1,4-5");
  CHECK(check_topology(bad));
  bad.nics[0].numa = 1;
  CHECK(complaint(bad).pointer == "/nics/0/pus");
}

TEST_CASE("random topologies are lawful, repeatable and of every kind", "[topology][law]") {
  int with_holes = 0;
  int restricted = 0;
  int without_numa = 0;
  int without_caches = 0;
  int numa_above = 0;
  int mixed = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Topology topology = test::random_topology(seed);
    const Status status = check_topology(topology);
    INFO("seed " << seed << ": " << (status ? "" : status.error().message));
    REQUIRE(status);
    if (seed % 100 == 0) REQUIRE(topology == test::random_topology(seed));
    const CpuSet all = topology.all_pus();
    with_holes += all.last() + 1 != all.count();
    restricted += topology.allowed != all;
    without_numa += topology.numa_nodes.empty();
    without_caches += topology.caches.empty();
    numa_above +=
        topology.packages.size() > topology.numa_nodes.size() && !topology.numa_nodes.empty();
    mixed += topology.cores.front().pus.count() != topology.cores.back().pus.count();
  }
  for (const int kind : {with_holes, restricted, without_numa, without_caches, numa_above, mixed}) {
    CHECK(kind > 60);
    CHECK(kind < 2400);
  }
}
