// A node that is not the one that was planned: what differs is said, and nothing else is.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "hpclaunch/check.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

// One package, four NUMA nodes of two cores with two threads (CPU n and n + 8), an L3 each, a device and a
// network card for each NUMA node.
Topology node() {
  Topology node;
  node.hostname = "n1";
  Package package{0, "a model", {}};
  for (int n = 0; n < 4; ++n) {
    CpuSet pus;
    for (int c = 0; c < 2; ++c) {
      Core core{0, n, {}};
      core.pus.add(n * 2 + c);
      core.pus.add(n * 2 + c + 8);
      pus |= core.pus;
      node.cores.push_back(core);
    }
    node.numa_nodes.push_back({n, 64ull << 30, pus});
    node.caches.push_back({3, 32u << 20, pus});
    package.pus |= pus;
    Device device{n, "nvidia", "", fmt::format("0000:{}1:00.0", n), 80ull << 30, 2, n, pus};
    device.uuid = fmt::format("GPU-{}", n);
    node.devices.push_back(device);
    node.nics.push_back({fmt::format("hsn{}", n), fmt::format("cxi{}", n),
                         fmt::format("0000:{}2:00.0", n), n, "slingshot", "cxi", 200000, "up"});
    if (n > 0) node.links.push_back({0, n, "nvlink", 4});
  }
  node.packages.push_back(package);
  node.allowed = node.all_pus();
  return node;
}

void remove(Topology& node, const CpuSet& gone) {
  const auto strip = [&](auto& members) {
    for (auto& one : members) one.pus -= gone;
  };
  strip(node.packages);
  strip(node.numa_nodes);
  strip(node.caches);
  strip(node.cores);
  strip(node.devices);
  node.cores.erase(std::remove_if(node.cores.begin(), node.cores.end(),
                                  [](const Core& core) { return core.pus.empty(); }),
                   node.cores.end());
  node.allowed -= gone;
}

CpuSet set(const char* list) { return *CpuSet::parse(list); }

struct Drift {
  std::string kind;
  std::string text;
  friend bool operator==(const Drift&, const Drift&) = default;
};

std::vector<Drift> drift_of(const Topology& planned, const Topology& found, DriftScope scope = {}) {
  std::vector<Drift> all;
  for (const Diagnostic& one : find_drift(planned, found, scope))
    all.push_back({one.id, one.message});
  return all;
}

using Change = std::function<void(Topology&)>;

struct Row {
  const char* what;
  Change change;
  std::vector<Drift> said;
};

}  // namespace

TEST_CASE("each way to differ has its words", "[drift]") {
  const std::vector<Row> rows = {
      {"a core offline",
       [](Topology& n) { remove(n, set("5,13")); },
       {{"cpus", "CPUs 5,13 are missing (1 core offline)"}}},
      {"a thread offline",
       [](Topology& n) { remove(n, set("13")); },
       {{"cpus", "CPU 13 is missing"}}},
      {"threads off",
       [](Topology& n) { remove(n, set("8-15")); },
       {{"cpus", "hardware threads are off: CPUs 8-15 are missing"}}},
      {"siblings numbered side by side",
       [](Topology& n) {
         for (std::size_t c = 0; c < n.cores.size(); ++c) {
           n.cores[c].pus = CpuSet{};
           n.cores[c].pus.add(static_cast<int>(c) * 2);
           n.cores[c].pus.add(static_cast<int>(c) * 2 + 1);
         }
       },
       {{"threads", "CPUs are numbered in another way: the core of CPU 0 has 0-1, planned 0,8"}}},
      {"one NUMA node",
       [](Topology& n) {
         n.numa_nodes = {{0, 256ull << 30, n.all_pus()}};
         for (Device& device : n.devices) device.numa = 0;
         for (Nic& nic : n.nics) nic.numa = 0;
       },
       {{"numa", "1 NUMA node, planned 4: another NUMA mode (NPS, sub-NUMA clustering)"}}},
      {"half a node",
       [](Topology& n) {
         remove(n, set("4-7,12-15"));
         n.numa_nodes.resize(2);
         n.caches.resize(2);
         for (Device& device : n.devices) device.numa = -1;
       },
       {{"cpus", "CPUs 4-7,12-15 are missing (4 cores offline)"},
        {"numa", "2 NUMA nodes, planned 4"}}},
      {"memory without processors",
       [](Topology& n) {
         n.numa_nodes.push_back({4, 16ull << 30, {}});
       },
       {{"numa", "5 NUMA nodes, planned 4: another memory mode, or missing memory nodes"}}},
      {"half the memory",
       [](Topology& n) { n.numa_nodes[2].memory_bytes /= 2; },
       {{"memory", "NUMA node 2 has 32 GiB, planned 64 GiB"}}},
      {"a device gone",
       [](Topology& n) {
         n.devices.erase(n.devices.begin() + 2);
         n.devices[2].index = 2;
       },
       {{"devices", "device 2 at 0000:21:00.0 is missing"}}},
      {"devices counted otherwise",
       [](Topology& n) { std::swap(n.devices[0].pci, n.devices[1].pci); },
       {{"devices",
         "devices are numbered in another way: device 0 at 0000:01:00.0 is number 1, device 1 at "
         "0000:11:00.0 is number 0"},
        {"devices", "device 0 at 0000:01:00.0 has UUID GPU-1, planned GPU-0"},
        {"devices", "device 0 at 0000:01:00.0 is on NUMA node 1, planned 0"},
        {"devices", "device 1 at 0000:11:00.0 has UUID GPU-0, planned GPU-1"},
        {"devices", "device 1 at 0000:11:00.0 is on NUMA node 0, planned 1"}}},
      {"a device elsewhere",
       [](Topology& n) { n.devices[1].numa = 3; },
       {{"devices", "device 1 at 0000:11:00.0 is on NUMA node 3, planned 1"}}},
      {"split",
       [](Topology& n) {
         n.devices[1].instances = {"MIG-1", "MIG-2"};
       },
       {{"devices", "device 1 at 0000:11:00.0 has 2 instances, planned 0"}}},
      {"a network card down",
       [](Topology& n) { n.nics[3].state = "down"; },
       {{"nics", "network card cxi3 is down"}}},
      {"a link gone",
       [](Topology& n) { n.links.pop_back(); },
       {{"links", "no nvlink between devices 0 and 3"}}},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    Topology found = node();
    row.change(found);
    const std::vector<Drift> said = drift_of(node(), found);
    CHECK(said == row.said);
    const bool plain = row.said.front().kind == "memory" ||
                       row.said.front().text.find("down") != std::string::npos;
    CHECK((node_fingerprint(found) == node_fingerprint(node())) == plain);
  }
}

