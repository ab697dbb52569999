// Granted, not existing: what ranks are given of instances and tiles.
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/grants.h"

using namespace hpclaunch;
using namespace hpclaunch::test;

TEST_CASE("CUDA: names lead to devices and instances", "[grants]") {
  Topology node = machine({0, 1, 4, 5});
  name_devices(node);  // GPU-a0..., GPU-b1..., GPU-c2..., GPU-d3...
  check_rows(node, "CUDA_VISIBLE_DEVICES",
             {{"a unique beginning",
               {{"CUDA_VISIBLE_DEVICES", "GPU-c2,GPU-b"}},
               "GPU-b GPU-c2",
               "1 2",
               ""},
              {"a name of nothing here",
               {{"CUDA_VISIBLE_DEVICES", "GPU-b1,GPU-77,GPU-a"}},
               "GPU-b1",
               "1",
               "mask-cut"},
              {"a list without a mask goes by name",
               {{"SLURM_JOB_GPUS", "1,3"}},
               node.devices[1].uuid + " " + node.devices[3].uuid,
               "1 3",
               ""},
              {"a container's names, which it counts anew",
               {{"NVIDIA_VISIBLE_DEVICES", "GPU-d,GPU-b"}, {"CUDA_VISIBLE_DEVICES", "1"}},
               "GPU-d",
               "3",
               ""}});
  node.devices[1].instances = {"MIG-aa11", "MIG-ab22"};
  node.devices[1].partition = "MIG";
  node.devices[3].partition = "MIG";
  check_rows(
      node, "CUDA_VISIBLE_DEVICES",
      {{"units are instances where devices are split",
        {},
        node.devices[0].uuid + " MIG-aa11 MIG-ab22 " + node.devices[2].uuid,
        "0 1.0 1.1 2",
        "no-instances mig-nccl"},
       {"one of them", {{"CUDA_VISIBLE_DEVICES", "MIG-ab"}}, "MIG-ab", "1.1", "no-instances"},
       {"a device stands for its instances",
        {{"CUDA_VISIBLE_DEVICES", "1"}},
        "MIG-aa11 MIG-ab22",
        "1.0 1.1",
        "no-instances mig-nccl"},
       {"an instance that is not there",
        {{"CUDA_VISIBLE_DEVICES", "MIG-ab22,MIG-77"}},
        "MIG-ab22",
        "1.1",
        "no-instances mask-cut"},
       {"ids of the batch system count instances here",
        {{"SLURM_JOB_GPUS", "0"}, {"CUDA_VISIBLE_DEVICES", "MIG-ab22"}},
        "MIG-ab22",
        "1.1",
        "no-instances"},
       {"the old form names the device",
        {{"CUDA_VISIBLE_DEVICES", "MIG-" + node.devices[1].uuid + "/1/0"}},
        "MIG-" + node.devices[1].uuid + "/1/0",
        "1",
        "no-instances"}});
}

