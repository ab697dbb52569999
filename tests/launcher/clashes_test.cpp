// What --launcher-arg may decide behind the plan's back.
#include <random>

#include "launcher/lines.h"

using namespace hpclaunch;
using namespace lines;

namespace {

Plan plan_for(const std::string& launcher, const std::vector<std::string>& args) {
  Plan plan = two_nodes();
  plan.launch.launcher = launcher;
  const bool binds = find_launcher(launcher)->traits.binds_sets;
  plan.placement.bind_via = binds ? BindVia::launcher : BindVia::shim;
  plan.launch.launcher_args = args;
  plan.environment.settings = {
      Setting{"MASTER_PORT", {Decision{Layer::builtin, std::string("29500"), {}, ""}}},
      Setting{"MY_TOKEN", {Decision{Layer::command_line, std::string("abc"), {}, ""}}},
      Setting{"RANK", {Decision{Layer::computed, RankFact::rank, {}, ""}}}};
  return plan;
}

// "-n 3" of "--launcher-arg -n 3: planned 8 ranks, now 3: ...".
std::string flag_of(const Diagnostic& clash) {
  constexpr std::string_view kBefore = "--launcher-arg ";
  const auto end = clash.message.rfind(": planned ");
  REQUIRE(clash.message.starts_with(kBefore));
  REQUIRE(end != std::string::npos);
  return clash.message.substr(kBefore.size(), end - kBefore.size());
}

bool is_fatal(const Diagnostic& clash) { return clash.severity == Severity::error; }

std::string shown(const std::vector<Diagnostic>& clashes) {
  std::string text;
  for (const Diagnostic& one : clashes)
    text += fmt::format("{}{} | {}\n", is_fatal(one) ? "! " : "", one.message, one.fix);
  return text;
}

}  // namespace

