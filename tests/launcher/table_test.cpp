#include <algorithm>

#include "hpclaunch/launcher.h"
#include "hpclaunch/programs.h"
#include "support/catch.h"
#include "support/places.h"

using namespace hpclaunch;

namespace {

Plan two_nodes() {
  Plan plan;
  plan.hosts.names = {"node1", "node2"};
  NodeClass one;
  for (int r = 0; r < 4; ++r) {
    RankPlan rank;
    for (int c = 8 * r; c < 8 * r + 7; ++c) rank.cpus.add(c);
    rank.cpus.add(32 + 8 * r);
    one.ranks.push_back(rank);
  }
  plan.placement.classes = {one};
  plan.placement.layout = {NodeRun{0, 2}};
  plan.placement.bind_via = BindVia::launcher;
  plan.launch.command = {"/usr/bin/python3", "train.py", "a b;c", "", "-n"};
  return plan;
}

// An independent reading of Hydra's "-bind-to user:" grammar: ',' between ranks, '+' and '-' inside.
std::vector<std::vector<int>> read_hydra_binding(const std::string& text) {
  REQUIRE(text.rfind("user:", 0) == 0);
  std::vector<std::vector<int>> sets(1);
  std::size_t at = 5;
  int from = -1;
  while (at < text.size()) {
    std::size_t used = 0;
    const int number = std::stoi(text.substr(at), &used);
    at += used;
    for (int n = from < 0 ? number : from + 1; n <= number; ++n) sets.back().push_back(n);
    from = -1;
    if (at == text.size()) break;
    const char c = text[at++];
    if (c == '-')
      from = number;
    else if (c == ',')
      sets.emplace_back();
    else
      REQUIRE(c == '+');
  }
  return sets;
}

std::string after(const Argv& argv, const std::string& option) {
  const auto at = std::find(argv.begin(), argv.end(), option);
  REQUIRE(at != argv.end());
  REQUIRE(at + 1 != argv.end());
  return *(at + 1);
}

}  // namespace

TEST_CASE("the table is in order and every row is whole", "[launcher]") {
  std::string_view before;
  for (const Launcher& launcher : launchers()) {
    CHECK(before < launcher.name);
    before = launcher.name;
    CHECK(launcher.traits.name == launcher.name);
    CHECK_FALSE(launcher.traits.rank_var.empty());
    CHECK(find_launcher(launcher.name) == &launcher);
  }
  CHECK(find_launcher("no-such") == nullptr);
}

TEST_CASE("grammars name an option once, and what names a grammar has one", "[launcher]") {
  for (const Grammar& row : rows<Grammar>()) {
    INFO(row.name);
    const Grammars all = grammars_of(row.name);
    CHECK(all.size() == row.family.size() + 1);
    std::vector<std::string_view> names;
    for (const Option& one : options_of({&row})) {
      const bool dashed = row.syntax != Syntax::words;
      for (const std::string_view name : one.names) {
        CHECK(name.starts_with('-') == dashed);
        if (one.key.empty()) names.push_back(name);
      }
    }
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    INFO((twice == names.end() ? "" : *twice));
    CHECK(twice == names.end());
  }
  for (const Launcher& launcher : launchers())
    CHECK((launcher.grammar.empty() || !grammars_of(launcher.grammar).empty()));
}

