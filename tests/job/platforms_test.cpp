// Which node this is, on platforms that start one program on each: for each row the second node of 2 x 4, then values that
// cannot be, and rows that look alike.
#include "hpclaunch/platforms.h"

#include <map>

#include "support/catch.h"
#include "world/each_node.h"

using namespace hpclaunch;
using namespace hpclaunch::job;

namespace {

using Vars = std::map<std::string, std::string>;

struct Second {
  std::string row;
  Vars env;
  std::string address;
  int port = 0;
  std::vector<int> slots = {4, 4};
  Vars files = {};
};

const char* const kRendezvous = "/run/determined/info/rendezvous.json";

const std::vector<Second> kSecondOfTwo = {
    {"sagemaker",
     {{"SM_HOSTS", R"(["algo-1","algo-2"])"}, {"SM_CURRENT_HOST", "algo-2"}, {"SM_NUM_GPUS", "4"}},
     "algo-1",
     7777},
    {"determined",
     {{"DET_ALLOCATION_ID", "a.1"}, {"DET_SLOT_IDS", "[0,1,2,3]"}},
     "10.0.0.1",
     29400,
     {4, 4},
     {{kRendezvous,
       R"({"container_addrs": ["10.0.0.1", "10.0.0.2"], "container_rank": 1, "container_slot_counts": [4, 4]})"}}},
    {"dstack",
     {{"DSTACK_RUN_ID", "r"},
      {"DSTACK_NODE_RANK", "1"},
      {"DSTACK_NODES_NUM", "2"},
      {"DSTACK_GPUS_PER_NODE", "4"},
      {"DSTACK_NODES_IPS", "10.0.0.1\n10.0.0.2\n"},
      {"DSTACK_MASTER_NODE_IP", "10.0.0.1"}},
     "10.0.0.1",
     29500},
    {"skypilot",
     {{"SKYPILOT_NODE_RANK", "1"},
      {"SKYPILOT_NUM_NODES", "2"},
      {"SKYPILOT_NODE_IPS", "10.0.0.1\n10.0.0.2"},
      {"SKYPILOT_NUM_GPUS_PER_NODE", "4"}},
     "10.0.0.1",
     29500},
    {"leaderworkerset",
     {{"LWS_GROUP_SIZE", "2"}, {"LWS_WORKER_INDEX", "1"}, {"LWS_LEADER_ADDRESS", "l-0.l.ns"}},
     "l-0.l.ns",
     29500,
     {}},
    {"lepton",
     {{"LEPTON_JOB_TOTAL_WORKERS", "2"},
      {"LEPTON_JOB_WORKER_INDEX", "1"},
      {"LEPTON_JOB_WORKER_HOSTNAME_PREFIX", "w"},
      {"LEPTON_SUBDOMAIN", "sub"},
      {"LEPTON_RESOURCE_ACCELERATOR_NUM", "4"}},
     "w-0.sub",
     29500},
    {"volcano-engine",
     {{"MLP_ROLE_INDEX", "1"},
      {"MLP_WORKER_NUM", "2"},
      {"MLP_WORKER_GPU", "4"},
      {"MLP_WORKER_0_HOST", "h0"},
      {"MLP_WORKER_0_PORT", "2223"}},
     "h0",
     2223},
    {"runpod",
     {{"NUM_NODES", "2"},
      {"NODE_RANK", "1"},
      {"NUM_TRAINERS", "4"},
      {"WORLD_SIZE", "8"},
      {"PRIMARY_ADDR", "10.65.0.2"},
      {"PRIMARY_PORT", "29400"},
      {"MASTER_ADDR", "10.65.0.2"}},
     "10.65.0.2",
     29400},
    {"mosaicml",
     {{"MOSAICML_PLATFORM", "true"},
      {"WORLD_SIZE", "8"},
      {"LOCAL_WORLD_SIZE", "4"},
      {"NODE_RANK", "1"},
      {"MASTER_ADDR", "h0"},
      {"MASTER_PORT", "7501"}},
     "h0",
     7501},
    {"kubeflow",  // a TrainJob
     {{"PET_NNODES", "2"},
      {"PET_NODE_RANK", "1"},
      {"PET_NPROC_PER_NODE", "4"},
      {"PET_MASTER_ADDR", "j-node-0-0.j"},
      {"PET_MASTER_PORT", "29500"},
      {"JOB_COMPLETION_INDEX", "1"},
      {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}},
     "j-node-0-0.j",
     29500},
    {"kubeflow",  // a PyTorchJob: WORLD_SIZE counts processes, RANK pods
     {{"WORLD_SIZE", "8"},
      {"RANK", "1"},
      {"MASTER_ADDR", "j-master-0"},
      {"MASTER_PORT", "23456"},
      {"PET_NNODES", "2"},
      {"PET_NODE_RANK", "1"},
      {"PET_NPROC_PER_NODE", "4"},
      {"PET_MASTER_ADDR", "j-master-0"},
      {"PET_MASTER_PORT", "23456"},
      {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}},
     "j-master-0",
     23456},
    {"volcano",
     {{"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"MASTER_ADDR", "j-master-0.j"},
      {"MASTER_PORT", "23456"},
      {"VC_TASK_INDEX", "0"},
      {"NPROC_PER_NODE", "4"}},
     "j-master-0.j",
     23456},
    {"vertex",
     {{"CLUSTER_SPEC",
       R"({"cluster": {"workerpool0": ["c-0:2222"], "workerpool1": ["c-1:2222"]}, "environment": "cloud",
           "task": {"type": "workerpool1", "index": 0}})"}},
     "c-0",
     2222,
     {}},
    {"mindcluster",
     {{"RANK", "1"},
      {"WORLD_SIZE", "8"},
      {"LOCAL_WORLD_SIZE", "4"},
      {"LOCAL_RANK", "0,1,2,3"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "2222"},
      {"ASCEND_VISIBLE_DEVICES", "0,1,2,3"}},
     "10.0.0.1",
     2222},
    {"pods",  // Alibaba PAI
     {{"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"MASTER_ADDR", "j-master-0"},
      {"MASTER_PORT", "23456"},
      {"NPROC_PER_NODE", "4"}},
     "j-master-0",
     23456},
    {"pods",  // Run:ai, with a part of a GPU: no number of ranks
     {{"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"MASTER_ADDR", "j-master-0"},
      {"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
      {"RUNAI_NUM_OF_GPUS", "0.5"}},
     "j-master-0",
     23456,
     {}}};

World world_with(const Vars& env, const Vars& files = {}) {
  World world;
  std::vector<std::string> entries;
  for (const auto& [name, value] : env) entries.push_back(name + "=" + value);
  world.env = EnvSnapshot(entries);
  world.host = "me";
  world.look = [files](const std::string& path) {
    return files.contains(path) ? FileKind::file : FileKind::nothing;
  };
  world.read_file = [files](const std::string& path, std::size_t) -> Result<std::string> {
    const auto at = files.find(path);
    if (at == files.end()) return Error{ErrorKind::not_found, path};
    return at->second;
  };
  return world;
}

Result<EachNode> found_in(const Vars& env, const Request& request = {}, const Vars& files = {},
                          Diagnostics* said = nullptr) {
  Diagnostics diagnostics;
  Result<EachNode> found = find_each_node(request, world_with(env, files), diagnostics);
  if (said != nullptr) *said = diagnostics;
  return found;
}

Vars with(Vars env, const Vars& more) {
  for (const auto& [name, value] : more)
    if (value.empty())
      env.erase(name);
    else
      env[name] = value;
  return env;
}

Request typed(std::optional<int> node, std::optional<int> nodes, std::string address = "") {
  Request request;
  request.node_rank = node;
  request.nodes = nodes;
  request.master_addr = std::move(address);
  return request;
}

const Vars& kubeflow() { return kSecondOfTwo[9].env; }

}  // namespace

TEST_CASE("the second of two nodes, on each platform", "[platforms]") {
  for (const Second& one : kSecondOfTwo) {
    INFO(one.row);
    const Platform* row = find_row<Platform>(one.row);
    REQUIRE(row != nullptr);
    const Result<EachNode> found = found_in(one.env, {}, one.files);
    REQUIRE(found);
    CHECK(found->by == row->title);
    CHECK(found->own == 1);
    CHECK(found->nodes == 2);
    CHECK(found->slots == one.slots);
    CHECK(found->address == one.address);
    CHECK(found->port == one.port);
    EachNode second = *found;
    const Result<HostList> hosts = hosts_of_each({}, {}, world_with(one.env), second);
    REQUIRE(hosts);
    CHECK(hosts->names.size() == 2);
    CHECK(hosts->own == 1);
  }
}

TEST_CASE("each row that starts nodes has its case", "[platforms]") {
  for (const Platform& row : rows<Platform>()) {
    if (row.step || !row.refuse.empty() || row.name == "indexed-job" ||
        row.name == "kubeflow-single")
      continue;
    INFO(row.name);
    CHECK(std::ranges::count(kSecondOfTwo, std::string(row.name), &Second::row) >= 1);
  }
}

TEST_CASE("without what proves it a platform is not there", "[platforms]") {
  for (const Second& one : kSecondOfTwo) {
    const Platform& row = *find_row<Platform>(one.row);
    for (const std::string_view name : row.set) {
      INFO(one.row << " without " << name);
      const Result<EachNode> found =
          found_in(with(one.env, {{std::string(name), ""}}), {}, one.files);
      CHECK((!found || found->by != row.title || found->own < 0));
    }
  }
  CHECK(found_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}})->own == -1);
  CHECK(found_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}})->own == -1);
  CHECK(found_in({{"KUBERNETES_SERVICE_HOST", "h"}})->own == -1);
}

