// From the compact description of a node to its topology.
#include "hpclaunch/profile.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

ParsedProfile parse_nodes(const std::string& node) {
  return parse_profile(R"({"schema": 1, "name": "t", "nodes": [)" + node + "]}", "t.json");
}

NodeModel model(const std::string& node) {
  ParsedProfile parsed = parse_nodes(node);
  for (const Error& problem : parsed.problems)
    FAIL_CHECK(problem.where->pointer << ": " << problem.message);
  REQUIRE(parsed.profile.nodes.size() == 1);
  REQUIRE(check_topology(parsed.profile.nodes[0].topology));
  return parsed.profile.nodes[0];
}

constexpr std::uint64_t kMiB = 1024 * 1024;

}  // namespace

TEST_CASE("two packages of 52 cores, siblings after all cores, devices with parts") {
  const NodeModel node = model(R"({"name": "gpu", "count": 10, "packages": 2, "cores_per_numa": 52,
    "threads_per_core": 2, "siblings": "after-all-cores", "package_model": "P", "numa_memory_mb": [515524, 514994],
    "reserved": {"cores": "0,52", "why": "the system"},
    "services": [{"name": "copper", "cores": "48-51", "why": "copies files"}],
    "share": {"cores": 24, "exact": true, "memory_mb": 1024, "core_memory_mb": 100, "devices": [1, 2]},
    "devices": {"vendor": "intel", "model": "D", "memory_mb": 131072, "subdevices": 2, "partition": "SPX",
      "list": [{"cores": "0-51", "pci": "0000:18:00.0", "bridges": ["0000:17"]}, {"numa": 1, "pci": "0000:9a:00.0"}, {}, {"cores": "51-52"}],
      "links": [{"from": 1, "to": 2, "kind": "xe-link", "lanes": 2}, {"from": 0, "to": 3, "kind": "xe-link"}]},
    "nics": [{"name": "hsn0", "fabric": "cxi0", "kind": "slingshot", "numa": 1}, {"fabric": "cxi1", "bridges": ["0000:17", "0000:17:01.0"]},
      {"fabric": "cxi2", "cores": "40-60"}, {"fabric": "cxi3", "cores": "52-103"}]})");
  const Topology& t = node.topology;
  REQUIRE(t.packages.size() == 2);
  CHECK(t.packages[1].pus.to_list() == "52-103,156-207");
  CHECK(t.packages[1].model == "P");
  REQUIRE(t.numa_nodes.size() == 2);
  CHECK(t.numa_nodes[0].memory_bytes == 515524 * kMiB);
  CHECK(t.numa_nodes[1].memory_bytes == 514994 * kMiB);
  CHECK(t.caches.empty());
  REQUIRE(t.cores.size() == 104);
  CHECK(t.cores[53].pus.to_list() == "53,157");
  CHECK(t.cores[53].package == 1);
  CHECK(t.cores[53].numa == 1);
  CHECK(t.allowed.to_list() == "1-51,53-103,105-155,157-207");
  CHECK(node.reserved.to_list() == "0,52,104,156");
  CHECK(node.reserved_why == "the system");
  REQUIRE(node.services.size() == 1);
  CHECK(node.services[0].pus.to_list() == "48-51,152-155");
  REQUIRE(node.share.has_value());
  CHECK(node.share->cores == 24);
  CHECK(node.share->exact);
  CHECK(node.share->memory_mb == 1024);
  CHECK(node.share->core_memory_mb == 100);
  CHECK(node.share->counts == std::vector<int>{1, 2});
  REQUIRE(t.devices.size() == 4);
  CHECK(t.devices[0].pus.to_list() == "0-51,104-155");
  CHECK(t.devices[0].numa == 0);
  CHECK(t.devices[0].subdevices == 2);
  CHECK(t.devices[3].partition == "SPX");
  CHECK(t.devices[0].memory_bytes == 131072 * kMiB);
  CHECK(t.devices[0].vendor == "intel");
  CHECK(t.devices[1].pus == t.numa_nodes[1].pus);
  CHECK(t.devices[1].numa == 1);
  CHECK(t.devices[2].index == 2);
  CHECK(t.devices[2].numa == -1);
  CHECK(t.devices[2].pus.empty());
  CHECK(t.devices[3].numa == -1);  // cores of two NUMA nodes
  CHECK(t.links == std::vector<Link>{{0, 3, "xe-link", 1}, {1, 2, "xe-link", 2}});
  REQUIRE(t.nics.size() == 4);
  CHECK(t.nics[0].numa == 1);
  CHECK(t.nics[1].numa == -1);
  CHECK(t.nics[1].pus.empty());
  CHECK(t.nics[2].numa == -1);
  CHECK(t.nics[2].pus.to_list() == "40-60,144-164");
  CHECK(t.nics[3].numa == 1);  // which says it
  CHECK(t.nics[3].pus.empty());
  CHECK(t.nics[0].kind == "slingshot");
  CHECK(t.nics[1].kind.empty());
  CHECK(t.nics[1].bridges == std::vector<std::string>{"0000:17", "0000:17:01.0"});
  CHECK(t.devices[0].bridges == std::vector<std::string>{"0000:17"});
}

