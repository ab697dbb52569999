#include "hpclaunch/probe.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "probe/child.h"
#include "probe/machine.h"
#include "support/catch.h"
#include "support/golden.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

namespace fs = std::filesystem;

constexpr double kPatience = 120;

using test::machine;
using test::TemporaryFile;

Result<Topology> read_text(const std::string& text) {
  const TemporaryFile file(text);
  return read_topology(file.path(), kPatience);
}

Result<Topology> live_topology() {
  Result<LiveNode> node = probe_node(VendorLibraries::if_needed, kPatience);
  if (!node) return node.error();
  return std::move(node->topology);
}

Error refusal(const std::string& text) {
  const auto got = read_text(text);
  INFO(text.substr(0, 200));
  REQUIRE_FALSE(got);
  CHECK(got.error().where);
  return got.error();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("recorded machines have the counts of their descriptions", "[probe][xml]") {
  struct Expected {
    const char* file;
    std::size_t packages, numa_nodes, caches, cores;
    int pus, allowed;
    std::uint64_t gib;
  };
  // Numbers of the synthetic descriptions in tests/machines/README.md, not of our output.
  const Expected table[] = {
      {"xeon-2x52-smt2.xml", 2, 2, 2, 104, 208, 208, 1024},
      {"epyc-1x64-nps4.xml", 1, 4, 8, 64, 128, 128, 512},
      {"power9-4x20-smt4.xml", 4, 4, 40, 80, 320, 320, 1024},
      {"arm-80-nosmt.xml", 1, 1, 0, 80, 80, 80, 256},
      {"knl-snc4-flat.xml", 1, 8, 32, 64, 256, 256, 112},
      {"laptop-8.xml", 1, 1, 1, 8, 8, 8, 16},
      {"single-pu.xml", 1, 1, 0, 1, 1, 1, 1},
      {"pu-4-no-cores.xml", 0, 1, 0, 4, 4, 4, 1},
      {"xeon-2x8-allowed-holes.xml", 2, 2, 2, 16, 32, 18, 128},
      {"xeon-2x8-offline-holes.xml", 2, 2, 2, 12, 24, 24, 128},
      {"hbm-2x48-snc4.json", 2, 17, 2, 96, 192, 176, 896},
      {"documented/epyc-9654-2x.xml", 2, 2, 24, 192, 384, 384, 768},
      {"documented/epyc-9654-h100.xml", 1, 1, 12, 96, 96, 96, 749},
      {"documented/epyc-9454-h100.xml", 1, 4, 8, 48, 48, 48, 1124},
      {"documented/epyc-7543p-a100.xml", 1, 4, 8, 32, 64, 64, 512},
      {"documented/power9-2x20-v100.xml", 2, 2, 40, 40, 160, 160, 512},
      {"documented/power9-2x22-v100.xml", 2, 2, 44, 44, 176, 176, 512},
      {"documented/dgx-h100.xml", 2, 2, 2, 112, 224, 224, 2048},
      {"documented/gh200-4x.xml", 4, 8, 4, 288, 288, 288, 864},
      {"recorded/epyc-2x32-dies.xml", 2, 2, 16, 64, 128, 128, 768},
      {"recorded/xeon-snc2.xml", 2, 4, 4, 56, 112, 112, 512},
      {"recorded/xeon-snc2-restricted.xml", 2, 4, 2, 28, 56, 56, 512},
      {"recorded/live-2.xml", 1, 1, 1, 2, 2, 2, 0},
      {"recorded/emulated-1x64.xml", 1, 4, 8, 64, 128, 128, 0},
      {"recorded/emulated-1x64-job.xml", 1, 4, 2, 16, 32, 32, 0},
      {"recorded/emulated-1x64-restricted.xml", 1, 4, 4, 32, 64, 64, 0},
      {"recorded/emulated-2x52.xml", 2, 2, 2, 104, 208, 208, 0},
      {"recorded/emulated-2x52-job.xml", 1, 2, 1, 26, 52, 52, 0},
  };
  for (const Expected& want : table) {
    const Topology got = machine(want.file);
    INFO(want.file);
    CHECK(got.packages.size() == want.packages);
    CHECK(got.numa_nodes.size() == want.numa_nodes);
    CHECK(got.caches.size() == want.caches);
    CHECK(got.cores.size() == want.cores);
    CHECK(got.all_pus().count() == want.pus);
    CHECK(got.allowed.count() == want.allowed);
    std::uint64_t bytes = 0;
    for (const NumaNode& node : got.numa_nodes) bytes += node.memory_bytes;
    if (want.gib > 0) CHECK(bytes == want.gib << 30);  // else what was free there
    CHECK(*topology_from_json(topology_to_json(got), "x") == got);
  }
}

TEST_CASE("OS indices are kept and orders are physical", "[probe][xml]") {
  const Topology xeon = machine("xeon-2x52-smt2.xml");
  CHECK(xeon.hostname == "node-a");
  CHECK(xeon.cores[0].pus.to_list() == "0,104");
  CHECK(xeon.cores[103].pus.to_list() == "103,207");
  CHECK(xeon.cores[52].package == 1);
  CHECK(xeon.cores[52].numa == 1);
  CHECK(xeon.caches[0].level == 3);
  CHECK(xeon.caches[0].size_bytes == 110100480);
  CHECK(xeon.packages[1].pus.to_list() == "52-103,156-207");

  const Topology power = machine("power9-4x20-smt4.xml");
  CHECK(power.cores[1].pus.to_list() == "4-7");
  CHECK(power.numa_nodes[3].os_index == 24);
  CHECK(power.cores[79].numa == 24);

  const Topology epyc = machine("epyc-1x64-nps4.xml");
  CHECK(epyc.numa_nodes[1].pus.to_list() == "16-31,80-95");
  CHECK(epyc.caches[7].pus.to_list() == "56-63,120-127");
  CHECK(epyc.cores[63].numa == 3);
}

TEST_CASE("cores belong to DDR, and HBM beside it has the same CPUs", "[probe][xml]") {
  const Topology knl = machine("knl-snc4-flat.xml");
  std::set<int> homes;
  for (const Core& core : knl.cores) homes.insert(core.numa);
  CHECK(homes == std::set<int>{0, 1, 2, 3});
  for (std::size_t i = 0; i < 8; i += 2) {
    CHECK(knl.numa_nodes[i].memory_bytes == std::uint64_t{24} << 30);
    CHECK(knl.numa_nodes[i + 1].memory_bytes == std::uint64_t{4} << 30);
    CHECK(knl.numa_nodes[i].pus == knl.numa_nodes[i + 1].pus);
    CHECK(knl.numa_nodes[i].pus.count() == 64);
  }
}

TEST_CASE("what is not allowed exists, what is offline does not", "[probe][xml]") {
  const Topology allowed = machine("xeon-2x8-allowed-holes.xml");
  CHECK(allowed.allowed.to_list() == "1-2,4-7,9-10,12-15,17-18,20-23");
  CHECK(allowed.all_pus().to_list() == "0-31");
  const Topology offline = machine("xeon-2x8-offline-holes.xml");
  CHECK(offline.all_pus().to_list() == "1-2,4-7,9-14,17-18,20-23,25-30");
  CHECK(offline.allowed == offline.all_pus());
}

TEST_CASE("a machine without core objects has one core per PU", "[probe][xml]") {
  const Topology topology = machine("pu-4-no-cores.xml");
  CHECK(topology.cores[3].pus.to_list() == "3");
  CHECK(topology.cores[3].package == -1);
}

TEST_CASE("kinds of cores are those of hybrid processors", "[probe][xml]") {
  const auto kinds = [](const std::string& fast, const std::string& slow) {
    const auto kind = [](const char* cpus, const std::string& info) {
      return fmt::format("<cpukind cpuset=\"{}\"><info {}/></cpukind>\n", cpus, info);
    };
    const Result<Topology> node =
        read_text(replaced(test::source_file("tests/machines/laptop-8.xml"), "</topology>",
                           kind("0x00000033", fast) + kind("0x000000cc", slow) + "</topology>"));
    REQUIRE(node);
    CHECK(*topology_from_json(topology_to_json(*node), "x") == *node);
    std::vector<int> found;
    for (const Core& core : node->cores) found.push_back(core.kind);
    return found;
  };
  CHECK(kinds(R"(name="CoreType" value="IntelCore")", R"(name="CoreType" value="IntelAtom")") ==
        std::vector<int>{1, 1, 0, 0, 1, 1, 0, 0});
  // Cores that reach other clocks are one kind all the same.
  CHECK(kinds(R"(name="FrequencyMaxMHz" value="4000")", R"(name="FrequencyMaxMHz" value="3000")") ==
        std::vector<int>(8, -1));
}

TEST_CASE("a file is recognised by its content, not by its name", "[probe]") {
  const std::string xml = test::source_file("tests/machines/laptop-8.xml");
  const Topology plain = machine("laptop-8.xml");
  CHECK(*read_text("\xEF\xBB\xBF" + topology_to_json(plain)) == plain);
  CHECK(*read_text("\n  " + topology_to_json(plain)) == plain);
  CHECK(refusal("").message == "the topology file is empty");
  CHECK(refusal(" \n").message == "the topology file is empty");
  CHECK(refusal("Machine (16GB)").message ==
        "not a topology: neither hwloc XML nor hpclaunch's JSON");
  const auto json = refusal("{\"schema\": 1,\n\"cores\": [}");
  CHECK(json.where->line == 2);
}

TEST_CASE("files that cannot be read are named", "[probe]") {
  const auto missing = read_topology("/nonexistent/node.xml", kPatience);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().kind == ErrorKind::not_found);
  CHECK(missing.error().message ==
        "cannot read \"/nonexistent/node.xml\": No such file or directory");
  const auto folder = read_topology("/", kPatience);
  REQUIRE_FALSE(folder);
  CHECK(folder.error().kind == ErrorKind::system);
  const auto endless = read_topology("/dev/zero", kPatience);
  REQUIRE_FALSE(endless);
  CHECK(endless.error().message == "\"/dev/zero\" is larger than 16 MiB");
}

