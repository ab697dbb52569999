// Batch systems: which one a job belongs to, its hosts, and what its commands print.
#include "hpclaunch/scheduler.h"

#include <algorithm>

#include "support/catch.h"
#include "support/places.h"

using namespace hpclaunch;

namespace {

BatchJob batch_of(std::vector<std::string> env) { return find_batch(EnvSnapshot(std::move(env))); }

const Scheduler& row(std::string_view name) {
  for (const Scheduler& one : rows<Scheduler>())
    if (one.name == name) return one;
  FAIL("no batch system " + std::string(name));
  return rows<Scheduler>().front();
}

std::optional<TimeLeft> left(std::string_view name, std::string_view text) {
  return row(name).time_left(text);
}

Result<HostList> hosts_of(std::string_view name, std::vector<std::string> env,
                          const std::string& text = "", const Request& request = {}) {
  if (row(name).hosts == nullptr) return hosts_from_text(text, "file", "node file");
  return row(name).hosts(EnvSnapshot(std::move(env)), request, text, text.empty() ? "" : "file");
}

}  // namespace

// CONTRIBUTING.md, "A scheduler".
TEST_CASE("every batch system is in each place that names batch systems", "[scheduler][places]") {
  using namespace hpclaunch::test;
  for (const Scheduler& one : rows<Scheduler>()) {
    const std::string name(one.name);
    const std::string title(one.title);
    expect_in_line("profiles/new/profile.txt", "  // Batch system:", name, "name it");
    expect_in_line("docs/reference/profile-format.md", "| `scheduler` | job", in_ticks(name),
                   "name it");
    expect_in_line("docs/reference/cli.md", "| `--scheduler NAME", in_ticks(name), "name it");
    expect_in_line("docs/reference/cli.md", "**Nodes.**", title, "name it, innermost first");
    expect_in_line("docs/batch.md", "`hpclaunch script` or", title, "name it");
    expect_in_line("docs/start.md", "The node list comes from", title, "name it");
    expect_in_line("docs/lint.md", "- The options in `#SBATCH`", in_ticks(one.sentinels.front()),
                   "name it");
    expect_in("tests/scheduler/scheduler_test.cpp", "hosts_of(\"" + name + "\"",
              "the hosts and slots that a job of it has");
    std::string where(one.hosts_variables.empty() ? one.hosts_file : one.hosts_variables.front());
    if (where.empty()) where = one.instance_variable;
    expect_in("docs/reference/cli.md", where, "a row of the table below **Nodes.**");
    if (!one.common_variable)
      expect_in("src/plan/environment/environment.cpp", where.substr(0, where.find('_') + 1) + ",",
                "add it to kPrefixes: a launcher takes no such variable to another node");
    CHECK(batch_of({std::string(one.job_variable) + "=7", where + "=n1"}).name() == name);
  }
}

TEST_CASE("the innermost batch system that names its hosts", "[scheduler]") {
  const std::vector<std::string> slurm = {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]"};
  const auto with = [](std::vector<std::string> env, std::vector<std::string> more) {
    env.insert(env.end(), more.begin(), more.end());
    return env;
  };
  CHECK(batch_of({}).name() == "none");
  CHECK(batch_of({}).id == "0");
  CHECK(batch_of(slurm).name() == "slurm");
  CHECK(batch_of(slurm).id == "7");
  const BatchJob pbs = batch_of(with(slurm, {"PBS_JOBID=9.s", "PBS_NODEFILE=f"}));
  CHECK(pbs.name() == "pbs");
  CHECK(pbs.id == "9.s");
  REQUIRE(pbs.inherited.size() == 1);  // of the shell that ran qsub
  CHECK(pbs.inherited.front()->name == "slurm");
  CHECK(batch_of(with(slurm, {"PBS_JOBID=9.s"})).name() == "slurm");
  const BatchJob flux = batch_of(with(slurm, {"FLUX_URI=local:///x", "FLUX_ENCLOSING_ID=f3"}));
  CHECK(flux.name() == "flux");
  CHECK(flux.id == "f3");
  CHECK(flux.key == "local:///x");
  REQUIRE(flux.outer != nullptr);
  CHECK(flux.outer->name == "slurm");
  CHECK(flux.inherited.empty());
  CHECK(batch_of({"PBS_JOBID=9.s"}).name() == "pbs");
  CHECK(batch_of({"LSB_JOBID=5", "LSB_HOSTS=a a"}).name() == "lsf");
  CHECK(batch_of({"COBALT_JOBID=5"}).name() == "cobalt");
  CHECK(batch_of({"JOB_ID=5"}).name() == "none");  // many programs set that
  CHECK(batch_of({"JOB_ID=5", "PE_HOSTFILE=f"}).name() == "sge");
}