TEST_CASE("memory without cores stands behind the node that it is near to") {
  const NodeModel node =
      model(R"({"name": "hbm", "packages": 2, "cores_per_numa": 52, "threads_per_core": 2,
    "numa_memory_mb": 1000,
    "memory_only_numa": [{"os_index": 2, "memory_mb": 65536, "near_numa": 0}, {"os_index": 3, "near_numa": 1},
                         {"os_index": 8, "memory_mb": 96}],
    "devices": {"vendor": "nvidia", "list": [{"numa": 8}, {"numa": 3}]}})");
  const auto& numa = node.topology.numa_nodes;
  REQUIRE(numa.size() == 5);
  const int order[] = {0, 2, 1, 3, 8};
  for (std::size_t i = 0; i < numa.size(); ++i) CHECK(numa[i].os_index == order[i]);
  CHECK(numa[1].pus == numa[0].pus);
  CHECK(numa[1].memory_bytes == 65536 * kMiB);
  CHECK(numa[4].pus.empty());
  CHECK(node.topology.cores[60].numa == 1);
  CHECK(node.topology.devices[0].numa == 8);
  CHECK(node.topology.devices[0].pus.empty());
  CHECK(node.topology.devices[1].pus == numa[2].pus);
}

TEST_CASE("one package in four NUMA nodes with two caches each") {
  const NodeModel node =
      model(R"({"name": "n", "packages": 1, "numa_per_package": 4, "l3_per_numa": 2,
    "cores_per_numa": 16, "threads_per_core": 2, "use": "live", "when": {"env.SLURM_JOB_PARTITION": "gpu"}})");
  const Topology& t = node.topology;
  CHECK(node.live);
  REQUIRE(node.when.size() == 1);
  REQUIRE(t.caches.size() == 8);
  CHECK(t.caches[3].level == 3);
  CHECK(t.caches[3].pus.to_list() == "24-31,88-95");
  REQUIRE(t.numa_nodes.size() == 4);
  CHECK(t.numa_nodes[3].pus.to_list() == "48-63,112-127");
  CHECK(t.cores[17].numa == 1);
  CHECK(t.cores[17].package == 0);
  CHECK(t.allowed == t.all_pus());
}

TEST_CASE("adjacent siblings") {
  const NodeModel node =
      model(R"({"name": "n", "packages": 2, "cores_per_numa": 2, "threads_per_core": 4,
    "siblings": "adjacent", "reserved": {"cores": "3"}})");
  CHECK(node.topology.cores[1].pus.to_list() == "4-7");
  CHECK(node.topology.packages[1].pus.to_list() == "8-15");
  CHECK(node.topology.allowed.to_list() == "0-11");
}

