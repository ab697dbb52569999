#include "hpclaunch/make_plan.h"

#include <set>

#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

PlanInput input(int hosts, int cores, int numa = 1) {
  PlanInput in = test::job_on(test::even_machine(1, numa, cores / numa), hosts);
  in.launcher.rank_var = "PMI_RANK";
  in.launcher.local_rank_var = "MPI_LOCALRANKID";
  return in;
}

std::vector<int> sizes(const Plan& plan) {
  std::vector<int> result;
  for (const NodeRun& run : plan.placement.layout)
    for (int n = 0; n < run.nodes; ++n)
      result.push_back(static_cast<int>(
          plan.placement.classes[static_cast<std::size_t>(run.node_class)].ranks.size()));
  return result;
}

std::string constant(const Plan& plan, const char* name) {
  const Setting* setting = plan.find_env(name);
  REQUIRE(setting != nullptr);
  const auto* text = std::get_if<std::string>(&setting->value());
  REQUIRE(text != nullptr);
  return *text;
}

using Sizes = std::vector<int>;

}  // namespace

TEST_CASE("counts follow from what was typed", "[plan][counts]") {
  struct Case {
    int hosts, nodes, ranks, per_node, slots;  // 0: not typed
    Sizes expect;
  };
  const Case cases[] = {{1, 0, 0, 0, 0, {2}},        // one per NUMA node
                        {3, 0, 0, 0, 4, {4, 4, 4}},  // what the allocation asks for
                        {3, 2, 0, 0, 0, {2, 2}},    {3, 0, 6, 0, 0, {2, 2, 2}},
                        {3, 0, 7, 0, 0, {3, 2, 2}}, {3, 0, 2, 0, 0, {1, 1}},
                        {3, 0, 5, 2, 0, {2, 2, 1}}, {3, 0, 4, 2, 0, {2, 2}},
                        {3, 3, 0, 5, 0, {5, 5, 5}}, {3, 3, 7, 5, 0, {5, 1, 1}},
                        {3, 0, 1, 0, 8, {1}},       {4, 0, 8, 0, 4, {2, 2, 2, 2}}};
  for (const Case& one : cases) {
    PlanInput in = input(one.hosts, 8, 2);
    if (one.nodes > 0) asked(in).nodes = one.nodes;
    if (one.ranks > 0) asked(in).ranks = one.ranks;
    if (one.per_node > 0) asked(in).ranks_per_node = one.per_node;
    if (one.slots > 0) in.slots.assign(static_cast<std::size_t>(one.hosts), one.slots);
    INFO(one.hosts << " hosts, -N " << one.nodes << " -n " << one.ranks << " --ppn "
                   << one.per_node);
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(sizes(*plan) == one.expect);
    CHECK(plan->nodes() == static_cast<int>(one.expect.size()));
    int total = 0;
    for (const int size : one.expect) total += size;
    CHECK(plan->world_size() == total);
    CHECK(constant(*plan, "WORLD_SIZE") == std::to_string(total));
    for (const NodeRun& run : plan->placement.layout)
      CHECK(static_cast<std::size_t>(run.node_class) < plan->placement.classes.size());
  }
}

TEST_CASE("a list with a count for each node is taken as it is", "[plan][counts]") {
  PlanInput in = input(3, 8);
  in.slots = {4, 2, 1};
  CHECK(sizes(*make_plan(in)) == Sizes{4, 2, 1});
  asked(in).nodes = 2;
  CHECK(sizes(*make_plan(in)) == Sizes{4, 2});
  asked(in).nodes.reset();
  asked(in).ranks = 6;  // somebody asked for something else: spread evenly
  CHECK(sizes(*make_plan(in)) == Sizes{2, 2, 2});
}

TEST_CASE("counts that contradict each other are refused with the numbers", "[plan][counts]") {
  struct Case {
    int nodes, ranks, per_node;
    const char* message;
  };
  const Case cases[] = {{3, 0, 0, "3 nodes requested, 2 available (a list)"},
                        {2, 1, 0, "1 rank on 2 nodes: every node needs a rank"},
                        {2, 9, 4, "9 ranks on 2 nodes contradict 4 ranks per node"},
                        {0, 9, 4, "9 ranks at 4 per node need 3 nodes, 2 available (a list)"},
                        {0, 0, 9, "9 ranks per node, the node has 8 cores available"}};
  for (const Case& one : cases) {
    PlanInput in = input(2, 8);
    if (one.nodes > 0) asked(in).nodes = one.nodes;
    if (one.ranks > 0) asked(in).ranks = one.ranks;
    if (one.per_node > 0) asked(in).ranks_per_node = one.per_node;
    const auto plan = make_plan(in);
    REQUIRE_FALSE(plan);
    CHECK(plan.error().kind == ErrorKind::usage);
    CHECK(plan.error().message == one.message);
    CHECK_FALSE(plan.error().hint.empty());
  }
  PlanInput in = input(2, 8);
  in.launcher.multi_node = false;
  CHECK(make_plan(in).error().kind == ErrorKind::unsupported);
}

