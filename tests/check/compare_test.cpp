// Planted differences of every kind: each is found, named, grouped, and nothing else is said.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "hpclaunch/check.h"
#include "hpclaunch/text.h"
#include "support/catch.h"
#include "support/report_pieces.h"

using namespace hpclaunch;

namespace {

Setting setting(std::string name, Value value, Layer layer = Layer::computed) {
  Decision decision;
  decision.layer = layer;
  decision.value = std::move(value);
  return Setting{std::move(name), {decision}};
}

CpuSet cpus(const std::string& list) { return *CpuSet::parse(list); }

// `nodes` of `ranks` ranks, each bound to four CPUs, with one device each.
Plan plan_of(int nodes, int ranks) {
  Plan plan;
  for (int n = 0; n < nodes; ++n) plan.hosts.names.push_back("n" + std::to_string(n));
  NodeClass one;
  PerRank masks{{{}}};
  for (int r = 0; r < ranks; ++r) {
    RankPlan rank;
    rank.cpus = cpus(std::to_string(4 * r) + "-" + std::to_string(4 * r + 3));
    rank.cores = 4;
    rank.numa = r / 4;
    rank.slots = {{r, r, -1}};
    one.ranks.push_back(rank);
    masks.items.front().push_back(std::to_string(r));
  }
  plan.placement.classes = {one};
  plan.placement.layout = {NodeRun{0, nodes}};
  plan.placement.bind_via = BindVia::launcher;
  plan.placement.gpu_view = "own";
  plan.environment.core_limit = "0";
  plan.environment.settings = {setting("CUDA_VISIBLE_DEVICES", masks),
                               setting("HF_TOKEN", std::string("s3cret"), Layer::command_line),
                               setting("HPCLAUNCH_NODE", RankFact::node),
                               setting("MASTER_ADDR", std::string("n0")),
                               setting("MASTER_PORT", std::string("12345")),
                               setting("NCCL_DEBUG", Unset{}, Layer::command_line),
                               setting("RANK", RankFact::rank),
                               setting("SLURM_CPU_BIND", Unset{})};
  return plan;
}

Topology node_of(int ranks) {
  Topology node;
  for (int r = 0; r < ranks; ++r) {
    Device device;
    device.index = r;
    device.vendor = "nvidia";
    node.devices.push_back(device);
  }
  Nic nic;
  nic.fabric = "mlx5_0";
  node.nics.push_back(nic);
  return node;
}

RankSeen seen_of(const std::string& host, int rank, RankReport report) {
  return {host, 7, rank, 1000, std::make_shared<const RankReport>(std::move(report))};
}
RankReport& whole(RankSeen& one) { return const_cast<RankReport&>(*one.found); }

// What a job that went by the plan would report.
Observed perfect(const Plan& plan) {
  Observed seen;
  seen.env = EnvSnapshot({"PATH=/bin", "HF_TOKEN=s3cret"});
  const int size = plan.max_local_size();
  for (const RankPlace& place : rank_places(plan)) {
    RankReport report;
    report.launcher_local_rank = place.local;
    report.cpus =
        plan.placement.classes[0].ranks[static_cast<std::size_t>(place.local)].cpus.to_list();
    report.cpuset = "0-127";
    report.memory_policy = "default";
    report.memory_allowed = "0-7";
    report.devices["nvidia"] = size;
    report.limits = {{"core", "0"}, {"core-hard", "unlimited"}};
    if (place.local == 0) {
      NodeFacts facts;
      facts.online = "0-127";
      facts.fabrics = {"mlx5_0"};
      facts.interfaces = {{"eth0", true, {"10.0.0." + std::to_string(place.node + 1)}}};
      facts.master = "n0";
      facts.master_resolves = {"10.0.0.1"};
      facts.rooms = {{"/dev/shm", "", 1u << 30}, {"/tmp", "", 1u << 30}};
      report.facts = facts;
    }
    const std::string host(plan.hosts.names[static_cast<std::size_t>(place.node)]);
    seen.reports.push_back(seen_of(host, place.rank, std::move(report)));
    seen.arrivals.push_back(1000.1);
  }
  return seen;
}

// 4 nodes of 4 ranks; the test plants, then looks.
struct Job {
  Plan plan = plan_of(4, 4);
  Topology node = node_of(4);
  Observed seen = perfect(plan);

  RankReport& rank(int number) { return whole(seen.reports[static_cast<std::size_t>(number)]); }
  NodeFacts& facts(int at) { return *rank(4 * at).facts; }
  void set(int number, const std::string& name, const std::string& value) {
    rank(number).variables[name] = value.empty() ? std::string(kNoFingerprint) : fingerprint(value);
    if (!value.empty() && is_placement_variable(name)) rank(number).values[name] = value;
  }
  Comparison compared() const { return compare(plan, node, seen); }
  Difference only() const {
    const Comparison comparison = compared();
    REQUIRE(comparison.differences.size() == 1);
    return comparison.differences.front();
  }
};

using Numbers = std::vector<int>;

Examined examined() {
  Examined after;
  after.threads = 9;
  after.processes = 2;
  return after;
}

}  // namespace

TEST_CASE("a job that went by the plan has no difference", "[compare]") {
  const Job job;
  const Comparison comparison = job.compared();
  CHECK(comparison.differences.empty());
  CHECK(comparison.ranks_as_planned == 16);
}