// CONTRIBUTING.md, "A launcher".
TEST_CASE("every launcher is in each place that names launchers", "[launcher][places]") {
  using namespace hpclaunch::test;
  const std::string lines = source_file("tests/launcher/launch_lines_test.cpp") +
                            source_file("tests/launcher/mpi_lines_test.cpp");
  const std::string starts =
      source_file("tests/cli/mpi_standins_test.py") + source_file("tests/cli/site_jobs.py");
  const std::string reference = "docs/reference/launchers.md";
  const auto started = [](std::string_view program) {
    return std::ranges::any_of(rows<StartingProgram>(), [&](const StartingProgram& row) {
      return has_word(row.programs, program);
    });
  };
  const auto has_section = [page = source_file(reference)](std::string_view title) {
    return std::ranges::any_of(split(page, '\n'), [&](std::string_view line) {
      return line.starts_with("## ") && one_word(line).find(one_word(title)) != std::string::npos;
    });
  };
  for (const Launcher& launcher : launchers()) {
    const std::string name(launcher.name);
    expect_in("docs/launchers.md", "| " + in_ticks(name) + " |", "a row of \"Choose one\"");
    expect_in_line("docs/reference/cli.md", "| `--launcher NAME", in_ticks(name), "name it");
    expect(
        has_section(name) || (!launcher.programs.empty() && has_section(launcher.programs.front())),
        reference, "a section ## " + name, "its line, what it removes, the sources");
    if (launcher.traits.built_in || launcher.is_hpclaunch) continue;  // hpclaunch itself
    expect_in(reference, "| " + in_ticks(name) + " |", "a row of \"Identification\"");
    expect(lines.find("head(\"" + name) != std::string::npos,
           "tests/launcher/launch_lines_test.cpp", "head(\"" + name + "\", plan)",
           "compare the whole line of a plan with two nodes");
    expect_in("tests/launcher/clashes_test.cpp", "{\"" + name + "\", {",
              "a flag of its own that contradicts the plan");
    if (!std::filesystem::exists(HPCLAUNCH_SOURCE_DIR "/tests/cli/" + name + "_test.py")) {
      expect_in("tests/cli/standins/launcher.py", in_quotes(name) + ": ",
                "a class of KINDS or one of PROGRAMS that starts ranks as it does");
      expect(starts.find(in_quotes(name) + ": \"") != std::string::npos,
             "tests/cli/mpi_standins_test.py", in_quotes(name) + " in NAMES", "start its stand-in");
    }
    for (const std::string_view program : launcher.programs) {
      expect(started(program), "profiles/programs/launchers.json", in_quotes(program),
             "a row of \"launchers\": a launcher must not start another");
      expect_in(reference, in_ticks(program), "name it among \"Programs on PATH\"");
    }
    const std::string row = "src/launcher/" + name + ".cpp";
    expect(!launcher.recognition.folder.empty() || !launcher.recognition.texts.empty(), row,
           ".recognition", "what PROGRAM --version prints, or a folder of its own");
    for (const std::string& variable : {launcher.traits.rank_var, launcher.traits.local_rank_var})
      if (!variable.empty()) {
        expect(is_rank_variable(variable), row, variable + " in .rank_variables",
               "those of an outer launch are removed");
        expect_key_below("profiles/variables", variable, "explain and check know the name");
      }
  }
}

// CONTRIBUTING.md, "A container engine". One launch with a bind, a variable, a limit and a device option, in each
// engine's words.
TEST_CASE("every container engine has its words and is in each place that names engines",
          "[launcher][container][places]") {
  using namespace hpclaunch::test;
  struct Words {
    std::string_view engine, words;
  };
  constexpr Words kWords[] = {
      {"apptainer", "/bin/engine exec --devices --bind=/from:/to IMAGE"},
      {"singularity", "/bin/engine exec --devices --bind=/from:/to IMAGE"},
      {"podman-hpc",
       "/bin/engine run --rm --interactive --network=host --ipc=host --pid=host "
       "--log-driver=none --entrypoint= --devices --ulimit=core=0:-1 --volume=/from:/to "
       "--env=NAME IMAGE"},
      {"podman",
       "/bin/engine run --rm --init --interactive --pull=never --network=host "
       "--ipc=host --log-driver=none --entrypoint= --devices --ulimit=core=0:-1 "
       "--volume=/from:/to --env=NAME IMAGE"},
      {"pyxis",
       "--no-container-entrypoint --devices --container-mounts=/from:/to "
       "--container-env=NAME --container-image=IMAGE"},
      {"ce", "--devices --environment=IMAGE"},
      {"sarus-suite", "--devices --edf=IMAGE"},
      {"enroot",
       "/bin/engine start --devices --mount=/from:/to:none:x-create=auto,bind "
       "--env=NAME IMAGE"},
      {"charliecloud",
       "/bin/engine --bind=/tmp:/tmp --unset-env=LD_* "
       "--set-env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "
       "--devices --bind=/from:/to IMAGE --"},
      {"bubblewrap",
       "/bin/engine --die-with-parent --unsetenv LD_LIBRARY_PATH --unsetenv LD_PRELOAD "
       "--unsetenv TMPDIR --setenv PATH "
       "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --bind IMAGE / "
       "--dev-bind /dev /dev --proc /proc --ro-bind /sys /sys --devices --bind /from "
       "/to"},
      {"shifter", "/bin/engine --devices --volume=/from:/to --image=IMAGE"},
      {"sarus", "/bin/engine run --devices --mount=type=bind,source=/from,destination=/to IMAGE"},
  };
  for (const ContainerEngine& engine : rows<ContainerEngine>()) {
    const std::string name(engine.name);
    expect_in("docs/containers.md", engine.refused.empty() ? in_ticks(name) : name,
              "a row of \"Engines\", or why it is refused");
    if (!engine.refused.empty()) continue;
    expect_in_line("docs/reference/cli.md", "| `--container-engine NAME", in_ticks(name),
                   "name it");
    const auto row = std::ranges::find(kWords, engine.name, &Words::engine);
    expect(row != std::end(kWords), "tests/launcher/table_test.cpp",
           "a row {" + in_quotes(name) + ", ...}", "what one launch looks like in its words");
    if (row == std::end(kWords)) continue;
    const ContainerUse use = {.engine = &engine,
                              .program = engine.srun_option.empty() ? "/bin/engine" : "",
                              .image = "IMAGE",
                              .is_directory = engine.files.empty() && engine.names.empty(),
                              .options = {"--devices"},
                              .binds = {{"/from", "/to"}},
                              .env = {"NAME"},
                              .limits = {{"core", 0, -1}}};
    std::string words;
    for (const std::string& word : container_words(use)) words += (words.empty() ? "" : " ") + word;
    INFO(name);
    CHECK(words == row->words);
  }
}

