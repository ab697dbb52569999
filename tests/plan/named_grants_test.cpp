// Jobs on parts of nodes whose cores and devices the batch system names, host by host.
#include "plan/grants.h"

using namespace hpclaunch;
using namespace hpclaunch::test;

namespace {

// Two packages of four NUMA nodes with two cores each, and a GPU near each second NUMA node.
PlanInput job(std::vector<NodeGrant> grants, std::vector<int> grant_of, const Env& env = {}) {
  PlanInput in = test::input(machine({0, 2, 4, 6}, "amd"), env);
  in.launcher.multi_node = true;
  in.hosts = {};
  for (std::size_t n = 0; n < grant_of.size(); ++n) in.hosts.push_back(fmt::format("n{}", n));
  in.grants = std::move(grants);
  in.grant_of = std::move(grant_of);
  in.grants_by = "flux resource R";
  return in;
}

CpuSet set(const char* list) { return *CpuSet::parse(list); }

Plan planned(const PlanInput& in) {
  Result<Plan> plan = make_plan(in);
  if (!plan) FAIL(plan.error().message);
  return *plan;
}

std::vector<std::string> cpus_of_ranks(const NodeClass& node) {
  std::vector<std::string> all;
  for (const RankPlan& rank : node.ranks) all.push_back(rank.cpus.to_list());
  return all;
}

std::vector<std::vector<std::string>> each(const Plan& plan, const char* name) {
  const Setting* setting = plan.find_env(name);
  REQUIRE(setting != nullptr);
  REQUIRE(std::holds_alternative<PerRank>(setting->value()));
  return std::get<PerRank>(setting->value()).items;
}

using Items = std::vector<std::vector<std::string>>;

}  // namespace

TEST_CASE("each host has its own cores and devices", "[grants][parts]") {
  PlanInput in = job({{set("8-15"), std::vector{2, 3}}, {set("0-7"), std::vector{0, 1}}}, {0, 1},
                     {{"CUDA_VISIBLE_DEVICES", "2,3"}});
  in.grants_mask = "2,3";
  for (const char* view : {"own", "all"}) {
    INFO(view);
    asked(in).gpu_view = view;
    const Plan plan = planned(in);
    CHECK(plan.world_size() == 4);
    CHECK(plan.placement.cores == 16);
    CHECK(plan.placement.bind_via == BindVia::shim);
    REQUIRE(plan.placement.classes.size() == 2);
    CHECK(cpus_of_ranks(plan.placement.classes[0]) == std::vector<std::string>{"8-9", "12-13"});
    CHECK(cpus_of_ranks(plan.placement.classes[1]) == std::vector<std::string>{"0-1", "4-5"});
    const bool own = std::string(view) == "own";
    CHECK(each(plan, "ROCR_VISIBLE_DEVICES") ==
          (own ? Items{{"2", "3"}, {"0", "1"}} : Items{{"2,3", "2,3"}, {"0,1", "0,1"}}));
    REQUIRE(plan.find_env("CUDA_VISIBLE_DEVICES") != nullptr);  // the batch system's own
    CHECK(std::holds_alternative<Unset>(plan.find_env("CUDA_VISIBLE_DEVICES")->value()));
    CHECK(rules(plan) == std::vector<std::string>{});
  }
}

TEST_CASE("hosts with equal grants are one kind, and its list is one for all", "[grants]") {
  PlanInput in = job({{set("0-7"), std::nullopt}}, {0, 0, 0});
  const Plan plan = planned(in);
  REQUIRE(plan.placement.classes.size() == 1);
  CHECK(plan.placement.layout == std::vector<NodeRun>{{0, 3}});
  CHECK(plan.placement.cores == 24);
  for (const RankPlan& rank : plan.placement.classes[0].ranks)
    CHECK(set("0-7").contains(rank.cpus));
}

TEST_CASE("different numbers of devices: a rank for each, unless counts were typed", "[grants]") {
  PlanInput in =
      job({{set("0-15"), std::vector{0, 1, 2}}, {set("0-15"), std::vector{3}}}, {0, 1, 0});
  asked(in).gpu_view = "own";
  const Plan plan = planned(in);
  CHECK(plan.world_size() == 7);
  CHECK(each(plan, "ROCR_VISIBLE_DEVICES") == Items{{"0", "1", "2"}, {"3"}});
  asked(in).ranks_per_node = 3;  // these share
  CHECK(each(planned(in), "ROCR_VISIBLE_DEVICES") == Items{{"0", "1", "2"}, {"3", "3", "3"}});
  asked(in).gpu_view = "";
  const Plan shared = planned(in);
  const Setting* view = shared.find_choice("gpu-view");
  REQUIRE(view != nullptr);
  CHECK(std::get<std::string>(view->value()) == "own");
}

TEST_CASE("a host without any device, and one device of the user's among those granted",
          "[grants]") {
  PlanInput in = job({{set("0-15"), std::vector{0, 1}}, {set("0-15"), std::vector<int>{}}}, {0, 1});
  asked(in).gpu_view = "all";
  CHECK(each(planned(in), "ROCR_VISIBLE_DEVICES") == Items{{"0,1", "0,1"}, {""}});
  in = job({{set("0-15"), std::vector{1, 2}}}, {0}, {{"ROCR_VISIBLE_DEVICES", "2"}});
  in.grants_mask = "1,2";
  asked(in).gpu_view = "own";
  const Plan one = planned(in);
  CHECK(one.world_size() == 1);
  CHECK(each(one, "ROCR_VISIBLE_DEVICES") == Items{{"2"}});
  in = job({{set("0-15"), std::vector<int>{}}}, {0}, {{"CUDA_VISIBLE_DEVICES", "-1"}});
  in.grants_mask = "-1";
  const Plan none = planned(in);
  CHECK(none.find_env("ROCR_VISIBLE_DEVICES") == nullptr);
  CHECK(rules(none) == std::vector<std::string>{"no-device-left"});
}

TEST_CASE("--agent has all that is granted on each host", "[grants]") {
  PlanInput in = job({{set("0-7"), std::vector{2, 3}}, {set("8-15"), std::vector{1}}}, {0, 1});
  asked(in).agent = true;
  const Plan plan = planned(in);
  CHECK(each(plan, "ROCR_VISIBLE_DEVICES") == Items{{"2,3"}, {"1"}});
  CHECK(plan.placement.classes[1].ranks[0].cpus == set("8-15"));
}