TEST_CASE("an interface near other cores differs, and offline cores are no difference of its",
          "[drift]") {
  Topology planned = node();
  planned.nics[0].numa = -1;
  planned.nics[0].pus = set("0-3,8-11");
  Topology found = planned;
  CHECK(drift_of(planned, found).empty());
  found.nics[0].pus = set("4-7,12-15");
  CHECK(drift_of(planned, found) ==
        std::vector<Drift>{{"nics", "network card cxi0 is near CPUs 4-7,12-15, planned 0-3,8-11"}});
  found = planned;
  remove(found, set("3,11"));
  found.nics[0].pus -= set("3,11");
  for (const Drift& one : drift_of(planned, found)) CHECK(one.kind != "nics");
}

TEST_CASE("what is not known is not judged", "[drift]") {
  Topology found = node();
  found.devices.clear();
  found.links.clear();
  found.nics.clear();
  found.caches.clear();
  CHECK(drift_of(node(), found).empty());
  CHECK(drift_of(found, node()).empty());
  found = node();
  for (Device& device : found.devices) {
    device.numa = -1;
    device.pus = CpuSet{};
    device.uuid.clear();
    device.memory_bytes = 0;
    device.subdevices = 0;
    device.pci.clear();
  }
  for (NumaNode& numa : found.numa_nodes) numa.memory_bytes += 1u << 30;
  found.packages[0].model = "another name";
  found.hostname = "n2";
  found.allowed = set("1");
  CHECK(drift_of(node(), found).empty());
  Topology other = node();
  other.hostname = "n2";
  for (Device& device : other.devices) device.uuid += "-2";
  CHECK(drift_of(node(), other).empty());
  CHECK(node_fingerprint(node()) == node_fingerprint(other));
}

TEST_CASE("devices that are all gone are said, where PCI was read", "[drift]") {
  Topology found = node();
  found.devices.clear();
  found.links.clear();
  found.no_devices = true;
  CHECK(drift_of(node(), found) == std::vector<Drift>{{"devices", "no device, planned 4"}});
  CHECK(drift_of(node(), found, {true, true}).size() == 1);
  CHECK(drift_of(found, node()) == std::vector<Drift>{{"devices", "4 devices, planned none"}});
  CHECK(drift_of(found, found).empty());
  Topology unknown = found;
  unknown.no_devices = false;
  CHECK(drift_of(unknown, found).empty());
  CHECK(node_fingerprint(unknown) == node_fingerprint(found));
}

TEST_CASE("a part of a node that was granted is no drift", "[drift]") {
  Topology found = node();
  remove(found, set("0-3,8-11"));
  found.devices.erase(found.devices.begin(), found.devices.begin() + 2);
  found.devices[0].index = 0;
  found.devices[1].index = 1;
  found.links.clear();
  CHECK(drift_of(node(), found, {true, true}).empty());
  CHECK(drift_of(node(), found, {true, false}).size() == 2);
  CHECK(drift_of(node(), found, {false, true}).size() == 1);
}

