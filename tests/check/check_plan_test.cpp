#include <algorithm>

#include "hpclaunch/check.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

Plan plan_of(std::vector<Setting> env, int ranks = 2) {
  Plan plan;
  plan.hosts = {"n0"};
  NodeClass one;
  for (int r = 0; r < ranks; ++r) {
    RankPlan rank;
    rank.cpus.add(2 * r);
    rank.cpus.add(2 * r + 1);
    one.ranks.push_back(rank);
  }
  plan.classes = {one};
  plan.layout = {NodeRun{0, 1}};
  plan.env = std::move(env);
  return plan;
}

Setting setting(std::string name, std::vector<std::pair<Layer, Value>> decisions) {
  Setting result{std::move(name), {}};
  for (auto& [layer, value] : decisions) result.history.push_back({layer, value, {}, "why"});
  return result;
}

bool finds(const Plan& plan, const EnvSnapshot& env, const std::string& rule) {
  const auto diagnostics = check_plan(plan, env);
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [&](const Diagnostic& f) { return f.id == rule; });
}

}  // namespace

TEST_CASE("a plain plan has nothing to remark", "[check]") {
  CHECK(check_plan(plan_of({setting("RANK", {{Layer::computed, RankFact::rank}})}), EnvSnapshot{})
            .empty());
}

TEST_CASE("an export that loses is named, one that agrees is not", "[check]") {
  const Plan loses =
      plan_of({setting("WORLD_SIZE", {{Layer::environment, "1"}, {Layer::computed, "2"}})});
  CHECK(finds(loses, EnvSnapshot{}, "export-overruled"));
  const Plan agrees =
      plan_of({setting("WORLD_SIZE", {{Layer::environment, "2"}, {Layer::computed, "2"}})});
  CHECK_FALSE(finds(agrees, EnvSnapshot{}, "export-overruled"));
}

TEST_CASE("one value for what differs by rank is an error", "[check]") {
  const auto finds_typed = [](const char* name, RankFact fact, int ranks = 2) {
    const Setting one = setting(name, {{Layer::computed, fact}, {Layer::command_line, "0"}});
    return finds(plan_of({one}, ranks), EnvSnapshot{}, "same-on-every-rank");
  };
  CHECK(finds_typed("RANK", RankFact::rank));
  CHECK(finds_typed("LOCAL_RANK", RankFact::local_rank));
  CHECK(finds_typed("ROLE_RANK", RankFact::rank));
  CHECK_FALSE(finds_typed("NODE_RANK", RankFact::node));  // one node
  CHECK_FALSE(finds_typed("RANK", RankFact::rank, 1));
}

TEST_CASE("more threads than CPUs is remarked when somebody asked for it", "[check]") {
  CHECK(finds(plan_of({setting("OMP_NUM_THREADS", {{Layer::environment, "64"}})}), EnvSnapshot{},
              "more-threads-than-cpus"));
  CHECK_FALSE(finds(plan_of({setting("OMP_NUM_THREADS", {{Layer::environment, "2"}})}),
                    EnvSnapshot{}, "more-threads-than-cpus"));
  CHECK_FALSE(finds(plan_of({setting("OMP_NUM_THREADS", {{Layer::environment, "many"}})}),
                    EnvSnapshot{}, "more-threads-than-cpus"));
}

TEST_CASE("other variables that bind", "[check]") {
  const Plan plan = plan_of({});
  CHECK(finds(plan, EnvSnapshot({"GOMP_CPU_AFFINITY=0-3"}), "competing-binding"));
  CHECK(finds(plan, EnvSnapshot({"KMP_AFFINITY=explicit,proclist=[0]"}), "competing-binding"));
  CHECK_FALSE(
      finds(plan, EnvSnapshot({"KMP_AFFINITY=granularity=fine,compact"}), "competing-binding"));
}

TEST_CASE("a profile's demand against an export shows both values, secrets excepted", "[check]") {
  const auto demand = [](const char* name, Value value) {
    Setting one = setting(name, {{Layer::environment, "mine"}, {Layer::profile_require, value}});
    one.history.back().rule = "r";
    one.history.back().profile = "p";
    return one;
  };
  const auto message = [](const Setting& one) {
    for (const Diagnostic& diagnostic : check_plan(plan_of({one}), EnvSnapshot{}))
      if (diagnostic.id == "export-against-profile") return diagnostic.message;
    return std::string();
  };
  CHECK_THAT(message(demand("XYZ", "theirs")), ContainsSubstring("XYZ=\"mine\""));
  CHECK_THAT(message(demand("XYZ", "theirs")), ContainsSubstring("\"theirs\""));
  CHECK_THAT(message(demand("XYZ", Unset{})), ContainsSubstring("unset"));
  CHECK(message(demand("XYZ", "mine")).empty());
  CHECK(message(demand("XYZ", "/new:mine")).empty());  // put before it, nothing lost
  CHECK(message(demand("MY_TOKEN", "theirs")).find("mine") == std::string::npos);
}

