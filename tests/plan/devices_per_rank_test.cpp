// One rank on several devices.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

// Two packages of two NUMA nodes with four cores; device i is near NUMA node near[i].
PlanInput input(const std::vector<int>& near, const char* vendor = "nvidia") {
  PlanInput in = test::job_on(test::even_machine(2, 2, 4), 2);
  test::add_devices(near, vendor, in.node);
  return in;
}

std::vector<std::string> masks(const Plan& plan, const char* name = "CUDA_VISIBLE_DEVICES") {
  const Setting* setting = plan.find_env(name);
  REQUIRE(setting != nullptr);
  return std::get<PerRank>(setting->value()).items.front();
}

std::string constant(const Plan& plan, const char* name) {
  const Setting* setting = plan.find_env(name);
  REQUIRE(setting != nullptr);
  return std::get<std::string>(setting->value());
}

std::set<int> units_of(const RankPlan& rank) {
  std::set<int> units;
  for (const Slot& one : rank.slots) units.insert(one.unit);
  return units;
}

using Masks = std::vector<std::string>;

}  // namespace

TEST_CASE("a rank gets neighbouring devices, their masks and the cores near them",
          "[plan][devices]") {
  PlanInput in = input({2, 2, 0, 1, 0, 3, 3, 1});
  asked(in).devices_per_rank = 2;
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(masks(*plan) == Masks{"2,4", "3,7", "0,1", "5,6"});
  CHECK(plan->placement.gpu_view == "own");
  CHECK(constant(*plan, "LOCAL_RANK") == "0");
  CHECK(plan->placement.classes[0].ranks[1].cpus.to_list() == "4-7");
  CHECK(plan->placement.classes[0].ranks[1].slots.back() == Slot{7, 7, -1});
  CHECK(plan->world_size() == 8);
  asked(in).devices_per_rank = 4;
  CHECK(masks(*make_plan(in)) == Masks{"2,4,3,7", "0,1,5,6"});
  CHECK(make_plan(in)->placement.classes[0].ranks[0].cpus.to_list() == "0-7");
}

TEST_CASE("devices are put together on a package before they are across packages",
          "[plan][devices]") {
  PlanInput in = input({0, 2, 1, 3});
  asked(in).devices_per_rank = 2;
  CHECK(masks(*make_plan(in)) == Masks{"0,2", "1,3"});
}

TEST_CASE("devices that make no full group are named", "[plan][devices]") {
  PlanInput in = input({0, 0, 2, 2});
  asked(in).devices_per_rank = 3;
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(masks(*plan) == Masks{"0,1,2"});
  const auto left = std::find_if(plan->explanation.reports.begin(), plan->explanation.reports.end(),
                                 [](const Diagnostic& r) { return r.id == "devices-left"; });
  REQUIRE(left != plan->explanation.reports.end());
  CHECK_THAT(left->message, ContainsSubstring("device 3 of each node is unused"));
}

TEST_CASE("what cannot be right is refused", "[plan][devices]") {
  PlanInput in = input({0, 1, 2, 3});
  const auto message = [&] { return make_plan(in).error().message; };
  asked(in).devices_per_rank = 5;
  CHECK_THAT(message(), ContainsSubstring("a node has 4 devices"));
  asked(in).devices_per_rank = 2;
  for (const char* view : {"all", "launcher"}) {
    asked(in).gpu_view = view;
    CHECK_THAT(message(), ContainsSubstring("LOCAL_RANK would be another rank's"));
  }
  asked(in).gpu_view = "own";
  CHECK(make_plan(in));
  asked(in).ranks_per_node = 3;
  CHECK_THAT(message(), ContainsSubstring("3 ranks with 2 devices each"));
  asked(in).ranks_per_node = 1;
  CHECK(masks(*make_plan(in)) == Masks{"0,1"});
  asked(in).ranks_per_device = 1;
  CHECK_THAT(message(), ContainsSubstring("exclude each other"));
  in = input({});
  asked(in).devices_per_rank = 2;
  CHECK_THAT(message(), ContainsSubstring("no known devices"));
  asked(in).devices_per_rank = 0;
  CHECK(make_plan(in));
}

