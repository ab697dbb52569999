#include <iterator>

#include "probe/vendor/nvml_abi.h"
#include "support/catch.h"
#include "vendor/names.h"
#include "vendor/support.h"

using namespace hpclaunch;
using namespace hpclaunch::test;

namespace {

Libraries nvml(const std::string& file) {
  Libraries which;
  which.nvml = {file};
  which.sysfs = "/nowhere";
  which.limit_seconds = kPatience;
  return which;
}

Enriched ask(const Topology& base, const std::string& kind) {
  return enriched(base, nvml(FAKE_NVML), {{"FAKE_KIND", kind}});
}

const std::vector<std::string> kThree = {"0000:10:00.0", "0000:20:00.0", "0000:30:00.0"};

std::vector<std::string> addresses(int count) {
  std::vector<std::string> all;
  for (int i = 1; i <= count; ++i) all.push_back("0000:" + std::to_string(i) + "0:00.0");
  return all;
}

std::vector<std::string> all_names() { return kNvmlNames; }

}  // namespace

TEST_CASE("NVML's devices are matched by PCI address, whatever its own order", "[vendor]") {
  const Topology base = machine("nvidia", kThree);
  const Enriched got = ask(base, "");
  CHECK(got.said() == "");
  REQUIRE(got.topology.devices.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    Device expected = base.devices[i];
    expected.model = "NVIDIA Fake?100";
    expected.uuid = "GPU-" + std::to_string(2 - i);
    expected.memory_bytes = 80ULL << 30;
    CHECK(got.topology.devices[i] == expected);
  }
  CHECK(got.topology.links == std::vector<Link>{{1, 2, "nvlink", 4}});
}

TEST_CASE("every call of NVML fails, is absent, crashes, exits, hangs", "[vendor]") {
  Case vendor{FAKE_NVML, all_names(), machine("nvidia", kThree), nvml};
  SECTION("all of the newest") {
    try_each_call(
        vendor,
        {"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
         "nvmlDeviceGetPciInfo_v3"},
        {"nvmlInit_v2", "nvmlInit", "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount",
         "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPciInfo_v3",
         "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
         "nvmlDeviceGetNvLinkRemotePciInfo", "nvmlDeviceGetMaxMigDeviceCount",
         "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetNvLinkRemoteDeviceType"});
  }
}