TEST_CASE("laws of every shape: cores in one NUMA node, caches and packages cover all") {
  for (int packages = 1; packages <= 3; ++packages) {
    for (int numa = 1; numa <= 3; ++numa) {
      for (int cores = 1; cores <= 7; ++cores) {
        for (int threads = 1; threads <= 3; ++threads) {
          for (const char* siblings : {"after-all-cores", "adjacent"}) {
            const std::string text = R"({"name": "n", "packages": )" + std::to_string(packages) +
                                     R"(, "numa_per_package": )" + std::to_string(numa) +
                                     R"(, "cores_per_numa": )" + std::to_string(cores) +
                                     R"(, "l3_per_numa": )" + std::to_string(cores) +
                                     R"(, "threads_per_core": )" + std::to_string(threads) +
                                     R"(, "siblings": ")" + siblings + "\"}";
            INFO(text);
            const NodeModel node = model(text);
            const Topology& t = node.topology;
            const int pus = packages * numa * cores * threads;
            REQUIRE(t.all_pus().count() == pus);
            REQUIRE(t.all_pus().last() == pus - 1);
            CpuSet packaged;
            CpuSet cached;
            for (const Package& one : t.packages) packaged |= one.pus;
            for (const Cache& one : t.caches) cached |= one.pus;
            CHECK(packaged == t.allowed);
            CHECK(cached == t.allowed);
          }
        }
      }
    }
  }
}

TEST_CASE("a node may be a topology, as topo --json prints it") {
  const NodeModel plain = model(R"({"name": "n", "packages": 2, "cores_per_numa": 4,
    "devices": {"vendor": "amd", "list": [{"numa": 0}, {"numa": 1}]}, "nics": [{"name": "hsn0", "numa": 1}]})");
  const std::string text = topology_to_json(plain.topology);
  const NodeModel node =
      model(R"({"name": "n", "count": 7, "topology": )" + text +
            R"(, "reserved": {"cores": "0,4"}, "services": [{"name": "s", "cores": "5"}],
    "share": {"cores": 2, "devices": [1, 2]}, "when": {"env.A": "b"}})");
  CHECK(node.reserved.to_list() == "0,4");
  CHECK(node.services[0].pus.to_list() == "5");
  Topology expected = plain.topology;
  expected.allowed -= node.reserved;
  CHECK(node.topology == expected);
  struct Row {
    std::string node;
    const char* pointer;
    const char* message;
  };
  const std::string topology = R"({"name": "n", "topology": )" + text;
  for (const Row& row :
       {Row{topology + R"(, "packages": 2})", "/packages", "\"packages\" has no effect here"},
        Row{topology + R"(, "nics": [{"name": "x"}]})", "/nics", "\"nics\" has no effect here"},
        Row{topology + R"(, "reserved": {"cores": "8"}})", "/reserved/cores",
            "core 8 does not exist"},
        Row{R"({"name": "n", "topology": {"schema": 1, "cores": []}})", "/topology", ""},
        Row{R"({"name": "n", "topology": {"schema": 1, "cores": [{"pus": "0", "x": 1}]}})",
            "/topology/cores/0/x", "unknown key \"x\""},
        Row{R"({"name": "n", "topology": {"cores": [{"pus": "0"}]}})", "/topology",
            "\"schema\" is missing"}}) {
    const ParsedProfile parsed = parse_nodes(row.node);
    INFO(row.node);
    REQUIRE(parsed.problems.size() == 1);
    CHECK(parsed.problems[0].where->pointer == "/nodes/0" + std::string(row.pointer));
    CHECK_THAT(parsed.problems[0].message, ContainsSubstring(row.message));
  }
}