TEST_CASE("threads follow the cores of each rank, never a constant", "[plan][threads]") {
  PlanInput in = input(1, 8);
  asked(in).ranks = 2;
  CHECK(constant(*make_plan(in), "OMP_NUM_THREADS") == "4");
  CHECK(constant(*make_plan(in), "MKL_NUM_THREADS") == "4");
  asked(in).ranks = 3;
  const auto uneven = make_plan(in);
  const auto* threads = std::get_if<PerRank>(&uneven->find_env("OPENBLAS_NUM_THREADS")->value());
  REQUIRE(threads != nullptr);
  CHECK(threads->items == std::vector<std::vector<std::string>>{{"3", "3", "2"}});
  asked(in).cores_per_rank = 1;
  CHECK(constant(*make_plan(in), "OMP_NUM_THREADS") == "1");
}

TEST_CASE("the user's thread count holds, and the other libraries follow it", "[plan][threads]") {
  PlanInput in = input(1, 8);
  in.env = EnvSnapshot({"OMP_NUM_THREADS=2,1", "MKL_NUM_THREADS=5"});
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(constant(*plan, "OMP_NUM_THREADS") == "2,1");
  CHECK(constant(*plan, "OPENBLAS_NUM_THREADS") == "2");
  CHECK(constant(*plan, "MKL_NUM_THREADS") == "5");
  const Setting* omp = plan->find_env("OMP_NUM_THREADS");
  REQUIRE(omp->history.size() == 2);
  CHECK(omp->history[0].layer == Layer::builtin);
  CHECK(omp->history[1].layer == Layer::environment);
  asked(in).set = {{"OMP_NUM_THREADS", "3"}};
  const auto typed = make_plan(in);
  CHECK(constant(*typed, "OMP_NUM_THREADS") == "3");
  CHECK(constant(*typed, "OPENBLAS_NUM_THREADS") == "3");
  CHECK(typed->find_env("OMP_NUM_THREADS")->history.size() == 3);
  asked(in).set.clear();
  in.env = EnvSnapshot({"OMP_NUM_THREADS="});
  CHECK(constant(*make_plan(in), "OPENBLAS_NUM_THREADS") == "8");
}

TEST_CASE("the batch system's thread count yields to the cores of each rank", "[plan][threads]") {
  PlanInput in = input(1, 8);
  asked(in).ranks = 2;
  in.env = EnvSnapshot({"OMP_NUM_THREADS=64"});
  in.of_batch = {{"OMP_NUM_THREADS", "PBS sets it to NCPUS"}};
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(constant(*plan, "OMP_NUM_THREADS") == "4");
  CHECK(constant(*plan, "MKL_NUM_THREADS") == "4");
  const Setting* omp = plan->find_env("OMP_NUM_THREADS");
  REQUIRE(omp->history.size() == 2);
  CHECK(omp->history[0].layer == Layer::batch_system);
  CHECK(omp->history[0].why == "PBS sets it to NCPUS");
  asked(in).agent = true;
  const auto agent = make_plan(in);
  REQUIRE(agent);
  CHECK(std::holds_alternative<Unset>(agent->find_env("OMP_NUM_THREADS")->value()));
}

TEST_CASE("identity and meeting place, whatever the user's shell holds", "[plan][rendezvous]") {
  PlanInput in = input(2, 8);
  asked(in).ranks_per_node = 4;
  in.env = EnvSnapshot({"RANK=9", "WORLD_SIZE=1", "MASTER_PORT=29500", "UNRELATED=x"});
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->find_env("RANK")->value() == Value(RankFact::rank));
  CHECK(plan->find_env("RANK")->history.front().layer == Layer::environment);
  CHECK(plan->find_env("LOCAL_RANK")->value() == Value(RankFact::local_rank));
  CHECK(plan->find_env("GROUP_RANK")->value() == Value(RankFact::node));
  CHECK(plan->find_env("NODE_RANK")->value() == Value(RankFact::node));
  CHECK(constant(*plan, "WORLD_SIZE") == "8");
  CHECK(constant(*plan, "LOCAL_WORLD_SIZE") == "4");
  CHECK(constant(*plan, "MASTER_ADDR") == "n0");
  CHECK(constant(*plan, "MASTER_PORT") == "29500");
  CHECK(plan->find_env("UNRELATED") == nullptr);
  asked(in).master_port = 1111;
  asked(in).master_addr = "10.0.0.1";
  CHECK(constant(*make_plan(in), "MASTER_PORT") == "1111");
  CHECK(constant(*make_plan(in), "MASTER_ADDR") == "10.0.0.1");
  asked(in).ranks_per_node.reset();
  asked(in).ranks = 3;
  CHECK(make_plan(in)->find_env("LOCAL_WORLD_SIZE")->value() == Value(RankFact::local_size));
  std::string before;
  for (const Setting& setting : plan->environment.settings) {
    CHECK(before < setting.name);
    before = setting.name;
    for (std::size_t i = 1; i < setting.history.size(); ++i)
      CHECK(setting.history[i - 1].layer <= setting.history[i].layer);
    CHECK_FALSE(setting.history.back().why.empty());
  }
}