TEST_CASE("a mask that is too wide on one node", "[compare][cpus]") {
  Job job;
  for (int rank = 4; rank < 8; ++rank) job.rank(rank).cpus = "0-127";
  const Comparison comparison = job.compared();
  CHECK(comparison.differences.size() == 4);
  CHECK(comparison.ranks_as_planned == 12);
  const Difference& first = comparison.differences.front();
  CHECK(first.what.id == "cpus");
  CHECK(first.planned == "0-3");
  CHECK(first.found == "0-127");
  CHECK(first.ranks == Numbers{4});
  CHECK_THAT(first.what.message, ContainsSubstring("did not bind"));
  CHECK(first.what.fix == "--bind-via shim");
  const std::vector<Difference> one = condense(comparison.differences, 2);
  REQUIRE(one.size() == 1);
  CHECK(one.front().ranks == Numbers{4, 5, 6, 7});
  CHECK(one.front().planned == "0-3 (and 3 others)");
  CHECK(one.front().found == "0-127");
  CHECK(where_text(job.plan, one.front()) == "ranks 4-7 on n1");
}

TEST_CASE("causes of a mask that is not the planned one", "[compare][cpus]") {
  const auto cause_of = [](const std::string& found) {
    Job job;
    job.rank(5).cpus = found;
    return job.only().what.message;
  };
  CHECK_THAT(cause_of("4-5"), ContainsSubstring("binding of its own"));
  CHECK_THAT(cause_of("8-11"), ContainsSubstring("local rank 2"));
  CHECK_THAT(cause_of("64-67"), ContainsSubstring("none of the planned"));
  CHECK_THAT(cause_of("6-9"), ContainsSubstring("binding of its own"));
  CHECK_THAT(cause_of("(unknown)"), ContainsSubstring("CPU list is empty"));
  CHECK_THAT(cause_of("0-9000"), ContainsSubstring("beyond the limit"));
}

TEST_CASE("a cpuset and a node of another kind are named as such", "[compare][cpus]") {
  Job job;
  job.rank(5).cpus = job.rank(5).cpuset = "4-5";
  CHECK(job.only().what.message == "the job's control group (cpuset) allows only CPUs 4-5");
  job.rank(5).cpus = job.rank(5).cpuset = "64-67";  // none of the planned ones
  CHECK(job.only().what.message == "the job's control group (cpuset) allows only CPUs 64-67");
  job.rank(5).cpuset = "";  // it cannot be read there
  job.rank(5).cpus = "4-5";
  CHECK(job.only().what.message == "the job's control group (cpuset) allows only these");
  job.rank(5).cpus = job.rank(5).cpuset = "0-3";
  job.rank(4).facts->online = "0-3";
  for (const Difference& one : job.compared().differences)
    if (one.what.id == "cpus")
      CHECK(one.what.message ==
            "the node has CPUs 0-3 only: it is of another kind than the planned one");
}

TEST_CASE("equal differences of a local rank on all nodes are one", "[compare][cpus]") {
  Job job;
  for (int rank = 2; rank < 16; rank += 4) job.rank(rank).cpus = "8-9";
  const Difference one = job.only();
  CHECK(one.ranks == Numbers{2, 6, 10, 14});
  CHECK(where_text(job.plan, one) == "local rank 2 on all 4 nodes");
}

TEST_CASE("bound although nobody was to", "[compare][cpus]") {
  Job job;
  job.plan.placement.bind_via = BindVia::none;
  for (RankPlan& rank : job.plan.placement.classes[0].ranks) rank.cpus = CpuSet{};
  for (RankSeen& one : job.seen.reports) whole(one).cpus = "0-127";
  CHECK(job.compared().differences.empty());
  job.rank(9).cpus = "7";
  CHECK(job.only().found == "7");
  CHECK(job.only().ranks == Numbers{9});
  job.rank(9).cpuset = "";  // what the control group leaves is not known: nothing can be said
  CHECK(job.compared().differences.empty());
}

TEST_CASE("a part of the granted CPUs", "[compare][cpus]") {
  Job job;
  for (RankPlan& rank : job.plan.placement.classes[0].ranks) {
    rank.cpus = CpuSet{};
    rank.part_first = 2;
    rank.part_last = 3;
  }
  for (RankSeen& one : job.seen.reports) whole(one).cpus = "17,40";
  CHECK(job.compared().differences.empty());
  job.rank(3).cpus = "17";
  CHECK(job.only().planned == "2 granted CPUs");
}

TEST_CASE("moved outside of the CPUs that it was started with", "[compare][cpus]") {
  Job job;
  job.rank(5).cpus_given = "64-127";
  CHECK(job.compared().differences.empty());  // of whole nodes: the launcher binds by itself
  for (int c = 0; c < 128; ++c) job.node.cores.push_back({0, 0, cpus(std::to_string(c))});
  job.node.allowed = cpus("0-63");  // a mask is a grant here, and so it is there
  CHECK(job.only().what.id == "granted-cpus");
  CHECK(job.only().what.severity == Severity::error);
  CHECK(job.only().planned == "64-127");
  CHECK(job.only().found == "4-7");
  CHECK(job.only().ranks == Numbers{5});
  job.rank(5).cpus_given = "0-63";
  CHECK(job.compared().differences.empty());
}