TEST_CASE("SageMaker's list is sorted as text", "[platforms]") {
  const Result<EachNode> found =
      found_in({{"SM_HOSTS", R"(["algo-1","algo-10","algo-2"])"}, {"SM_CURRENT_HOST", "algo-2"}});
  REQUIRE(found);
  CHECK(found->own == 2);
  CHECK(found->names[1] == "algo-10");
}

TEST_CASE("nodes with unequal numbers of ranks", "[platforms]") {
  const Vars files = {{"/hosts", "10.0.0.1 slots=4\n10.0.0.2 slots=2\n"}};
  Result<EachNode> found =
      found_in(with(kSecondOfTwo[2].env, {{"DSTACK_MPI_HOSTFILE", "/hosts"}}), {}, files);
  REQUIRE(found);
  CHECK(found->slots == std::vector<int>{4, 2});
  found = found_in(with(kSecondOfTwo[2].env, {{"DSTACK_MPI_HOSTFILE", "/hosts"}}), {},
                   {{"/hosts", "10.0.0.1 slots=2\n10.0.0.2\n"}});
  REQUIRE(found);
  CHECK(found->slots == std::vector<int>{2, 1});
  found = found_in(
      kSecondOfTwo[1].env, {},
      {{kRendezvous,
        R"({"container_addrs": ["a", "b"], "container_rank": 0, "container_slot_counts": [1, 8]})"}});
  REQUIRE(found);
  CHECK(found->own == 0);
  CHECK(found->slots == std::vector<int>{1, 8});
}