TEST_CASE("Slurm counts instances of split devices", "[grants]") {
  Topology node = machine({0, 1, 4, 5});
  name_devices(node);
  node.devices[0].instances = {"MIG-aa", "MIG-ab"};
  node.devices[2].instances = {"MIG-ca", "MIG-cb"};
  node.devices[3].partition = "MIG";  // and none: Slurm does not count it
  const std::string whole = node.devices[1].uuid;
  const std::string all = "MIG-aa MIG-ab " + whole + " MIG-ca MIG-cb";
  check_rows(node, "CUDA_VISIBLE_DEVICES",
             {{"a list, in the order of devices",
               {{"SLURM_JOB_GPUS", "1,3-4"}},
               "MIG-ab MIG-ca MIG-cb",
               "0.1 2.0 2.1",
               "no-instances grant-unclear mig-nccl"},
              {"a device that is not split among them",
               {{"SLURM_STEP_GPUS", "2"}, {"SLURM_JOB_GPUS", "0-4"}},
               whole,
               "1",
               "no-instances grant-unclear"},
              {"all of them",
               {{"SLURM_JOB_GPUS", "0-4"}},
               all,
               "0.0 0.1 1 2.0 2.1",
               "no-instances mig-nccl"},
              {"all that are here, by the numbers of a larger node",
               {{"SLURM_JOB_GPUS", "2,6-9"}},
               all,
               "0.0 0.1 1 2.0 2.1",
               "no-instances mig-nccl"},
              {"numbers that nothing here has",
               {{"SLURM_JOB_GPUS", "2,7"}},
               "MIG-aa MIG-ab",
               "0.0 0.1",
               "no-instances grant-unclear mig-nccl"},
              {"more than there are",
               {{"SLURM_JOB_GPUS", "0-5"}},
               all,
               "0.0 0.1 1 2.0 2.1",
               "no-instances grant-contradicts mig-nccl"},
              {"a number alone",
               {{"SLURM_GPUS_ON_NODE", "2"}},
               "MIG-aa MIG-ab",
               "0.0 0.1",
               "no-instances grant-unclear mig-nccl"},
              {"a mask that names them needs no list",
               {{"SLURM_JOB_GPUS", "1"}, {"CUDA_VISIBLE_DEVICES", "MIG-cb"}},
               "MIG-cb",
               "2.1",
               "no-instances"}});
  PlanInput in = input(node, {{"SLURM_JOB_GPUS", "3"}});
  in.reachable = {2};  // a control group
  in.job.scheduler = "slurm";
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "2.0");
  CHECK(plan->placement.classes[0].ranks[0].numa == 4);
  in.env = EnvSnapshot({"SLURM_JOB_GPUS=3,4"});
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "2.0 2.1");
  CHECK(rules(*plan) == std::vector<std::string>{"no-instances", "mig-nccl"});
}

TEST_CASE("instances need a mask of their own", "[grants]") {
  Topology node = machine({0, 4});
  node.devices[0].instances = {"MIG-0", "MIG-1", "MIG-2"};
  node.devices[1].instances = {"MIG-3"};
  PlanInput in = input(node, {});
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.gpu_view == "own");
  CHECK_THAT(plan->find_choice("gpu-view")->history.back().why, ContainsSubstring("MIG"));
  CHECK(plan->max_local_size() == 4);
  CHECK(plan->placement.classes[0].ranks[3].package == 1);
  asked(in).gpu_view = "all";
  CHECK(rules(*make_plan(in)) ==
        std::vector<std::string>{"far-from-device", "parts-need-masks", "mig-nccl"});
  asked(in).gpu_view.clear();
  asked(in).devices_per_rank = 2;
  CHECK_THAT(make_plan(in).error().message,
             ContainsSubstring("a process can use one instance only"));
  asked(in).devices_per_rank.reset();
  in.hosts = {"n0", "n1"};
  in.launcher.multi_node = true;
  CHECK(rules(*make_plan(in)) ==
        std::vector<std::string>{"far-from-device", "names-of-one-node", "mig-nccl"});
  asked(in).gpu_view = "launcher";
  for (const std::string& rule : rules(*make_plan(in))) CHECK(rule != "names-of-one-node");
  asked(in).gpu_view.clear();
  in.node = machine({0, 4});
  name_devices(in.node);  // whole devices go by number there
  in.env = EnvSnapshot({"CUDA_VISIBLE_DEVICES=GPU-b"});
  const auto two = make_plan(in);
  REQUIRE(two);
  CHECK(rules(*two).empty());
  CHECK(masks_of(*two, {}, "CUDA_VISIBLE_DEVICES") == "1");
}

