// Nodes with devices of several vendors: ranks get those of one, by their driver's own numbers.
#include <algorithm>
#include <set>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

// Four NVIDIA devices, then two of AMD, on four NUMA nodes.
PlanInput mixed() {
  PlanInput in = test::job_on(test::even_machine(2, 2, 4), 1);
  test::add_devices({3, 2, 1, 0}, "nvidia", in.node);
  test::add_devices({0, 3}, "amd", in.node);
  in.node.links = {{0, 1, "nvlink", 2}, {4, 5, "xgmi", 1}};
  return in;
}

std::vector<int> devices_of(const Plan& plan) {
  std::vector<int> devices;
  for (const RankPlan& rank : plan.placement.classes.at(0).ranks) devices.push_back(rank.device());
  return devices;
}

std::string constant(const Plan& plan, const char* name) {
  const Setting* setting = plan.find_env(name);
  REQUIRE(setting != nullptr);
  return std::get<std::string>(setting->value());
}

std::vector<std::string> each(const Plan& plan, const char* name) {
  const Setting* setting = plan.find_env(name);
  REQUIRE(setting != nullptr);
  return std::get<PerRank>(setting->value()).items.front();
}

int said(const Plan& plan, const std::string& rule) {
  return static_cast<int>(
      std::count_if(plan.explanation.reports.begin(), plan.explanation.reports.end(),
                    [&](const Diagnostic& report) { return report.id == rule; }));
}

// A site whose nodes have AMD devices.
Profile amd_site() {
  Profile profile;
  profile.name = "site";
  NodeModel model;
  model.name = "node";
  Device device;
  device.vendor = "amd";
  model.topology.devices = {device};
  profile.nodes = {model};
  return profile;
}

}  // namespace

TEST_CASE("ranks get the devices of the vendor that the node lists first", "[plan][vendors]") {
  const auto plan = make_plan(mixed());
  REQUIRE(plan);
  CHECK(devices_of(*plan) == std::vector<int>{3, 2, 1, 0});
  CHECK(constant(*plan, "CUDA_VISIBLE_DEVICES") == "3,2,1,0");
  CHECK(plan->find_env("ROCR_VISIBLE_DEVICES") == nullptr);
  REQUIRE(said(*plan, "several-vendors") == 1);
  CHECK(plan->explanation.reports.front().message ==
        "the plan uses the 4 devices of nvidia only, not the 2 of amd: a program uses one vendor's "
        "devices");
}

TEST_CASE("a profile's vendor goes first, and masks count as its driver does", "[plan][vendors]") {
  const Profile profile = amd_site();
  PlanInput in = mixed();
  in.profile = &profile;
  asked(in).gpu_view = "own";
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == std::vector<int>{4, 5});
  CHECK(each(*plan, "ROCR_VISIBLE_DEVICES") == std::vector<std::string>{"0", "1"});
  CHECK(plan->find_env("CUDA_VISIBLE_DEVICES") == nullptr);
}

TEST_CASE("a device mode's mask says whose devices it is for", "[plan][vendors]") {
  Profile profile;
  profile.name = "site";
  profile.device_modes.resize(2);
  profile.device_modes[0].name = "cuda";
  profile.device_modes[1].name = "hip";
  profile.device_modes[1].mask = "HIP_VISIBLE_DEVICES";
  PlanInput in = mixed();
  in.profile = &profile;
  CHECK(devices_of(*make_plan(in)) == std::vector<int>{3, 2, 1, 0});
  asked(in).device_mode = "hip";
  CHECK(devices_of(*make_plan(in)) == std::vector<int>{4, 5});
  in.node.devices[4].vendor = "intel";
  in.node.devices[5].vendor = "intel";
  in.node.devices[4].subdevices = 2;
  in.node.devices[5].subdevices = 2;
  in.profile = nullptr;
  asked(in).device_mode = "tile";
  const auto tiles = make_plan(in);
  REQUIRE(tiles);
  CHECK(devices_of(*tiles) == std::vector<int>{4, 4, 5, 5});
}

TEST_CASE("without devices all vendors' are hidden", "[plan][vendors]") {
  PlanInput in = mixed();
  asked(in).devices_per_rank = 0;
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(constant(*plan, "CUDA_VISIBLE_DEVICES").empty());
  CHECK(constant(*plan, "HIP_VISIBLE_DEVICES") == "-1");
  CHECK(said(*plan, "several-vendors") == 0);
}

TEST_CASE("what can be opened is asked of the kept vendor alone", "[plan][vendors]") {
  PlanInput in = mixed();
  in.reachable = {1, 2, 4, 5};
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == std::vector<int>{2, 1});
  CHECK(constant(*plan, "CUDA_VISIBLE_DEVICES") == "1,0");
  const Profile profile = amd_site();
  in.profile = &profile;
  in.reachable = {0, 1, 2, 3, 5};
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == std::vector<int>{5});
}

TEST_CASE("another vendor's devices change nothing for the kept ones", "[plan][vendors][law]") {
  test::Random random(3);
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    PlanInput alone = test::job_on(test::random_node(seed), 1);
    PlanInput in = alone;
    const std::string other = in.node.devices.front().vendor == "amd" ? "nvidia" : "amd";
    // Devices of the other vendor between them, after the first.
    std::vector<Device> devices;
    std::vector<int> index;  // by the number of one's own
    for (const Device& device : alone.node.devices) {
      index.push_back(static_cast<int>(devices.size()));
      devices.push_back(device);
      if (!random.chance(50)) continue;
      devices.push_back(device);
      devices.back().vendor = other;
    }
    for (std::size_t d = 0; d < devices.size(); ++d) devices[d].index = static_cast<int>(d);
    in.node.devices = devices;
    for (Link& link : in.node.links) {
      link.from = index[static_cast<std::size_t>(link.from)];
      link.to = index[static_cast<std::size_t>(link.to)];
    }
    REQUIRE(check_topology(in.node));
    INFO("seed " << seed);
    asked(alone).gpu_view = asked(in).gpu_view = random.chance(50) ? "own" : "all";
    if (random.chance(50)) asked(alone).devices_per_rank = asked(in).devices_per_rank = 1;
    const auto a = make_plan(alone);
    const auto b = make_plan(in);
    REQUIRE(static_cast<bool>(a) == static_cast<bool>(b));
    if (!a) continue;
    ++compared;
    REQUIRE(a->placement.classes[0].ranks.size() == b->placement.classes[0].ranks.size());
    for (std::size_t r = 0; r < a->placement.classes[0].ranks.size(); ++r) {
      RankPlan theirs = a->placement.classes[0].ranks[r];
      for (Slot& unit : theirs.slots) unit.device = index[static_cast<std::size_t>(unit.device)];
      CHECK(theirs == b->placement.classes[0].ranks[r]);
    }
    for (const char* mask : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
      REQUIRE((a->find_env(mask) == nullptr) == (b->find_env(mask) == nullptr));
      if (a->find_env(mask) != nullptr)
        CHECK(a->find_env(mask)->value() == b->find_env(mask)->value());
    }
    CHECK(said(*b, "several-vendors") == (devices.size() > index.size() ? 1 : 0));
  }
  CHECK(compared > 200);
}
