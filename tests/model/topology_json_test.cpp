#include "hpclaunch/topology.h"
#include "support/catch.h"
#include "support/golden.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

Error refusal(const std::string& text) {
  const Result<Topology> got = topology_from_json(text, "node.json");
  INFO(text.substr(0, 300));
  REQUIRE_FALSE(got);
  CHECK(got.error().kind == ErrorKind::invalid);
  REQUIRE(got.error().where);
  CHECK(got.error().where->file == "node.json");
  return got.error();
}

std::string place(const Error& error) {
  return std::to_string(error.where->line) + ":" + std::to_string(error.where->column) + " " +
         error.where->pointer;
}

}  // namespace

TEST_CASE("every recorded machine of ours reads and writes back byte for byte",
          "[topology][json]") {
  const std::string text = test::source_file("tests/machines/hbm-2x48-snc4.json");
  const Result<Topology> topology = topology_from_json(text, "hbm");
  REQUIRE(topology);
  CHECK(topology->hostname == "node-b");
  CHECK(topology->cores.size() == 96);
  CHECK(topology->numa_nodes.size() == 17);
  CHECK(topology->numa_nodes.back().pus.empty());
  CHECK(topology->allowed.count() == 176);
  CHECK(topology_to_json(*topology) == text);
}

TEST_CASE("the round trip loses nothing", "[topology][json][law]") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Topology topology = test::random_topology(seed);
    const Result<Topology> back = topology_from_json(topology_to_json(topology), "x");
    INFO("seed " << seed);
    REQUIRE(back);
    REQUIRE(*back == topology);
  }
}