TEST_CASE("flags against the plan are found under every launcher", "[launcher][clash]") {
  struct Case {
    const char* launcher;
    std::vector<std::string> args;
    bool fatal;
    const char* flag;
    const char* ours;
  };
  const Case cases[] = {
      {"slurm", {"--cpu-bind=none"}, false, "--cpu-bind=none", "a CPU list"},
      {"slurm", {"--cpu-bind", "cores"}, false, "--cpu-bind cores", "a CPU list"},
      {"slurm", {"-n", "3"}, true, "-n 3", "8 ranks"},
      {"slurm", {"-n3"}, true, "-n3", "8 ranks"},
      {"slurm", {"--ntasks-per-node=3"}, true, "--ntasks-per-node=3", "4 ranks"},
      {"slurm", {"-N", "1"}, true, "-N 1", "2 nodes"},
      {"slurm", {"-w", "x"}, true, "-w x", "from node1"},
      {"slurm", {"--nodefile=f"}, false, "--nodefile=f", "from node1"},
      {"slurm", {"--export=NONE"}, true, "--export=NONE", "all variables"},
      {"slurm", {"--export=A,B"}, true, "--export=A,B", "all variables"},
      {"slurm", {"--export=A,HPCLAUNCH_PLAN"}, false, "--export=A", "all variables"},
      {"slurm", {"-c", "4"}, true, "-c 4", "whole"},
      {"slurm", {"--exact"}, true, "--exact", "whole"},
      {"slurm", {"--exclusive"}, true, "--exclusive", "whole"},
      {"slurm", {"-x", "node3"}, false, "-x node3", "from node1"},
      {"slurm", {"-wnode[1-3]"}, true, "-wnode[1-3]", "from node1"},
      {"slurm", {"-m", "cyclic"}, true, "-m cyclic", "ranks in blocks"},
      {"slurm", {"--gpus-per-task=1"}, false, "--gpus-per-task=1", "devices"},
      {"slurm", {"-K0"}, false, "-K0", "stops the job"},
      {"slurm", {"--wait=30"}, false, "--wait=30", "stops the job"},
      {"slurm", {"--distrib=cyclic"}, true, "--distrib=cyclic", "ranks in blocks"},
      {"slurm", {"--cpu-b", "none"}, false, "--cpu-b none", "a CPU list"},
      {"slurm", {"--exp=NONE"}, true, "--exp=NONE", "all variables"},
      {"slurm", {"--kill=0"}, false, "--kill=0", "stops the job"},
      {"slurm", {"-lN1"}, true, "-lN1", "2 nodes"},
      {"slurm", {"-un", "2"}, true, "-un 2", "8 ranks"},
      {"slurm", {"-m", "block,Pack"}, true, "-m block,Pack", "ranks in blocks"},
      {"pals", {"--cpu-bind", "depth"}, false, "--cpu-bind depth", "a CPU list"},
      {"pals", {"--np=3"}, true, "--np=3", "8 ranks"},
      {"pals", {"--envnone"}, true, "--envnone", "all variables"},
      {"pals", {"--no-abort-on-failure"}, false, "--no-abort-on-failure", "stops the job"},
      {"pals", {"--env", "MASTER_PORT=1"}, false, "--env MASTER_PORT=1", "MASTER_PORT=29500"},
      {"pals", {"--gpu-bind", "list:0"}, false, "--gpu-bind list:0", "devices"},
      {"hydra", {"-n", "3"}, true, "-n 3", "8 ranks"},
      {"hydra", {"-bind-to", "core"}, false, "-bind-to core", "a CPU list"},
      {"hydra", {"-hosts", "x"}, true, "-hosts x", "from node1"},
      {"hydra", {"-f", "x"}, false, "-f x", "from node1"},
      {"hydra", {"-host", "x"}, true, "-host x", "from node1"},
      {"hydra", {"-machines", "x"}, true, "-machines x", "from node1"},
      {"hydra", {"-skip-launch-node"}, false, "-skip-launch-node", "from node1"},
      {"hydra", {"-genvnone"}, true, "-genvnone", "all variables"},
      {"hydra", {"-genvlist", "A"}, true, "-genvlist A", "all variables"},
      {"hydra", {"-genv", "RANK", "0"}, false, "-genv RANK 0", "for each rank"},
      {"hydra",
       {"-genv", "HPCLAUNCH_PLAN=x"},
       true,
       "-genv HPCLAUNCH_PLAN=x",
       "planned HPCLAUNCH_PLAN"},
      {"flux", {"-o", "cpu-affinity=per-task"}, false, "-o cpu-affinity", "a CPU list"},
      {"flux", {"-ogpu-affinity=on"}, false, "-ogpu-affinity=on", "devices"},
      {"flux", {"--setopt=exit-timeout=30s"}, false, "--setopt=exit-timeout=30s", "stops the job"},
      {"flux", {"--taskmap=cyclic"}, true, "--taskmap=cyclic", "ranks in blocks"},
      {"flux", {"--env-remove=*"}, true, "--env-remove=*", "all variables"},
      {"flux", {"--env=-*"}, true, "--env=-*", "all variables"},
      {"flux", {"--env", "-HPC*"}, true, "--env -HPC*", "all variables"},
      {"openmpi", {"--np", "3"}, true, "--np 3", "8 ranks"},
      {"openmpi", {"--bind-to", "core"}, false, "--bind-to core", "no binding by"},
      {"openmpi", {"--map-by", "node"}, true, "--map-by node", "ranks in blocks"},
      {"openmpi", {"--host", "a:4,b:4"}, true, "--host a:4,b:4", "from node1"},
      {"openmpi", {"-x", "MASTER_PORT=1"}, false, "-x MASTER_PORT=1", "MASTER_PORT=29500"},
      {"prrte", {"-n", "9"}, true, "-n 9", "8 ranks"},
      {"prrte", {"--bindto", "core"}, false, "--bindto core", "no binding by"},
      {"prrte", {"--bind-to=core"}, false, "--bind-to=core", "no binding by"},
      {"prrte", {"--mapby", "node"}, true, "--mapby node", "ranks in blocks"},
      {"openmpi", {"--rankby", "node"}, true, "--rankby node", "ranks in blocks"},
      {"prrte", {"--rtos", "error-nonzero-status=0"}, false, "--rtos", "one failed rank stops"},
      {"openmpi", {"--runtime-options", "continuous"}, false, "--runtime-options", "stops the job"},
      {"intelmpi", {"-perhost", "2"}, true, "-perhost 2", "4 ranks"},
      {"intelmpi", {"-machinefile", "f"}, false, "-machinefile f", "from node1"},
      {"jsrun", {"-a", "2"}, true, "-a 2", "4 ranks"},
      {"jsrun", {"-n1"}, true, "-n1", "2 nodes"},
      {"jsrun", {"-b", "rs"}, false, "-b rs", "no binding by"},
      {"jsrun", {"-X", "0"}, false, "-X 0", "stops the job"},
      {"jsrun", {"-E", "MASTER_PORT=1"}, false, "-E MASTER_PORT=1", "29500"},
  };
  for (const Case& one : cases) {
    const auto clashes = arg_clashes(plan_for(one.launcher, one.args));
    INFO(one.launcher << ' ' << one.flag << '\n' << shown(clashes));
    REQUIRE(clashes.size() == 1);
    CHECK(clashes[0].id == "launcher-arg-clash");
    CHECK(is_fatal(clashes[0]) == one.fatal);
    CHECK_THAT(flag_of(clashes[0]), ContainsSubstring(one.flag));
    CHECK_THAT(clashes[0].message.substr(clashes[0].message.rfind(": planned ")),
               ContainsSubstring(one.ours));
    CHECK_FALSE(clashes[0].fix.empty());
  }
}

