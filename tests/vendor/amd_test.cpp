#include <filesystem>

#include "probe/sysfs.h"
#include "probe/vendor/rocm_smi_abi.h"
#include "support/catch.h"
#include "vendor/names.h"
#include "vendor/support.h"

using namespace hpclaunch;
using namespace hpclaunch::test;
using probe::xgmi_lanes;

namespace {

Libraries rocm_smi(const std::string& file) {
  Libraries which;
  which.rocm_smi = {file};
  which.sysfs = "/nowhere";
  which.limit_seconds = kPatience;
  return which;
}

Enriched ask_rocm(const Topology& base, const std::string& kind) {
  return enriched(base, rocm_smi(FAKE_ROCM_SMI), {{"FAKE_KIND", kind}});
}
const std::vector<std::string> kFour = {"0001:10:00.0", "0001:20:00.0", "0001:30:00.0",
                                        "0001:40:00.0"};
const std::vector<Link> kLinks = {{0, 1, "xgmi", 4}, {0, 2, "xgmi", 1}, {2, 3, "xgmi", 4}};

Device expected(const Topology& base, std::size_t place) {
  Device device = base.devices[place];
  device.model = "AMD Fake MI";
  device.uuid = "GPU-000000000000abc" + std::to_string(place);
  device.partition = "SPX";
  device.memory_bytes = 64ULL << 30;
  return device;
}

}  // namespace

TEST_CASE("ROCm SMI reports names, memory, partitions and direct XGMI links", "[vendor]") {
  const Topology base = machine("amd", kFour);
  const Enriched got = ask_rocm(base, "");
  CHECK(got.said() == "");
  REQUIRE(got.topology.devices.size() == 4);
  CHECK(got.topology.devices[1] == expected(base, 1));
  CHECK(got.topology.devices[3].model == "from /sys");  // the library knows only the device id
  CHECK(got.topology.devices[3].uuid == "");
  CHECK(got.topology.links == kLinks);
}

TEST_CASE("every call of ROCm SMI fails, is absent, crashes, exits, hangs", "[vendor]") {
  try_each_call({FAKE_ROCM_SMI, kRocmSmiNames, machine("amd", kFour), rocm_smi},
                {"rsmi_init", "rsmi_num_monitor_devices", "rsmi_dev_pci_id_get"}, {});
}

TEST_CASE("a library that hung is asked again when another one comes into its place", "[vendor]") {
  const Topology base = machine("amd", kFour);
  const Topology known = ask_rocm(base, "").topology;
  const RuntimeFolder runtime;
  const std::string newer = std::string(FAKE_ROCM_SMI) + ".27";
  const std::string count = std::string(FAKE_ROCM_SMI) + ".count";
  std::filesystem::remove(newer);
  std::filesystem::remove(count);
  Libraries which = rocm_smi(newer);
  which.rocm_smi.emplace_back(FAKE_ROCM_SMI);
  which.limit_seconds = 1;
  const auto ask = [&] {
    Enriched got{base, {}};
    got.notes = probe::vendor::enrich(got.topology, which);
    return got;
  };
  {
    const Behaviour hang({{"FAKE_HANG", "rsmi_init"}, {"FAKE_COUNT_FILE", count}});
    const Enriched first = ask();
    CHECK(first.topology == base);
    REQUIRE(first.notes.size() == 1);
    CHECK_THAT(first.said(), ContainsSubstring("ROCm SMI: the probe took longer than 1 seconds"));
    CHECK_THAT(first.said(), ContainsSubstring("from now on it is skipped"));
    which.limit_seconds = kPatience;
    const Enriched second = ask();
    CHECK(second.topology == base);
    CHECK_THAT(second.said(), ContainsSubstring("ROCm SMI: skipped"));
    CHECK(second.notes.at(0).fix == first.notes[0].fix);
    CHECK(std::filesystem::file_size(count) == 1);
  }
  std::filesystem::copy_file(FAKE_ROCM_SMI, newer);
  const Enriched third = ask();
  CHECK(third.said() == "");
  CHECK(third.topology == known);
  std::filesystem::remove(newer);
  std::filesystem::remove(count);
}

TEST_CASE("partitions of one card are devices of one address", "[vendor]") {
  SECTION("that the kernel shows") {
    Topology base = machine("amd", {"0000:10:00.0", "0000:10:00.0", "0000:10:00.0", "0000:20:00.0",
                                    "0000:20:00.0", "0000:20:00.0"});
    const Enriched got = ask_rocm(base, "tpx");
    REQUIRE(got.topology.devices.size() == 6);
    CHECK(got.topology.devices[4].uuid == "GPU-000000000000abc4");
    CHECK(got.topology.devices[4].partition == "TPX");
    CHECK(got.topology.links == std::vector<Link>{{0, 1, "xgmi", 1},
                                                  {0, 2, "xgmi", 1},
                                                  {1, 2, "xgmi", 1},
                                                  {3, 4, "xgmi", 1},
                                                  {3, 5, "xgmi", 1},
                                                  {4, 5, "xgmi", 1}});
  }
  SECTION("that only the library knows") {
    const Enriched got = ask_rocm(machine("amd", {"0000:10:00.0"}), "tpx");
    REQUIRE(got.topology.devices.size() == 6);
    CHECK(got.topology.devices[2].pci == "0000:10:00.0");
    CHECK(got.topology.devices[2].index == 2);
    CHECK(got.topology.devices[2].partition == "TPX");
  }
}

TEST_CASE("AMD libraries that lie or misbehave do no harm", "[vendor]") {
  const Topology base = machine("amd", kFour);
  SECTION("see none") { CHECK(ask_rocm(base, "zero").topology == base); }
  SECTION("counts that cannot be") {
    CHECK_THAT(ask_rocm(base, "huge").said(),
               ContainsSubstring("implausible device count 4294967295"));
  }
  SECTION("text without an end, bandwidths that cannot be") {
    const Enriched rocm = ask_rocm(base, "liar");
    CHECK(rocm.topology.devices[0].model == std::string(255, 'A'));
    CHECK(rocm.topology.devices[0].partition == "");
    REQUIRE(rocm.topology.links.size() == 6);
    CHECK(rocm.topology.links[0].lanes == 16);
  }
  SECTION("print, and ignore every signal") {
    CHECK(ask_rocm(base, "rude").topology == ask_rocm(base, "").topology);
  }
}

TEST_CASE("a direct XGMI link is distinguished from a path through others", "[vendor]") {
  CHECK(xgmi_lanes({1, 15, 50000, 200000}) == 4);
  CHECK(xgmi_lanes({1, 13, 0, 0}) == 1);
  CHECK(xgmi_lanes({1, 30, 0, 0}) == 0);
  CHECK(xgmi_lanes({1, 30, 50000, 50000}) == 0);
  CHECK(xgmi_lanes({1, 0, 0, 0}) == 1);
  CHECK(xgmi_lanes({2, 0, 0, 0}) == 0);
  CHECK(xgmi_lanes({1, 15, 50000, 20000}) == 1);
  const Topology base = machine("amd", kFour);
  std::vector<Link> single = kLinks;
  for (Link& link : single) link.lanes = 1;
  CHECK(ask_rocm(base, "narrow").topology.links == single);
}