TEST_CASE("jobs of an array are told apart", "[scheduler]") {
  CHECK(batch_of({"LSB_JOBID=7", "LSB_JOBINDEX=12"}).key == "7[12]");
  CHECK(batch_of({"LSB_JOBID=7", "LSB_JOBINDEX=0"}).key == "7");
  CHECK(batch_of({"JOB_ID=7", "PE_HOSTFILE=/f", "SGE_TASK_ID=3"}).key == "7.3");
  CHECK(batch_of({"JOB_ID=7", "PE_HOSTFILE=/f", "SGE_TASK_ID=undefined"}).key == "7");
}

TEST_CASE("what is granted on the node", "[scheduler]") {
  const std::vector<std::string> slurm = {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n1",
                                          "SLURM_JOB_CPUS_PER_NODE=6(x2),3", "SLURM_JOB_GPUS=0,2"};
  CHECK(batch_of(slurm).cpus == 6);
  CHECK(batch_of(slurm).devices == 2);
  CHECK(batch_of(slurm).devices_listed);
  const BatchJob counted = batch_of({"SLURM_JOB_ID=7", "SLURM_GPUS_ON_NODE=4"});
  CHECK(counted.devices == 4);
  CHECK_FALSE(counted.devices_listed);
}

TEST_CASE("what a batch system sets by itself is not the user's", "[scheduler]") {
  struct Case {
    std::vector<std::string> job, env;
    const char *name, *why;  // "": the user's
  };
  const std::vector<std::string> pbs = {"PBS_JOBID=1.s", "PBS_NODEFILE=f", "NCPUS=64"};
  const std::vector<std::string> flux = {"FLUX_URI=local:///x", "FLUX_ENCLOSING_ID=f1"};
  const std::vector<std::string> slurm = {"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n"};
  const std::vector<std::string> lsf = {"LSB_JOBID=1", "LSB_MCPU_HOSTS=n 4"};
  const std::vector<std::string> sge = {"JOB_ID=1", "PE_HOSTFILE=f"};
  for (const Case& one : std::vector<Case>{
           {pbs, {"OMP_NUM_THREADS=64"}, "OMP_NUM_THREADS", "PBS sets it to NCPUS"},
           {pbs, {"OMP_NUM_THREADS=8"}, "OMP_NUM_THREADS", ""},
           {{}, {"NCPUS=64", "OMP_NUM_THREADS=64"}, "OMP_NUM_THREADS", ""},
           {slurm, {"NCPUS=64", "OMP_NUM_THREADS=64"}, "OMP_NUM_THREADS", ""},
           {flux, {"CUDA_VISIBLE_DEVICES=-1"}, "CUDA_VISIBLE_DEVICES", "set by Flux"},
           {flux, {"CUDA_DEVICE_ORDER=PCI_BUS_ID"}, "CUDA_DEVICE_ORDER", "set by Flux"},
           {flux, {"CUDA_DEVICE_ORDER=FASTEST_FIRST"}, "CUDA_DEVICE_ORDER", ""},
           {flux, {"ROCR_VISIBLE_DEVICES=0"}, "ROCR_VISIBLE_DEVICES", ""},
           {slurm,
            {"SLURM_JOB_GPUS=2,3", "GPU_DEVICE_ORDINAL=0,1"},
            "GPU_DEVICE_ORDINAL",
            "set by Slurm"},
           {slurm, {"SLURM_JOB_GPUS=2,3", "CUDA_VISIBLE_DEVICES=0"}, "CUDA_VISIBLE_DEVICES", ""},
           {slurm, {"CUDA_VISIBLE_DEVICES=0"}, "CUDA_VISIBLE_DEVICES", ""},
           {lsf, {"CUDA_VISIBLE_DEVICES=0"}, "CUDA_VISIBLE_DEVICES", "set by LSF"},
           {sge, {"CUDA_VISIBLE_DEVICES=0"}, "CUDA_VISIBLE_DEVICES", ""},
           {sge,
            {"SGE_HGR_gpu=0", "CUDA_VISIBLE_DEVICES=0"},
            "CUDA_VISIBLE_DEVICES",
            "set by SGE"}}) {
    std::vector<std::string> all = one.job;
    all.insert(all.end(), one.env.begin(), one.env.end());
    const EnvSnapshot env(all);
    const auto found = set_by_batch(find_batch(env), env);
    INFO(one.env.back());
    CHECK((found.contains(one.name) ? found.at(one.name) : "") == one.why);
  }
}