TEST_CASE("ranks that did not report are named with their node", "[compare][silent]") {
  Job job;
  job.seen.reports.erase(job.seen.reports.begin() + 6, job.seen.reports.begin() + 8);
  job.seen.arrivals.clear();
  Difference one = job.only();
  CHECK(one.what.id == "rank-silent");
  CHECK(where_text(job.plan, one) == "ranks 6-7 on n1");
  CHECK_THAT(one.what.message, ContainsSubstring("fewer ranks"));
  job.seen.launcher_status = 7;
  CHECK_THAT(job.only().what.message, ContainsSubstring("status 7"));
  job.seen.too_late = true;
  job.seen.limit_seconds = 30;
  CHECK_THAT(job.only().what.message, ContainsSubstring("30 seconds"));
  job.seen = perfect(job.plan);
  job.seen.reports.erase(job.seen.reports.begin() + 3);
  job.seen.arrivals.clear();
  job.seen.garbled = 1;
  CHECK_THAT(job.only().what.message, ContainsSubstring("1 report could not be read"));
}

TEST_CASE("a rank of which there are two", "[compare]") {
  Job job;
  job.seen.reports.push_back(job.seen.reports[2]);
  job.seen.arrivals.push_back(1000.1);
  CHECK(job.only().what.id == "rank-twice");
  CHECK(job.only().ranks == Numbers{2});
  CHECK(job.only().found == "2 processes");
}

TEST_CASE("a launcher that fails after all", "[compare]") {
  Job job;
  job.seen.launcher_status = 9;
  CHECK(job.only().what.id == "launcher-status");
  CHECK(where_text(job.plan, job.only()) == "the launcher");
  CHECK(job.compared().ranks_as_planned == 16);
}

TEST_CASE("hosts in another order", "[compare][host]") {
  Job job;
  for (int rank = 0; rank < 8; ++rank)
    job.seen.reports[static_cast<std::size_t>(rank)].host = rank < 4 ? "n1" : "n0";
  const Comparison comparison = job.compared();
  REQUIRE(comparison.differences.size() == 2);
  CHECK(comparison.differences[0].planned == "n0");
  CHECK(comparison.differences[0].found == "n1");
  CHECK(comparison.differences[1].planned == "n1");
  CHECK(comparison.differences[1].found == "n0");
  CHECK(comparison.differences[1].ranks == Numbers{4, 5, 6, 7});
  CHECK_THAT(comparison.differences[0].what.message, ContainsSubstring("another order"));
  CHECK(where_text(job.plan, comparison.differences[0]) == "ranks 0-3 on n0");
}

TEST_CASE("names of hosts", "[compare][host]") {
  Job job;
  for (int rank = 0; rank < 4; ++rank)
    job.seen.reports[static_cast<std::size_t>(rank)].host = "N0.cluster";
  CHECK(job.compared().differences.empty());
  for (int rank = 0; rank < 4; ++rank)
    job.seen.reports[static_cast<std::size_t>(rank)].host = "elsewhere";
  CHECK_THAT(job.only().what.message, ContainsSubstring("outside of the plan"));
  job.seen.addresses["n0"] = {
      "10.0.0.1"};  // the planned name leads to the node that calls itself so
  CHECK(job.compared().differences.empty());
  job.seen.addresses["n0"] = {"10.0.0.77"};
  CHECK(job.only().ranks == Numbers{0, 1, 2, 3});
}

TEST_CASE("local ranks that the launcher counts otherwise", "[compare]") {
  Job job;
  job.rank(0).launcher_local_rank = 1;
  job.rank(1).launcher_local_rank = 0;
  const Comparison comparison = job.compared();
  REQUIRE(comparison.differences.size() == 2);
  CHECK(comparison.differences[0].what.id == "local-rank");
  CHECK(comparison.ranks_as_planned == 14);
  job.rank(0).launcher_local_rank = job.rank(1).launcher_local_rank = -1;  // it does not say
  CHECK(job.compared().differences.empty());
}

TEST_CASE("memory", "[compare][memory]") {
  Job job;
  job.rank(3).memory_policy = "bind";
  job.rank(3).memory_nodes = "0";
  CHECK(job.only().what.id == "memory-policy");
  CHECK(job.only().found == "bind 0");
  job.plan.launch.launcher_args = {"--mem-bind=list:0"};
  CHECK(job.compared().differences.empty());
  job.rank(3).memory_policy = "preferred";  // of no node: what "local" was before it had a name
  job.rank(3).memory_nodes = "";
  job.plan.launch.launcher_args.clear();
  CHECK(job.compared().differences.empty());
  job.rank(3).memory_allowed = "1-7";
  CHECK(job.only().what.id == "memory-nodes");
  CHECK(job.only().planned == "NUMA node 0");
}

TEST_CASE("devices", "[compare][devices]") {
  Job job;
  for (int rank = 8; rank < 12; ++rank) job.rank(rank).devices["nvidia"] = 3;
  Difference one = job.only();
  CHECK(one.what.id == "devices");
  CHECK(where_text(job.plan, one) == "ranks 8-11 on n2");
  CHECK(one.planned == "4 devices of nvidia");
  CHECK_THAT(one.what.message, ContainsSubstring("missing"));
  for (int rank = 8; rank < 12; ++rank) job.rank(rank).refused = {"/dev/nvidia3"};
  CHECK_THAT(job.only().what.message, ContainsSubstring("control group"));
  CHECK_THAT(job.only().found, ContainsSubstring("/dev/nvidia3"));
  for (int rank = 8; rank < 12; ++rank) job.rank(rank).devices["nvidia"] = 1;
  job.plan.placement.gpu_view = "launcher";  // each rank may open its own only
  CHECK(job.compared().differences.empty());
}