TEST_CASE("XML that only a full parser can read is left to one, if hwloc has it", "[probe][xml]") {
  const std::string xml = test::source_file("tests/machines/laptop-8.xml");
  const auto got = read_text(replaced(xml, "<info ", "<!-- a > b -->\n<info "));
  if (got) {
    CHECK(*got == machine("laptop-8.xml"));
  } else {
    CHECK(got.error().message.find("cannot read it") != std::string::npos);
  }
}

TEST_CASE("XML that is not a whole hwloc file is refused", "[probe][xml]") {
  const std::string xml = test::source_file("tests/machines/laptop-8.xml");
  CHECK(refusal("<html><body/></html>").message == "not hwloc XML: no <topology> element");
  CHECK(refusal("<").kind == ErrorKind::invalid);
  CHECK(refusal("<topology>").kind == ErrorKind::invalid);
  CHECK(refusal("<topology version=\"2.0\"/>").kind == ErrorKind::invalid);
  CHECK(refusal(xml.substr(0, xml.size() / 2)).message.find("(format version 2.0)") !=
        std::string::npos);
  const char* with_cpus = "cpuset=\"0x1\" complete_cpuset=\"0x1\"";
  CHECK(refusal(fmt::format("<topology><object type=\"Machine\" os_index=\"0\" {0}><object "
                            "type=\"Core\" os_index=\"0\" cpuset=\"0x1\"><object type=\"PU\" "
                            "os_index=\"0\" {0}/></object></object></topology>",
                            with_cpus))
            .message.ends_with(
                "(format version 1): invalid object Core P#0 with some missing cpusets"));
  const Error newer = refusal(replaced(xml, "version=\"2.0\"", "version=\"9.5\""));
  CHECK(newer.message.find("9.5") != std::string::npos);
  const std::string release = hwloc_version();  // "2.9.0"
  CHECK(std::ranges::count(release, '.') == 2);
  CHECK(newer.message.starts_with("hwloc " + release + " cannot read it"));
  CHECK(newer.hint.find("--export-xml-flags v") != std::string::npos);
  CHECK(refusal(xml.substr(0, xml.size() / 2)).hint.find("check that the file is complete") !=
        std::string::npos);
}