TEST_CASE("values that cannot be are refused, with what to type", "[platforms]") {
  for (const char* nodes : {"two", "0", "-1", "1:2", "2.0"}) {
    INFO(nodes);
    const Result<EachNode> found = found_in(with(kubeflow(), {{"PET_NNODES", nodes}}));
    REQUIRE_FALSE(found);
    CHECK(found.error().message.find("PET_NNODES=") != std::string::npos);
    CHECK(found.error().hint == "--node-rank R --nodes N --master-addr HOST");
  }
  for (const char* node : {"2", "x", "-1"}) {
    INFO(node);
    CHECK_FALSE(found_in(with(kubeflow(), {{"PET_NODE_RANK", node}})));
  }
  CHECK_FALSE(found_in(with(kubeflow(), {{"PET_MASTER_ADDR", ""}})));  // where do they meet?
  CHECK_FALSE(found_in(
      {{"CLUSTER_SPEC",
        R"({"cluster": {"workerpool0": ["c:1"]}, "task": {"type": "workerpool0", "index": 1}})"}}));
  CHECK_FALSE(found_in({{"SM_HOSTS", R"(["algo-1"])"}, {"SM_CURRENT_HOST", "algo-2"}}));
  const Result<EachNode> elastic =
      found_in({{"PET_NNODES", "1:2"}, {"PET_RDZV_ENDPOINT", "w-0:23456"}});
  REQUIRE_FALSE(elastic);
  CHECK(elastic.error().message.find("fixed number") != std::string::npos);
}

