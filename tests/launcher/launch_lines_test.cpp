// One plan in the words of each launcher: the whole line, one argument per line, and the way back from
// its binding to the plan's CPUs by a reader of our own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "launcher/lines.h"

using namespace hpclaunch;
using namespace lines;

TEST_CASE("PALS: the whole line", "[launcher][pals]") {
  Plan plan = two_nodes();
  plan.supervision.output.label = true;
  plan.launch.profile_args = {"--pmi=pmix", "--no-transfer"};
  plan.launch.launcher_args = {"--mem-bind", "none"};
  CHECK(head("pals", plan) ==
        "/opt/bin/pals\n--np\n8\n--ppn\n4\n--hosts\nnode1,node2\n"
        "--cpu-bind\nlist:0-6:8-14,40:16-22:24-30\n--envall\n--abort-on-failure\n--line-buffer\n"
        "--label\n--pmi=pmix\n--no-transfer\n--mem-bind\nnone\n--");
}

TEST_CASE("srun: the whole line", "[launcher][slurm]") {
  Plan plan = two_nodes();
  plan.supervision.output.label = true;
  plan.launch.profile_args = {"--mpi=cray_shasta"};
  plan.launch.launcher_args = {"--time", "5"};
  CHECK(head("slurm", plan) ==
        "/opt/bin/slurm\n--nodes=2\n--ntasks=8\n--ntasks-per-node=4\n--nodelist=node1,node2\n"
        "--distribution=block\n--cpu-bind=mask_cpu:0x7f,0x10000007f00,0x7f0000,0x7f000000\n"
        "--gpu-bind=none\n--export=ALL\n--kill-on-bad-exit=1\n--wait=0\n--label\n"
        "--mpi=cray_shasta\n--time\n5\n--");
}

TEST_CASE("flux run: the whole line", "[launcher][flux]") {
  Plan plan = two_nodes();
  plan.supervision.output.label = true;
  plan.launch.profile_args = {"-o", "mpibind=off"};
  plan.launch.launcher_args = {"--setattr=x=y"};
  CHECK(head("flux", plan) ==
        "/opt/bin/flux\nrun\n-N\n2\n-n\n8\n-x\n--requires=host:node1,node2\n"
        "-o\ncpu-affinity=map:0-6;8-14,40;16-22;24-30\n-o\ngpu-affinity=off\n"
        "-o\nexit-timeout=none\n-o\nexit-on-error\n-o\noutput.batch-timeout=0\n--label-io\n"
        "-o\nmpibind=off\n--setattr=x=y");
}

TEST_CASE("flux run: hpclaunch stops the ranks where it can, which keeps their last lines",
          "[launcher][flux]") {
  Plan plan = two_nodes();
  plan.supervision.supervise = true;
  const std::string line = head("flux", plan);
  CHECK_THAT(line, ContainsSubstring("\nexit-timeout=none"));
  CHECK_THAT(line, !ContainsSubstring("exit-on-error"));
  CHECK_THAT(line, !ContainsSubstring("batch-timeout"));
}