TEST_CASE("ranks that share a device are as many as was typed", "[plan][devices]") {
  PlanInput in = input({0, 1, 2, 3});
  asked(in).nodes = 1;
  asked(in).ranks_per_device = 2;
  CHECK(masks(*make_plan(in)) == Masks{"0", "0", "1", "1", "2", "2", "3", "3"});
  asked(in).ranks = 5;
  CHECK(masks(*make_plan(in)) == Masks{"0", "0", "1", "1", "2"});
  asked(in).ranks = 2;
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(masks(*plan) == Masks{"0", "0"});
  CHECK(plan->placement.gpu_view == "own");
  CHECK(plan->placement.classes[0].ranks[1].cpus.to_list() == "2-3");
  asked(in).ranks = 9;
  REQUIRE(!make_plan(in));
  CHECK(make_plan(in).error().message ==
        "9 ranks at 2 per device need 5 devices, a node has 4 devices");
  CHECK_THAT(make_plan(in).error().hint, ContainsSubstring("--ranks-per-node 8"));
  asked(in).ranks.reset();
  asked(in).ranks_per_node = 3;
  CHECK(masks(*make_plan(in)) == Masks{"0", "0", "1"});
  asked(in).ranks_per_device = 1;
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.gpu_view == "all");

  Profile profile;
  profile.name = "p";
  profile.gpu_view = "launcher";
  in.profile = &profile;
  CHECK(make_plan(in)->placement.gpu_view == "own");
  asked(in).ranks_per_node = 4;  // a device for each: the launcher's flags say the same
  CHECK(make_plan(in)->placement.gpu_view == "launcher");
  in.profile = nullptr;

  asked(in).ranks_per_node.reset();
  asked(in).nodes.reset();
  asked(in).ranks_per_device = 2;
  in.slots = {3, 8};  // a list's counts hold, and are checked
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->world_size() == 11);
  CHECK(masks(*plan) == Masks{"0", "0", "1"});
  in.slots = {3, 9};
  CHECK_FALSE(make_plan(in));
  in.slots = {1, 1};  // one line per node says nothing about ranks
  CHECK(make_plan(in)->world_size() == 16);
}

TEST_CASE("no device has more ranks than were typed, nor fewer before the last one",
          "[plan][devices][law]") {
  test::Random random(9);
  for (int round = 0; round < 500; ++round) {
    std::vector<int> near;
    for (int d = random.in(1, 6); d > 0; --d) near.push_back(random.in(0, 3));
    PlanInput in = input(near);
    const int each = random.in(1, 4);
    const int ranks = random.in(1, 16);
    asked(in).ranks_per_device = each;
    asked(in).ranks_per_node = ranks;
    INFO("round " << round << ": " << ranks << " at " << each << " on " << near.size());
    const auto plan = make_plan(in);
    CHECK(plan.has_value() == (ranks <= each * static_cast<int>(near.size())));
    if (!plan) continue;
    std::map<int, int> on;
    for (const RankPlan& rank : plan->placement.classes[0].ranks) ++on[rank.unit()];
    CHECK(static_cast<int>(on.size()) == (ranks + each - 1) / each);
    int full = 0;
    for (const auto& [unit, count] : on) {
      CHECK(count <= each);
      full += count == each ? 1 : 0;
    }
    CHECK(full >= static_cast<int>(on.size()) - 1);
    CHECK((plan->placement.gpu_view == "own") == (ranks > static_cast<int>(on.size())));
  }
}

namespace {

// What the plan says of sharing while every rank sees all.
std::string advice(const Plan& plan) {
  for (const Diagnostic& report : plan.explanation.reports)
    if (report.id == "shared-devices") return report.message;
  return "";
}

// The device that the advice gives local rank `r` of `size`; nullopt where it gives none.
std::optional<int> advised(const std::string& text, int r, int size) {
  const std::size_t begins = text.find("use device ");
  if (begins == std::string::npos) return std::nullopt;
  const std::string how = text.substr(begins + 11);
  int number = 0;
  if (std::sscanf(how.c_str(), "LOCAL_RANK // %d", &number) == 1) return r / number;
  if (std::sscanf(how.c_str(), "LOCAL_RANK * %d // LOCAL_WORLD_SIZE", &number) == 1)
    return r * number / size;
  const std::string list = how.substr(0, how.find(" for "));
  return static_cast<int>(*parse_natural(trim(split(list, ',').at(static_cast<std::size_t>(r)))));
}

}  // namespace