TEST_CASE("an NVML of long ago has the first version of each call", "[vendor]") {
  const Topology base = machine("nvidia", kThree);
  const Without old(FAKE_NVML, {"nvmlInit_v2", "nvmlDeviceGetCount_v2",
                                "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPciInfo_v3",
                                "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetMigMode"});
  const Enriched got = enriched(base, nvml(old.path()));
  CHECK(got.said() == "");
  CHECK(got.topology == ask(base, "").topology);
  const Without older(
      FAKE_NVML, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
  const Enriched nothing = enriched(base, nvml(older.path()));
  CHECK(nothing.topology == base);
  CHECK_THAT(nothing.said(), ContainsSubstring("functions that list devices are missing"));
}

TEST_CASE("a device that NVML does not list is not usable", "[vendor]") {
  const Topology base =
      machine("nvidia", {"0000:10:00.0", "0000:20:00.0", "0000:25:00.0", "0000:30:00.0"});
  SECTION("some") {
    const Enriched got = ask(base, "");
    CHECK_THAT(got.said(), ContainsSubstring("it lists 3 of the 4 devices"));
    REQUIRE(got.topology.devices.size() == 3);
    CHECK(got.topology.devices[2].pci == "0000:30:00.0");
    CHECK(got.topology.devices[2].index == 2);
    CHECK(got.topology.links == std::vector<Link>{{1, 2, "nvlink", 4}});
  }
  SECTION("all") {
    const Enriched got = ask(base, "zero");
    CHECK_THAT(got.said(), ContainsSubstring("it lists 0 of the 4 devices"));
    CHECK(got.topology.devices.empty());
  }
  SECTION("not where one of its own could not be named") {
    const Enriched got = ask(base, "lost");
    CHECK(got.topology.devices.size() == 4);
    CHECK_THAT(got.said(), ContainsSubstring("fallen off the bus"));
    CHECK(got.topology.devices[3].uuid == "GPU-0");
    CHECK(got.topology.devices[1].uuid == "");
  }
}

TEST_CASE("devices that only NVML knows are added", "[vendor]") {
  const Enriched got = ask(machine("nvidia", {}), "");
  CHECK(got.said() == "");
  REQUIRE(got.topology.devices.size() == 3);
  CHECK(got.topology.devices[0].pci == "0000:10:00.0");
  CHECK(got.topology.devices[0].uuid == "GPU-2");
  CHECK(got.topology.devices[2].index == 2);
  CHECK(got.topology.links == std::vector<Link>{{1, 2, "nvlink", 4}});
}

TEST_CASE("MIG instances stand in the driver's order", "[vendor]") {
  const Enriched got = ask(machine("nvidia", kThree), "mig");
  const Device& with = got.topology.devices[2];
  CHECK(with.partition == "MIG");
  CHECK(with.instances ==
        std::vector<std::string>{"MIG-0", "MIG-1", "MIG-2", "MIG-3", "MIG-4", "MIG-5", "MIG-6"});
  CHECK(got.topology.devices[1].partition == "MIG");
  CHECK(got.topology.devices[1].instances.empty());
  CHECK_THAT(got.said(), ContainsSubstring("0000:20:00.0: MIG mode is on, without an instance"));
  CHECK(got.topology.devices[0].partition == "");
}

TEST_CASE("behind NVSwitches every pair is connected", "[vendor]") {
  const Topology base = machine("nvidia", addresses(8));
  const auto check = [](const Enriched& got) {
    CHECK(got.said() == "");
    REQUIRE(got.topology.links.size() == 28);
    for (const Link& link : got.topology.links) {
      CHECK(link.kind == "nvlink");
      CHECK(link.lanes == (link.from == 0 ? 17 : 18));  // NVML's last is the first of PCI order
    }
  };
  check(ask(base, "switch"));
  // Drivers that do not report the type of the other end.
  const Without old(FAKE_NVML, {"nvmlDeviceGetNvLinkRemoteDeviceType"});
  check(enriched(base, nvml(old.path()), {{"FAKE_KIND", "switch"}}));
}

TEST_CASE("links to a CPU are no links between devices", "[vendor]") {
  const Topology base = machine("nvidia", kThree);
  const Enriched got = ask(base, "npu");
  CHECK(got.topology.links == std::vector<Link>{{1, 2, "nvlink", 2}});
  const Without old(FAKE_NVML, {"nvmlDeviceGetNvLinkRemoteDeviceType"});
  CHECK(enriched(base, nvml(old.path()), {{"FAKE_KIND", "npu"}}).topology == got.topology);
}

TEST_CASE("an NVML that lies or misbehaves does no harm", "[vendor]") {
  const Topology base = machine("nvidia", kThree);
  SECTION("a count that cannot be") {
    const Enriched got = ask(base, "huge");
    CHECK(got.topology == base);
    CHECK_THAT(got.said(), ContainsSubstring("implausible device count 4294967295"));
  }
  SECTION("text without an end, addresses that do not exist, endless links and instances") {
    const Enriched got = ask(base, "liar");
    CHECK_THAT(got.said(), ContainsSubstring("no PCI address"));
    REQUIRE(got.topology.devices.size() == 3);
    CHECK(got.topology.devices[2].model == std::string(127, 'A'));
    CHECK(got.topology.devices[2].instances.size() == 64);
    CHECK(got.topology.links.empty());
  }
  SECTION("prints, and ignores every signal") {
    const Enriched got = ask(base, "rude");
    CHECK(got.said() == "");
    CHECK(got.topology == ask(base, "").topology);
  }
  SECTION("32 devices") { CHECK(ask(machine("nvidia", {}), "many").topology.devices.size() == 32); }
}

TEST_CASE("a library that is absent is no news; one that cannot be loaded is", "[vendor]") {
  const Topology base = machine("nvidia", kThree);
  Libraries which = nvml("libhpclaunch-no-such-thing.so.1");
  CHECK(enriched(base, which).said() == "");
  which.nvml = {"/nowhere/libnvidia-ml.so.1", FAKE_NVML};
  CHECK(enriched(base, which).topology == ask(base, "").topology);
  which.nvml = {HPCLAUNCH_SOURCE_DIR "/README.md"};
  const Enriched got = enriched(base, which);
  CHECK(got.topology == base);
  CHECK_THAT(got.said(), ContainsSubstring("NVML: cannot be loaded: "));
}