TEST_CASE("devices that are looked for are of the vendor that ranks use", "[compare][devices]") {
  Job job;
  Device other;
  other.vendor = "amd";
  job.node.devices.insert(job.node.devices.begin(), other);
  for (std::size_t d = 0; d < job.node.devices.size(); ++d)
    job.node.devices[d].index = static_cast<int>(d);
  for (RankPlan& rank : job.plan.placement.classes[0].ranks) ++rank.slots.front().device;
  CHECK(job.compared().differences.empty());
  job.rank(8).devices["nvidia"] = 3;
  CHECK(job.only().planned == "4 devices of nvidia");
}

TEST_CASE("a mask of devices that nobody planned", "[compare][devices]") {
  Job job;
  for (RankSeen& one : job.seen.reports) whole(one).values["ROCR_VISIBLE_DEVICES"] = "0";
  CHECK(job.only().what.id == "device-mask");
  CHECK(job.only().found == "ROCR_VISIBLE_DEVICES=0");
  CHECK(where_text(job.plan, job.only()) == "all 16 ranks");
  job.seen.env = EnvSnapshot({"PATH=/bin", "ROCR_VISIBLE_DEVICES=0"});
  CHECK(job.compared().differences.empty());
}

TEST_CASE("variables", "[compare][variable]") {
  Job job;
  SECTION("a device mask of another rank") {
    job.set(6, "CUDA_VISIBLE_DEVICES", "0");
    CHECK(job.only().planned == "CUDA_VISIBLE_DEVICES=2");
    CHECK(job.only().found == "CUDA_VISIBLE_DEVICES=0");
    CHECK(job.only().ranks == Numbers{6});
  }
  SECTION("lost on all nodes but the first") {
    for (int rank = 4; rank < 16; ++rank) job.set(rank, "MASTER_PORT", "");
    CHECK(where_text(job.plan, job.only()) == "all ranks on n1, n2, n3");
    CHECK(job.only().found == "MASTER_PORT not set");
    CHECK_THAT(job.only().what.message, ContainsSubstring("does not pass"));
  }
  SECTION("a secret is not shown") {
    job.set(1, "HF_TOKEN", "other");
    const Difference one = job.only();
    CHECK(one.found == "HF_TOKEN has another value");
    for (const std::string& text : {one.planned, one.found, one.what.message, one.what.fix}) {
      CHECK(text.find("s3cret") == std::string::npos);
      CHECK((text.find("other") == std::string::npos || text == one.found));
    }
  }
  SECTION("removed, and there again") {
    job.set(1, "NCCL_DEBUG", "INFO");
    CHECK(job.only().planned == "NCCL_DEBUG not set");
    CHECK_THAT(job.only().what.message, ContainsSubstring("sets it again"));
  }
  SECTION("what was removed for the launcher's own sake may be in its ranks") {
    job.set(1, "SLURM_CPU_BIND", "none");
    CHECK(job.compared().differences.empty());
  }
  SECTION("exported, and lost") {
    job.set(1, "PATH", "");
    CHECK(job.only().planned == "PATH as exported");
    job.set(1, "PATH", "/usr/bin:/bin");  // nodes may add to it
    CHECK(job.compared().differences.empty());
  }
}

TEST_CASE("core limit", "[compare]") {
  Job job;
  job.plan.environment.core_limit = "unlimited";
  for (RankSeen& one : job.seen.reports)
    whole(one).limits = {{"core", "4096"}, {"core-hard", "4096"}};
  CHECK(job.only().what.id == "core-limit");
  CHECK_THAT(job.only().what.message, ContainsSubstring("hard limit"));
}

TEST_CASE("what an import does", "[compare][import]") {
  Job job;
  RankReport& report = job.rank(5);
  job.seen.module = "torch";
  report.imported = true;
  report.cpus_before = report.cpus;
  CHECK(job.compared().differences.empty());
  SECTION("to the mask") {
    report.cpus = "4";
    report.values["OMP_PROC_BIND"] = "true";
    const Difference one = job.only();
    CHECK(one.what.id == "import-cpus");
    CHECK(one.planned == "4-7");
    CHECK(one.found == "4");
    CHECK_THAT(one.what.message, ContainsSubstring("OMP_PROC_BIND=true"));
    CHECK(one.what.fix == "--unset OMP_PROC_BIND");
  }
  SECTION("to a variable") {
    job.set(5, "MASTER_PORT", "1");
    CHECK(job.only().what.id == "import-variable");
    CHECK(job.only().found == "MASTER_PORT has another value");
  }
  SECTION("it fails") {
    report.import_problem = "ModuleNotFoundError: No module named 'torch'";
    CHECK(job.only().what.id == "import");
    CHECK(job.only().found == report.import_problem);
  }
}