TEST_CASE("what a program is told about shared devices is what the plan has", "[plan][devices]") {
  PlanInput in = input({0, 1, 2, 3});
  asked(in).gpu_view = "all";
  asked(in).nodes = 1;
  asked(in).ranks = 8;
  CHECK(advice(*make_plan(in)) ==
        "8 ranks share 4 devices: device LOCAL_RANK may not exist; use device "
        "LOCAL_RANK // 2");
  in = input({0, 0, 0, 0});
  asked(in).gpu_view = "all";
  asked(in).nodes = 1;
  asked(in).ranks = 5;
  CHECK_THAT(advice(*make_plan(in)), ContainsSubstring("LOCAL_RANK * 4 // LOCAL_WORLD_SIZE"));
}

TEST_CASE("advice about shared devices holds on every node", "[plan][devices][law]") {
  test::Random random(31);
  int given = 0;
  int listed = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<int> near;
    for (int d = random.in(1, 6); d > 0; --d) near.push_back(random.in(0, 3));
    const char* vendor = random.chance(50) ? "nvidia" : "intel";
    PlanInput in = input(near, vendor);
    asked(in).gpu_view = "all";
    asked(in).ranks = random.in(2, 30);
    INFO("round " << round << ": " << *in.request->ranks << " on " << near.size() << " " << vendor);
    const auto plan = make_plan(in);
    REQUIRE(plan);
    const std::string text = advice(*plan);
    if (text.empty()) continue;
    INFO(text);
    listed += text.find(" for LOCAL_RANK 0, 1, ...") != std::string::npos ? 1 : 0;
    for (std::size_t c = 0; c < plan->placement.classes.size(); ++c) {
      const std::vector<RankPlan>& ranks = plan->placement.classes[c].ranks;
      std::vector<int> seen;  // by the driver's number
      for (std::size_t d = 0; d < near.size(); ++d) seen.push_back(static_cast<int>(d));
      if (const Setting* mask = plan->find_env(
              vendor == std::string("intel") ? "ZE_AFFINITY_MASK" : "CUDA_VISIBLE_DEVICES")) {
        const auto* each = std::get_if<PerRank>(&mask->value());
        seen.clear();
        const std::string list = each ? each->items[c][0] : std::get<std::string>(mask->value());
        for (const auto entry : split(list, ','))
          seen.push_back(static_cast<int>(*parse_natural(entry)));
        if (vendor == std::string("intel")) std::sort(seen.begin(), seen.end());
      }
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const auto device = advised(text, static_cast<int>(r), static_cast<int>(ranks.size()));
        if (!device) continue;
        ++given;
        CHECK(seen.at(static_cast<std::size_t>(*device)) == ranks[r].unit());
      }
    }
  }
  CHECK(given > 1000);
  CHECK(listed > 0);
}

TEST_CASE("a profile's view of all yields to several devices", "[plan][devices]") {
  Profile profile;
  profile.name = "p";
  profile.gpu_view = "all";
  PlanInput in = input({0, 1, 2, 3});
  in.profile = &profile;
  asked(in).devices_per_rank = 2;
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.gpu_view == "own");
  CHECK(plan->find_choice("gpu-view")->history.back().layer == Layer::computed);
}

TEST_CASE("no devices for ranks", "[plan][devices]") {
  PlanInput in = input({0, 1, 2, 3});
  asked(in).devices_per_rank = 0;
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(constant(*plan, "CUDA_VISIBLE_DEVICES").empty());
  CHECK(plan->max_local_size() == 4);  // as on a node without: one per NUMA node
  CHECK(plan->placement.gpu_view.empty());
  CHECK(plan->placement.classes[0].ranks[0].unit() == -1);
  CHECK(plan->find_env("LOCAL_RANK")->value() == Value(RankFact::local_rank));
  plan = make_plan([&] {
    PlanInput amd = input({0, 1}, "amd");
    asked(amd).devices_per_rank = 0;
    return amd;
  }());
  REQUIRE(plan);
  CHECK(constant(*plan, "HIP_VISIBLE_DEVICES") == "-1");
  in = input({0, 1}, "intel");
  asked(in).devices_per_rank = 0;
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->find_env("ZE_AFFINITY_MASK") == nullptr);
  REQUIRE(plan->explanation.reports.size() == 1);
  CHECK(plan->explanation.reports[0].id == "devices-visible");
}

