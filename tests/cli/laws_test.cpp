// The laws of `hpclaunch profile test`, on plans that are wrong on purpose: the planner makes none.
#include <algorithm>
#include <memory>

#include "authoring/command.h"
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
  Request asked;
  InvariantContext bench = make_context(profile, profile.nodes.front(), *find_launcher("local"));

  Bench() {
    PlanInput input;
    input.node = profile.nodes.front().topology;
    input.profile = &profile;
    input.model = &profile.nodes.front();
    input.hosts = {"n1"};
    input.launcher = find_launcher("local")->traits;
    asked.nodes = 1;
    asked.ranks_per_node = 2;
    asked.command = {"true"};
    input.request = std::make_shared<Request>(asked);
    input.command = asked.command;
    plan = *make_plan(input);
  }

  std::vector<RankPlan>& ranks() { return plan.placement.classes.front().ranks; }
  Value& value(const char* name) {
    const auto at = std::find_if(plan.environment.settings.begin(), plan.environment.settings.end(),
                                 [&](const Setting& s) { return s.name == name; });
    REQUIRE(at != plan.environment.settings.end());
    return at->history.back().value;
  }
  EnvSnapshot env;
  Sample sample(const Plan* again) const {
    return {&asked, &plan, again, find_launcher("local"), &env};
  }
  std::string breach(const std::string& name, const Plan* again = nullptr) {
    for (const Invariant& law : kInvariants)
      if (name == law.name) return law.violation(bench, sample(again));
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
    CHECK(law.violation(made.bench, made.sample(&again)).empty());
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
    std::swap(made.ranks()[0].slots, made.ranks()[1].slots);
    CHECK_THAT(made.breach("near-device"), ContainsSubstring("does not report it"));
  }
  SECTION("far from one of two devices, whose cores are idle") {
    made.ranks()[0].slots.push_back({1, 1, -1});
    CHECK(made.breach("near-device").empty());
    made.ranks().pop_back();
    CHECK_THAT(made.breach("near-device"),
               ContainsSubstring("none of the idle ones near its device 1"));
  }
  SECTION("idle cores near devices of a rank that has several") {
    made.ranks()[0].slots.push_back({1, 1, -1});
    made.ranks().pop_back();
    CHECK(made.breach("several-devices").empty());
    made.asked.devices_per_rank = 2;
    CHECK(made.breach("several-devices") == "2 cores near devices of ranks are idle");
  }
  SECTION("idle cores, and silent about them") {
    made.ranks().pop_back();
    CHECK(made.breach("idle-cores") == "2 of 3 cores are idle, and the plan does not report it");
  }
  SECTION("no device") {
    made.ranks()[1].slots.clear();
    CHECK(made.breach("own-device") == "rank 1 has no device");
  }
  SECTION("a list that is too short") {
    made.value("A_LIST") = std::string("0");
    CHECK_THAT(made.breach("list-length"), ContainsSubstring("1 item for 2 ranks"));
  }
  SECTION("a value that nothing reads") {
    made.plan.environment.settings.push_back({"NCCL_DEBUG", {Decision{}}});
    made.value("NCCL_DEBUG") = std::string("LOUD");
    CHECK_THAT(made.breach("known-variable"), ContainsSubstring("NCCL_DEBUG=LOUD"));
  }
  SECTION("nothing for the shim") {
    made.plan.environment.wire.clear();
    CHECK_THAT(made.breach("launch-line"), ContainsSubstring("no message for the shim"));
  }
  SECTION("LOCAL_RANK beyond what a rank sees") {
    made.plan.placement.gpu_view = "all";
    made.plan.environment.settings.push_back({"CUDA_VISIBLE_DEVICES", {Decision{}}});
    made.value("CUDA_VISIBLE_DEVICES") = std::string("0");
    CHECK_THAT(made.breach("local-rank"), ContainsSubstring("a rank sees 1 device"));
    made.plan.explanation.reports.push_back({"shared-devices", Severity::note, "", ""});
    CHECK(made.breach("local-rank").empty());
    made.value("LOCAL_RANK") = std::string("1");
    CHECK_THAT(made.breach("local-rank"), ContainsSubstring("1 on every rank"));
  }
  SECTION("names of one rank that do not agree") {
    made.value("NODE_RANK") = std::string("1");
    CHECK(made.breach("identity") == "rank 0 finds NODE_RANK=1, which must be 0");
    made.value("NODE_RANK") = RankFact::rank;
    CHECK(made.breach("identity") == "rank 1 finds NODE_RANK=1, which must be 0");
  }
  SECTION("a name that is missing") {
    std::erase_if(made.plan.environment.settings,
                  [](const Setting& one) { return one.name == "WORLD_SIZE"; });
    CHECK(made.breach("identity") == "rank 0 finds WORLD_SIZE not set, which must be 2");
  }
  SECTION("without torchrun's mark Lightning reads the batch system's names") {
    made.value("TORCHELASTIC_RUN_ID") = Unset{};
    CHECK(made.breach("identity") == "TORCHELASTIC_RUN_ID is not set");
  }
  SECTION("half of a batch system's names") {
    made.env = EnvSnapshot({"SLURM_PROCID=0"});
    CHECK(made.breach("identity") == "rank 0 finds SLURM_LOCALID not set, which must be 0");
  }
  SECTION("names of the shell and of another launch") {
    made.env = misleading_environment(nullptr);
    CHECK_THAT(made.breach("identity"), ContainsSubstring("rank 0 finds SLURM_PROCID=99999"));
    for (const char* name : {"PMI_RANK", "JSM_NAMESPACE_", "OMPI_COMM_WORLD_", "PALS_RANKID"})
      CHECK(made.env.has(name));
    made.env = EnvSnapshot({"PMI_RANK=99999"});
    CHECK(made.breach("identity") == "ranks find PMI_RANK=99999 of another launch");
  }
  SECTION("the launcher's own rank is removed") {
    made.plan.environment.removed = {"HPCLAUNCH_LOCAL_RANK"};
    CHECK_THAT(made.breach("identity"), ContainsSubstring("does not find the rank that local"));
  }
  SECTION("another plan the second time") {
    Plan again = made.plan;
    again.environment.settings.pop_back();
    CHECK_FALSE(made.breach("repeatable", &again).empty());
  }
}