TEST_CASE("hostile XML gives an error or a lawful machine", "[probe][xml]") {
  const std::string xml = test::source_file("tests/machines/single-pu.xml");
  // Numbers of no machine.
  const std::string far = replaced(xml, "cpuset=\"0x00000001\"", "cpuset=\"0xf...f\"");
  for (const std::string& text :
       {far, replaced(xml, "os_index=\"0\"", "os_index=\"4294967295\""),
        replaced(xml, "cpuset=\"0x00000001\"", ""), replaced(xml, "type=\"PU\"", "type=\"Core\""),
        replaced(xml, "type=\"Machine\"", "type=\"PU\""),
        replaced(xml, "local_memory=\"1073741824\"", "local_memory=\"99999999999999999999999\"")}) {
    const auto got = read_text(text);
    if (got) CHECK(check_topology(*got));
  }
  // Entities that grow without bound, and one that names a file.
  const std::string body = xml.substr(xml.find("<topology"));
  const auto with_doctype = [&](const std::string& doctype) {
    return "<?xml version=\"1.0\"?>\n" + doctype + "\n" +
           replaced(body, "value=\"lstopo\"", "value=\"&e;\"");
  };
  const auto grown = read_text(with_doctype(
      "<!DOCTYPE topology [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">"
      "<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY e "
      "\"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">]>"));
  if (grown) CHECK(check_topology(*grown));
  const auto foreign =
      read_text(with_doctype("<!DOCTYPE topology [<!ENTITY e SYSTEM \"file:///etc/hostname\">]>"));
  if (foreign) CHECK(check_topology(*foreign));
}

TEST_CASE("a PU number that no set of ours can hold is refused with the limit", "[probe][xml]") {
  std::string words = "0x00000001";
  for (int i = 0; i < 128; ++i) words += ",0x0";  // bit 4096
  std::string xml = test::source_file("tests/machines/single-pu.xml");
  for (std::size_t at = 0; (at = xml.find("cpuset=\"0x00000001\"", at)) != std::string::npos;
       at += 8) {
    xml.replace(at + 8, 10, words);
  }
  const Error error =
      refusal(replaced(xml, "type=\"PU\" os_index=\"0\"", "type=\"PU\" os_index=\"4096\""));
  CHECK(error.kind == ErrorKind::unsupported);
  CHECK(error.message == "the machine has a PU numbered above 4095");
}

TEST_CASE("damaged XML never takes the reader with it", "[probe][xml][law]") {
  const std::string xml = test::source_file("tests/machines/xeon-2x8-offline-holes.xml");
  test::Random random(11);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = xml;
    if (i % 3 == 0)
      damaged.resize(static_cast<std::size_t>(random.in(1, static_cast<int>(xml.size()))));
    for (int n = random.in(1, 4); n > 0; --n) {
      damaged[static_cast<std::size_t>(random.in(0, static_cast<int>(damaged.size()) - 1))] =
          static_cast<char>(random.in(1, 255));
    }
    const auto got = read_text(damaged);
    if (got) CHECK(check_topology(*got));
    if (!got) CHECK_FALSE(got.error().message.empty());
  }
}