TEST_CASE("a list for oneCCL's workers has the length that it wants", "[check]") {
  const auto wrong = [](const char* list, int ranks, const char* workers = nullptr) {
    std::vector<Setting> env = {
        setting("CCL_WORKER_AFFINITY", {{Layer::command_line, std::string(list)}})};
    if (workers != nullptr)
      env.push_back(setting("CCL_WORKER_COUNT", {{Layer::environment, std::string(workers)}}));
    return finds(plan_of(std::move(env), ranks), EnvSnapshot{}, "list-length");
  };
  CHECK(!wrong("1,2", 2));
  CHECK(!wrong("4-5", 2));
  CHECK(!wrong("auto", 2));
  CHECK(!wrong("1,2,5-6", 2, "2"));
  CHECK(wrong("1,2", 2, "2"));
  CHECK(wrong("1,2,3", 2));
  CHECK(wrong("1-4", 2));
  CHECK(finds(plan_of({}, 2), EnvSnapshot({"CCL_WORKER_AFFINITY=7"}), "list-length"));
  CHECK(finds(plan_of({}, 2), EnvSnapshot({"HOROVOD_THREAD_AFFINITY=7"}), "list-length"));
  CHECK(!finds(plan_of({}, 2), EnvSnapshot({"HOROVOD_THREAD_AFFINITY=7,9"}), "list-length"));
}

TEST_CASE("helper threads stay off the cores of ranks", "[check]") {
  const auto busy = [](const char* list, const char* workers = "1") {
    Plan plan = plan_of({}, 2);
    plan.classes[0].ranks[0].cpus = *CpuSet::parse("4-7");
    plan.classes[0].ranks[1].cpus = *CpuSet::parse("8-11");
    const EnvSnapshot env({list, std::string("CCL_WORKER_COUNT=") + workers});
    for (const Diagnostic& one : check_plan(plan, env))
      if (one.id == "helper-cores") return one.message;
    return std::string();
  };
  CHECK(busy("CCL_WORKER_AFFINITY=42,43").empty());
  CHECK(busy("CCL_WORKER_AFFINITY=5,13") ==
        "CCL_WORKER_AFFINITY puts 1 of 2 threads of oneCCL on cores of ranks");
  CHECK_THAT(busy("CCL_WORKER_AFFINITY=5,42,8,9", "2"), ContainsSubstring("puts 3 of 4 "));
  CHECK(busy("HOROVOD_THREAD_AFFINITY=4,8").empty());  // each on a core of its own rank
  CHECK(busy("HOROVOD_THREAD_AFFINITY=4,7") ==
        "HOROVOD_THREAD_AFFINITY puts 1 of 2 threads of Horovod on cores of other ranks");
}

TEST_CASE("a typed size or local rank that is not the plan's is an error", "[check]") {
  const auto typed = [](const char* name, const char* planned, const char* value) {
    return plan_of({setting(name, {{Layer::computed, planned}, {Layer::command_line, value}})});
  };
  CHECK(finds(typed("WORLD_SIZE", "2", "5"), EnvSnapshot{}, "identity-contradicts"));
  CHECK(finds(typed("LOCAL_WORLD_SIZE", "2", "5"), EnvSnapshot{}, "identity-contradicts"));
  CHECK(finds(typed("LOCAL_RANK", "0", "1"), EnvSnapshot{}, "identity-contradicts"));
  CHECK_FALSE(finds(typed("WORLD_SIZE", "2", "2"), EnvSnapshot{}, "identity-contradicts"));
  CHECK_FALSE(finds(typed("OTHER", "2", "5"), EnvSnapshot{}, "identity-contradicts"));
}

TEST_CASE("a typed device mask would leave ranks without a device", "[check]") {
  const auto with = [](Value value, const char* view, int ranks) {
    Plan plan = plan_of({setting("CUDA_VISIBLE_DEVICES",
                                 {{Layer::environment, "0,1"}, {Layer::command_line, value}})},
                        ranks);
    plan.gpu_view = view;
    return finds(plan, EnvSnapshot{}, "mask-typed");
  };
  CHECK(with("0", "all", 2));
  CHECK(with("", "own", 2));
  CHECK(with(Unset{}, "own", 2));
  CHECK_FALSE(with(Unset{}, "all", 2));
  CHECK_FALSE(with("3", "own", 1));
  CHECK_FALSE(with("0", "", 2));
}

TEST_CASE("loopback is no interface between nodes", "[check]") {
  const auto on = [](int nodes, const char* value) {
    Plan plan = plan_of({});
    plan.hosts = {"n0"};
    if (nodes > 1) plan.hosts.push_back("n1");
    plan.layout = {NodeRun{0, nodes}};
    return finds(plan, EnvSnapshot{{std::string("GLOO_SOCKET_IFNAME=") + value}},
                 "interface-loopback");
  };
  CHECK(on(2, "lo"));
  CHECK_FALSE(on(1, "lo"));
  CHECK_FALSE(on(2, "eth0"));
  CHECK_FALSE(on(2, ""));
}

TEST_CASE("a list of helper threads that cannot be meant", "[check]") {
  const auto finds_in = [](const char* list, const char* rule) {
    Plan plan = plan_of({});
    plan.bind_via = BindVia::shim;
    return finds(plan, EnvSnapshot{{std::string("CCL_WORKER_AFFINITY=") + list}}, rule);
  };
  CHECK(finds_in("a,b", "list-invalid"));
  CHECK_FALSE(finds_in("auto", "list-invalid"));
  CHECK_FALSE(finds_in("", "list-invalid"));
  CHECK(finds_in("9,9", "list-repeats"));
  CHECK_FALSE(finds_in("8,9", "list-repeats"));
}
