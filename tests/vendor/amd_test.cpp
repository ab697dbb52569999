#include "probe/vendor/amd.h"

#include <filesystem>

#include "probe/vendor/amd_smi_abi.h"
#include "probe/vendor/rocm_smi_abi.h"
#include "support/catch.h"
#include "vendor/names.h"
#include "vendor/support.h"

using namespace hpclaunch;
using namespace hpclaunch::test;
using probe::vendor::xgmi_lanes;

namespace {

Libraries both(const std::string& amd_smi, const std::string& rocm_smi) {
  Libraries which;
  if (!amd_smi.empty()) which.amd_smi = {amd_smi};
  if (!rocm_smi.empty()) which.rocm_smi = {rocm_smi};
  which.sysfs = "/nowhere";
  which.limit_seconds = kPatience;
  return which;
}
Libraries rocm_smi(const std::string& file) { return both("", file); }
Libraries amd_smi(const std::string& file) { return both(file, ""); }

Enriched ask_rocm(const Topology& base, const std::string& kind) {
  return enriched(base, rocm_smi(FAKE_ROCM_SMI), {{"FAKE_KIND", kind}});
}
Enriched ask_amd(const Topology& base, const std::string& kind) {
  return enriched(base, amd_smi(FAKE_AMD_SMI), {{"FAKE_KIND", kind}});
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

TEST_CASE("AMD SMI reports the same", "[vendor]") {
  const Topology base = machine("amd", kFour);
  const Enriched got = ask_amd(base, "");
  CHECK(got.said() == "");
  for (std::size_t i = 0; i < 4; ++i) CHECK(got.topology.devices[i] == expected(base, i));
  CHECK(got.topology.links == kLinks);
}

TEST_CASE("every call of ROCm SMI fails, is absent, crashes, exits, hangs", "[vendor]") {
  try_each_call({FAKE_ROCM_SMI, kRocmSmiNames, machine("amd", kFour), rocm_smi},
                {"rsmi_init", "rsmi_num_monitor_devices", "rsmi_dev_pci_id_get"}, {});
}

TEST_CASE("every call of AMD SMI fails, is absent, crashes, exits, hangs", "[vendor]") {
  try_each_call({FAKE_AMD_SMI, kAmdSmiNames, machine("amd", kFour), amd_smi},
                {"amdsmi_init", "amdsmi_get_socket_handles", "amdsmi_get_processor_handles",
                 "amdsmi_get_gpu_device_bdf"},
                {});
}

TEST_CASE("ROCm SMI is asked where AMD SMI fails", "[vendor]") {
  const Topology base = machine("amd", kFour);
  const Topology by_rocm = ask_rocm(base, "").topology;
  const Libraries which = both(FAKE_AMD_SMI, FAKE_ROCM_SMI);
  CHECK(enriched(base, which).topology == ask_amd(base, "").topology);
  const Enriched crashed = enriched(base, which, {{"FAKE_CRASH", "amdsmi_init"}});
  CHECK(crashed.topology == by_rocm);
  CHECK_THAT(crashed.said(), ContainsSubstring("AMD SMI: "));
  const Enriched absent = enriched(base, both("/nowhere/libamd_smi.so.26", FAKE_ROCM_SMI));
  CHECK(absent.topology == by_rocm);
  CHECK(absent.said() == "");
}

TEST_CASE("an AMD SMI that hung is skipped, and ROCm SMI asked, until a file changes", "[vendor]") {
  const Topology base = machine("amd", kFour);
  const Topology by_rocm = ask_rocm(base, "").topology;
  const Topology by_amd = ask_amd(base, "").topology;
  const RuntimeFolder runtime;
  const std::string newer = std::string(FAKE_AMD_SMI) + ".27";
  const std::string count = std::string(FAKE_AMD_SMI) + ".count";
  std::filesystem::remove(newer);
  std::filesystem::remove(count);
  Libraries which = both(newer, FAKE_ROCM_SMI);
  which.amd_smi.push_back(FAKE_AMD_SMI);
  which.limit_seconds = 1;
  const auto ask = [&] {
    Enriched got{base, {}};
    got.notes = probe::vendor::enrich(got.topology, which);
    return got;
  };
  const auto loads = [&] { return std::filesystem::file_size(count); };
  {
    const Behaviour hang({{"FAKE_HANG", "amdsmi_init"}, {"FAKE_COUNT_FILE", count}});
    const Enriched first = ask();
    CHECK(first.topology == by_rocm);
    REQUIRE(first.notes.size() == 1);
    CHECK_THAT(first.said(), ContainsSubstring("AMD SMI: the probe took longer than 1 seconds"));
    CHECK_THAT(first.said(), ContainsSubstring("from now on it is skipped"));
    CHECK(loads() == 2);
    which.limit_seconds = kPatience;
    const Enriched second = ask();
    CHECK(second.topology == by_rocm);
    CHECK_THAT(second.said(), ContainsSubstring("AMD SMI: skipped"));
    CHECK(second.notes.at(0).fix == first.notes[0].fix);
    CHECK(loads() == 3);  // ROCm SMI alone
  }
  std::filesystem::copy_file(FAKE_AMD_SMI, newer);
  const Enriched third = ask();
  CHECK(third.said() == "");
  CHECK(third.topology == by_amd);
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
    const Enriched got = ask_amd(machine("amd", {"0001:10:00.0"}), "cpx");
    REQUIRE(got.topology.devices.size() == 3);
    CHECK(got.topology.devices[2].pci == "0001:10:00.0");
    CHECK(got.topology.devices[2].index == 2);
    CHECK(got.topology.devices[2].partition == "CPX");
  }
}

TEST_CASE("AMD libraries that lie or misbehave do no harm", "[vendor]") {
  const Topology base = machine("amd", kFour);
  SECTION("see none") {
    CHECK(ask_rocm(base, "zero").topology == base);
    CHECK(ask_amd(base, "zero").topology == base);
  }
  SECTION("counts that cannot be") {
    CHECK_THAT(ask_rocm(base, "huge").said(),
               ContainsSubstring("implausible device count 4294967295"));
    CHECK_THAT(ask_amd(base, "huge").said(), ContainsSubstring("implausible count 4294967295"));
  }
  SECTION("text without an end, bandwidths that cannot be") {
    const Enriched rocm = ask_rocm(base, "liar");
    CHECK(rocm.topology.devices[0].model == std::string(255, 'A'));
    CHECK(rocm.topology.devices[0].partition == "");
    REQUIRE(rocm.topology.links.size() == 6);
    CHECK(rocm.topology.links[0].lanes == 16);
    const Enriched amd = ask_amd(base, "liar");
    CHECK_THAT(amd.said(), ContainsSubstring("no PCI address"));
    CHECK(amd.topology.devices[1].model == std::string(256, 'A'));
    CHECK(amd.topology.devices[1].uuid == "");
  }
  SECTION("print, and ignore every signal") {
    CHECK(ask_rocm(base, "rude").topology == ask_rocm(base, "").topology);
    CHECK(ask_amd(base, "rude").topology == ask_amd(base, "").topology);
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