TEST_CASE("the live machine is lawful and agrees with the kernel", "[probe][live]") {
  const auto live = live_topology();
  INFO((live ? "" : live.error().message + " " + live.error().hint));
  REQUIRE(live);
  CHECK(check_topology(*live));
  cpu_set_t mask;
  REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
  CHECK(live->allowed.count() == CPU_COUNT(&mask));
  char name[256] = {};
  REQUIRE(gethostname(name, sizeof name - 1) == 0);
  CHECK(live->hostname == name);
}

TEST_CASE("the live probe obeys the affinity mask and no HWLOC variable", "[probe][live]") {
  const auto whole = live_topology();
  REQUIRE(whole);
  const int last = whole->allowed.last();
  const auto got = probe::run_in_child(
      [&]() -> Result<std::string> {
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET(static_cast<std::size_t>(last), &mask);
        if (sched_setaffinity(0, sizeof mask, &mask) != 0) return std::string("cannot bind");
        setenv("HWLOC_SYNTHETIC", "pack:3 core:7 pu:2", 1);
        setenv("HWLOC_XMLFILE", "/nonexistent", 1);
        const auto inner = live_topology();
        if (!inner) return inner.error();
        return topology_to_json(*inner);
      },
      kPatience);
  REQUIRE(got);
  const auto bound = topology_from_json(*got, "x");
  REQUIRE(bound);
  CHECK(bound->allowed.to_vector() == std::vector<int>{last});
  CHECK(bound->cores == whole->cores);
}
