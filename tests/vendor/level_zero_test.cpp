#include <iterator>

#include "probe/vendor/level_zero_abi.h"
#include "support/catch.h"
#include "vendor/names.h"
#include "vendor/support.h"

using namespace hpclaunch;
using namespace hpclaunch::test;

namespace {

Libraries level_zero(const std::string& file) {
  Libraries which;
  which.level_zero = {file};
  which.sysfs = "/nowhere";
  which.limit_seconds = kPatience;
  return which;
}

Enriched ask(const Topology& base, const std::string& kind) {
  return enriched(base, level_zero(FAKE_LEVEL_ZERO), {{"FAKE_KIND", kind}});
}

const std::vector<std::string> kThree = {"0000:10:00.0", "0000:20:00.0", "0000:30:00.0"};

}  // namespace

TEST_CASE("Level Zero reports tiles, memory, UUIDs and Xe Links of cards", "[vendor]") {
  const Topology base = machine("intel", kThree);
  const Enriched got = ask(base, "");
  CHECK(got.said() == "");
  REQUIRE(got.topology.devices.size() == 3);  // neither the integrated GPU nor the NPU
  Device expected = base.devices[1];
  expected.model = "Intel Fake Max";
  expected.uuid = "2f2e2d2c-2b2a-2928-2726-252423222120";
  expected.memory_bytes = 128ULL << 30;
  expected.subdevices = 2;
  CHECK(got.topology.devices[1] == expected);
  CHECK(got.topology.links ==
        std::vector<Link>{{0, 1, "xe-link", 1}, {0, 2, "xe-link", 2}, {1, 2, "xe-link", 2}});
}

TEST_CASE("every call of Level Zero fails, is absent, crashes, exits, hangs", "[vendor]") {
  try_each_call({FAKE_LEVEL_ZERO, kLevelZeroNames, machine("intel", kThree), level_zero},
                {"zeInit", "zeDriverGet", "zeDeviceGet", "zeDeviceGetProperties",
                 "zeDevicePciGetPropertiesExt"},
                {});
}

TEST_CASE("Level Zero is asked for cards, whatever the user's hierarchy is", "[vendor]") {
  const Behaviour user({{"ZE_FLAT_DEVICE_HIERARCHY", "FLAT"}, {"ZE_AFFINITY_MASK", "1"}});
  const Topology base = machine("intel", kThree);
  CHECK(ask(base, "flat").topology == ask(base, "").topology);
  CHECK(std::string(getenv("ZE_FLAT_DEVICE_HIERARCHY")) == "FLAT");
}

TEST_CASE("cards without tiles and without a fabric", "[vendor]") {
  const Enriched got = ask(machine("intel", kThree), "bare");
  CHECK(got.said() == "");
  CHECK(got.topology.devices[0].subdevices == 0);
  CHECK(got.topology.devices[0].uuid == "");
  CHECK(got.topology.links.empty());
}

TEST_CASE("a Level Zero that lies or misbehaves does no harm", "[vendor]") {
  const Topology base = machine("intel", kThree);
  SECTION("sees none") {
    const Enriched got = ask(base, "zero");
    CHECK(got.topology == base);
    CHECK(got.said() == "");
  }
  SECTION("a count that cannot be") {
    const Enriched got = ask(base, "huge");
    CHECK(got.topology == base);
    CHECK_THAT(got.said(), ContainsSubstring("zeDriverGet: implausible count 4294967295"));
  }
  SECTION("text without an end, addresses that do not exist, links to itself") {
    const Enriched got = ask(base, "liar");
    REQUIRE(got.topology.devices.size() == 3);
    CHECK(got.topology.devices[0].model == std::string(256, 'A'));
    CHECK(got.topology.devices[0].subdevices == 0);
    CHECK(got.topology.devices[0].memory_bytes == 0);
    CHECK(got.topology.devices[2].model == "from /sys");
    CHECK(got.topology.links.empty());
    CHECK_THAT(got.said(), ContainsSubstring("no PCI address"));
  }
  SECTION("prints, and ignores every signal") {
    CHECK(ask(base, "rude").topology == ask(base, "").topology);
  }
}