TEST_CASE("flux run: blocks of ranks in any order of nodes, any number on each",
          "[launcher][flux]") {
  const auto map = [](Plan plan, std::vector<int> places) {
    plan.hosts.places = std::move(places);
    const std::string line = head("flux", plan);
    const std::size_t at = line.find("\n--taskmap=");
    return at == std::string::npos ? "" : line.substr(at + 1, line.find('\n', at + 1) - at - 1);
  };
  CHECK(map(uneven({2, 2, 2}), {0, 1, 2}).empty());
  CHECK(map(uneven({2, 2, 2}), {}).empty());
  CHECK(map(uneven({2, 2, 2}), {1, 5, 9}).empty());  // of more nodes
  CHECK(map(uneven({3, 2, 2}), {}).empty());         // its own way
  CHECK(map(uneven({2, 2, 2}), {7, 2, 3}) == "--taskmap=manual:[[2,1,2,1],[0,2,2,1]]");
  CHECK(map(uneven({3, 1, 2}), {2, 1, 0}) == "--taskmap=manual:[[2,1,3,1],[1,1,1,1],[0,1,2,1]]");
  CHECK(map(uneven({1, 4, 4}), {}) == "--taskmap=manual:[[0,1,1,1],[1,2,4,1]]");
  Plan listed = two_nodes();  // Flux's order is not known: by name, as it has nodes mostly
  listed.hosts.names = {"node10", "node9"};
  CHECK(map(listed, {}) == "--taskmap=manual:[[1,1,4,1],[0,1,4,1]]");
  listed.hosts.whole_allocation = true;  // the job's own order
  CHECK(map(listed, {}).empty());
  listed.hosts.whole_allocation = false;
  listed.launch.launcher_args = {"--taskmap=block"};
  CHECK(map(listed, {1, 0}).find("manual") == std::string::npos);
}

TEST_CASE("flux run: more ranks than cores are so many for each node", "[launcher][flux]") {
  Plan plan = two_nodes();
  plan.placement.cores = 8;
  CHECK_THAT(head("flux", plan), ContainsSubstring("\n-N\n2\n-n\n8\n-x"));
  plan.placement.cores = 7;
  CHECK_THAT(head("flux", plan), ContainsSubstring("\n-N\n2\n--tasks-per-node=4\n-x"));
  plan = uneven({5, 1});  // -n 6 of 4 cores is an error of Flux's, 3 on each and a map is none
  plan.placement.cores = 4;
  CHECK_THAT(head("flux", plan), ContainsSubstring("\n--tasks-per-node=3\n-x"));
  CHECK_THAT(head("flux", plan), ContainsSubstring("\n--taskmap=manual:[[0,1,5,1],[1,1,1,1]]"));
  plan = uneven({3, 2});
  plan.placement.cores = 4;
  CHECK(refusal("flux", plan).hint == "-n 4 or -n 6 (2 or 3 ranks on each of 2 nodes)");
}

TEST_CASE("flux run: uneven maps since a version", "[launcher][flux]") {
  const Plan plan = uneven({1, 4});
  CHECK_THAT(refusal("flux 0.74.0", plan).message, ContainsSubstring("flux run before 0.75"));
  for (const char* launcher : {"flux", "flux 0.75.0", "flux 0.88.0", "flux 0.87.0-203-g4a5e79f56"})
    CHECK_THAT(head(launcher, plan), ContainsSubstring("\n--taskmap=manual:[[0,1,1,1],[1,1,4,1]]"));
  CHECK_THAT(head("flux 0.60.0", uneven({3, 2})), ContainsSubstring("\n-n\n5\n"));
}

TEST_CASE("Hydra passes the profile's flags before those that were typed", "[launcher][hydra]") {
  Plan plan = two_nodes();
  plan.launch.profile_args = {"-iface", "ib0"};
  plan.launch.launcher_args = {"-launcher", "fork"};
  CHECK_THAT(head("hydra", plan), ContainsSubstring("\n-iface\nib0\n-launcher\nfork"));
}

