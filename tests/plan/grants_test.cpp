// Granted, not existing: what ranks are given of whole devices.
#include "plan/grants.h"

using namespace hpclaunch;
using namespace hpclaunch::test;

TEST_CASE("CUDA: lists of the batch system and masks are read together", "[grants]") {
  const Topology node = machine({0, 1, 4, 5});
  check_rows(node, "CUDA_VISIBLE_DEVICES",
             {{"control group: 0 is the first that was granted",
               {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "0,1"}},
               "0 1",
               "2 3",
               ""},
              {"no control group: numbers of the node",
               {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "2,3"}},
               "2 3",
               "2 3",
               ""},
              {"the step's list is stronger than the job's",
               {{"SLURM_JOB_GPUS", "0,1,2,3"},
                {"SLURM_STEP_GPUS", "1,3"},
                {"CUDA_VISIBLE_DEVICES", "0,1"}},
               "0 1",
               "1 3",
               ""},
              {"ranges", {{"SLURM_JOB_GPUS", "2-3"}, {"CUDA_VISIBLE_DEVICES", "1"}}, "1", "3", ""},
              {"all of the node", {{"SLURM_JOB_GPUS", "0,1,2,3"}}, "0 1 2 3", "0 1 2 3", ""},
              {"may be either",
               {{"SLURM_JOB_GPUS", "1,2"}, {"CUDA_VISIBLE_DEVICES", "1"}},
               "1",
               "-1",
               "grant-unclear"},
              {"neither",
               {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "0,2"}},
               "0 2",
               "-1 -1",
               "grant-contradicts"},
              {"a mask that goes beyond the grant",
               {{"SLURM_JOB_GPUS", "0,1"}, {"CUDA_VISIBLE_DEVICES", "1,3"}},
               "1",
               "1",
               "grant-contradicts"},
              {"a list without a mask", {{"SLURM_JOB_GPUS", "1,3"}}, "1 3", "1 3", "grant-unclear"},
              {"a list of another node",
               {{"SLURM_JOB_GPUS", "7"}, {"CUDA_VISIBLE_DEVICES", "2"}},
               "2",
               "2",
               "grant-contradicts"},
              {"only how many", {{"SLURM_GPUS_ON_NODE", "2"}}, "0 1", "-1 -1", "grant-unclear"},
              {"only how many each node was asked for",
               {{"SLURM_GPUS_PER_NODE", "a100:1,h100:1"}},
               "0 1",
               "-1 -1",
               "grant-unclear"},
              {"what the node has is stronger",
               {{"SLURM_GPUS_ON_NODE", "4"}, {"SLURM_GPUS_PER_NODE", "2"}},
               "0 1 2 3",
               "0 1 2 3",
               ""},
              {"as many as there are", {{"SLURM_GPUS_ON_NODE", "4"}}, "0 1 2 3", "0 1 2 3", ""},
              {"a container's numbers", {{"NVIDIA_VISIBLE_DEVICES", "1,2"}}, "0 1", "1 2", ""},
              {"a container with everything",
               {{"NVIDIA_VISIBLE_DEVICES", "all"}},
               "0 1 2 3",
               "0 1 2 3",
               ""},
              {"a container whose runtime says nothing",
               {{"NVIDIA_VISIBLE_DEVICES", "void"}},
               "0 1 2 3",
               "0 1 2 3",
               ""},
              {"no list at all", {{"SLURM_JOB_GPUS", "x"}}, "0 1 2 3", "0 1 2 3", ""},
              {"an entry that is nothing ends the list",
               {{"CUDA_VISIBLE_DEVICES", "2,x,1"}},
               "2",
               "2",
               "mask-cut"},
              {"names that nobody can judge",
               {{"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"}},
               "GPU-a GPU-b",
               "-1 -1",
               ""},
              {"a MIG name that nobody can judge",
               {{"CUDA_VISIBLE_DEVICES", "MIG-1,MIG-2"}},
               "MIG-1 MIG-2",
               "-1 -1",
               ""}});
}

TEST_CASE("CUDA: a plan says what its lists leave out", "[grants]") {
  Topology node = machine({0, 1, 4, 5});
  name_devices(node);
  check_rows(node, "CUDA_VISIBLE_DEVICES",
             {{"words after numbers", {{"CUDA_VISIBLE_DEVICES", "1gpu2"}}, "1", "1", ""},
              {"two forms", {{"CUDA_VISIBLE_DEVICES", "GPU-d3,1"}}, "GPU-d3", "3", "mask-cut"},
              {"a control group's numbers end where CUDA ends them",
               {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "0,1,-1,3"}},
               "0 1",
               "2 3",
               ""}});
  for (const char* mask : {"0,0", "GPU-d3,GPU-d", "2,1,2"}) {
    const auto plan = make_plan(input(node, {{"CUDA_VISIBLE_DEVICES", mask}}));
    REQUIRE(plan);
    CHECK(rules(*plan) == std::vector<std::string>{"mask-repeats", "no-device-left"});
    CHECK(plan->placement.classes[0].ranks[0].device() == -1);
  }
  const auto amd = make_plan(input(machine({0, 1}, "amd"), {{"ROCR_VISIBLE_DEVICES", "0,0"}}));
  REQUIRE(amd);
  CHECK(rules(*amd) == std::vector<std::string>{"mask-cut"});
}