TEST_CASE("a resource that a PBS job asked for", "[scheduler]") {
  const std::string head = "Job Id: 1.s\n    job_state = R\n";
  CHECK(asked_for(head + "    Resource_List.select = 2:ncpus=64:ompthreads=8\n", "ompthreads"));
  CHECK(asked_for(head + "    Resource_List.select = 2:ncpus=64:ompth\n\treads=8\n", "ompthreads"));
  CHECK(asked_for(head + "    Resource_List.ompthreads = 8\n", "ompthreads"));
  CHECK_FALSE(asked_for(head + "    Resource_List.select = 2:ncpus=64\n", "ompthreads"));
  CHECK_FALSE(asked_for("", "ompthreads"));
}

TEST_CASE("hosts and slots, one list each", "[scheduler]") {
  const auto pbs = hosts_of("pbs", {}, "n1\nn1\nn2\n");
  REQUIRE(pbs);
  CHECK(pbs->names == std::vector<std::string>{"n1", "n2"});
  CHECK(pbs->slots == std::vector<int>{2, 1});
  CHECK_FALSE(pbs->allocation);
  const auto cobalt = hosts_of("cobalt", {}, "n1\nn2\n");
  REQUIRE(cobalt);
  CHECK(cobalt->names == std::vector<std::string>{"n1", "n2"});
  const auto slurm =
      hosts_of("slurm", {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_NTASKS=6",
                         "SLURM_TASKS_PER_NODE=4,2", "SLURM_JOB_CPUS_PER_NODE=8(x2)"});
  REQUIRE(slurm);
  CHECK(slurm->slots == std::vector<int>{4, 2});
  CHECK(slurm->granted == std::vector<int>{8, 8});
  CHECK(slurm->allocation);
  const auto lsf = hosts_of("lsf", {"LSB_JOBID=5", "LSB_MCPU_HOSTS=h1 1 h2 4 h3 4"});
  REQUIRE(lsf);
  CHECK(lsf->slots == std::vector<int>{1, 4, 4});
  HostList without = *lsf;
  drop_launch_node(std::nullopt, true, without);
  CHECK(without.names == std::vector<std::string>{"h2", "h3"});
  const auto sge = hosts_of("sge", {}, "n1.x 4 all.q UNDEFINED\nn2.x 4 all.q UNDEFINED\n");
  REQUIRE(sge);
  CHECK(sge->slots == std::vector<int>{4, 4});
  CHECK(sge->slots_are_cores);
  const auto sge_error = [](const std::string& text) { return hosts_of("sge", {}, text).error(); };
  CHECK(sge_error("n1 4 q\nn2:x 4 q\n").where->line == 2);
  CHECK_THAT(sge_error("n1 4 q\nn2 " + std::string(50'000'000, 'x') + "\n").message,
             ContainsSubstring("a line of 50000003 bytes"));
  CHECK_THAT(sge_error("n1\t4\tq\nn2 4" + std::string(5'000, '\t') + "q\n").message,
             ContainsSubstring("a line of 5005 bytes"));
  REQUIRE(hosts_of("sge", {}, "n1\t4\tq\n\nn2  4\tq\n"));
  CHECK(hosts_of("sge", {}, "n1\t4\tq\n\nn2  4\tq\n")->slots == std::vector<int>{4, 4});
  const std::string label(64, 'n');
  for (const char* job : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    CHECK_THAT(hosts_of("slurm", {"SLURM_JOB_ID=7", job + ("=ok," + label)}).error().message,
               ContainsSubstring("is not a host name: a label of 64 bytes"));
  for (const char* variable : {"LSB_MCPU_HOSTS=h1 4 ", "LSB_HOSTS=h1 "}) {
    const auto hosts =
        hosts_of("lsf", {"LSB_JOBID=5", variable + label + (variable[4] == 'M' ? " 4" : "")});
    REQUIRE_FALSE(hosts);
    CHECK_THAT(hosts.error().message, ContainsSubstring("a label of 64 bytes"));
  }
  REQUIRE(hosts_of("flux", {}, "n[3-4]\n"));
  const auto flux_error = [](const std::string& nodes) {
    return hosts_of("flux", {}, R"({"execution":{"nodelist":[)" + nodes + R"(],"R_lite":[]}})")
        .error()
        .message;
  };
  CHECK_THAT(flux_error(""), ContainsSubstring("no node is up"));
  CHECK_THAT(flux_error("\"n[0-999999999]\""), ContainsSubstring("more than 1000000 hosts"));
  CHECK_THAT(flux_error("\"" + label + "\""), ContainsSubstring("a label of 64 bytes"));
  CHECK(hosts_of("flux", {}, "{" + std::string(1'000'000, 'x')).error().message.size() < 400);
  CHECK_FALSE(hosts_of("flux", {}, "flux-hostlist: ERROR: no"));
  CHECK_FALSE(hosts_of("slurm", {"SLURM_JOB_ID=7"}));
}

TEST_CASE("Flux grants cores and devices by name, each host its own", "[scheduler]") {
  const auto set = [](const char* list) { return *CpuSet::parse(list); };
  const auto two = hosts_of("flux", {},
                            R"({"version": 1, "execution": {"R_lite": [)"
                            R"({"rank": "0", "children": {"core": "0-23", "gpu": "2-3"}},)"
                            R"({"rank": "1", "children": {"core": "0-23", "gpu": "0-1"}}],)"
                            R"("starttime": 0.0, "expiration": 0.0, "nodelist": ["fa,fb"]}})"
                            "\n");
  REQUIRE(two);
  CHECK(two->names == std::vector<std::string>{"fa", "fb"});
  CHECK(two->allocation);
  CHECK(two->grants_by == "flux resource R");
  CHECK(two->grants ==
        std::vector<HostGrant>{{set("0-23"), set("2-3")}, {set("0-23"), set("0-1")}});
  // Ranges of ranks, one rank in several entries, several lists of nodes, a node that is down.
  const auto more = hosts_of("flux", {},
                             R"({"execution": {"R_lite": [)"
                             R"({"rank": "4", "children": {"core": "7"}},)"
                             R"({"rank": "0-1", "children": {"core": "0-3"}},)"
                             R"({"rank": "0,4", "children": {"core": "8", "gpu": "1"}}],)"
                             R"("nodelist": ["n[1-2]", "m9"]}})");
  REQUIRE(more);
  CHECK(more->names == std::vector<std::string>{"n1", "n2", "m9"});
  CHECK(more->grants == std::vector<HostGrant>{{set("0-3,8"), set("1")},
                                               {set("0-3"), CpuSet{}},
                                               {set("7-8"), set("1")}});
  const auto brokers = hosts_of(  // two on one node
      "flux", {},
      R"({"execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0"}}], "nodelist": ["v,v"]}})");
  REQUIRE(brokers);
  CHECK(brokers->grants.empty());
  for (const char* text : {R"({"execution": {"R_lite": [], "nodelist": []}})", "{", R"({"a": 1})",
                           R"({"execution": {"R_lite": 1, "nodelist": ["n1"]}})"}) {
    INFO(text);
    REQUIRE_FALSE(hosts_of("flux", {}, text));
    CHECK_THAT(hosts_of("flux", {}, text).error().hint, ContainsSubstring("--hostfile"));
  }
}

TEST_CASE("a heterogeneous Slurm job needs a component", "[scheduler]") {
  const std::vector<std::string> env = {
      "SLURM_JOB_ID=7", "SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST=a1",
      "SLURM_JOB_NODELIST_HET_GROUP_0=a1", "SLURM_JOB_NODELIST_HET_GROUP_1=b[1-2]"};
  const auto unnamed = hosts_of("slurm", env);
  REQUIRE_FALSE(unnamed);
  CHECK(unnamed.error().kind == ErrorKind::usage);
  Request request;
  request.het_group = 1;
  const auto second = hosts_of("slurm", env, "", request);
  REQUIRE(second);
  CHECK(second->names == std::vector<std::string>{"b1", "b2"});
}

TEST_CASE("durations", "[scheduler]") {
  CHECK(parse_duration("01:30:00") == 5400);
  CHECK(parse_duration("5:07") == 307);
  CHECK(parse_duration("0:05") == 5);
  CHECK(parse_duration("1-02:03:04") == 93784);
  CHECK(parse_duration("1:02:03:04") == 93784);
  CHECK(parse_duration("100:00:00") == 360000);
  for (const char* text : {"", "5", "90", "1:60", "1:2:3:4:5", "a:b", ":", "1:", ":1", "-1:00",
                           "1-2", "1-2:3", "1:-2", " 1:00", "99999999999999999999:00"}) {
    INFO(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("what batch systems print", "[scheduler]") {
  CHECK(left("slurm", "1:00:00\n")->seconds == 3600);
  CHECK(left("slurm", "2-00:00:01\n")->seconds == 172801);
  CHECK_FALSE(left("slurm", "UNLIMITED\n")->seconds);
  for (const char* text :
       {"", "NOT_SET\n", "INVALID\n", "slurm_load_jobs error: Invalid job id specified"}) {
    CHECK_FALSE(left("slurm", text));
  }
  CHECK(left("flux", "3599\n")->seconds == 3599);
  CHECK(left("flux", "3599.25\n")->seconds == 3599);
  CHECK_FALSE(left("flux", "infinity\n")->seconds);
  CHECK_FALSE(left("flux", "4294967295\n")->seconds);
  CHECK_FALSE(left("flux", "flux-job: ERROR: no job"));
  CHECK(left("lsf", "1:05 L\n")->seconds == 3900);
  CHECK_FALSE(left("lsf", "-\n")->seconds);
  CHECK_FALSE(left("lsf", "Job <7> is not found"));
}

TEST_CASE("qstat -f: the start and the limit", "[scheduler]") {
  const std::string head =
      "Job Id: 12.server\n    Job_Name = train\n    Resource_List.walltime = 01:00:00\n";
  const std::string start = "Sat Nov 21 13:12:27 2026";
  for (const std::string& text :
       {head + "    stime = " + start + "\n", head + "    start_time = " + start + "\n",
        "    Resource_List.walltime = 3600\n    stime = " + start + "\n",
        head + "    stime = " + start + "\n    resources_used.walltime = 00:00:10\n"}) {
    INFO(text);
    REQUIRE(left("pbs", text));
    CHECK(left("pbs", text)->seconds == 3600);
    CHECK(left("pbs", text)->since == start);
  }
  CHECK(left("pbs", head + "    resources_used.walltime = 00:20:00\n")->seconds == 2400);
  CHECK(left("pbs", head + "    resources_used.walltime = 00:20:00\n")->since.empty());
  CHECK_FALSE(left("pbs", head));
  CHECK_FALSE(left("pbs", "    stime = " + start + "\n"));
  CHECK_FALSE(left("pbs", "qstat: Unknown Job Id 12\n"));
  REQUIRE(left("pbs", "Job Id: 12.server\n    job_state = R\n    stime = " + start + "\n"));
  CHECK_FALSE(
      left("pbs", "Job Id: 12.server\n    job_state = R\n    stime = " + start + "\n")->seconds);
}
