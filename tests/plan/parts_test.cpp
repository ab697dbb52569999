// Jobs on parts of nodes: how much of each is known, and not which CPUs.
#include <algorithm>
#include <numeric>

#include "hpclaunch/make_plan.h"
#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

Topology cores(int count, int threads = 1) {
  Topology node;
  for (int c = 0; c < count; ++c) {
    Core core{0, 0, {}};
    for (int t = 0; t < threads; ++t) core.pus.add(c + t * count);
    node.cores.push_back(core);
  }
  node.allowed = node.all_pus();
  node.packages.push_back({0, "", node.allowed});
  node.numa_nodes.push_back({0, 0, node.allowed});
  return node;
}

PlanInput input(const Topology& node, std::vector<int> granted) {
  PlanInput in = test::job_on(node, static_cast<int>(granted.size()));
  in.part_of_node = true;
  in.cores_known = false;
  in.granted = std::move(granted);
  in.granted_why = "GRANTS";
  in.launcher.local_rank_var = "L";
  return in;
}

const NodeClass& class_of(const Plan& plan, int host) {
  for (const NodeRun& run : plan.placement.layout) {
    if (host < run.nodes) return plan.placement.classes[static_cast<std::size_t>(run.node_class)];
    host -= run.nodes;
  }
  FAIL("no such host");
  return plan.placement.classes.front();
}

std::vector<int> sizes(const Plan& plan) {
  std::vector<int> all;
  for (int h = 0; h < plan.nodes(); ++h)
    all.push_back(static_cast<int>(class_of(plan, h).ranks.size()));
  return all;
}

// Every rank's part inside the grant, no place twice, sizes alike but for one.
void check_parts(const NodeClass& node) {
  int next = 0;
  int least = CpuSet::kCapacity;
  int most = 0;
  for (const RankPlan& rank : node.ranks) {
    CHECK(rank.cpus.empty());
    CHECK(rank.part_first == next);
    CHECK(rank.part_last >= rank.part_first);
    CHECK(rank.cores == rank.part_last - rank.part_first + 1);
    next = rank.part_last + 1;
    least = std::min(least, rank.cores);
    most = std::max(most, rank.cores);
  }
  CHECK(next <= node.granted);
  CHECK(most - least <= 1);
}

}  // namespace

TEST_CASE("each node is laid out for its own grant", "[plan][parts]") {
  PlanInput in = input(cores(64), {2, 8, 8});
  asked(in).ranks_per_node = 2;
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.classes.size() == 2);
  CHECK(plan->placement.layout == std::vector<NodeRun>{{0, 1}, {1, 2}});
  CHECK(class_of(*plan, 0).granted == 2);
  CHECK(class_of(*plan, 2).granted == 8);
  CHECK(class_of(*plan, 1).ranks[1].part_first == 4);
  CHECK(class_of(*plan, 1).ranks[1].part_last == 7);
  CHECK(plan->placement.bind_via == BindVia::shim);
  const Setting* threads = plan->find_env("OMP_NUM_THREADS");
  REQUIRE(threads != nullptr);
  CHECK(threads->value() == Value(PerRank{{{"1", "1"}, {"4", "4"}}}));
}

TEST_CASE("ranks are assigned to what each node has room for", "[plan][parts][counts]") {
  PlanInput in = input(cores(64), {2, 8});
  const std::pair<int, std::vector<int>> cases[] = {
      {2, {1, 1}}, {3, {2, 1}}, {5, {2, 3}}, {10, {2, 8}}};
  for (const auto& [ranks, want] : cases) {
    asked(in).ranks = ranks;
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(sizes(*plan) == want);
  }
  asked(in).ranks = 11;
  CHECK_THAT(make_plan(in).error().message, ContainsSubstring("10 cores granted in all (GRANTS)"));
  asked(in).oversubscribe = true;
  CHECK(make_plan(in)->world_size() == 11);
  asked(in).oversubscribe = false;
  asked(in).ranks.reset();
  asked(in).ranks_per_node = 3;
  CHECK_THAT(make_plan(in).error().message,
             ContainsSubstring("3 ranks requested on n0, 2 cores granted"));
  asked(in).ranks_per_node.reset();
  CHECK(sizes(*make_plan(in)) == std::vector<int>{1, 1});  // nothing asked for
  in.slots = {2, 6};
  in.slots_why = "SLOTS";
  CHECK(sizes(*make_plan(in)) == std::vector<int>{2, 6});
  asked(in).ranks = 8;
  CHECK(sizes(*make_plan(in)) == std::vector<int>{2, 6});
  asked(in).cores_per_rank = 2;
  asked(in).ranks = 5;
  CHECK(sizes(*make_plan(in)) == std::vector<int>{1, 4});
}