TEST_CASE("AMD: masks compose", "[grants]") {
  const Topology node = machine({3, 2, 1, 0}, "amd");
  check_rows(
      node, "ROCR_VISIBLE_DEVICES",
      {{"the second counts what the first leaves",
        {{"ROCR_VISIBLE_DEVICES", "3,1"}, {"HIP_VISIBLE_DEVICES", "1"}},
        "1",
        "1",
        ""},
       {"CUDA's is HIP's where HIP's is not there",
        {{"ROCR_VISIBLE_DEVICES", "3,1"}, {"CUDA_VISIBLE_DEVICES", "0"}},
        "3",
        "3",
        ""},
       {"HIP's is stronger",
        {{"HIP_VISIBLE_DEVICES", "0"}, {"CUDA_VISIBLE_DEVICES", "2"}},
        "0",
        "0",
        ""},
       {"an empty HIP mask is none", {{"HIP_VISIBLE_DEVICES", ""}}, "3 2 1 0", "3 2 1 0", ""},
       {"the same said twice",
        {{"ROCR_VISIBLE_DEVICES", "2,3"}, {"CUDA_VISIBLE_DEVICES", "2,3"}},
        "3 2",
        "3 2",
        "mask-twice"},
       {"control group",
        {{"SLURM_JOB_GPUS", "1,3"}, {"ROCR_VISIBLE_DEVICES", "0,1"}, {"GPU_DEVICE_ORDINAL", "0,1"}},
        "1 0",
        "3 1",
        ""},
       {"OpenCL's alone is heeded as a grant", {{"GPU_DEVICE_ORDINAL", "1"}}, "1", "1", ""}});
  PlanInput in = input(node, {{"ROCR_VISIBLE_DEVICES", ""}});
  CHECK(rules(*make_plan(in)) == std::vector<std::string>{"no-device-left"});
}

TEST_CASE("CUDA's own order of different models is not the plan's", "[grants]") {
  Topology node = machine({0, 1, 4, 5});
  name_devices(node);
  const auto planned = [&](const Env& env, bool differ = true) {
    for (Device& device : node.devices)
      device.model = differ && device.index == 3 ? "large" : "small";
    PlanInput in = input(node, env);
    asked(in).gpu_view = "own";
    return in;
  };
  const auto said = [](const PlanInput& in) {
    const auto plan = make_plan(in);
    REQUIRE(plan);
    std::string text;
    for (const Diagnostic& report : plan->explanation.reports)
      if (report.id != "idle-cores" && report.id != "mask-restricts")
        text += fmt::format("{} {}", report.id, to_string(report.severity));
    return text;
  };
  const Env fastest = {{"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}};
  CHECK(said(planned({})).empty());  // the plan sets the order
  CHECK(said(planned(fastest)) == "device-order warning");
  CHECK(said(planned(fastest, false)).empty());
  CHECK(said(planned({{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}})).empty());
  PlanInput in = planned(fastest);
  asked(in).set = {{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}};
  CHECK(said(in).empty());
  CHECK(make_plan(planned(fastest))->explanation.reports.back().fix ==
        "--set CUDA_DEVICE_ORDER=PCI_BUS_ID");
  in = planned({});
  asked(in).unset = {"CUDA_DEVICE_ORDER"};
  CHECK(said(in) == "device-order warning");
  in = planned(fastest);
  asked(in).gpu_view = "all";  // no mask: programs count what CUDA counts
  CHECK(make_plan(in)->find_env("CUDA_VISIBLE_DEVICES") == nullptr);
  CHECK(said(in) == "device-order warning");
  Env named = fastest;  // names are the same in every order
  named["CUDA_VISIBLE_DEVICES"] = node.devices[1].uuid + "," + node.devices[3].uuid;
  CHECK(said(planned(named)).empty());
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "1,3"}})) == "device-order note");
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "3,2,1,0"}})).empty());  // whatever they count
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "1,3"}}, false)).empty());
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "1,3"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}))
            .empty());
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "1,3"}, {"SLURM_JOB_GPUS", "1,3"}})).empty());
}

TEST_CASE("a container beside others on a machine is bound to NUMA nodes", "[grants]") {
  PlanInput in = input(machine({0, 0, 1, 1}), {});
  in.reachable = {0, 1};
  asked(in).ranks_per_node = 2;
  const auto numa = [&](int node) {
    return in.node.numa_nodes[static_cast<std::size_t>(node)].pus & in.node.allowed;
  };
  auto plan = make_plan(in);
  REQUIRE(plan);
  for (const RankPlan& rank : plan->placement.classes[0].ranks) CHECK(rank.cpus == numa(0));
  CHECK(plan->placement.shared_cpus);
  CHECK(rules(*plan) == std::vector<std::string>{"shared-machine"});
  const auto narrow = [&](const PlanInput& other) {
    const auto found = make_plan(other);
    REQUIRE(found);
    CHECK(std::ranges::count(rules(*found), std::string("shared-machine")) == 0);
    return found->placement.classes[0].ranks[0].cpus != numa(0);
  };
  PlanInput job = in;  // whose batch system confines it, or gives it all
  job.job.scheduler = "slurm";
  CHECK(narrow(job));
  PlanInput all = in;
  all.reachable = {0, 1, 2, 3};
  CHECK(narrow(all));
  PlanInput own = in;  // cores of its own
  own.node.allowed = *CpuSet::parse("0-3");
  CHECK(narrow(own));
  PlanInput typed = in;
  asked(typed).cores_per_rank = 1;
  CHECK(narrow(typed));
}