TEST_CASE("the job's own nodes need no list of hosts", "[launcher]") {
  for (const auto& [launcher, piece] : {std::pair{"pals", "\n--hosts\nnode1,node2"},
                                        {"slurm", "\n--nodelist=node1,node2"},
                                        {"flux", "\n--requires=host:node1,node2"}}) {
    INFO(launcher);
    Plan plan = two_nodes();
    const std::string listed = head(launcher, plan);
    plan.hosts.whole_allocation = true;
    CHECK(head(launcher, plan) == without(listed, piece));
    // Too long for a list, and none is needed.
    plan.hosts.names = std::vector<std::string>(20'000, "a-host-name-of-some-length");
    plan.placement.layout = {NodeRun{0, 20'000}};
    CHECK(render(launcher, plan));
    plan.hosts.whole_allocation = false;
    CHECK_THAT(refusal(launcher, plan).message, ContainsSubstring("20000 hosts"));
  }
}

TEST_CASE("a launcher that shall not bind is told so", "[launcher]") {
  for (const auto& [launcher, none] : {std::pair{"pals", "\n--cpu-bind\nnone\n"},
                                       {"slurm", "\n--cpu-bind=none\n"},
                                       {"flux", "\ncpu-affinity=off\n"}}) {
    INFO(launcher);
    Plan plan = two_nodes();
    for (const BindVia via : {BindVia::shim, BindVia::none}) {
      plan.placement.bind_via = via;
      CHECK_THAT(head(launcher, plan), ContainsSubstring(none));
    }
    plan.placement.bind_via = BindVia::launcher;
    plan.placement.classes[0].ranks[2].cpus = {};  // a rank without CPUs: no list could say that
    CHECK_THAT(head(launcher, plan), ContainsSubstring(none));
  }
}

TEST_CASE("the profile's own flags bind where the launcher deals the GPUs", "[launcher][slurm]") {
  Plan plan = two_nodes();
  plan.placement.gpu_view = "launcher";
  plan.launch.profile_args = {"-c7", "--gpus-per-task=1", "--gpu-bind=closest"};
  CHECK(head("slurm", plan) ==
        "/opt/bin/slurm\n--nodes=2\n--ntasks=8\n--ntasks-per-node=4\n--nodelist=node1,node2\n"
        "--distribution=block\n--export=ALL\n--kill-on-bad-exit=1\n--wait=0\n"
        "-c7\n--gpus-per-task=1\n--gpu-bind=closest\n--");
  plan.launch.profile_args = {"-o", "gpu-affinity=per-task"};
  const std::string line = head("flux", plan);
  CHECK(line.find("cpu-affinity") == std::string::npos);
  CHECK(line.find("gpu-affinity=off") == std::string::npos);
}

TEST_CASE("srun is told about GPUs only where there are some", "[launcher][slurm]") {
  Plan plan = two_nodes();
  plan.placement.gpu_view = "own";
  CHECK_THAT(head("slurm", plan), ContainsSubstring("\n--gpu-bind=none\n"));
  plan.placement.gpu_view = "";
  CHECK(head("slurm", plan).find("gpu") == std::string::npos);
}

TEST_CASE("a flag that is given replaces ours of its name", "[launcher]") {
  struct Case {
    const char* launcher;
    std::vector<std::string> given;
    const char* ours;
  };
  const Case cases[] = {
      {"pals", {"--cpu-bind=depth"}, "--cpu-bind\nlist"},
      {"pals", {"--cpu-bind", "depth"}, "--cpu-bind\nlist"},
      {"pals", {"--envnone"}, "--envall"},
      {"pals", {"--no-abort-on-failure"}, "\n--abort-on-failure"},
      {"pals", {"--hostfile", "f"}, "--hosts"},
      {"slurm", {"--cpu-bind=cores"}, "mask_cpu"},
      {"slurm", {"--cpu_bind", "cores"}, "mask_cpu"},
      {"slurm", {"--gpu-bind=closest"}, "--gpu-bind=none"},
      {"slurm", {"-m", "plane=4"}, "--distribution=block"},
      {"slurm", {"-mplane=4"}, "--distribution=block"},
      {"slurm", {"--export=NONE"}, "--export=ALL"},
      {"slurm", {"-K0"}, "--kill-on-bad-exit=1"},
      {"slurm", {"-W", "60"}, "--wait=0"},
      {"slurm", {"-w", "node1,node2"}, "--nodelist="},
      {"slurm", {"--nodefile=f"}, "--nodelist="},
      {"slurm", {"-N2"}, "--nodes="},
      {"slurm", {"--ntasks-per-node", "4"}, "--ntasks-per-node=4"},
      {"flux", {"-o", "cpu-affinity=per-task"}, "map:"},
      {"flux", {"-ocpu-affinity=off"}, "map:"},
      {"flux", {"--setopt=gpu-affinity=on"}, "gpu-affinity=off"},
      {"flux", {"--setopt", "exit-timeout=30s"}, "exit-timeout=none"},
      {"flux", {"--requires=host:b"}, "--requires=host:node1"},
  };
  for (const Case& one : cases) {
    INFO(one.launcher << " " << fmt::format("{}", fmt::join(one.given, " ")));
    Plan plan = two_nodes();
    CHECK_THAT(head(one.launcher, plan), ContainsSubstring(one.ours));
    for (auto* where : {&plan.launch.profile_args, &plan.launch.launcher_args}) {
      *where = one.given;
      const std::string line = head(one.launcher, plan);
      CHECK(line.find(one.ours) == std::string::npos);
      CHECK_THAT(line, ContainsSubstring(fmt::format("{}", fmt::join(one.given, "\n"))));
      where->clear();
    }
  }
  // Names that only begin alike are other options.
  Plan plan = two_nodes();
  plan.launch.profile_args = {"--export-file=0", "--nodes-x", "--waiting", "--gpu-bindings=1"};
  const std::string line = head("slurm", plan);
  for (const char* ours : {"--export=ALL", "--nodes=2", "--wait=0", "--gpu-bind=none"})
    CHECK_THAT(line, ContainsSubstring(ours));
  plan.launch.profile_args = {"-o", "cpu-affinity-x=1", "-o"};
  CHECK_THAT(head("flux", plan), ContainsSubstring("cpu-affinity=map:"));
}

TEST_CASE("uneven nodes: what a launcher deals by itself passes, the rest is refused",
          "[launcher]") {
  struct Case {
    std::vector<int> ranks;
    bool fills, spreads;
  };
  const Case cases[] = {{{4, 4, 4}, true, true},   {{4, 4, 1}, true, false},
                        {{4, 4, 3}, true, true},   {{3, 2}, true, true},
                        {{2, 2, 1}, true, true},   {{2, 1, 1}, false, true},
                        {{1, 2}, false, false},    {{4, 1, 1}, false, false},
                        {{4, 1, 4}, false, false}, {{3, 2, 1}, false, false}};
  for (const Case& one : cases) {
    Plan plan = uneven(one.ranks);
    const std::string all = fmt::format("{}", fmt::join(one.ranks, "+"));
    INFO(all);
    CHECK(bool(render("pals", plan)) == one.fills);
    CHECK((head("flux", plan).find("--taskmap=manual:") == std::string::npos) == one.spreads);
    CHECK(render("hydra", plan));
    const std::string line = head("slurm", plan);
    CHECK((line.find("--distribution=block") != std::string::npos) == one.spreads);
    CHECK((line.find("--nodes=") != std::string::npos) == one.spreads);
    plan.launch.launcher_args = {"-mblock"};  // typed, and not what the plan needs
    CHECK(bool(render("slurm", plan)) == one.spreads);
    plan.launch.launcher_args = {};
    plan.hosts.invented = true;  // nobody knows yet whom to name
    CHECK(bool(render("slurm", plan)) == one.spreads);
  }
  CHECK_THAT(head("slurm", uneven({2, 1, 1})),
             ContainsSubstring("--nodes=3\n--ntasks=4\n--nodelist="));
  CHECK_THAT(head("pals", uneven({4, 4, 1})), ContainsSubstring("--np\n9\n--ppn\n4\n"));

  const Error pals = refusal("pals", uneven({2, 1, 1}));
  CHECK(pals.message ==
        "mpiexec of PALS fills node after node and cannot start 2 ranks on 1 node, then 1 on each "
        "of 2 nodes");
  CHECK(pals.hint == "-n 3 or -n 6 (1 or 2 ranks on each of 3 nodes); or -N 2 --ppn 2");
  Plan later = uneven({4, 1, 1});
  CHECK_THAT(
      head("slurm", later),
      ContainsSubstring("\n--ntasks=6\n--distribution=arbitrary\n--nodelist=n0,n0,n0,n0,n1,n2\n"));
  later.hosts.invented = true;
  CHECK(refusal("slurm", later).message ==
        "srun distributes ranks evenly and cannot start 4 ranks on 1 node, then 1 on each of 2 "
        "nodes");
}

TEST_CASE("srun orders its nodes, so for another order each rank's host is named",
          "[launcher][slurm]") {
  Plan plan = two_nodes();
  const auto order = [&](std::string a, std::string b) {
    plan.hosts.names = {std::move(a), std::move(b)};
    return head("slurm", plan).find("--distribution=block") != std::string::npos;
  };
  CHECK(order("n9", "n10"));
  CHECK(order("n09", "n10"));
  CHECK(order("x1000c0s0b0n0", "x1000c0s0b0n1"));
  CHECK(order("x1000c0s7b1n0", "x1000c1s0b0n0"));
  CHECK(order("n", "n1"));
  CHECK(order("n0", "n00"));  // no order between them that we know
  CHECK(order("n00", "n0"));
  CHECK_FALSE(order("n10", "n9"));
  CHECK_FALSE(order("b1", "a2"));
  CHECK_FALSE(order("n1", "n"));
  CHECK_FALSE(order("n123456789012345678901234567890", "n23456789012345678901234567890"));
  plan.launch.launcher_args = {"--distribution=block"};
  CHECK(refusal("slurm", plan).message ==
        "srun orders nodes by name and would put n23456789012345678901234567890 before "
        "n123456789012345678901234567890");
  plan.launch.launcher_args = {};
  CHECK_FALSE(order("n10", "n9"));
  CHECK_THAT(head("slurm", plan), ContainsSubstring("\n--nodelist=n10,n10,n10,n10,n9,n9,n9,n9\n"));
  plan.hosts.whole_allocation = true;  // in srun's own order already
  CHECK(order("n10", "n9"));
}

TEST_CASE("Hydra's proxies follow srun's order where srun starts them", "[launcher][hydra]") {
  Plan plan = two_nodes();
  plan.hosts.names = {"n10", "n9"};
  const auto passes = [&](bool uses_srun) {
    return bool(find_launcher("hydra")->render(plan, {"/m", "", uses_srun}, "/s"));
  };
  CHECK(passes(false));
  CHECK_FALSE(passes(true));
  CHECK_THAT(find_launcher("hydra")->render(plan, {"/m", "", true}, "/s").error().hint,
             ContainsSubstring("-launcher"));
  plan.launch.launcher_args = {"-launcher", "ssh"};
  CHECK(passes(true));
  plan.launch.launcher_args.clear();
  plan.hosts.whole_allocation = true;
  CHECK(passes(true));
  plan.hosts.whole_allocation = false;
  plan.hosts.names = {"n9", "n10"};
  CHECK(passes(true));
}

namespace {

std::vector<std::string> cut(const std::string& text, char separator) {
  std::vector<std::string> pieces(1);
  for (const char c : text) {
    if (c == separator)
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  return pieces;
}

/// What stands behind `key` in one of the arguments.
std::string value(const std::string& line, const std::string& key) {
  const auto at = line.find(key);
  REQUIRE(at != std::string::npos);
  const auto from = at + key.size();
  return line.substr(from, line.find('\n', from) - from);
}

std::vector<int> read_ranges(const std::string& text) {
  std::vector<int> numbers;
  for (const std::string& range : cut(text, ',')) {
    const auto ends = cut(range, '-');
    for (int n = std::stoi(ends.front()); n <= std::stoi(ends.back()); ++n) numbers.push_back(n);
  }
  return numbers;
}

std::vector<int> read_mask(const std::string& text) {
  REQUIRE(text.rfind("0x", 0) == 0);
  std::vector<int> numbers;
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const int digit = std::stoi(text.substr(text.size() - 1 - i, 1), nullptr, 16);
    for (int bit = 0; bit < 4; ++bit)
      if ((digit >> bit & 1) != 0) numbers.push_back(4 * static_cast<int>(i) + bit);
  }
  return numbers;
}

}  // namespace

TEST_CASE("the binding reads back as the plan's CPUs, one set for each local rank",
          "[launcher][law]") {
  std::mt19937 engine(20260311);
  for (int round = 0; round < 300; ++round) {
    Plan plan = two_nodes();
    const NodeClass ranks = random_ranks(engine);
    plan.placement.classes = {ranks};
    const auto pals = cut(value(head("pals", plan), "--cpu-bind\nlist:"), ':');
    const auto masks = cut(value(head("slurm", plan), "--cpu-bind=mask_cpu:"), ',');
    const auto flux = cut(value(head("flux", plan), "cpu-affinity=map:"), ';');
    REQUIRE(pals.size() == ranks.ranks.size());
    REQUIRE(masks.size() == ranks.ranks.size());
    REQUIRE(flux.size() == ranks.ranks.size());
    for (std::size_t r = 0; r < ranks.ranks.size(); ++r) {
      const std::vector<int> want = ranks.ranks[r].cpus.to_vector();
      REQUIRE(read_ranges(pals[r]) == want);
      REQUIRE(read_mask(masks[r]) == want);
      REQUIRE(read_ranges(flux[r]) == want);
    }
  }
}

TEST_CASE("traits that the planner counts on", "[launcher]") {
  const auto traits = [](const char* name) { return find_launcher(name)->traits; };
  CHECK(traits("pals").distribution == Distribution::fill);
  CHECK(traits("slurm").distribution == Distribution::even);
  CHECK(traits("flux").distribution == Distribution::even);
  CHECK(traits("hydra").distribution == Distribution::any);
  CHECK(traits("local").distribution == Distribution::any);
  for (const char* name : {"pals", "slurm", "flux"}) {
    CHECK(traits(name).binds_sets);
    CHECK(traits(name).multi_node);
  }
  CHECK(traits("pals").rank_var == "PALS_RANKID");
  CHECK(traits("pals").local_rank_var == "PALS_LOCAL_RANKID");
  CHECK(traits("slurm").rank_var == "SLURM_PROCID");
  CHECK(traits("slurm").local_rank_var == "SLURM_LOCALID");
  CHECK(traits("flux").rank_var == "FLUX_TASK_RANK");
  CHECK(traits("flux").local_rank_var == "FLUX_TASK_LOCAL_ID");
}

TEST_CASE("more launchers by what they print, and by their path alone", "[launcher][identify]") {
  const auto name = [](const char* path, const char* text) {
    const auto identity = identify_launcher(path, text);
    return identity ? identity->name + " " + identity->version : "";
  };
  CHECK(name("/usr/bin/srun", "slurm 23.11.10\n") == "slurm 23.11.10");
  CHECK(name("/usr/bin/srun", "slurm-wlm 24.11.5\n") == "slurm 24.11.5");
  CHECK(name("/usr/bin/srun", "srun: fatal: Could not establish a configuration source\n") ==
        "slurm ");
  CHECK(name("/usr/bin/flux", "commands:    \t\t0.88.0\nlibflux-core:\t\t0.88.0\n") ==
        "flux 0.88.0");
  CHECK(evident("/opt/cray/pals/1.7.1/bin/mpiexec") == "pals");
  CHECK(evident("/usr/bin/mpiexec.hydra") == "hydra");
  CHECK(evident("/usr/bin/mpiexec.mpich") == "hydra");
  CHECK(evident("/opt/ompi/bin/orterun") == "openmpi");
  CHECK(evident("/opt/ompi/bin/prterun") == "prrte");
  CHECK(evident("/opt/lsf/bin/jsrun") == "jsrun");
  CHECK(evident("/usr/bin/srun") == "slurm");
  CHECK(evident("/home/hydra/openmpi/bin/mpiexec").empty());
  CHECK(evident("mpiexec").empty());
}