TEST_CASE("parts of any vendor's devices by the profile's template", "[grants]") {
  Profile profile;
  profile.device_modes.push_back({"part", "", true, "", "${device}.${subdevice}", {}});
  profile.device_modes.push_back({"counted", "", true, "", "p${unit}", {}});
  Topology node = machine({0, 4, 6}, "nvidia", 2);
  node.devices[1].subdevices = 0;
  PlanInput in = input(node, {});
  in.profile = &profile;
  for (const auto& [mode, masks] :
       {std::pair("part", "0.0 0.1 1.0 2.0 2.1"), {"counted", "p0 p1 p2 p3 p4"}}) {
    asked(in).device_mode = mode;
    asked(in).gpu_view = "own";
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(masks_of(*plan, {}, "CUDA_VISIBLE_DEVICES") == masks);
    CHECK(devices_of(*plan) == "0.0 0.1 1 2.0 2.1");
  }
  profile.device_modes[0].mask_item = "${launcher}";
  asked(in).device_mode = "part";
  CHECK_FALSE(make_plan(in));
}

TEST_CASE("Level Zero: tiles in every hierarchy", "[grants]") {
  Profile profile;
  profile.name = "p";
  profile.device_modes.push_back({"tile", "", true, "", "${device}.${subdevice}", {}});
  profile.device_modes.push_back({"flat", "", true, "", "${unit}", {}});
  profile.device_modes.push_back({"gpu", "", false, "", "", {}});
  struct Tiled {
    const char* hierarchy;
    const char* mask;
    const char* mode;
    const char* masks;
    const char* devices;
  };
  for (const Tiled& row : {
           Tiled{"COMPOSITE", "1", "tile", "1.0 1.1", "1.0 1.1"},
           Tiled{"COMPOSITE", "1.0", "tile", "1.0", "1.0"},
           Tiled{"COMPOSITE", "0.1,2", "tile", "0.1 2.0 2.1", "0.1 2.0 2.1"},
           Tiled{"COMPOSITE", "0.1,2", "gpu", "0.1 2", "0 2"},
           Tiled{"COMPOSITE", "0.1,2", "flat", "1 4 5", "0.1 2.0 2.1"},
           Tiled{"FLAT", "1,4", "flat", "1 4", "0.1 2.0"},
           Tiled{"FLAT", "1,4", "tile", "0.1 2.0", "0.1 2.0"},
           Tiled{"COMBINED", "1,4", "gpu", "0.1 2.0", "0 2"},
           Tiled{"FLAT", "1.0,3", "flat", "3", "1.1"},
           Tiled{"FLAT", "default", "gpu", "0 1 2", "0 1 2"},
           Tiled{"", "5", "flat", "5", "2.1"},
       }) {
    INFO(row.hierarchy << " " << row.mask << " " << row.mode);
    Env env = {{"ZE_AFFINITY_MASK", row.mask}};
    if (*row.hierarchy != 0) env["ZE_FLAT_DEVICE_HIERARCHY"] = row.hierarchy;
    PlanInput in = input(machine({0, 2, 4}, "intel", 2), env);
    in.profile = &profile;
    asked(in).device_mode = row.mode;
    asked(in).gpu_view = "own";
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(masks_of(*plan, env, "ZE_AFFINITY_MASK") == row.masks);
    CHECK(devices_of(*plan) == row.devices);
  }
}