TEST_CASE("flags that agree with the plan, or are no business of its, are none",
          "[launcher][clash]") {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"slurm", {"-n", "8", "-N2", "--ntasks-per-node=4", "--nodelist=node1,node2"}},
      {"slurm", {"--export=ALL", "--kill-on-bad-exit", "-K", "-K1", "--wait=0", "-m", "block"}},
      {"slurm", {"--export=ALL,A=1", "--mpi=none", "--time", "5", "--network=x", "-u"}},
      {"slurm", {"--gpu-bind=none", "--overlap", "--job-name=n"}},
      {"slurm", {"-m", "block:cyclic", "--distribution=block:block,NoPack", "-ul", "--gpus=4"}},
      {"pals", {"-n", "8", "-ppn=4", "--hosts", "node1,node2", "--pmi=pmix", "--env", "OTHER=1"}},
      {"hydra", {"-launcher", "fork", "-iface", "ib0", "-hosts", "node1:4,node2:4", "-genvall"}},
      {"hydra", {"-genv", "OTHER", "1", "-genv", "MASTER_PORT", "29500"}},
      {"flux", {"-o", "mpibind=off", "--setattr=x=y", "-o", "exit-timeout=none", "-n8", "-x"}},
      {"flux", {"-ogpu-affinity=off", "--env-remove=FOO*", "--env=-LD_*", "--env=OTHER"}},
      {"openmpi", {"--map-by", "ppr:4:node", "--bind-to", "none", "-x", "PATH", "-x", "OTHER=1"}},
      {"openmpi", {"--mca", "btl", "self", "--map-by", "ppr:4:node:OVERSUBSCRIBE"}},
      {"intelmpi", {"-bootstrap", "ssh", "-genvall", "-ppn", "4"}},
      {"jsrun",
       {"-n2", "-r", "1", "-a4", "-c", "ALL_CPUS", "-d", "packed", "-X", "1", "-b", "none"}},
      {"local", {"-n", "3"}},  // refused by its launcher
  };
  for (const auto& [launcher, args] : cases) {
    const auto clashes = arg_clashes(plan_for(launcher, args));
    INFO(launcher << '\n' << shown(clashes));
    CHECK(clashes.empty());
  }
}

TEST_CASE("what follows from another binding depends on who binds and who compares",
          "[launcher][clash]") {
  Plan plan = plan_for("slurm", {"--cpu-bind=cores"});
  const auto found = [&] { return arg_clashes(plan).at(0); };
  CHECK_THAT(found().message, ContainsSubstring("rebinds"));
  plan.supervision.verify = Verify::off;
  CHECK_THAT(found().message, ContainsSubstring("does not compare"));
  plan.supervision.verify = Verify::strict;
  CHECK(is_fatal(found()));
  plan.placement.bind_via = BindVia::shim;
  CHECK_FALSE(is_fatal(found()));
  CHECK_THAT(found().message, ContainsSubstring("shim then binds"));
  plan.placement.bind_via = BindVia::none;
  CHECK_THAT(found().message, ContainsSubstring("despite --bind-via none"));
  plan.launch.launcher_args = {"--cpu-bind=none"};
  CHECK(arg_clashes(plan).empty());
  plan.placement.bind_via = BindVia::shim;
  CHECK(arg_clashes(plan).empty());
  plan.launch.launcher_args = {"-c", "4"};
  CHECK_FALSE(is_fatal(found()));
}

TEST_CASE("the same hosts, as Slurm writes them", "[launcher][clash]") {
  CHECK(arg_clashes(plan_for("slurm", {"--nodelist=node[1-2]"})).empty());
  CHECK(arg_clashes(plan_for("slurm", {"-w", "node2,node1"})).empty());
  CHECK(arg_clashes(plan_for("hydra", {"-hosts", "node2,node1"})).size() == 1);
}

TEST_CASE("the ranks' standard error may go anywhere", "[launcher][clash]") {
  for (const auto& [launcher, args] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"slurm", {"--output=o-%t.log"}},
           {"slurm", {"-e", "e"}},
           {"slurm", {"-uoo.log"}},
           {"openmpi", {"--output-filename", "d:nocopy"}},
           {"hydra", {"-errfile", "e"}},
           {"hydra", {"-errfile-pattern", "e"}}}) {
    Plan plan = plan_for(launcher, args);
    for (const bool supervised : {false, true}) {
      plan.supervision.supervise = supervised;
      CHECK(arg_clashes(plan).empty());
    }
  }
}