TEST_CASE("a mask of the batch system is chosen from", "[plan][devices]") {
  PlanInput in = input({0, 1, 2, 3});
  in.env = EnvSnapshot({"CUDA_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c,GPU-d"});
  asked(in).devices_per_rank = 2;
  CHECK(masks(*make_plan(in)) == Masks{"GPU-a,GPU-b", "GPU-c,GPU-d"});
}

TEST_CASE("any devices and any number per rank: every unit in one rank at most",
          "[plan][devices][law]") {
  test::Random random(5);
  int planned = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<int> near;
    for (int d = random.in(1, 12); d > 0; --d) near.push_back(random.in(0, 3));
    PlanInput in = input(near);
    const int each = random.in(1, 4);
    asked(in).devices_per_rank = each;
    if (random.chance(30)) asked(in).ranks_per_node = random.in(1, 6);
    asked(in).gpu_view = "own";
    INFO("round " << round);
    const auto plan = make_plan(in);
    if (!plan) {
      CHECK_FALSE(plan.error().hint.empty());
      continue;
    }
    ++planned;
    std::set<int> used;
    const std::vector<RankPlan>& ranks = plan->placement.classes[0].ranks;
    if (ranks.size() * static_cast<std::size_t>(each) > near.size()) {
      CHECK(each == 1);  // ranks may share a device, never a group
      continue;
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::set<int> units = units_of(ranks[r]);
      CHECK(units.size() == static_cast<std::size_t>(each));
      for (const int unit : units) CHECK(used.insert(unit).second);
    }
    if (!in.request->ranks_per_node)
      CHECK(ranks.size() == near.size() / static_cast<std::size_t>(each));
  }
  CHECK(planned > 500);
}

TEST_CASE("where no profile says otherwise, tiles are what ranks get", "[plan][devices][tiles]") {
  PlanInput in = input({0, 0, 2, 2}, "intel");
  for (Device& device : in.node.devices) device.subdevices = 2;
  const auto units = [&] {
    std::vector<std::pair<int, int>> got;
    const auto plan = make_plan(in);
    REQUIRE(plan);
    for (const RankPlan& rank : plan->placement.classes[0].ranks)
      got.emplace_back(rank.device(), rank.slots.front().part);
    return got;
  };
  CHECK(units() == std::vector<std::pair<int, int>>{
                       {0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, 0}, {3, 1}});
  CHECK(constant(*make_plan(in), "ZE_FLAT_DEVICE_HIERARCHY") == "FLAT");
  const std::vector<std::pair<int, int>> cards = {{0, -1}, {1, -1}, {2, -1}, {3, -1}};
  asked(in).device_mode = "gpu";
  CHECK(units() == cards);
  CHECK(constant(*make_plan(in), "ZE_FLAT_DEVICE_HIERARCHY") == "COMPOSITE");
  asked(in).device_mode.clear();
  in.env = EnvSnapshot({"ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"});
  CHECK(units() == cards);
  asked(in).device_mode = "tiles";
  REQUIRE(!make_plan(in));
  CHECK(make_plan(in).error().hint == "--device-mode tile");
}