TEST_CASE("as many nodes at least as at most", "[platforms]") {
  const Result<EachNode> found = found_in(with(kubeflow(), {{"PET_NNODES", "2:2"}}));
  REQUIRE(found);
  CHECK(found->nodes == 2);
}

TEST_CASE("torchrun's words for the ranks of a node", "[platforms]") {
  const Result<EachNode> found = found_in(with(kubeflow(), {{"PET_NPROC_PER_NODE", "auto"}}));
  REQUIRE(found);
  CHECK(found->slots.empty());
  CHECK(found->ranks_by == "auto");
  Diagnostics said;
  CHECK(for_each_node({}, *found, said).ranks_by == "auto");
  Request counted;
  counted.ranks_per_node = 2;
  CHECK(for_each_node(counted, *found, said).ranks_by.empty());
}

TEST_CASE("what is typed counts, and a contradiction is said", "[platforms]") {
  Diagnostics said;
  Result<EachNode> found = found_in(kubeflow(), typed(0, {}), {}, &said);
  REQUIRE(found);
  CHECK(found->own == 0);
  REQUIRE(said.size() == 1);
  CHECK(said[0].message == "--node-rank 0, but PET_NODE_RANK=1 of Kubeflow");
  found = found_in(kubeflow(), typed({}, 3), {}, &said);
  REQUIRE(found);
  CHECK(found->nodes == 3);
  CHECK(said.size() == 1);
  found = found_in(kubeflow(), typed({}, 1), {}, &said);
  REQUIRE(found);
  CHECK(found->own == -1);
  CHECK(said.size() == 1);
  found = found_in(kubeflow(), typed(1, 2), {}, &said);
  REQUIRE(found);
  CHECK(said.empty());
  CHECK(found->why == "PET_NODE_RANK=1");
  CHECK(found_in(with(kubeflow(), {{"PET_NNODES", "x"}}), typed(1, 2, "h"))->own == 1);
}

TEST_CASE("nothing but options", "[platforms]") {
  Result<EachNode> found = found_in({}, typed(1, 2, "10.0.0.1"));
  REQUIRE(found);
  CHECK(found->own == 1);
  CHECK(found->port == 29500);
  CHECK(hosts_of_each(typed(1, 2, "10.0.0.1"), {}, world_with({}), *found)->names ==
        HostNames({"(node 0)", "me"}));
  CHECK_FALSE(found_in({}, typed(1, {}, "h")));
  CHECK_FALSE(found_in({}, typed(1, 2)));
  CHECK_FALSE(found_in({}, typed(2, 2, "h")));
  CHECK(found_in({{"MASTER_ADDR", "h0"}}, typed(1, 2))->address == "h0");
  CHECK(found_in({}, typed(0, 1))->own == -1);
  CHECK(found_in({{"JOB_COMPLETION_INDEX", "1"}})->own == -1);
  CHECK(found_in({{"JOB_COMPLETION_INDEX", "1"}}, typed({}, 2, "h"))->own == 1);
}

TEST_CASE("one rank of somebody's launch is no node", "[platforms]") {
  const Vars rank = {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}};
  Diagnostics said;
  CHECK(found_in(rank, {}, {}, &said)->own == -1);
  REQUIRE(said.size() == 1);
  CHECK(said[0].id == "inside-a-rank");
  CHECK(said[0].fix.find("hpclaunch bind") != std::string::npos);
  Request torchrun;
  torchrun.static_nodes = true;
  CHECK(found_in(rank, torchrun, {}, &said)->own == -1);
  CHECK(said.empty());
  for (const char* size : {"1", "5", "x"}) {  // they do not fit together
    CHECK(found_in(with(rank, {{"WORLD_SIZE", size}}), {}, {}, &said)->own == -1);
    CHECK(said.empty());
  }
}