TEST_CASE("cores of several threads are counted, not their threads", "[plan][parts]") {
  PlanInput in = input(cores(8, 2), {4, 8});
  asked(in).ranks_per_node = 2;
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.bind_via == BindVia::shim);
  CHECK(plan->placement.counted == std::vector<CoreRun>{{0, 8, 1, 2, 8}});
  CHECK(class_of(*plan, 0).granted_cores == 2);
  CHECK(class_of(*plan, 0).ranks[1].part_first == 1);
  CHECK(class_of(*plan, 1).ranks[1].part_first == 2);
  CHECK(class_of(*plan, 1).ranks[1].part_last == 3);
  CHECK(class_of(*plan, 1).ranks[1].cores == 2);
  CHECK_THAT(plan->environment.wire, ContainsSubstring(":counted=0*8*1*2*8"));
  CHECK_THAT(plan->environment.wire, ContainsSubstring(":granted=2:part=0-0/1-1:class=2:"));
  CHECK_THAT(plan->environment.wire, ContainsSubstring(":granted=4:part=0-1/2-3"));
  CHECK_THAT(plan->find_choice("cpu-bind")->history.back().why,
             ContainsSubstring("its share of the granted cores of its node (GRANTS)"));

  in.granted = {7, 1};  // an odd thread is on a core that is no other job's
  asked(in).ranks_per_node = 1;
  const auto odd = make_plan(in);
  REQUIRE(odd);
  CHECK(class_of(*odd, 0).ranks[0].cores == 4);
  CHECK(class_of(*odd, 1).ranks[0].cores == 1);
}

TEST_CASE("cores in the order of the machine, whatever their numbers", "[plan][parts]") {
  const auto runs = [](const Topology& node) {
    PlanInput in = input(node, {2, 3});
    asked(in).ranks_per_node = 1;
    return make_plan(in)->placement.counted;
  };
  CHECK(runs(cores(8)).empty());
  Topology node;  // packages in turn, as some firmware numbers them
  for (const int cpu : {0, 2, 4, 1, 3, 5}) {
    Core core{cpu % 2, cpu % 2, {}};
    core.pus.add(cpu);
    node.cores.push_back(core);
  }
  node.allowed = node.all_pus();
  CHECK(runs(node) == std::vector<CoreRun>{{0, 3, 2, 1, 1}, {1, 3, 2, 1, 1}});
  for (Core& core : node.cores)
    for (const int thread : {6, 12, 18}) core.pus.add(core.pus.first() + thread);
  node.cores[1].pus -= *CpuSet::parse("8");  // one thread is switched off
  node.allowed = node.all_pus();
  CHECK(runs(node) == std::vector<CoreRun>{{0, 3, 2, 4, 6}, {1, 3, 2, 4, 6}});
}

TEST_CASE("nodes of which the job has all are placed by name", "[plan][parts]") {
  Topology node = test::even_machine(2, 2, 4);
  test::add_devices({3, 2, 1, 0}, "amd", node);
  PlanInput in = input(node, {8, 16});
  in.node.allowed = *CpuSet::parse("8-15");  // of this machine, which has half of itself
  asked(in).ranks_per_node = 4;
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.bind_via == BindVia::shim);
  CHECK(class_of(*plan, 0).ranks[0].part_last == 1);
  const NodeClass& whole = class_of(*plan, 1);
  CHECK(whole.ranks[0].cpus.to_list() == "0-3");
  CHECK(whole.ranks[0].device() == 3);
  CHECK(whole.ranks[3].cpus.to_list() == "12-15");
  CHECK_THAT(plan->environment.wire, ContainsSubstring(":cpus=0-3/4-7/8-11/12-15"));
  CHECK(plan->environment.wire.find(":counted=") == std::string::npos);

  in.whole_node = node.all_pus() - *CpuSet::parse("0,4,8,12");  // the others are the system's
  in.granted = {8, 12};
  CHECK(class_of(*make_plan(in), 1).ranks[0].cpus.to_list() == "1-3");
}

TEST_CASE("the first node's CPUs are for every node that has them", "[plan][parts]") {
  PlanInput in = input(test::even_machine(2, 1, 4), {4, 4, 2});
  in.cores_known = true;
  in.node.allowed = *CpuSet::parse("2-3,6-7");
  asked(in).ranks_per_node = 2;
  const auto plan = make_plan(in);
  REQUIRE(plan);
  REQUIRE(plan->placement.layout == std::vector<NodeRun>{{0, 2}, {1, 1}});
  const NodeClass& first = class_of(*plan, 0);
  CHECK(first.ranks[1].cpus.to_list() == "6-7");
  CHECK(first.ranks[1].numa == 1);
  CHECK(first.ranks[1].part_first == 2);
  CHECK(class_of(*plan, 2).ranks[1].cpus.empty());
  CHECK_THAT(plan->environment.wire,
             ContainsSubstring(":cpus=2-3/6-7:granted=4:part=0-1/2-3:class=2:"));
  const std::string why = plan->find_choice("cpu-bind")->history.back().why;
  CHECK_THAT(why, ContainsSubstring("where other CPUs are granted, each rank gets its share"));
}