TEST_CASE("threads of a running rank", "[compare][after]") {
  Job job;
  job.seen.after = "30";
  for (int r = 0; r < 16; ++r) job.rank(r).after = examined();
  CHECK(job.compared().differences.empty());
  const auto plant = [&](int rank, ThreadGroup group) {
    job.rank(rank).after->groups = {std::move(group)};
  };
  const auto cause = [&] { return job.only().what.message; };

  SECTION("wider on every rank: one row, by the thread's name") {
    for (int r = 0; r < 16; ++r) plant(r, {"pool_", true, 4, 128, "0-127"});
    const Difference found = job.only();
    CHECK(found.what.id == "thread-cpus");
    CHECK(found.planned == "the rank's 4 CPUs");
    CHECK(found.found == "4 threads \"pool_*\" of child processes: 0-127");
    CHECK(found.ranks.size() == 16);
    CHECK(found.what.message.find("all of the node") != std::string::npos);
    CHECK(job.compared().ranks_as_planned == 0);
  }
  SECTION("one CPU each") {
    for (int r = 0; r < 16; ++r) plant(r, {"python3", false, 4, 1, job.rank(r).cpus});
    CHECK(job.only().found == "4 threads \"python3\": 1 CPU each");
    CHECK(cause().find("as OpenMP does") != std::string::npos);
    CHECK(cause().find("in common") == std::string::npos);
    for (int r = 0; r < 16; ++r) job.rank(r).values["OMP_PROC_BIND"] = "true";
    CHECK(job.only().what.fix == "--unset OMP_PROC_BIND");
    CHECK(cause() == "an OpenMP runtime binds its threads (OMP_PROC_BIND=true)");
    for (int r = 0; r < 16; ++r) job.rank(r).values["OMP_PROC_BIND"] = "false";
    CHECK(cause().find("as OpenMP does") != std::string::npos);
  }
  SECTION("many threads on one CPU") {
    plant(3, {"python3", false, 4, 1, "12"});
    CHECK(cause().find("in common") != std::string::npos);
  }
  SECTION("of another rank") {
    plant(1, {"python3", false, 1, 4, "8-11"});
    CHECK(cause().find("CPUs of local rank 2") != std::string::npos);
  }
  SECTION("helper threads of the plan") {
    job.plan.placement.classes[0].ranks[1].roles["worker"] = 100;
    plant(1, {"python3", false, 1, 1, "100"});
    CHECK(job.compared().differences.empty());
    plant(2, {"python3", false, 1, 1, "100"});
    CHECK(job.only().ranks == std::vector<int>{2});
    job.plan.environment.settings.insert(job.plan.environment.settings.begin(),
                                         setting("CCL_WORKER_AFFINITY", std::string("100,101")));
    CHECK(job.compared().differences.empty());
  }
}

TEST_CASE("environments and end of a running rank", "[compare][after]") {
  Job job;
  job.seen.after = "30";
  for (int r = 0; r < 16; ++r) job.rank(r).after = examined();
  Examined& after = *job.rank(5).after;

  SECTION("a mask") {
    job.rank(5).values["CUDA_VISIBLE_DEVICES"] = "1";
    after.changes = {{"CUDA_VISIBLE_DEVICES", true, true, "0", 2}};
    const Difference found = job.only();
    CHECK(found.what.id == "child-device-mask");
    CHECK(found.found == "CUDA_VISIBLE_DEVICES=0 in 2 child processes");
  }
  SECTION("a secret") {
    after.changes = {{"HF_TOKEN", false, true, "", 1}};
    CHECK(job.only().what.id == "program-variable");
    CHECK(job.only().found == "HF_TOKEN has another value in the program");
  }
  SECTION("what workers may have of their own") {
    after.changes = {{"RANK", true, true, "7", 1},
                     {"MASTER_PORT", true, true, "1", 1},
                     {"PATH", true, true, "", 1},
                     {"OTHER", true, true, "", 1},
                     {"SLURM_CPU_BIND", true, true, "", 1}};
    CHECK(job.compared().differences.empty());
  }
  SECTION("it has ended") {
    after = Examined{};
    after.ran = 2;
    after.exit = 3;
    job.seen.launcher_status = 3;
    const Difference found = job.only();
    CHECK(found.planned == "running after 30 s");
    CHECK(found.found == "exit status 3 after 2 s");
  }
  SECTION("limits") {
    after.more_processes = 2;
    CHECK(job.only().found == "2 more processes");
  }
  SECTION("a note counts as planned") {
    after.hidden = 1;
    CHECK(job.only().what.id == "hidden-environment");
    CHECK(job.compared().as_planned());
    CHECK(job.compared().ranks_as_planned == 16);
  }
}