TEST_CASE("Hydra's command line carries counts, hosts and one CPU set per local rank",
          "[launcher][hydra]") {
  const Plan plan = two_nodes();
  const auto argv =
      find_launcher("hydra")->render(plan, {"/opt/mpich/bin/mpiexec", "4.0.2"}, "/opt/shim");
  REQUIRE(argv);
  CHECK(argv->front() == "/opt/mpich/bin/mpiexec");
  CHECK(after(*argv, "-hosts") == "node1:4,node2:4");
  CHECK(after(*argv, "-n") == "8");
  CHECK(after(*argv, "-ppn") == "4");
  const auto sets = read_hydra_binding(after(*argv, "-bind-to"));
  REQUIRE(sets.size() == 4);
  for (std::size_t r = 0; r < 4; ++r)
    CHECK(sets[r] == plan.placement.classes[0].ranks[r].cpus.to_vector());
  const Argv tail(argv->end() - 6, argv->end());
  CHECK(tail == Argv{"/opt/shim", "/usr/bin/python3", "train.py", "a b;c", "", "-n"});
}

TEST_CASE("Hydra binds nothing when the shim does, and passes arguments on before the shim",
          "[launcher][hydra]") {
  Plan plan = two_nodes();
  plan.placement.bind_via = BindVia::shim;
  plan.supervision.output.label = true;
  plan.launch.launcher_args = {"-launcher", "fork"};
  const auto argv = find_launcher("hydra")->render(plan, {"/m", ""}, "/s");
  REQUIRE(argv);
  CHECK(after(*argv, "-bind-to") == "none");
  CHECK(after(*argv, "-launcher") == "fork");
  CHECK(std::count(argv->begin(), argv->end(), "-prepend-rank") == 1);
  CHECK(std::find(argv->begin(), argv->end(), "-launcher") <
        std::find(argv->begin(), argv->end(), "/s"));
}

TEST_CASE("Hydra deals uneven layouts by the counts in the host list", "[launcher][hydra]") {
  Plan plan = two_nodes();
  plan.placement.bind_via = BindVia::shim;
  plan.placement.classes.push_back(NodeClass{{plan.placement.classes[0].ranks[0]}});
  plan.hosts.names = {"a", "b", "c"};
  plan.placement.layout = {NodeRun{0, 2}, NodeRun{1, 1}};
  const auto argv = find_launcher("hydra")->render(plan, {"/m", ""}, "/s");
  REQUIRE(argv);
  CHECK(after(*argv, "-hosts") == "a:4,b:4,c:1");
  CHECK(after(*argv, "-n") == "9");
}