TEST_CASE("too few devices: who has left them is named", "[plan][devices]") {
  struct Few {
    std::vector<std::string> env;
    int per_rank;
    const char* message;
    const char* hint;
  };
  const auto check = [](PlanInput in, const std::vector<Few>& rows) {
    for (const Few& row : rows) {
      INFO(row.env.front() << " " << row.per_rank);
      in.env = EnvSnapshot(row.env);
      asked(in).devices_per_rank = row.per_rank;
      const auto plan = make_plan(in);
      REQUIRE_FALSE(plan);
      CHECK_THAT(plan.error().message, Catch::Matchers::EndsWith(row.message));
      CHECK(plan.error().hint == row.hint);
    }
  };
  PlanInput in = input({0, 1, 2, 3});
  check(in, {{{"CUDA_VISIBLE_DEVICES=1"},
              2,
              "--devices-per-rank 2: CUDA_VISIBLE_DEVICES=1 selects 1 of the node's 4 devices",
              "add devices to CUDA_VISIBLE_DEVICES, or use --devices-per-rank 1 or fewer"},
             {{"CUDA_VISIBLE_DEVICES=1"},
              5,
              "--devices-per-rank 5: CUDA_VISIBLE_DEVICES=1 selects 1 of the node's 4 devices",
              "use --devices-per-rank 1 or fewer"},
             {{"CUDA_VISIBLE_DEVICES="},
              2,
              "CUDA_VISIBLE_DEVICES= selects none of the node's 4 devices",
              "add devices to CUDA_VISIBLE_DEVICES, or omit --devices-per-rank"},
             // the mask has all of the grant
             {{"CUDA_VISIBLE_DEVICES=0,1", "SLURM_JOB_GPUS=2,3"},
              3,
              "SLURM_JOB_GPUS=2,3 selects 2 of the node's 4 devices",
              "request more devices, or use --devices-per-rank 2 or fewer"},
             {{"CUDA_VISIBLE_DEVICES=2", "SLURM_JOB_GPUS=2,3"},
              2,
              "CUDA_VISIBLE_DEVICES=2 selects 1 of the node's 4 devices",
              "add devices to CUDA_VISIBLE_DEVICES, or use --devices-per-rank 1 or fewer"},
             {{"SLURM_GPUS_ON_NODE=1"},
              2,
              "SLURM_GPUS_ON_NODE=1 selects 1 of the node's 4 devices",
              "request more devices, or use --devices-per-rank 1 or fewer"}});
  asked(in).ranks_per_node = 2;
  check(in, {{{"CUDA_VISIBLE_DEVICES=0,1,2"},
              2,
              "need 4 devices, CUDA_VISIBLE_DEVICES=0,1,2 selects 3 of the node's 4 devices",
              "add devices to CUDA_VISIBLE_DEVICES, or use --ranks-per-node 1 or fewer, or "
              "a smaller --devices-per-rank"}});
  asked(in).ranks_per_node = 5;
  asked(in).ranks_per_device = 2;
  asked(in).devices_per_rank.reset();
  in.env = EnvSnapshot({"CUDA_VISIBLE_DEVICES=0,1"});
  const auto shared = make_plan(in);
  REQUIRE_FALSE(shared);
  CHECK(shared.error().message ==
        "5 ranks at 2 per device need 3 devices, CUDA_VISIBLE_DEVICES=0,1 selects 2 of the "
        "node's 4 devices");
  CHECK(shared.error().hint ==
        "add devices to CUDA_VISIBLE_DEVICES, or use --ranks-per-node 4 or fewer, or a "
        "larger --ranks-per-device");
  asked(in).ranks_per_device.reset();
  asked(in).ranks_per_node.reset();
  in.reachable = {2};
  check(in, {{{"A=b"},
              2,
              "this process can open 1 of the node's 4 devices",
              "request more devices, or use --devices-per-rank 1 or fewer"}});
  in = input({0, 1}, "intel");
  for (Device& device : in.node.devices) device.subdevices = 2;
  check(in, {{{"ZE_AFFINITY_MASK=3"},
              2,
              "ZE_AFFINITY_MASK=3 selects 1 of the node's 4 tiles",
              "add devices to ZE_AFFINITY_MASK, or use --devices-per-rank 1 or fewer"}});
  in = input({0, 1});
  in.env = EnvSnapshot({"CUDA_VISIBLE_DEVICES="});
  asked(in).ranks_per_device = 2;
  CHECK(make_plan(in).error().message ==
        "--ranks-per-device 2: CUDA_VISIBLE_DEVICES= selects none of the node's 2 devices");
}

TEST_CASE("an exported hierarchy stays where it means the same", "[plan][devices][tiles]") {
  struct Row {
    int tiles;
    const char *mode, *exported, *holds;
  };
  for (const Row& row : {Row{2, "", "COMBINED", "COMBINED"}, Row{2, "tile", "COMBINED", "COMBINED"},
                         Row{2, "tile", "COMPOSITE", "FLAT"}, Row{2, "tile", "", "FLAT"},
                         Row{2, "gpu", "COMBINED", "COMPOSITE"}, Row{2, "gpu", "FLAT", "COMPOSITE"},
                         Row{1, "", "COMBINED", "COMBINED"}, Row{1, "", "FLAT", "FLAT"},
                         Row{1, "", "", "COMPOSITE"}}) {
    INFO(row.tiles << " " << row.mode << " " << row.exported);
    PlanInput in = input({0, 0, 2, 2}, "intel");
    for (Device& device : in.node.devices) device.subdevices = row.tiles;
    asked(in).device_mode = row.mode;
    asked(in).gpu_view = "own";
    if (*row.exported != 0)
      in.env = EnvSnapshot({std::string("ZE_FLAT_DEVICE_HIERARCHY=") + row.exported});
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(constant(*plan, "ZE_FLAT_DEVICE_HIERARCHY") == row.holds);
    CHECK(plan->max_local_size() == (row.tiles == 2 && row.mode != std::string("gpu") ? 8 : 4));
    CHECK(masks(*plan, "ZE_AFFINITY_MASK").at(1) == "1");
  }
}