TEST_CASE("facts of nodes", "[compare][nodes]") {
  Job job;
  SECTION("the meeting point does not resolve") {
    job.facts(2).master_problem = "\"n0\": Name or service not known";
    job.facts(2).master_resolves.clear();
    CHECK(job.only().what.id == "master-address");
    CHECK(where_text(job.plan, job.only()) == "n2");
  }
  SECTION("it is loopback") {
    job.facts(3).master_resolves = {"127.0.1.1"};
    CHECK(job.only().what.severity == Severity::error);
    CHECK(job.only().found == "loopback: 127.0.1.1");
  }
  SECTION("it is loopback on its own node") {
    job.facts(0).master_resolves = {"127.0.1.1"};
    CHECK(job.only().what.severity == Severity::warning);
  }
  SECTION("the node's own name is loopback") {
    job.facts(2).host_resolves = {"127.0.1.1"};
    CHECK(job.only().what.id == "host-name");
    CHECK(job.only().what.severity == Severity::warning);
    CHECK(job.only().found == "loopback: 127.0.1.1");
    CHECK(job.only().what.fix == "--set GLOO_SOCKET_IFNAME=eth0");
    job.rank(8).values["GLOO_SOCKET_IFNAME"] = "eth0";
    CHECK(job.only().what.severity == Severity::note);
  }
  SECTION("the node's own name leads to others too") {
    job.facts(2).host_resolves = {"127.0.1.1", "10.0.0.3"};
    CHECK(job.compared().differences.empty());
  }
  SECTION("it is another machine") {
    for (int node = 0; node < 4; ++node) job.facts(node).master_resolves = {"10.0.0.99"};
    CHECK(job.only().found == "10.0.0.99");
    CHECK(where_text(job.plan, job.only()) == "all 4 nodes");
  }
  SECTION("the port is taken") {
    job.facts(0).port_problem = "Address already in use";
    CHECK(job.only().what.id == "master-port");
    CHECK(job.only().planned == "MASTER_PORT 12345 free");
  }
  SECTION("an interface is down") {
    for (int node = 0; node < 4; ++node) job.rank(4 * node).values["NCCL_SOCKET_IFNAME"] = "eth";
    CHECK(job.compared().differences.empty());
    job.facts(1).interfaces[0].up = false;
    CHECK(job.only().what.id == "interface");
    CHECK(job.only().found == "eth0 is down");
    CHECK(job.only().nodes == Numbers{1});
  }
  SECTION("loopback as the interface of several nodes") {
    for (int node = 0; node < 4; ++node) job.rank(4 * node).values["GLOO_SOCKET_IFNAME"] = "lo";
    CHECK(job.only().found == "lo reaches only the node itself");
  }
  SECTION("a network device is missing") {
    job.facts(1).fabrics.clear();
    CHECK(job.only().what.id == "fabric");
    CHECK(job.only().found == "none");
  }
  SECTION("the program is not there") {
    job.facts(3).program_problem = "\"/x/train\" is not there";
    CHECK(job.only().what.id == "program");
    CHECK(job.only().nodes == Numbers{3});
  }
  SECTION("no room") {
    job.facts(1).rooms[0].free_bytes = 4096;
    CHECK(job.only().what.id == "room");
    CHECK(job.only().what.severity == Severity::warning);
    job.facts(1).rooms[0].problem = "Permission denied";
    CHECK(job.only().what.severity == Severity::error);
  }
  SECTION("fewer CPUs than planned") {
    job.facts(1).online = "0-11";
    CHECK(job.only().what.id == "node-cpus");
  }
  SECTION("the node is of another make") {
    for (int c = 0; c < 128; ++c) {
      Core core;
      core.pus.add(c);
      if (c % 32 == 0) job.node.numa_nodes.push_back({c / 32, 0, {}});
      job.node.numa_nodes.back().pus.add(c);
      job.node.cores.push_back(core);
    }
    for (Device& device : job.node.devices) {
      device.pci = "0000:0" + std::to_string(device.index) + ":00.0";
      for (int at = 0; at < 4; ++at) job.facts(at).gpus.push_back(device.pci);
    }
    for (int at = 0; at < 4; ++at) job.facts(at).numa = "0-3";
    CHECK(job.compared().differences.empty());
    SECTION("CPUs offline that no rank has") {
      job.facts(1).online = "0-99";
      CHECK(job.only().what.id == "node-differs");
      CHECK(job.only().planned == "CPUs 0-127");
      CHECK(job.only().found == "CPUs 0-99");
      CHECK(job.only().what.severity == Severity::warning);
    }
    SECTION("more of them") {
      job.facts(1).online = "0-255";
      CHECK_THAT(job.only().what.message, ContainsSubstring("the planned node lacks"));
    }
    SECTION("another NUMA mode") {
      job.facts(2).numa = "0";
      CHECK(job.only().planned == "4 NUMA nodes");
      CHECK(job.only().found == "1 NUMA node");
      CHECK(job.only().nodes == Numbers{2});
    }
    SECTION("memory beside memory") {
      job.node.numa_nodes.push_back({4, 0, job.node.numa_nodes.front().pus});
      CHECK(job.compared().differences.empty());
    }
    SECTION("a device that ranks use is gone") {
      job.facts(3).gpus.erase(job.facts(3).gpus.begin() + 2);
      CHECK(job.only().planned == "device 2 at 0000:02:00.0");
      CHECK(job.only().what.severity == Severity::error);
    }
    SECTION("one that none uses") {
      for (RankPlan& rank : job.plan.placement.classes[0].ranks) rank.slots = {{0, 0, -1}};
      job.facts(3).gpus.erase(job.facts(3).gpus.begin() + 2);
      CHECK(job.only().what.severity == Severity::warning);
    }
  }
  SECTION("devices of a control group keep their numbers") {
    for (RankPlan& rank : job.plan.placement.classes[0].ranks) rank.slots.front().device += 4;
    CHECK(job.compared().differences.empty());
  }
  CHECK(job.compared().ranks_as_planned == 16);
}

TEST_CASE("clocks", "[compare][clock]") {
  Job job;
  job.seen.reports[8].clock += 60;
  CHECK(job.only().what.id == "clock");
  CHECK(job.only().found == "60 s ahead");
  CHECK(where_text(job.plan, job.only()) == "n2");
  SECTION("one that is behind") {
    job.seen.reports[8].clock -= 120;
    CHECK(job.only().found == "60 s behind");
  }
  SECTION("all are heard late") {
    job.seen.reports[8].clock -= 60;
    for (double& at : job.seen.arrivals) at += 30;
    CHECK(job.compared().differences.empty());
  }
}