TEST_CASE("Level Zero: Slurm's masks count cards, others tiles", "[grants]") {
  struct Written {
    const char* list;  // SLURM_JOB_GPUS
    const char* mask;
    const char* devices;
    const char* rules;
  };
  const char* const all = "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1";
  const Topology node = machine({0, 2, 4, 6}, "intel", 2);
  for (const Written& row : {
           Written{"1,2", "1,2", "1.0 1.1 2.0 2.1", "mask-counts-tiles"},
           Written{"0,1,2,3", "0,1,2,3", all, "mask-counts-tiles"},
           Written{"0-3", "0, 1, 2, 3", all, "mask-counts-tiles"},
           Written{"0-1", "0,1", "0.0 0.1 1.0 1.1", "mask-counts-tiles"},
           // 0 to k-1: a device control group
           Written{"2,3", "0,1", "2.0 2.1 3.0 3.1", "mask-counts-tiles"},
           Written{"1,2", "0,1", "1.0 1.1 2.0 2.1", "mask-counts-tiles"},
           Written{"2", "0", "2.0 2.1", "mask-counts-tiles"},
           // what Slurm would not have written counts tiles
           Written{"0,1,2,3", "0,1,2,3,4,5,6,7", all, ""},
           Written{"0,1,2,3", "0,1", "0.0 0.1", ""},
           Written{"0,1", "1", "0.1", ""},
           Written{"0,1,2,3", "1,0,2,3", "0.0 0.1 1.0 1.1", ""},
           Written{"2,3", "4,7", "2.0 3.1", ""},
           Written{"2,3", "0,3", "2.0 3.1", ""},
           Written{"2,3", "0,1,2,3", "2.0 2.1 3.0 3.1", ""},
           Written{"", "0,1,2,3", "0.0 0.1 1.0 1.1", ""},
           Written{"4,5", "0,1", "0.0 0.1", "grant-contradicts"},
       }) {
    INFO(row.list << " " << row.mask);
    const Env env = {{"SLURM_JOB_GPUS", row.list}, {"ZE_AFFINITY_MASK", row.mask}};
    PlanInput in = input(node, env);
    asked(in).gpu_view = "own";
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(devices_of(*plan) == row.devices);
    CHECK(fmt::format("{}", fmt::join(rules(*plan), " ")) == row.rules);
    // Composite masks count cards whoever wrote them.
    in.env = EnvSnapshot({fmt::format("SLURM_JOB_GPUS={}", row.list), "ZE_AFFINITY_MASK=0",
                          "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"});
    for (const std::string& rule : rules(*make_plan(in))) CHECK(rule != "mask-counts-tiles");
  }
  // Each rank's mask leads to its tile, in a control group too, whatever else says that there is one.
  PlanInput in = input(node, {{"SLURM_STEP_GPUS", "2,3"}, {"ZE_AFFINITY_MASK", "0,1"}});
  for (const bool opened : {false, true}) {
    in.job.scheduler = "slurm";
    if (opened) in.reachable = {2, 3};
    asked(in).gpu_view = "own";
    auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(masks_of(*plan, {}, "ZE_AFFINITY_MASK") == "0 1 2 3");
    CHECK(devices_of(*plan) == "2.0 2.1 3.0 3.1");
    asked(in).gpu_view = "all";
    plan = make_plan(in);
    REQUIRE(plan);
    CHECK(plan->max_local_size() == 4);
    CHECK(masks_of(*plan, {}, "ZE_AFFINITY_MASK") == "0,1,2,3 0,1,2,3 0,1,2,3 0,1,2,3");
    CHECK_THAT(plan->explanation.reports.front().message, ContainsSubstring("SLURM_STEP_GPUS=2,3"));
  }
}

TEST_CASE("Level Zero: entries for COMPOSITE without it", "[grants]") {
  const auto fix = [](const char* mask, const char* hierarchy) {
    const Env env = {{"ZE_AFFINITY_MASK", mask}, {"ZE_FLAT_DEVICE_HIERARCHY", hierarchy}};
    const auto plan = make_plan(input(machine({0, 2}, "intel", 2), env));
    REQUIRE(plan);
    REQUIRE(plan->explanation.reports.front().id == "mask-cut");
    return plan->explanation.reports.front().fix;
  };
  for (const char* hierarchy : {"FLAT", "COMBINED", ""})
    for (const char* mask : {"0.0,1.1", "0.1,1"})
      CHECK_THAT(fix(mask, hierarchy), ContainsSubstring("=COMPOSITE"));
  const auto beyond = make_plan(input(machine({0, 2}, "intel", 2), {{"ZE_AFFINITY_MASK", "0,99"}}));
  REQUIRE(beyond);
  CHECK(beyond->explanation.reports.front().message ==
        "ZE_AFFINITY_MASK=\"0,99\": the driver ignores 99");     // what is counted is not why
  CHECK(fix("0.0,2.1", "FLAT") == "list visible devices only");  // no third device there either
  CHECK(fix("0,4", "FLAT") == "list visible devices only");
  CHECK(fix("0.0,1.2", "COMPOSITE") == "list visible devices only");
}