TEST_CASE("typed settings win, and odd names are refused", "[plan]") {
  PlanInput in = input(1, 2);
  in.env = EnvSnapshot({"A=1", "HYDRA_BINDING=core"});
  in.launcher.conflicting = {{"HYDRA_BINDING", "why"}, {"HYDRA_MAPPING", "why"}};
  asked(in).set = {{"A", "2"}, {"B", ""}, {"A", "3"}};
  asked(in).unset = {"C", "PYTHONUNBUFFERED"};
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(constant(*plan, "A") == "3");
  CHECK(constant(*plan, "B").empty());
  CHECK(plan->find_env("C")->value() == Value(Unset{}));
  CHECK(plan->find_env("PYTHONUNBUFFERED")->value() == Value(Unset{}));
  CHECK(plan->find_env("HYDRA_BINDING")->value() == Value(Unset{}));
  CHECK(plan->find_env("HYDRA_MAPPING") == nullptr);
  asked(in).set = {{"A=B", "2"}};
  CHECK_FALSE(make_plan(in));
  asked(in).set.clear();
  asked(in).unset = {""};
  CHECK_FALSE(make_plan(in));
}

TEST_CASE("who binds", "[plan][binding]") {
  PlanInput in = input(2, 8);
  CHECK(make_plan(in)->placement.bind_via == BindVia::launcher);
  asked(in).bind_via = BindVia::shim;
  CHECK(make_plan(in)->placement.bind_via == BindVia::shim);
  asked(in).bind_via = BindVia::none;
  const auto unbound = make_plan(in);
  CHECK(unbound->placement.classes[0].ranks[0].cpus.empty());
  CHECK(constant(*unbound, "OMP_NUM_THREADS") == "8");
  CHECK(unbound->find_choice("cpu-bind")->history.size() == 2);
  asked(in).bind_via = BindVia::launcher;
  asked(in).ranks = 3;  // 2 and 1: the lists differ between nodes
  CHECK_FALSE(make_plan(in));
  asked(in).bind_via.reset();
  CHECK(make_plan(in)->placement.bind_via == BindVia::shim);
  asked(in).ranks.reset();
  in.launcher.binds_sets = false;
  CHECK(make_plan(in)->placement.bind_via == BindVia::shim);
  asked(in).bind_via = BindVia::launcher;
  CHECK(make_plan(in).error().kind == ErrorKind::unsupported);
}

TEST_CASE("ports stay outside the kernel's range and apart for different jobs", "[plan][ports]") {
  const std::pair<int, int> ranges[] = {
      {32768, 60999}, {1024, 65535}, {10000, 65535}, {9000, 65000}, {1024, 60000}};
  for (const auto& [low, high] : ranges) {
    const std::vector<int> ports = candidate_ports("job", low, high);
    CHECK(std::set<int>(ports.begin(), ports.end()).size() == 64);
    for (const int port : ports) {
      CHECK(port >= 1024);
      CHECK(port <= 65535);
      if (low > 1100 || high < 65400) CHECK((port < low || port > high));
    }
    CHECK(candidate_ports("job", low, high) == ports);
  }
  std::set<int> first;
  for (int job = 0; job < 1000; ++job)
    first.insert(candidate_ports(std::to_string(job), 32768, 60999).front());
  CHECK(first.size() > 950);
}

TEST_CASE("any machine and any count: a plan with its laws, or a refusal with a reason",
          "[plan][law]") {
  test::Random random(3);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    PlanInput in = input(random.in(1, 5), 2);
    in.node = test::random_topology(seed);
    if (random.chance(60)) asked(in).ranks = random.in(1, 40);
    if (random.chance(40)) asked(in).ranks_per_node = random.in(1, 12);
    if (random.chance(30)) asked(in).nodes = random.in(1, 5);
    if (random.chance(20)) asked(in).cores_per_rank = random.in(1, 4);
    if (random.chance(20)) asked(in).oversubscribe = true;
    INFO("seed " << seed);
    const auto plan = make_plan(in);
    if (!plan) {
      CHECK_FALSE(plan.error().message.empty());
      continue;
    }
    int nodes = 0;
    for (const NodeRun& run : plan->placement.layout) nodes += run.nodes;
    CHECK(nodes == plan->nodes());
    if (in.request->ranks) CHECK(plan->world_size() == *in.request->ranks);
    if (in.request->ranks_per_node) CHECK(plan->max_local_size() <= *in.request->ranks_per_node);
    CHECK(plan->environment.wire.rfind("hl2.", 0) == 0);
  }
}