TEST_CASE("two nodes that are heard late have no wrong clock", "[compare][clock]") {
  const Plan plan = plan_of(2, 1);
  Observed seen = perfect(plan);
  seen.arrivals = {1020, 1020};
  CHECK(compare(plan, node_of(1), seen).differences.empty());
  seen.arrivals = {1020, 1000};  // rank 0 was written 20 s earlier than it was heard
  CHECK(compare(plan, node_of(1), seen).differences.size() == 1);
}

TEST_CASE("before a job only nodes are compared", "[compare][preflight]") {
  Job job;
  Plan one = job.plan;
  Observed seen;
  seen.one_per_node = true;
  for (int node = 0; node < 4; ++node) {
    RankReport report = job.rank(4 * node);
    report.cpus = "0-127";
    seen.reports.push_back(seen_of("n" + std::to_string(node), node, std::move(report)));
    seen.arrivals.push_back(1000);
  }
  CHECK(compare(one, job.node, seen).differences.empty());
  whole(seen.reports[2]).cpus = "0-7";
  whole(seen.reports[3]).devices.clear();
  const Comparison comparison = compare(one, job.node, seen);
  REQUIRE(comparison.differences.size() == 2);
  CHECK(comparison.differences[0].what.id == "devices");
  CHECK(where_text(one, comparison.differences[0]) == "n3");
  CHECK(comparison.differences[1].what.id == "node-cpus");
  CHECK(where_text(one, comparison.differences[1]) == "n2");
  seen.reports.erase(seen.reports.begin() + 1);
  seen.arrivals.clear();
  CHECK(compare(one, job.node, seen).differences.back().what.id == "node-silent");
}

TEST_CASE("reports that name ranks beyond the plan do no harm", "[compare]") {
  Job job;
  job.seen.reports.push_back(seen_of("n0", 16, job.rank(0)));
  job.seen.arrivals.push_back(1000);
  CHECK(job.compared().differences.empty());
}

TEST_CASE("uneven nodes", "[compare][where]") {
  Plan plan = plan_of(2, 2);
  plan.placement.classes.push_back(NodeClass{{plan.placement.classes[0].ranks[0]}});
  plan.placement.layout = {NodeRun{0, 1}, NodeRun{1, 1}};
  Difference one;
  one.ranks = {0, 1, 2};
  one.nodes = {0, 1};
  CHECK(where_text(plan, one) == "all 3 ranks");
  one.ranks = {2};
  one.nodes = {1};
  CHECK(where_text(plan, one) == "rank 2 on n1");
  one.ranks = {0, 2};
  one.nodes = {0, 1};
  CHECK(where_text(plan, one) == "local rank 0 on n0, n1");
}

TEST_CASE("numbers for people", "[compare][where]") {
  CHECK(with_separators(0) == "0");
  CHECK(with_separators(999) == "999");
  CHECK(with_separators(1536) == "1,536");
  CHECK(with_separators(1234567) == "1,234,567");
}

TEST_CASE("10,000 ranks, every one wrong, are a matter of a moment", "[compare][large]") {
  const Plan plan = plan_of(1250, 8);
  Observed seen = perfect(plan);
  for (RankSeen& one : seen.reports) whole(one).cpus = "0-127";
  const auto begin = std::chrono::steady_clock::now();
  const Comparison comparison = compare(plan, node_of(8), seen);
  const std::vector<Difference> shown = condense(comparison.differences, 8);
  std::string where;
  for (const Difference& one : shown) where += where_text(plan, one);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  CHECK(comparison.ranks_as_planned == 0);
  CHECK(shown.size() == 8);  // a row for each local rank
  CHECK_THAT(where, ContainsSubstring("local rank 7 on all 1,250 nodes"));
}

