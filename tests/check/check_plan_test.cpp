#include <algorithm>

#include "hpclaunch/check.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

// Thread t of core c is PU c + t * number.
Topology cores(int number, int threads = 1) {
  Topology node;
  for (int c = 0; c < number; ++c) {
    Core core{0, 0, {}};
    for (int t = 0; t < threads; ++t) core.pus.add(c + t * number);
    node.cores.push_back(core);
  }
  node.allowed = node.all_pus();
  return node;
}

Plan plan_of(std::vector<Setting> env, int ranks = 2) {
  Plan plan;
  plan.hosts.names = {"n0"};
  NodeClass one;
  for (int r = 0; r < ranks; ++r) {
    RankPlan rank;
    rank.cpus.add(2 * r);
    rank.cpus.add(2 * r + 1);
    one.ranks.push_back(rank);
  }
  plan.placement.classes = {one};
  plan.placement.layout = {NodeRun{0, 1}};
  plan.environment.settings = std::move(env);
  return plan;
}

Setting setting(std::string name, std::vector<std::pair<Layer, Value>> decisions) {
  Setting result{std::move(name), {}};
  for (auto& [layer, value] : decisions) result.history.push_back({layer, value, {}, "why"});
  return result;
}

bool finds(const Plan& plan, const EnvSnapshot& env, const std::string& rule,
           const Topology& node = cores(64)) {
  const auto diagnostics = check_plan(plan, node, env);
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [&](const Diagnostic& f) { return f.id == rule; });
}

}  // namespace

