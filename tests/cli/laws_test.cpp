// The laws of `hpclaunch profile test`, on plans that are wrong on purpose: the planner makes none.
#include <algorithm>

#include "authoring/invariants.h"
#include "hpclaunch/launcher.h"
#include "support/catch.h"

using namespace hpclaunch;
using namespace hpclaunch::authoring;

namespace {

constexpr const char* kProfile = R"({"schema": 1, "name": "x", "doc": "x", "nodes": [{"name": "n",
  "packages": 2, "cores_per_numa": 2, "threads_per_core": 2,
  "reserved": {"cores": "0", "why": "the system's"},
  "devices": {"vendor": "nvidia", "list": [{"numa": 0}, {"numa": 1}]}}],
  "rules": [{"id": "r", "default": {"A_LIST": {"each": "rank", "item": "${local_rank}", "join": ","}},
             "why": "for the law"}]})";

struct Bench {
  Profile profile = parse_profile(kProfile, "x").profile;
  Plan plan;
  InvariantContext bench = make_context(profile, profile.nodes.front(), *find_launcher("local"));

  Bench() {
    PlanInput input;
    input.node = profile.nodes.front().topology;
    input.profile = &profile;
    input.model = &profile.nodes.front();
    input.hosts = {"n1"};
    input.launcher = find_launcher("local")->traits;
    input.request.ranks_per_node = 2;
    input.request.command = {"true"};
    plan = *make_plan(input);
  }

  std::vector<RankPlan>& ranks() { return plan.classes.front().ranks; }
  Value& value(const char* name) {
    const auto at = std::find_if(plan.env.begin(), plan.env.end(),
                                 [&](const Setting& s) { return s.name == name; });
    REQUIRE(at != plan.env.end());
    return at->history.back().value;
  }
  std::string breach(const std::string& name, const Plan* again = nullptr) {
    for (const Invariant& law : kInvariants)
      if (name == law.name) return law.violation(bench, {2, 1, "", &plan, again});
    FAIL("no law " + name);
    return "";
  }
};

CpuSet cpus(const char* list) { return *CpuSet::parse(list); }

}  // namespace

TEST_CASE("a plan of the planner's own breaks no law") {
  Bench made;
  const Plan again = made.plan;
  for (const Invariant& law : kInvariants) {
    INFO(law.name);
    CHECK(law.violation(made.bench, {2, 1, "", &made.plan, &again}).empty());
  }
}

TEST_CASE("each law finds the plan that breaks it") {
  Bench made;
  SECTION("counts") {
    made.ranks().pop_back();
    CHECK_THAT(made.breach("counts"), ContainsSubstring("got 1 rank on 1 node, requested 2 ranks"));
  }
  SECTION("the hardware threads of one core in two ranks") {
    made.ranks()[0].cpus = cpus("1");
    made.ranks()[1].cpus = cpus("5");
    CHECK_THAT(made.breach("cores-apart"), ContainsSubstring("ranks 0 and 1 share the core"));
  }
  SECTION("a rank without a core, and one that the node has not") {
    made.ranks()[1].cpus = CpuSet();
    CHECK(made.breach("cores-apart") == "rank 1 has no core");
    made.ranks()[1].cpus = cpus("8");
    CHECK_THAT(made.breach("cores-apart"), ContainsSubstring("which does not exist"));
  }
  SECTION("a reserved hardware thread") {
    made.ranks()[0].cpus.add(4);
    CHECK_THAT(made.breach("reserved-free"), ContainsSubstring("CPUs 4"));
  }
  SECTION("far from the device, and silent about it") {
    std::swap(made.ranks()[0].device, made.ranks()[1].device);
    CHECK_THAT(made.breach("near-device"), ContainsSubstring("does not report it"));
  }
  SECTION("far from one of two devices, whose cores are idle") {
    made.ranks()[0].more_units = {{1, 1, -1}};
    CHECK(made.breach("near-device").empty());
    made.ranks().pop_back();
    CHECK_THAT(made.breach("near-device"),
               ContainsSubstring("none of the idle ones near its device 1"));
  }
  SECTION("no device") {
    made.ranks()[1].device = -1;
    CHECK(made.breach("own-device") == "rank 1 has no device");
  }
  SECTION("a list that is too short") {
    made.value("A_LIST") = std::string("0");
    CHECK_THAT(made.breach("list-length"), ContainsSubstring("1 item for 2 ranks"));
  }
  SECTION("a value that nothing reads") {
    made.plan.env.push_back({"NCCL_DEBUG", {Decision{}}});
    made.value("NCCL_DEBUG") = std::string("LOUD");
    CHECK_THAT(made.breach("known-variable"), ContainsSubstring("NCCL_DEBUG=LOUD"));
  }
  SECTION("nothing for the shim") {
    made.plan.wire.clear();
    CHECK_THAT(made.breach("launch-line"), ContainsSubstring("no message for the shim"));
  }
  SECTION("LOCAL_RANK beyond what a rank sees") {
    made.plan.gpu_view = "all";
    made.plan.env.push_back({"CUDA_VISIBLE_DEVICES", {Decision{}}});
    made.value("CUDA_VISIBLE_DEVICES") = std::string("0");
    CHECK_THAT(made.breach("local-rank"), ContainsSubstring("a rank sees 1 device"));
    made.plan.reports.push_back({"shared-devices", Severity::note, "", ""});
    CHECK(made.breach("local-rank").empty());
    made.value("LOCAL_RANK") = std::string("1");
    CHECK_THAT(made.breach("local-rank"), ContainsSubstring("1 on every rank"));
  }
  SECTION("another plan the second time") {
    Plan again = made.plan;
    again.env.pop_back();
    CHECK_FALSE(made.breach("repeatable", &again).empty());
  }
}