TEST_CASE("a step with fewer devices than the plan uses is said, as many are not",
          "[launcher][clash]") {
  const auto found = [](const char* arg) {
    Plan plan = plan_for("slurm", {arg});
    for (int r = 0; r < 4; ++r)
      plan.placement.classes[0].ranks[static_cast<std::size_t>(r)].slots = {{r, r, -1}};
    return arg_clashes(plan).size();
  };
  for (const char* arg : {"--gres=gpu:1", "--gres=gpu", "--gres=gpu:a100:3", "--gres=nic:8",
                          "--gres=none", "--gpus-per-node=2"})
    CHECK(found(arg) == 1);
  for (const char* arg : {"--gres=gpu:4", "--gres=gpu:a100:4", "--gres=nic:1,gpu:8",
                          "--gpus-per-node=4", "--gpus-per-node=a100:4"})
    CHECK(found(arg) == 0);
}

TEST_CASE("what is advised instead is something that works", "[launcher][clash]") {
  const auto advice = [](const std::vector<std::string>& args) {
    return arg_clashes(plan_for("openmpi", args)).at(0).fix;
  };
  CHECK(advice({"-x", "MASTER_PORT=1"}) == "--set MASTER_PORT=...");
  CHECK(advice({"-x", "RANK=1"}) == "omit it");
  CHECK(advice({"-x", "HPCLAUNCH_PLAN=1"}) == "omit it");
  Plan plan = plan_for("openmpi", {"--output-filename", "d"});
  plan.supervision.supervise = true;
  CHECK(arg_clashes(plan).empty());  // which shows all output, too
}

TEST_CASE("what places ranks is taken out for another layout", "[launcher][clash]") {
  using Args = std::vector<std::string>;
  CHECK(without_placement("slurm", {"--ntasks=4", "--mpi=none", "-n", "4", "-c2", "--exact", "-N",
                                    "2", "-K"}) == Args{"--mpi=none", "-K"});
  CHECK(without_placement("hydra", {"-launcher", "fork", "-n", "8", "-bind-to", "core"}) ==
        Args{"-launcher", "fork"});
  CHECK(without_placement("local", {"-n", "8"}) == Args{"-n", "8"});
}

TEST_CASE("secrets are not shown", "[launcher][clash]") {
  const std::vector<Diagnostic> exported =
      arg_clashes(plan_for("slurm", {"--export=HPCLAUNCH_PLAN,SOME_KEY=topsecret"}));
  CHECK(shown(exported).find("topsecret") == std::string::npos);
  CHECK(shown(exported).find("SOME_KEY") != std::string::npos);
  for (const auto& args :
       {std::vector<std::string>{"--env=MY_TOKEN=hush"}, {"--env", "MY_TOKEN=hush"}}) {
    const std::string text = shown(arg_clashes(plan_for("pals", args)));
    CHECK_THAT(text, ContainsSubstring("MY_TOKEN"));
    CHECK(text.find("hush") == std::string::npos);
    CHECK(text.find("abc") == std::string::npos);
  }
}

TEST_CASE("whatever words are given, the clashes are of those words", "[launcher][clash][law]") {
  const std::vector<std::string> words = {"-",
                                          "--",
                                          "-n",
                                          "-n3",
                                          "--np",
                                          "=",
                                          "-n=",
                                          "--cpu-bind",
                                          "none",
                                          "-o",
                                          "-x",
                                          "A=1",
                                          "-genv",
                                          "RANK",
                                          "0",
                                          "-hosts",
                                          "a,,b:",
                                          "--export",
                                          "--export=",
                                          "-K",
                                          "-X",
                                          "-b",
                                          "--map-by",
                                          "ppr:",
                                          "",
                                          "-U",
                                          "-ppn",
                                          "-1",
                                          "99999999999999999999",
                                          "--=",
                                          "-host"};
  std::mt19937 engine(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> args;
    for (auto n = engine() % 6; n > 0; --n) args.push_back(words[engine() % words.size()]);
    std::string all;
    for (const std::string& word : args) all += (all.empty() ? "" : " ") + word;
    for (const Launcher& launcher : launchers()) {
      const auto clashes = arg_clashes(plan_for(std::string(launcher.name), args));
      CHECK(clashes.size() <= args.size());
      for (const Diagnostic& one : clashes)
        if (const std::string flag = flag_of(one); flag.find("<hidden>") == std::string::npos)
          REQUIRE_THAT(all, ContainsSubstring(flag));
    }
  }
}