TEST_CASE("--devices-per-rank needs devices", "[plan][devices]") {
  PlanInput in = input({});
  asked(in).devices_per_rank = 1;
  CHECK_FALSE(make_plan(in));
  asked(in).devices_per_rank = 0;
  CHECK(make_plan(in));
}

TEST_CASE("a typed mask would leave ranks without a device", "[plan][devices]") {
  const auto refused = [](const char* vendor, const char* name, const char* view, int ranks,
                          bool unset = false) {
    PlanInput in = input({0, 1, 2, 3}, vendor);
    asked(in).ranks_per_node = ranks;
    asked(in).gpu_view = view;
    if (unset)
      asked(in).unset = {name};
    else
      asked(in).set = {{name, "0"}};
    const auto plan = make_plan(in);
    REQUIRE(plan);
    return std::ranges::count(plan->explanation.reports, "mask-typed", &Diagnostic::id) == 1;
  };
  for (const char* view : {"own", "all"}) {
    CHECK(refused("nvidia", "CUDA_VISIBLE_DEVICES", view, 4));
    CHECK(refused("amd", "HIP_VISIBLE_DEVICES", view, 2));
    CHECK(refused("intel", "ZE_AFFINITY_MASK", view, 4));
    CHECK_FALSE(refused("nvidia", "CUDA_VISIBLE_DEVICES", view, 1));
    CHECK_FALSE(refused("intel", "CUDA_VISIBLE_DEVICES", view, 4));  // nobody reads it there
  }
  CHECK(refused("nvidia", "CUDA_VISIBLE_DEVICES", "own", 4, true));
  CHECK_FALSE(refused("nvidia", "CUDA_VISIBLE_DEVICES", "all", 4, true));
  CHECK_FALSE(refused("amd", "HIP_VISIBLE_DEVICES", "own", 4, true));  // ROCr's mask is used
}

TEST_CASE("where the launcher sets the mask, a second one goes", "[plan][devices]") {
  for (const char* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    PlanInput in = input({0, 1, 2, 3}, "amd");
    asked(in).gpu_view = "launcher";
    in.env = EnvSnapshot({std::string(name) + "=3,2,1,0", "ROCR_VISIBLE_DEVICES=0,1,2,3"});
    const auto plan = make_plan(in);
    REQUIRE(plan);
    REQUIRE(plan->placement.gpu_view == "launcher");
    const Setting* second = plan->find_env(name);
    REQUIRE(second != nullptr);
    CHECK(std::holds_alternative<Unset>(second->value()));
    const Setting* first = plan->find_env("ROCR_VISIBLE_DEVICES");  // of each rank by the launcher
    CHECK((first == nullptr || first->value() == Value("0,1,2,3")));
  }
}

TEST_CASE("a SYCL filter that takes devices from ranks goes", "[plan][devices]") {
  const std::pair<const char*, bool> rows[] = {{"level_zero:0", true},
                                               {"opencl:gpu", true},
                                               {"level_zero:0,1", true},
                                               {"!level_zero:0", true},
                                               {"level_zero:gpu;!*:1", true},
                                               {"*:cpu", true},
                                               {"level_zero:gpu", false},
                                               {"LEVEL_ZERO:*", false},
                                               {"*:*", false},
                                               {"*:gpu", false},
                                               {"!opencl:*", false},
                                               {"opencl:gpu;level_zero:gpu", false},
                                               {"", false}};
  for (const auto& [value, goes] : rows) {
    INFO(value);
    PlanInput in = input({0, 1, 2, 3}, "intel");
    in.env = EnvSnapshot({std::string("ONEAPI_DEVICE_SELECTOR=") + value});
    const auto plan = make_plan(in);
    REQUIRE(plan);
    const Setting* setting = plan->find_env("ONEAPI_DEVICE_SELECTOR");
    CHECK((setting != nullptr && std::holds_alternative<Unset>(setting->value())) == goes);
  }
}