TEST_CASE("identities are planned under every launcher, in and out of a job") {
  for (const Scheduler& one : rows<Scheduler>())
    CHECK(find_batch(misleading_environment(&one)).name() == one.name);
  CHECK(find_batch(misleading_environment(nullptr)).name() == "none");
  const Profile without = parse_profile(kProfile, "x").profile;
  Profile with = without;
  with.scheduler = "slurm";
  const auto planned = [](const Profile& profile) {
    Suite suite;
    check_invariants(std::make_shared<const Profile>(profile), suite);
    for (const Check& check : suite.checks) {
      INFO(check.name << (check.diagnostics.empty() ? "" : check.diagnostics.front().message));
      CHECK((check.diagnostics.empty() || check.name.starts_with("known-variable")));
    }
    return suite.plans;
  };
  const auto shapes = static_cast<long>(3 * launchers().size() - 2);  // local has one node
  CHECK(planned(with) - planned(without) == shapes);
}

// By the number of plans, not by time.
TEST_CASE("plans for a large node grow with the root of its cores") {
  const auto plans = [](int cores) {
    std::string text =
        R"({"schema": 1, "name": "x", "doc": "x", "nodes": [{"name": "n", "packages": 2,
      "numa_per_package": 4, "cores_per_numa": )";
    text += std::to_string(cores / 8) + "}]}";
    const ParsedProfile parsed = parse_profile(text, "x");
    REQUIRE(parsed.problems.empty());
    Suite suite;
    check_invariants(std::make_shared<const Profile>(parsed.profile), suite);
    return suite.plans;
  };
  const long small = plans(32);
  CHECK(small >= 32);
  CHECK(plans(256) - small <= 2 * 16);
  CHECK(plans(1024) - small <= 2 * 32 + 4);
}