TEST_CASE("a rank of torchrun on a platform is no node", "[platforms]") {
  const Vars rank = {
      {"RANK", "2"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}};
  for (const Second& one : kSecondOfTwo) {
    INFO(one.row);
    Diagnostics said;
    const Result<EachNode> found = found_in(with(one.env, rank), {}, one.files, &said);
    REQUIRE(found);
    CHECK(found->own == -1);
    REQUIRE(said.size() == 1);
    CHECK(said[0].id == "inside-a-rank");
    CHECK(found_in(with(one.env, rank), typed(1, 2, "h"), one.files)->own == 1);
  }
}

TEST_CASE("Slurm's numbers count before those of what runs on it", "[platforms]") {
  const Vars job = {{"SLURM_JOB_ID", "7"},         {"SLURM_JOB_NODELIST", "n[1-2]"},
                    {"SLURM_JOB_NUM_NODES", "2"},  {"SKYPILOT_NODE_RANK", "0"},
                    {"SKYPILOT_NODE_IPS", "a\nb"}, {"SKYPILOT_NUM_NODES", "2"}};
  CHECK(found_in(job)->own == -1);
  const Vars step = with(job, {{"SLURM_STEP_ID", "0"},
                               {"SLURM_NODEID", "1"},
                               {"SLURM_STEP_NUM_TASKS", "2"},
                               {"SLURM_STEP_NUM_NODES", "2"},
                               {"SLURM_STEP_NODELIST", "n[1-2]"}});
  CHECK(found_in(step)->own == 1);
  CHECK(found_in(step)->by == "srun");
  CHECK(found_in(with(step, {{"SLURM_STEP_NUM_TASKS", "4"}}))->own == -1);
  const Vars plain = with(step, {{"SKYPILOT_NODE_RANK", ""}});
  CHECK(found_in(plain)->own == -1);
  CHECK(found_in(plain, typed(1, {}))->own == 1);
  Request torchrun;
  torchrun.static_nodes = true;
  CHECK(found_in(plain, torchrun)->own == 1);
  torchrun.node_rank = 0;
  CHECK(found_in(with(plain, {{"SLURM_STEP_ID", ""}}), torchrun)->own == -1);
  CHECK(found_in(with(plain, {{"SLURM_STEP_ID", ""}}), typed(1, {}))->nodes ==
        0);  // of the job's list
}

namespace {

const Vars& slurm_job() {
  static const Vars vars = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_JOB_NUM_NODES", "2"}};
  return vars;
}

Vars slurm_step(const std::string& id, const std::string& tasks, const std::string& nodes) {
  return with(slurm_job(), {{"SLURM_STEP_ID", id},
                            {"SLURM_NODEID", "0"},
                            {"SLURM_STEP_NUM_TASKS", tasks},
                            {"SLURM_STEP_NUM_NODES", nodes},
                            {"SLURM_STEP_NODELIST", nodes == "1" ? "n1" : "n[1-2]"}});
}

Request torchrun_of(int nodes) {
  Request request;
  request.static_nodes = true;
  request.nodes = nodes;
  return request;
}

}  // namespace

TEST_CASE("the shell of an interactive job starts all nodes", "[platforms]") {
  for (const char* id : {"0", "4294967290"}) {
    const Vars shell = slurm_step(id, "1", "1");
    Diagnostics said;
    CHECK(found_in(shell, torchrun_of(2), {}, &said)->own == -1);
    CHECK(said.empty());
    CHECK(found_in(with(shell, {{"SKYPILOT_NODE_RANK", "0"},
                                {"SKYPILOT_NODE_IPS", "a\nb"},
                                {"SKYPILOT_NUM_NODES", "2"}}))
              ->own == -1);
  }
  CHECK(found_in(slurm_step("4294967290", "2", "2"), torchrun_of(2))->own == -1);
  CHECK(found_in(slurm_step("0", "2", "2"), torchrun_of(2))->own == 0);
  for (const Vars& one : {Vars{{"OMPI_COMM_WORLD_RANK", "0"},
                               {"OMPI_COMM_WORLD_SIZE", "1"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}},
                          Vars{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"MPI_LOCALNRANKS", "1"}}})
    CHECK(found_in(with(slurm_job(), one), torchrun_of(2))->own == -1);
}