TEST_CASE("parts that cannot be counted through are not bound", "[plan][parts]") {
  PlanInput in = input(cores(8, 2), {4, 8});
  in.node.cores.resize(2);
  in.node.cores[0].pus = *CpuSet::parse("0,1,3");
  in.node.cores[1].pus = *CpuSet::parse("2,4,5");
  in.node.allowed = in.node.all_pus();
  in.granted = {3, 3};
  asked(in).ranks_per_node = 1;
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.bind_via == BindVia::none);
  CHECK(class_of(*plan, 0).ranks[0].part_first == -1);
  CHECK_THAT(plan->find_choice("cpu-bind")->history.back().why,
             ContainsSubstring("follow no order"));
  asked(in).bind_via = BindVia::shim;
  CHECK(make_plan(in).error().kind == ErrorKind::unsupported);

  in = input(cores(8), {4});
  in.launcher.multi_node = false;
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.bind_via == BindVia::none);
  in.launcher.multi_node = true;
  asked(in).bind_via = BindVia::launcher;
  CHECK(make_plan(in).error().kind == ErrorKind::unsupported);
  asked(in).bind_via = BindVia::none;
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.classes[0].ranks[0].part_first == -1);
}

TEST_CASE("--threads-per-core: the first threads of granted cores", "[plan][parts]") {
  for (const int threads : {1, 2, 4}) {
    PlanInput in = input(cores(8, threads), {2 * threads, 4 * threads});
    asked(in).ranks_per_node = 2;
    asked(in).threads_per_core = std::min(threads, 2);
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(plan->placement.bind_via == BindVia::shim);
    CHECK(class_of(*plan, 0).ranks[1].part_first == 1);
    CHECK(class_of(*plan, 1).ranks[1].part_first == 2);
    CHECK(class_of(*plan, 1).ranks[1].part_last == 3);
    const auto runs = plan->placement.counted;
    CHECK(runs == (threads == 1 ? std::vector<CoreRun>{} : std::vector<CoreRun>{{0, 8, 1, 2, 8}}));
  }
}

TEST_CASE("one node whose cores are known is bound by name", "[plan][parts]") {
  PlanInput in = input(cores(8), {3});
  in.cores_known = true;
  in.node.allowed = *CpuSet::parse("1,4,6");
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.bind_via == BindVia::launcher);
  CHECK(plan->placement.classes[0].ranks[0].cpus.to_list() == "1,4,6");
  CHECK(plan->placement.classes[0].granted == 3);
}

TEST_CASE("any grants and any counts: parts obey the laws, or a refusal has a reason",
          "[plan][parts][law]") {
  test::Random random(11);
  int planned = 0;
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const int width = random.in(1, 96);
    std::vector<int> granted;
    for (int hosts = random.in(1, 6); hosts > 0; --hosts) granted.push_back(random.in(1, width));
    PlanInput in = input(cores(width), granted);
    if (random.chance(60)) asked(in).ranks = random.in(1, 60);
    if (random.chance(30)) asked(in).ranks_per_node = random.in(1, 12);
    if (random.chance(20)) asked(in).cores_per_rank = random.in(1, 4);
    if (random.chance(50)) in.launcher.distribution = Distribution::even;
    INFO("round " << round);
    const auto plan = make_plan(in);
    if (!plan) {
      ++refused;
      CHECK(plan.error().kind == ErrorKind::usage);
      CHECK_FALSE(plan.error().hint.empty());
      continue;
    }
    ++planned;
    const std::vector<int> on = sizes(*plan);
    CHECK(std::accumulate(on.begin(), on.end(), 0) == plan->world_size());
    if (in.request->ranks) CHECK(plan->world_size() == *in.request->ranks);
    for (int h = 0; h < plan->nodes(); ++h) {
      const NodeClass& node = class_of(*plan, h);
      CHECK(node.granted == granted[static_cast<std::size_t>(h)]);
      if (node.granted < width) check_parts(node);
    }
  }
  CHECK(planned > 500);
  CHECK(refused > 100);
}

TEST_CASE("this machine's CPUs, where those of other nodes are not known", "[plan][parts]") {
  PlanInput in = input(test::even_machine(2, 2, 4), {8, 8});
  in.cores_known = in.granted_assumed = true;
  in.granted_why = "this node allows 8 of 16 CPUs";
  in.node.allowed = *CpuSet::parse("0-3,8-11");
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(sizes(*plan) == std::vector<int>{2, 2});  // a rank on each NUMA node
  CHECK(class_of(*plan, 1).ranks[1].cpus.to_list() == "8-11");
  CHECK(class_of(*plan, 1).granted == 0);
  CHECK(plan->placement.bind_via == BindVia::shim);
  CHECK_THAT(plan->environment.wire, ContainsSubstring(":cpus=0-3/8-11:part=0-3/4-7"));
  asked(in).bind_via = BindVia::launcher;
  CHECK(make_plan(in)->placement.bind_via == BindVia::launcher);
  CHECK(make_plan(in)->placement.classes[0].ranks[1].part_first == -1);
}