TEST_CASE("nodes that cannot be") {
  struct Row {
    const char* more;  ///< after name, 2 packages of 8 cores
    const char* pointer;
    const char* message;
  };
  const Row rows[] = {
      {R"("l3_per_numa": 3)", "/l3_per_numa", "8 cores do not divide evenly among 3 caches"},
      {R"("threads_per_core": 16, "numa_per_package": 64)", "", "the limit"},
      {R"("numa_memory_mb": [1, 2, 3])", "/numa_memory_mb", "3 numbers for 2 NUMA nodes"},
      {R"("numa_memory_mb": 0)", "/numa_memory_mb", "expected a whole number from 1"},
      {R"("numa_memory_mb": "12")", "/numa_memory_mb", "expected a whole number"},
      {R"("reserved": {"cores": "16"})", "/reserved/cores", "core 16 does not exist"},
      {R"("reserved": {"cores": "0-15"})", "/reserved", "no core is left for ranks"},
      {R"("reserved": {"cores": "0-"})", "/reserved/cores", ""},
      {R"("reserved": {"cores": 0})", "/reserved/cores", "expected a list in a string"},
      {R"("reserved": {})", "/reserved", "\"cores\" is missing"},
      {R"("services": [{"name": "a", "cores": "1"}, {"name": "a", "cores": "2"}])",
       "/services/1/name", "two entries have the name"},
      {R"("share": {})", "/share", "nothing is shared"},
      {R"("share": {"cores": 8, "devices": [3]}, "devices": {"vendor": "amd", "list": [{}, {}]})",
       "/share/devices/0", "from 1 to 2"},
      {R"("share": {"cores": 9}, "devices": {"vendor": "amd", "list": [{}, {}]})", "/share/cores",
       "2 devices with 9 cores each"},
      {R"("memory_only_numa": [{"os_index": 1}])", "/memory_only_numa/0/os_index",
       "two NUMA nodes have the number 1"},
      {R"("memory_only_numa": [{"os_index": 4}, {"os_index": 4}])", "/memory_only_numa/1/os_index",
       "two NUMA nodes"},
      {R"("memory_only_numa": [{"os_index": 4, "near_numa": 2}])", "/memory_only_numa/0/near_numa",
       "from 0 to 1"},
      {R"("devices": {"vendor": "nvida", "list": [{}]})", "/devices/vendor", "is not one of"},
      {R"("devices": {"vendor": "amd", "list": []})", "/devices/list", "an empty list"},
      {R"("devices": {"vendor": "amd"})", "/devices", "\"list\" is missing"},
      {R"("devices": {"vendor": "amd", "list": [{"cores": "3,99"}]})", "/devices/list/0/cores",
       "core 99 does not exist"},
      {R"("devices": {"vendor": "amd", "list": [{"numa": 2}]})", "/devices/list/0/numa",
       "NUMA node 2 does not exist"},
      {R"("devices": {"vendor": "amd", "list": [{"pci": "18:00.0"}]})", "/devices/list/0/pci",
       "is not a PCI address"},
      {R"("devices": {"vendor": "amd", "list": [{"pci": "0000:18:00.0"}, {"pci": "0000:18:00.0"}]})",
       "/devices/list/1/pci", "two entries have the pci"},
      {R"("nics": [{"name": "x", "kind": "token-ring"}])", "/nics/0/kind", "is not one of"},
      {R"("nics": [{"name": "x", "bridges": ["0000:17:01.0"]}])", "/nics/0/bridges/0",
       "not a PCI root"},
      {R"("devices": {"vendor": "amd", "list": [{"bridges": ["0000:17", "0000:17"]}]})",
       "/devices/list/0/bridges/1", "not a PCI bridge"},
      {R"("devices": {"vendor": "amd", "list": [{}, {}], "links": [{"from": 0, "to": 2, "kind": "xgmi"}]})",
       "/devices/links/0/to", "from 0 to 1"},
      {R"("devices": {"vendor": "amd", "list": [{}, {}], "links": [{"from": 1, "to": 0, "kind": "xgmi"}]})",
       "/devices/links/0", "from the lower device to the higher"},
      {R"("devices": {"vendor": "amd", "list": [{}, {}], "links": [{"from": 0, "to": 1}]})",
       "/devices/links/0", "\"kind\" is missing"},
      {R"("devices": {"vendor": "amd", "list": [{}, {}], "links": [{"from": 0, "to": 1, "kind": "xgmi"}, {"from": 0, "to": 1, "kind": "xgmi"}]})",
       "/devices/links/1", "twice"},
      {R"("nics": [{}])", "/nics/0", "the interface has no name"},
      {R"("nics": [{"name": "x", "numa": 0, "cores": "0"}])", "/nics/0", "both"},
      {R"("when": {"node_type": "n"})", "/when/node_type", "is decided by this condition"},
      {R"("siblings": "after")", "/siblings", "is not one of"},
  };
  for (const Row& row : rows) {
    INFO(row.more);
    const ParsedProfile parsed = parse_nodes(
        R"({"name": "n", "packages": 2, "cores_per_numa": 8, )" + std::string(row.more) + "}");
    REQUIRE(parsed.problems.size() == 1);
    CHECK(parsed.problems[0].where->pointer == "/nodes/0" + std::string(row.pointer));
    CHECK_THAT(parsed.problems[0].message, ContainsSubstring(row.message));
  }
}