TEST_CASE("a plain plan has nothing to remark", "[check]") {
  CHECK(check_plan(plan_of({setting("RANK", {{Layer::computed, RankFact::rank}})}), cores(64),
                   EnvSnapshot{})
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
    for (const Diagnostic& diagnostic : check_plan(plan_of({one}), cores(64), EnvSnapshot{}))
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
    plan.placement.classes[0].ranks[0].cpus = *CpuSet::parse("4-7");
    plan.placement.classes[0].ranks[1].cpus = *CpuSet::parse("8-11");
    const EnvSnapshot env({list, std::string("CCL_WORKER_COUNT=") + workers});
    for (const Diagnostic& one : check_plan(plan, cores(64), env))
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

TEST_CASE("loopback is no interface between nodes", "[check]") {
  const auto on = [](int nodes, const char* value) {
    Plan plan = plan_of({});
    plan.hosts.names = {"n0"};
    if (nodes > 1) plan.hosts.names.push_back("n1");
    plan.placement.layout = {NodeRun{0, nodes}};
    return finds(plan, EnvSnapshot{{std::string("GLOO_SOCKET_IFNAME=") + value}},
                 "interface-loopback");
  };
  CHECK(on(2, "lo"));
  CHECK_FALSE(on(1, "lo"));
  CHECK_FALSE(on(2, "eth0"));
  CHECK_FALSE(on(2, ""));
}

TEST_CASE("an interface that leaves the fabric out is named", "[check]") {
  const auto on = [](int nodes, const std::string& assignment, const char* kind = "slingshot") {
    Plan plan = plan_of({});
    plan.hosts.names = {"n0"};
    if (nodes > 1) plan.hosts.names.push_back("n1");
    plan.placement.layout = {NodeRun{0, nodes}};
    Topology node = cores(64);
    for (const char* name : {"hsn0", "hsn1"}) {
      Nic nic;
      nic.name = name;
      nic.kind = kind;
      node.nics.push_back(nic);
    }
    return finds(plan, EnvSnapshot{{assignment}}, "interface-slow", node);
  };
  CHECK(on(2, "NCCL_SOCKET_IFNAME=eth0"));
  CHECK(on(2, "NCCL_SOCKET_IFNAME==eth0,eth1"));
  CHECK(on(2, "GLOO_SOCKET_IFNAME=eth0"));
  for (const char* sound :
       {"NCCL_SOCKET_IFNAME=hsn", "NCCL_SOCKET_IFNAME=eth0,hsn1", "NCCL_SOCKET_IFNAME==hsn1",
        "NCCL_SOCKET_IFNAME=^lo,docker", "GLOO_SOCKET_IFNAME=hsn0,hsn1", "NCCL_SOCKET_IFNAME="}) {
    INFO(sound);
    CHECK_FALSE(on(2, sound));
  }
  CHECK_FALSE(on(1, "NCCL_SOCKET_IFNAME=eth0"));
  CHECK_FALSE(on(2, "NCCL_SOCKET_IFNAME=eth1", "ethernet"));
}

TEST_CASE("a list of helper threads that cannot be meant", "[check]") {
  const auto finds_in = [](const char* list, const char* rule) {
    Plan plan = plan_of({});
    plan.placement.bind_via = BindVia::shim;
    return finds(plan, EnvSnapshot{{std::string("CCL_WORKER_AFFINITY=") + list}}, rule);
  };
  CHECK(finds_in("a,b", "list-invalid"));
  CHECK_FALSE(finds_in("auto", "list-invalid"));
  CHECK_FALSE(finds_in("", "list-invalid"));
  CHECK(finds_in("9,9", "list-repeats"));
  CHECK_FALSE(finds_in("8,9", "list-repeats"));
}

TEST_CASE("helper threads are on CPUs of the node, and on no sibling of a rank's core", "[check]") {
  const auto found = [](const char* list, const char* rule) {
    Plan plan = plan_of({}, 2);
    plan.placement.bind_via = BindVia::shim;
    plan.placement.classes[0].ranks[0].cpus = *CpuSet::parse("1-3");
    plan.placement.classes[0].ranks[1].cpus = *CpuSet::parse("4-6");
    for (const Diagnostic& one : check_plan(plan, cores(8, 2), EnvSnapshot{{std::string(list)}}))
      if (one.id == rule) return one.message;
    return std::string();
  };
  CHECK(found("CCL_WORKER_AFFINITY=7,16", "list-invalid") ==
        "CCL_WORKER_AFFINITY names CPU 16, which the node does not have");
  CHECK(found("CCL_WORKER_AFFINITY=99,100", "list-invalid") ==
        "CCL_WORKER_AFFINITY names CPUs 99-100, which the node does not have");
  CHECK(found("HOROVOD_THREAD_AFFINITY=1,20", "list-invalid") ==
        "HOROVOD_THREAD_AFFINITY names CPU 20, which the node does not have");
  CHECK(found("CCL_WORKER_AFFINITY=7,15", "list-invalid").empty());
  CHECK(found("CCL_WORKER_AFFINITY=7,15", "helper-cores").empty());
  CHECK(found("CCL_WORKER_AFFINITY=7,9", "helper-cores") ==
        "CCL_WORKER_AFFINITY puts 1 of 2 threads of oneCCL on cores of ranks");
  CHECK(found("HOROVOD_THREAD_AFFINITY=9,12", "helper-cores").empty());  // each its own rank's
  CHECK(found("HOROVOD_THREAD_AFFINITY=12,9", "helper-cores") ==
        "HOROVOD_THREAD_AFFINITY puts 2 of 2 threads of Horovod on cores of other ranks");
  CHECK(found("HOROVOD_THREAD_AFFINITY=1-2", "list-invalid") ==
        "HOROVOD_THREAD_AFFINITY=\"1-2\" has a range, and Horovod reads the first number only");
  CHECK(found("HOROVOD_THREAD_AFFINITY=auto", "list-invalid") ==
        "HOROVOD_THREAD_AFFINITY=\"auto\" is not a list of CPUs");
}

TEST_CASE("engines are named for each device of ranks", "[check]") {
  // Two cards of two tiles, a rank on each tile.
  const auto found = [](const char* list, const char* view = "all", const char* hierarchy = "FLAT",
                        int tiles = 2, const char* vendor = "intel", int ranks = 4) {
    Topology node = cores(8);
    for (int d = 0; d < 2; ++d) {
      Device device;
      device.index = d;
      device.vendor = vendor;
      device.subdevices = tiles;
      node.devices.push_back(device);
    }
    Plan plan = plan_of(
        {setting("ZE_FLAT_DEVICE_HIERARCHY", {{Layer::profile_require, std::string(hierarchy)}})},
        ranks);
    plan.placement.gpu_view = view;
    if (plan.placement.gpu_view == "own")
      plan.environment.settings.push_back(
          setting("ZE_AFFINITY_MASK", {{Layer::computed, PerRank{{{"0", "1", "2", "3"}}}}}));
    std::ranges::sort(plan.environment.settings, {}, &Setting::name);
    for (int r = 0; r < ranks; ++r)
      plan.placement.classes[0].ranks[static_cast<std::size_t>(r)].slots = {{r, r / 2, r % 2}};
    for (const Diagnostic& one :
         check_plan(plan, node, EnvSnapshot{{std::string("ZEX_NUMBER_OF_CCS=") + list}}))
      if (one.id.starts_with("list-")) return one.id + ": " + one.message;
    return std::string();
  };
  for (const char* good : {"0:4,1:4", "0:1,1:2", "0:4,1:4,2:4,3:4", "", "default", " 1:4, 0:4"}) {
    INFO(good);
    CHECK(found(good).empty());
  }
  CHECK(found("0:4") ==
        "list-partial: ZEX_NUMBER_OF_CCS=\"0:4\": device 1 of ranks is not named, and keeps one "
        "queue each");
  CHECK_THAT(found("2:4,3:4"), ContainsSubstring("devices 0,1 of ranks are not named"));
  CHECK(found("0:4", "all", "FLAT", 2, "intel", 2).empty());  // both ranks on card 0
  CHECK(found("0:4", "own").empty());                         // each rank sees one, as 0
  CHECK_THAT(found("1:4", "own"), ContainsSubstring("list-partial"));
  CHECK(found("0:4,1:4,4:4") ==
        "list-invalid: ZEX_NUMBER_OF_CCS=\"0:4,1:4,4:4\": it names device 4, and the node has 4 "
        "devices");
  CHECK_THAT(found("0:4,1:4,2:4", "all", "COMPOSITE"),
             ContainsSubstring("it names device 2, and the node has 2 devices"));
  for (const char* bad : {"0:3,1:4", "4", "0:4;1:4", "0=4", "0:4,,1:4", "a:4", "0:4:1", "-1:4"}) {
    INFO(bad);
    CHECK_THAT(found(bad), ContainsSubstring("is no DEVICE:ENGINES with 1, 2 or 4 engines"));
  }
  CHECK_THAT(found("0:4,0:2"), ContainsSubstring("it names device 0 twice"));
  CHECK(found("4", "all", "FLAT", 1, "intel", 2).empty());  // as GPUs of one tile read it
  CHECK(found("garbage", "all", "FLAT", 2, "nvidia").empty());
}

TEST_CASE("a launcher's own rank variables are no user's, nor a profile's", "[check]") {
  const auto found = [](const char* name, std::vector<std::pair<Layer, Value>> decisions,
                        int ranks = 2) {
    for (const Diagnostic& one :
         check_plan(plan_of({setting(name, std::move(decisions))}, ranks), cores(8), EnvSnapshot{}))
      if (one.severity == Severity::error) return one.id;
    return std::string();
  };
  const Value text = std::string("7");
  for (const char* name : {"PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS",
                           "MPI_LOCALRANKID", "PALS_RANKID", "PALS_LOCAL_RANKID", "FLUX_TASK_RANK",
                           "JSM_NAMESPACE_RANK", "MV2_COMM_WORLD_RANK", "HOROVOD_RANK"}) {
    INFO(name);
    CHECK(found(name, {{Layer::command_line, text}}) == "identity-contradicts");
    CHECK(found(name, {{Layer::command_line, text}}, 1) == "identity-contradicts");
    CHECK(found(name, {{Layer::profile_default, text}}) == "identity-contradicts");
    CHECK(found(name, {{Layer::profile_require, text}}) == "identity-contradicts");
    CHECK(found(name, {{Layer::environment, text}, {Layer::computed, Unset{}}}).empty());
    CHECK(found(name, {{Layer::computed, Unset{}}, {Layer::command_line, text}}) ==
          "identity-contradicts");
    CHECK(found(name, {{Layer::command_line, Unset{}}}).empty());
  }
  CHECK(found("SLURM_PROCID", {{Layer::computed, RankFact::rank}, {Layer::command_line, text}}) ==
        "same-on-every-rank");
  const Value each = PerRank{{{"2", "2"}}};
  CHECK(found("SLURM_NTASKS", {{Layer::computed, each}, {Layer::command_line, text}}) ==
        "identity-contradicts");
  CHECK(found("SLURM_NTASKS", {{Layer::computed, each}, {Layer::command_line, "2"}}).empty());
  CHECK(found("RANK", {{Layer::computed, RankFact::rank}, {Layer::command_line, text}}, 1) ==
        "identity-contradicts");
  CHECK(found("RANK", {{Layer::computed, RankFact::rank}, {Layer::command_line, "0"}}, 1).empty());
  CHECK(found("SLURM_JOB_NAME", {{Layer::command_line, text}}).empty());
}