TEST_CASE("what can be opened is stronger than what is said", "[grants]") {
  PlanInput in =
      input(machine({0, 1, 4, 5}), {{"SLURM_JOB_GPUS", "1,2"}, {"CUDA_VISIBLE_DEVICES", "1"}});
  in.reachable = {1, 2};
  asked(in).gpu_view = "own";
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "2");
  CHECK(plan->placement.classes[0].ranks[0].numa == 4);
  CHECK(plan->find_choice("granted-devices") != nullptr);
  in = input(machine({0, 1, 4, 5}), {});
  in.reachable = std::vector<int>{};
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(rules(*plan) == std::vector<std::string>{"no-device-left"});
  in.reachable = {0, 1, 2, 3};
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "0 1 2 3");
  CHECK(plan->find_choice("granted-devices") == nullptr);
  for (const char* mask : {"CUDA_VISIBLE_DEVICES=1", "NONE="}) {  // without a control group
    in = input(machine({0, 1, 4, 5}), {});
    in.env = EnvSnapshot({"SLURM_JOB_GPUS=1,2", mask});
    in.reachable = {0, 1, 2, 3};
    asked(in).gpu_view = "own";
    plan = make_plan(in);
    REQUIRE(plan);
    CHECK(devices_of(*plan) == (*mask == 'N' ? "1 2" : "1"));
    CHECK(rules(*plan).empty());
  }
}

TEST_CASE("an agent gets what can be opened and is free, and all cores", "[grants]") {
  PlanInput in = input(machine({0, 1, 4, 5}), {});
  in.reachable = {1, 2, 3};
  Request& typed = asked(in);
  typed.agent = true;
  typed.ranks_per_node = 1;
  typed.gpu_view = "all";
  typed.bind_via = BindVia::none;
  const auto got = [&] {
    const auto plan = make_plan(in);
    REQUIRE(plan);
    const RankPlan& rank = plan->placement.classes[0].ranks[0];
    std::vector<int> devices;
    for (const Slot& slot : rank.slots) devices.push_back(slot.device);
    CHECK(rank.cores == 16);
    return fmt::format("{} of {}", masks_of(*plan, {}, "CUDA_VISIBLE_DEVICES"),
                       fmt::join(devices, " "));
  };
  CHECK(got() == "0,1,2 of 1 2 3");
  in.taken = {{2, -1}};
  CHECK(got() == "0,2 of 1 3");
  in.reachable.reset();
  in.taken.clear();
  CHECK(got() == "- of 0 1 2 3");
}

TEST_CASE("ranks sit near the devices that were granted", "[grants]") {
  PlanInput in =
      input(machine({0, 1, 4, 5}), {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "0,1"}});
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.classes[0].ranks[0].cpus.to_list() == "8-9");
  CHECK(plan->placement.classes[0].ranks[1].cpus.to_list() == "10-11");
  in.node.allowed = *CpuSet::parse("1,8,11");  // a part of the node, with holes
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.classes[0].ranks[0].cpus.to_list() == "8");
  CHECK(plan->placement.classes[0].ranks[1].cpus.to_list() == "11");
}

TEST_CASE("an exported mask that selects some devices is named", "[grants]") {
  const auto named = [](const Env& env, const char* view) {
    PlanInput in = input(machine({0, 1, 4, 5}), env);
    asked(in).gpu_view = view;
    asked(in).ranks_per_node = 4;
    const Result<Plan> plan = make_plan(in);
    REQUIRE(plan);
    std::string text;
    for (const Diagnostic& report : plan->explanation.reports)
      if (report.id == "mask-restricts" || report.severity == Severity::error)
        text += report.id + ": " + report.message + "; " + report.fix;
    return text;
  };
  CHECK(named({}, "own").empty());
  CHECK(named({{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}}, "own").empty());
  CHECK(named({{"CUDA_VISIBLE_DEVICES", "1,2"}, {"SLURM_JOB_GPUS", "1,2"}}, "own").empty());
  CHECK(named({{"CUDA_VISIBLE_DEVICES", "3"}}, "own") ==
        "mask-restricts: CUDA_VISIBLE_DEVICES=3 selects 1 of the node's 4 devices; "
        "unset CUDA_VISIBLE_DEVICES to use all devices");
  CHECK_THAT(named({{"CUDA_VISIBLE_DEVICES", "3"}}, "launcher"),
             ContainsSubstring("launcher-view: --gpu-view launcher gives out all devices"));
}