TEST_CASE("what Hydra cannot do is refused with the way out", "[launcher][hydra]") {
  Plan plan = two_nodes();
  plan.hosts.names = std::vector<std::string>(20'000, "a-host-name-of-some-length");
  plan.placement.layout = {NodeRun{0, 20'000}};
  CHECK_THAT(find_launcher("hydra")->render(plan, {"/m", ""}, "/s").error().message,
             ContainsSubstring("20000 hosts"));
}

TEST_CASE("the local launcher's line is a command of hpclaunch", "[launcher][local]") {
  Plan plan = two_nodes();
  plan.hosts.names = {"here"};
  plan.placement.layout = {NodeRun{0, 1}};
  plan.supervision.output = {true, "logs", 5};
  const auto argv = find_launcher("local")->render(plan, {"/bin/hpclaunch", ""}, "/s");
  REQUIRE(argv);
  CHECK(*argv == Argv{"/bin/hpclaunch", "launch-local", "--ranks", "4", "--label", "--log-dir",
                      "logs", "--grace", "5", "--", "/s", "/usr/bin/python3", "train.py", "a b;c",
                      "", "-n"});
  plan.launch.launcher_args = {"-x"};
  CHECK_FALSE(find_launcher("local")->render(plan, {"/bin/hpclaunch", ""}, "/s"));
}

TEST_CASE("launchers are told apart by what they print, not by their name",
          "[launcher][identify]") {
  struct Case {
    const char* path;
    const char* text;
    const char* name;
    const char* version;
  };
  const Case cases[] = {
      {"/usr/bin/mpiexec.hydra",
       "HYDRA build details:\n    Version:                                 4.0.2\n", "hydra",
       "4.0.2"},
      {"/usr/bin/orterun",
       "mpiexec.openmpi (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/\n", "openmpi",
       "4.1.4"},
      {"/usr/bin/mpirun", "mpirun (Open MPI) 4.1.6a1\n", "openmpi", "4.1.6"},
      {"/opt/ompi/bin/prterun", "mpirun.openmpi (Open MPI) 5.0.7\n", "openmpi", "5.0.7"},
      {"/usr/bin/prterun", "prterun (PRRTE) 3.0.8\n", "prrte", "3.0.8"},
      {"/opt/intel/mpiexec.hydra",
       "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005\n", "intelmpi",
       "2021.11"},
      {"/opt/cray/pals/1.3.4/bin/mpiexec", "whatever", "pals", "1.3.4"},
      {"/bin/mpiexec",
       "mpiexec: unrecognized option\nUsage: mpiexec [global_options] [command_options] cmd1",
       "pals", ""},
  };
  for (const Case& one : cases) {
    INFO(one.text);
    const auto identity = identify_launcher(one.path, one.text);
    REQUIRE(identity);
    CHECK(identity->name == one.name);
    CHECK(identity->version == one.version);
  }
  CHECK_FALSE(identify_launcher("/usr/bin/mpiexec", ""));
  CHECK_FALSE(identify_launcher("/usr/bin/true", "true (GNU coreutils) 9.1\n"));
}

TEST_CASE("Intel's mpiexec.hydra is told from MPICH's by its companion", "[launcher][identify]") {
  const auto name = [](const char* path) {
    const auto in_intel = [](const std::string& file) {
      return file == "/opt/intel/bin/hydra_bstrap_proxy";
    };
    const auto identity = identify_launcher_by_path(path, in_intel);
    return identity ? identity->name : "";
  };
  CHECK(name("/opt/intel/bin/mpiexec.hydra") == "intelmpi");
  CHECK(name("/opt/intel/bin/mpirun") == "intelmpi");
  CHECK(name("/usr/bin/mpiexec.hydra") == "hydra");
  CHECK(name("/opt/intel/bin/srun") == "slurm");
}

TEST_CASE("the variables of a rank mark a rank inside a rank", "[launcher]") {
  for (const char* entry : {"OMPI_COMM_WORLD_RANK=0", "HPCLAUNCH_LOCAL_RANK=0", "PALS_RANKID=3",
                            "FLUX_TASK_RANK=1", "PMI_FD=7"}) {
    const auto inside = inside_a_rank(EnvSnapshot({entry}));
    REQUIRE(inside);
    CHECK(inside->id == "inside-a-rank");
    CHECK(inside->severity == Severity::error);
  }
  CHECK_FALSE(inside_a_rank(EnvSnapshot({"SLURM_PROCID=0"})));  // batch scripts have it, too
}

TEST_CASE("Hydra starts its proxies by srun in a Slurm job, unless told otherwise", "[launcher]") {
  const auto uses_srun = find_launcher("hydra")->uses_srun;
  REQUIRE(uses_srun != nullptr);
  const std::vector<std::string> job = {"SLURM_NODELIST=n1", "SLURM_NNODES=1",
                                        "SLURM_TASKS_PER_NODE=1"};
  CHECK(uses_srun(EnvSnapshot(job)));
  CHECK_FALSE(uses_srun(EnvSnapshot({"SLURM_NODELIST=n1"})));
  CHECK(uses_srun(EnvSnapshot({"HYDRA_LAUNCHER=slurm"})));
  std::vector<std::string> ssh = job;
  ssh.push_back("HYDRA_BOOTSTRAP=ssh");
  CHECK_FALSE(uses_srun(EnvSnapshot(ssh)));
}