TEST_CASE("what is left out of a brief report is as planned", "[compare][brief]") {
  Job job;
  Observed& seen = job.seen;
  seen.counts_locals = true;
  seen.usual = *seen.reports[1].found;
  ReportPieces pieces;
  const auto give = [&](int rank, const std::string& more) {
    const std::string json = "{\"clock\":1000.000" + more + "}";
    bool was_piece = false;
    auto found = pieces.take(
        fmt::format("{}n{}:7:{} 1/1 {} {}", kReportMark, rank / 4, rank, json.size(), json),
        was_piece);
    REQUIRE((found && *found));
    const RankReport& before = *seen.reports[static_cast<std::size_t>(rank)].found;
    if (before.facts) {
      RankReport with_facts = *(*found)->found;
      with_facts.facts = before.facts;
      (*found)->found = std::make_shared<const RankReport>(with_facts);
    }
    seen.reports[static_cast<std::size_t>(rank)] = **found;
  };
  const auto only = [&] {
    const Comparison comparison = compare(job.plan, job.node, seen);
    REQUIRE(comparison.differences.size() == 1);
    return comparison.differences.front();
  };
  const std::vector<RankPlace> places = rank_places(job.plan);
  const auto json_of = [&](std::size_t rank) {
    const RankSeen& one = seen.reports[rank];
    return report_to_json(one, places[rank], complete(job.plan, seen, places[rank], *one.found),
                          "");
  };
  std::vector<std::string> whole_ones;
  for (std::size_t rank = 0; rank < 16; ++rank) whole_ones.push_back(json_of(rank));
  for (int rank = 0; rank < 16; ++rank) give(rank, "");
  CHECK(compare(job.plan, job.node, seen).ranks_as_planned == 16);
  CHECK(seen.reports[1].found == seen.reports[15].found);  // kept once
  for (std::size_t rank = 0; rank < 16; ++rank) {
    CHECK(whole_ones[rank].size() > 200);
    CHECK(json_of(rank) == whole_ones[rank]);
  }
  SECTION("other CPUs") {
    give(6, ",\"cpus\":\"0-127\"");
    CHECK(only().found == "0-127");
    CHECK(only().ranks == Numbers{6});
  }
  SECTION("a variable that is not set") {
    give(6, ",\"variables\":{\"MASTER_PORT\":\"--------\"}");
    CHECK(only().found == "MASTER_PORT not set");
  }
  SECTION("a variable with another value, and bytes that are no text") {
    give(6,
         ",\"variables\":{\"MASTER_PORT\":\"00000001\"},\"values\":{\"MASTER_PORT\":\"\\u00ff\"}");
    CHECK(only().found == "MASTER_PORT=\xff");
  }
  SECTION("another local rank, and none") {
    give(6, ",\"launcher_local_rank\":3");
    CHECK(only().what.id == "local-rank");
    give(6, ",\"launcher_local_rank\":-2");
    CHECK(compare(job.plan, job.node, seen).differences.empty());
  }
  SECTION("fewer devices, the same on two ranks") {
    for (const int rank : {5, 6})
      give(rank,
           ",\"cpuset\":\"0-127\",\"limits\":{\"core\":\"0\"},\"refused\":[\"/dev/nvidia1\","
           "\"/dev/nvidia0\"]");
    CHECK(only().found == "0 of nvidia, 2 refused (/dev/nvidia0)");
    CHECK(only().ranks == Numbers{5, 6});
  }
  SECTION("on another host") {
    seen.reports[6].host = "n3";
    CHECK(only().what.id == "host");
    CHECK(only().ranks == Numbers{6});
  }
  SECTION("an import that binds") {
    seen.module = "torch";
    give(6,
         ",\"cpus\":\"8\",\"variables\":{\"MASTER_PORT\":\"00000001\"},\"before\":{\"clock\":1}");
    const Comparison comparison = compare(job.plan, job.node, seen);
    REQUIRE(comparison.differences.size() == 2);
    CHECK(comparison.differences[0].what.id == "import-cpus");
    CHECK(comparison.differences[1].what.id == "import-variable");
  }
}

TEST_CASE("127,488 ranks need little memory", "[compare][large]") {
  constexpr int kNodes = 10624;
  constexpr int kRanks = 12;
  const Plan plan = plan_of(kNodes, kRanks);
  Observed perfect_one = perfect(plan_of(1, kRanks));
  Observed seen;
  seen.env = perfect_one.env;
  seen.usual = *perfect_one.reports[1].found;
  seen.counts_locals = true;
  std::string facts =
      R"({"online":"0-127","fabrics":["mlx5_0"],"master":"n0",)"
      R"("master_resolves":["10.0.0.0"],"rooms":[{"path":"/dev/shm","errno":0,)"
      R"("free_bytes":1073741824},{"path":"/tmp","errno":0,"free_bytes":1073741824}])";
  facts += R"(,"gpus":[)";
  for (int i = 0; i < 6; ++i) facts += fmt::format("{}\"0000:18:00.{}\"", i == 0 ? "" : ",", i);
  facts += R"(],"interfaces":[)";
  for (int i = 0; i < 8; ++i)
    facts += fmt::format(R"({}{{"up":true,"name":"hsn{}","addresses":["10.0.0.{}","fd00::1234"]}})",
                         i == 0 ? "" : ",", i, i);
  facts += "]}";
#ifdef __GLIBC__
  const std::size_t before = mallinfo2().uordblks;
#endif
  ReportPieces pieces;
  std::size_t bytes = 0;
  for (int rank = 0; rank < kNodes * kRanks; ++rank) {
    std::string lines = fmt::format("{}n{}:{}:{} 1/1 24 {{\"clock\":1795388528.{:03}}}\n",
                                    kReportMark, rank / kRanks, 100000 + rank, rank, rank % 1000);
    if (rank % kRanks != 0) bytes += lines.size();
    if (rank % kRanks == 0)
      lines = pieces_of(fmt::format("n{}:7:{}", rank / kRanks, rank),
                        fmt::format("{{\"clock\":1795388528.000,\"facts\":{}}}", facts));
    bool was_piece = false;
    for (const std::string_view line : split(lines, '\n')) {
      const auto found = pieces.take(line, was_piece);
      if (!found || !*found) continue;
      seen.reports.push_back(**found);
      seen.reports.back().clock = 1000;
      seen.arrivals.push_back(1000);
    }
  }
  REQUIRE(seen.reports.size() == kNodes * kRanks);
  CHECK(bytes / (kNodes * (kRanks - 1)) <= 72);
  const Comparison comparison = compare(plan, node_of(kRanks), seen);
  CHECK(comparison.differences.empty());
  CHECK(comparison.ranks_as_planned == kNodes * kRanks);
#ifdef __GLIBC__
  CHECK(mallinfo2().uordblks - before < 60'000'000);
  UNSCOPED_INFO(mallinfo2().uordblks - before);
#endif
}