TEST_CASE("awkward strings and large numbers survive the round trip", "[topology][json]") {
  Topology topology = test::random_topology(1);
  const std::string awkward[] = {"", "\"\\\n\t\x01", "n\xC3\xA4me", std::string("a\0b", 3),
                                 "</script>"};
  for (const std::string& name : awkward) {
    topology.hostname = name;
    topology.numa_nodes = {{2'147'483'647, ~std::uint64_t{0}, {}}};
    for (Core& core : topology.cores) core.numa = -1;
    const Result<Topology> back = topology_from_json(topology_to_json(topology), "x");
    REQUIRE(back);
    CHECK(*back == topology);
  }
  topology.hostname = "\xFF\xFE";  // not UTF-8: JSON cannot hold it, but the text stays readable
  CHECK(topology_from_json(topology_to_json(topology), "x"));
}

TEST_CASE("devices and interfaces survive the round trip", "[topology][json][devices]") {
  const auto read = topology_from_json(
      "{\"schema\": 1, \"cores\": [{\"pus\": \"0\"}, {\"pus\": \"1\"}],"
      " \"devices\": [{\"index\": 0, \"vendor\": \"intel\", \"subdevices\": 2, \"pus\": \"1\"},"
      "             {\"index\": 3, \"vendor\": \"amd\", \"pci\": \"0000:c1:00.0\", "
      "\"memory_bytes\": 7}],"
      " \"nics\": [{\"fabric\": \"mlx5_0\"}]}",
      "t");
  REQUIRE(read);
  REQUIRE(read->devices.size() == 2);
  CHECK(read->devices[0].subdevices == 2);
  CHECK(read->devices[1].memory_bytes == 7);
  CHECK(read->nics[0].fabric == "mlx5_0");
  const auto again = topology_from_json(topology_to_json(*read), "t");
  REQUIRE(again);
  CHECK(*again == *read);
  const auto bad = topology_from_json(
      "{\"schema\": 1, \"cores\": [{\"pus\": \"0\"}],\n \"devices\": [{\"index\": 0}]}", "t");
  REQUIRE(!bad);
  CHECK(bad.error().where->line == 2);
}

TEST_CASE("no devices and unknown devices are not the same", "[topology][json][devices]") {
  const std::string unknown = R"({"schema": 1, "cores": [{"pus": "0"}]})";
  const std::string none = R"({"schema": 1, "cores": [{"pus": "0"}], "devices": []})";
  for (const auto& [text, known] : {std::pair(unknown, false), std::pair(none, true)}) {
    const auto read = topology_from_json(text, "t");
    REQUIRE(read);
    CHECK(read->no_devices == known);
    CHECK(*topology_from_json(topology_to_json(*read), "t") == *read);
  }
  Topology both = *topology_from_json(none, "t");
  both.devices.emplace_back();
  CHECK(!check_topology(both));
}

TEST_CASE("all that is known of devices, interfaces and links survives",
          "[topology][json][devices]") {
  Topology node;
  node.cores = {{-1, -1, *CpuSet::parse("0-1")}};
  node.allowed = node.all_pus();
  for (int i = 0; i < 2; ++i) {
    Device device;
    device.index = i;
    device.vendor = "nvidia";
    device.uuid = "GPU-" + std::to_string(i);
    device.partition = "MIG";
    device.instances = {"MIG-a", "MIG-\"b\""};
    device.bridges = {"0000:c0", "0000:c0:01.1"};
    node.devices.push_back(device);
  }
  Nic nic;
  nic.name = "ib0";
  nic.kind = "infiniband";
  nic.provider = "verbs;ofi_rxm";
  nic.speed_mbps = 400000;
  nic.state = "up";
  nic.addresses = {"10.0.0.1", "fd00::1"};
  nic.bridges = {"10000:00"};
  node.nics.push_back(nic);
  node.links = {{0, 1, "nvlink", 18}};
  const auto again = topology_from_json(topology_to_json(node), "t");
  REQUIRE(again);
  CHECK(*again == node);

  const auto where = [](Topology broken) {
    const Status status = check_topology(broken);
    return status ? std::string() : status.error().where->pointer;
  };
  CHECK(where(node).empty());
  Topology broken = node;
  broken.links = {{0, 2, "nvlink", 1}};
  CHECK(where(broken) == "/links/0/to");
  broken.links = {{1, 0, "nvlink", 1}};
  CHECK(where(broken) == "/links/0");
  broken.links = {{0, 1, "nvlink", 0}};
  CHECK(where(broken) == "/links/0/lanes");
  broken.links = {{0, 1, "nvlink", 1}, {0, 1, "nvlink", 2}};
  CHECK(where(broken) == "/links/1");
  broken = node;
  broken.nics[0].state = "UP";
  CHECK(where(broken) == "/nics/0/state");
  for (const char* bus : {"", "0000", "0000:c0:01.1", "c0", "0000:C0", "0000:c", "123456789:c0"}) {
    broken = node;
    broken.devices[1].bridges[0] = bus;
    CHECK(where(broken) == "/devices/1/bridges/0");
  }
  broken = node;
  for (const char* bridge : {"0000:c0", "0000:c0:01", "0000:c0:01.10", "pci"}) {
    broken.nics[0].bridges = {"0000:c0", bridge};
    CHECK(where(broken) == "/nics/0/bridges/1");
  }
  CHECK(check_topology(broken).error().message == "\"pci\" is not a PCI bridge like 0000:c0:01.1");
}

TEST_CASE("a short hand-written file is enough", "[topology][json]") {
  const auto got =
      topology_from_json(R"({"schema": 1, "cores": [{"pus": "0,2"}, {"pus": "1,3"}]})", "x");
  REQUIRE(got);
  CHECK(got->allowed.to_list() == "0-3");
  CHECK(got->cores[1].package == -1);
  CHECK(got->cores[1].numa == -1);
  CHECK(got->hostname.empty());
}

TEST_CASE("broken JSON is refused with line and column", "[topology][json]") {
  CHECK(place(refusal("{\n  \"schema\": 1,\n  \"cores\" [\n")) == "3:11 ");
  CHECK(place(refusal("")) == "1:1 ");
  CHECK(place(refusal("{\"schema\": 1")) == "1:13 ");
  CHECK(place(refusal("{\"schema\": 1} x")) == "1:15 ");
  CHECK(refusal("{\"schema\": 1, \"cores\": \"\xFF\"}").message.substr(0, 12) == "broken JSON:");
  CHECK(refusal("{\"schema\": 1e999, \"cores\": []}").message.substr(0, 12) == "broken JSON:");
  CHECK(refusal(std::string(200'000, '[')).message == "more than 32 nested objects and arrays");
}

TEST_CASE("an unknown key is refused where it stands, with what was meant", "[topology][json]") {
  const Error top = refusal("{\n  \"schema\": 1,\n  \"core\": [],\n  \"cores\": []\n}");
  CHECK(top.message == "unknown key \"core\"");
  CHECK(top.hint == "did you mean \"cores\"?");
  CHECK(place(top) == "3:3 /core");
  const Error inner =
      refusal("{\"schema\": 1, \"cores\": [\n {\"pus\": \"0\"},\n {\"pus\": \"1\", \"nmua\": 0}]}");
  CHECK(inner.hint == "did you mean \"numa\"?");
  CHECK(place(inner) == "3:15 /cores/1/nmua");
  const Error strange = refusal(R"({"schema": 1, "cores": [{"pus": "0", "a/b~": 1}]})");
  CHECK(strange.where->pointer == "/cores/0/a~1b~0");
  CHECK(strange.hint == "known: kind, numa, package, pus");
  const Error twice = refusal(R"({"schema": 1, "cores": [{"pus": "0", "pus": "1"}]})");
  CHECK(twice.message == "the key \"pus\" appears twice");
  CHECK(place(twice) == "1:38 /cores/0/pus");
}

TEST_CASE("wrong types, numbers and lists are refused where they stand", "[topology][json]") {
  const auto with_core = [](const std::string& core) {
    return "{\"schema\": 1,\n\"cores\": [" + core + "]}";
  };
  CHECK(refusal("[1]").message == "expected an object, found a list");
  CHECK(refusal("{}").message == "\"schema\" is missing");
  CHECK(refusal(R"({"schema": 2, "cores": []})").message == "this program reads schema 1");
  CHECK(refusal(R"({"schema": "1", "cores": []})").where->pointer == "/schema");
  CHECK(refusal(R"({"schema": 1})").message == "\"cores\" is missing");
  CHECK(refusal(R"({"schema": 1, "cores": {}})").message ==
        "expected a list of objects, found an object");
  CHECK(refusal(with_core("7")).message == "expected an object, found a number");
  CHECK(place(refusal(with_core("{}"))) == "2:11 /cores/0");
  CHECK(refusal(with_core(R"({"pus": 3})")).hint == "write it like \"0-3,8\"");
  CHECK(place(refusal(with_core(R"({"pus": "3-1"})"))) == "2:12 /cores/0/pus");
  CHECK_FALSE(refusal(with_core(R"({"pus": ""})")).message.empty());
  CHECK_FALSE(refusal(with_core(R"({"pus": "0-4096"})")).message.empty());
  CHECK(refusal(with_core(R"({"pus": "0", "numa": 0.5})")).message ==
        "expected a whole number from -1 to 2147483647, found a number");
  CHECK(refusal(with_core(R"({"pus": "0", "numa": -2})")).where->pointer == "/cores/0/numa");
  CHECK(refusal(with_core(R"({"pus": "0", "numa": 99999999999})")).where->pointer ==
        "/cores/0/numa");
  CHECK(refusal(R"({"schema": 1, "hostname": 1, "cores": [{"pus": "0"}]})").message ==
        "expected a string, found a number");
  CHECK(refusal(R"({"schema": 1, "allowed": "", "cores": [{"pus": "0"}]})").where->pointer ==
        "/allowed");
  CHECK(refusal(R"({"schema": 1, "cores": [{"pus": "0"}],
      "numa_nodes": [{"os_index": 0, "memory_bytes": -5, "pus": "0"}]})")
            .where->pointer == "/numa_nodes/0/memory_bytes");
}

TEST_CASE("a topology that contradicts itself is refused with the line", "[topology][json]") {
  const Error error =
      refusal("{\n\"schema\": 1,\n\"cores\": [\n  {\"pus\": \"0-1\"},\n  {\"pus\": \"1-2\"}\n]}");
  CHECK(error.message == "PU 1 is in two cores");
  CHECK(place(error) == "5:4 /cores/1/pus");
}

TEST_CASE("more members than any machine has are refused", "[topology][json]") {
  std::string text = R"({"schema": 1, "cores": [{"pus": "0"})";
  for (int i = 0; i < 20'000; ++i) text += ",{}";
  CHECK(refusal(text + "]}").message == "20001 members, more than 16384");
}

TEST_CASE("every cut and every changed byte is answered, never a crash", "[topology][json][law]") {
  const std::string text = topology_to_json(test::random_topology(3));
  for (std::size_t cut = 0; cut + 2 < text.size(); cut += 1 + text.size() / 300) {
    CHECK_FALSE(topology_from_json(text.substr(0, cut), "x"));
  }
  test::Random random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = text;
    for (int n = random.in(1, 3); n > 0; --n) {
      damaged[static_cast<std::size_t>(random.in(0, static_cast<int>(text.size()) - 1))] =
          static_cast<char>(random.in(0, 255));
    }
    const Result<Topology> got = topology_from_json(damaged, "x");
    if (got) CHECK(check_topology(*got));
  }
}

TEST_CASE("packed topologies come back whole, and broken ones never do", "[topology]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Topology node = test::random_node(seed);
    node.hostname = std::string("a\0b\xFF", 4);
    const std::string bytes = pack_topology(node);
    const Result<Topology> back = unpack_topology(bytes);
    REQUIRE(back);
    CHECK(*back == node);
    CHECK_FALSE(unpack_topology(bytes + '\0'));
    test::Random random(seed);
    for (int times = 0; times < 50; ++times) {
      const auto at = static_cast<std::size_t>(random.in(0, static_cast<int>(bytes.size()) - 1));
      CHECK_FALSE(unpack_topology(std::string_view(bytes).substr(0, at)));
      std::string changed = bytes;
      changed[at] = static_cast<char>(random.next());
      if (const Result<Topology> other = unpack_topology(changed)) CHECK(check_topology(*other));
    }
  }
  CHECK_FALSE(unpack_topology(""));
  CHECK_FALSE(unpack_topology(std::string(1 << 16, '\xFF')));
}