namespace {

Topology random_node(test::Random& random) {
  Topology node = test::random_topology(random.next());
  node.hostname = "n1";
  const int devices = random.in(1, 6);
  for (int d = 0; d < devices; ++d) {
    const Core& near =
        node.cores[static_cast<std::size_t>(random.in(0, static_cast<int>(node.cores.size()) - 1))];
    Device device{d,           "amd",           "m", fmt::format("0000:{:02x}:00.0", d),
                  64ull << 30, random.in(1, 4), -1,  near.pus};
    device.numa = near.numa;
    device.partition = "SPX";
    device.uuid = fmt::format("GPU-{}", d);
    node.devices.push_back(device);
    node.nics.push_back({"", fmt::format("mlx5_{}", d), fmt::format("0001:{:02x}:00.0", d), 0,
                         "infiniband", "", 400000, "up"});
    if (d > 0) node.links.push_back({0, d, "xgmi", random.in(1, 4)});
  }
  return node;
}

}  // namespace

TEST_CASE("no node drifts from itself, and any change has its kind", "[drift][law]") {
  struct Named {
    const char* kind;
    Change change;
  };
  const std::vector<Named> changes = {
      {"cpus", [](Topology& n) { remove(n, n.cores.back().pus); }},
      {"cpus", [](Topology& n) { remove(n, set(std::to_string(n.all_pus().last()).c_str())); }},
      {"memory",
       [](Topology& n) {
         for (NumaNode& numa : n.numa_nodes) numa.memory_bytes = numa.memory_bytes * 2 + 4096;
       }},
      {"numa", [](Topology& n) { n.numa_nodes.pop_back(); }},
      {"numa", [](Topology& n) { n.numa_nodes.back().os_index += 100; }},
      {"packages", [](Topology& n) { n.packages.back().os_index += 100; }},
      {"caches", [](Topology& n) { n.caches.pop_back(); }},
      {"devices", [](Topology& n) { n.devices.pop_back(); }},
      {"devices", [](Topology& n) { n.devices.back().index += 3; }},
      {"devices", [](Topology& n) { n.devices.back().pci = "0000:ff:00.0"; }},
      {"devices", [](Topology& n) { n.devices.back().vendor = "intel"; }},
      {"devices", [](Topology& n) { n.devices.back().partition = "CPX"; }},
      {"devices", [](Topology& n) { ++n.devices.back().subdevices; }},
      {"devices", [](Topology& n) { n.devices.back().memory_bytes /= 2; }},
      {"devices", [](Topology& n) { n.devices.back().uuid = "GPU-x"; }},
      {"devices", [](Topology& n) { n.devices.back().instances = {"MIG-1"}; }},
      {"nics",
       [](Topology& n) {
         n.nics.pop_back();
         n.nics.push_back({"lan", "", ""});
       }},
      {"nics", [](Topology& n) { n.nics.back().state = "down"; }},
      {"nics", [](Topology& n) { n.nics.back().speed_mbps /= 2; }},
      {"nics", [](Topology& n) { n.nics.back().kind = "roce"; }},
      {"nics", [](Topology& n) { n.nics.back().numa = 9; }},
      {"nics", [](Topology& n) { n.nics.back().pci = "0002:00:00.0"; }},
      {"links", [](Topology& n) { n.links.back().lanes += 1; }},
      {"links", [](Topology& n) { n.links.back().kind = "xe-link"; }},
  };
  test::Random random(6);
  std::vector<int> met(changes.size(), 0);
  for (int round = 0; round < 150; ++round) {
    const Topology planned = random_node(random);
    INFO("round " << round);
    CHECK(drift_of(planned, planned).empty());
    const auto again = topology_from_json(topology_to_json(planned), "again");
    if (!again) continue;  // a made-up NUMA node of a core may not be known
    CHECK(drift_of(planned, *again).empty());
    CHECK(node_fingerprint(planned) == node_fingerprint(*again));
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const std::string kind = changes[i].kind;
      if ((kind == "numa" && planned.numa_nodes.size() < 2) ||
          (kind == "memory" && planned.numa_nodes.empty()) ||
          (kind == "packages" && planned.packages.empty()) ||
          (kind == "caches" && planned.caches.size() < 2) ||
          (kind == "cpus" && planned.cores.size() < 2) ||
          ((kind == "links" || kind == "devices") && planned.devices.size() < 2))
        continue;
      Topology found = planned;
      changes[i].change(found);
      if (kind == "memory" && planned.numa_nodes.back().memory_bytes == 0) continue;
      const std::vector<Drift> said = drift_of(planned, found);
      INFO("change " << i << " of " << kind);
      CHECK(std::any_of(said.begin(), said.end(),
                        [&](const Drift& one) { return one.kind == kind && !one.text.empty(); }));
      ++met[i];
    }
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    CHECK(met[i] > 20);
  }
}