TEST_CASE("steps of one task per node, of each launcher", "[platforms]") {
  const Vars daemons = with(slurm_step("0", "3", "3"), {{"SLURM_NODEID", "2"}});
  const std::vector<std::pair<std::string, Vars>> steps = {
      {"mpirun",
       {{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}},
      {"mpiexec", {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}}},
      {"mpiexec",
       {{"PALS_RANKID", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_LOCAL_SIZE", "1"}}},
      {"flux run", {{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}, {"FLUX_JOB_NNODES", "2"}}}};
  Request request = torchrun_of(2);
  request.head = "n1";
  for (const auto& [title, env] : steps) {
    INFO(title);
    const bool pals = env.contains("PALS_RANKID");
    const Result<EachNode> found = found_in(pals ? env : with(daemons, env), request);
    REQUIRE(found);
    CHECK(found->by == title);
    CHECK(found->own == 1);
    CHECK(found->nodes == 2);
    Vars several = env;
    for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"})
      if (several.contains(name)) several[name] = "2";
    if (several.contains("FLUX_JOB_SIZE")) several["FLUX_JOB_SIZE"] = "4";
    CHECK(found_in(several, request)->own == -1);
    if (several.contains("MPI_LOCALNRANKS") || several.contains("OMPI_COMM_WORLD_RANK"))
      CHECK(found_in(with(daemons, several), request)->own == -1);
  }
  const Vars cray = with(slurm_step("0", "2", "2"),
                         {{"PALS_RANKID", "1"}, {"PMI_SIZE", "2"}, {"PMI_LOCAL_SIZE", "1"}});
  CHECK(found_in(cray, request)->by == "srun");
  CHECK(found_in(with(slurm_step("0", "2", "2"), {{"FLUX_URI", "local:///f"}}), request)->own ==
        -1);
}

TEST_CASE("one node has the ranks that its platform says", "[platforms]") {
  const std::vector<Vars> single = {
      {{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "3"}},
      {{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "3"}, {"PET_NODE_RANK", "0"}},
      {{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "3"}, {"PET_RDZV_ENDPOINT", "w:1"}},
      {{"SKYPILOT_NODE_RANK", "0"},
       {"SKYPILOT_NODE_IPS", "10.0.0.1"},
       {"SKYPILOT_NUM_NODES", "1"},
       {"SKYPILOT_NUM_GPUS_PER_NODE", "3"}}};
  for (const Vars& env : single) {
    const Result<EachNode> found = found_in(env);
    REQUIRE(found);
    CHECK(found->own == -1);
    CHECK(found->slots == std::vector<int>{3});
  }
  CHECK(found_in({{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "auto"}})->ranks_by == "auto");
  const Vars rendezvous = {
      {kRendezvous,
       R"({"container_addrs": ["a", "b"], "container_rank": 1, "container_slot_counts": [1, 8]})"}};
  CHECK(found_in(kSecondOfTwo[1].env, typed({}, 1), rendezvous)->slots == std::vector<int>{8});
  for (const Vars& env :
       {with(kubeflow(), {{"PET_NNODES", "1:2"}}),
        Vars{{"PET_NNODES", "1:2"}, {"PET_RDZV_ENDPOINT", "w:1"}, {"PET_NPROC_PER_NODE", "4"}}}) {
    const Result<EachNode> found = found_in(env, typed({}, 1));
    REQUIRE(found);
    CHECK(found->own == -1);
    CHECK(found->slots == std::vector<int>{4});
  }
}

TEST_CASE("a line for one node in a step of several", "[platforms]") {
  Diagnostics said;
  const Result<EachNode> found = found_in(slurm_step("0", "2", "2"), torchrun_of(1), {}, &said);
  REQUIRE_FALSE(found);
  CHECK(said.empty());
  CHECK(found.error().message.find("srun starts 2 nodes (SLURM_NODEID=0)") == 0);
  CHECK(found.error().hint.starts_with("--nodes 2;"));
}
