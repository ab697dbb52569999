// The reader of shell text, and the model on top of it.

#include "hpclaunch/lint.h"
#include "hpclaunch/scheduler.h"
#include "lint/script.h"
#include "support/catch.h"
#include "support/places.h"

using namespace hpclaunch::lint;  // hpclaunch itself has other values and settings

namespace {

std::vector<std::string> words_of(const Shell& shell, std::size_t command) {
  std::vector<std::string> words;
  for (const Word& word : shell.commands.at(command).words) words.emplace_back(shell.at(word.span));
  return words;
}

std::vector<std::string> codes(std::string_view text, const std::string& file = "job.sh") {
  std::vector<std::string> all;
  for (const Finding& one : check_text(text, file)) all.push_back(one.diagnostic.id);
  return all;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("commands, quotes, continuations and comments") {
  const Shell shell = read_shell("a 'b c' \"d $E\" \\\n  f#g # h\nx=1 y; z");
  REQUIRE(shell.commands.size() == 3);
  CHECK(words_of(shell, 0) == Words{"a", "'b c'", "\"d $E\"", "f#g"});
  CHECK(words_of(shell, 1) == Words{"y"});
  CHECK(shell.commands[1].assignments.at(0).name == "x");
  CHECK(words_of(shell, 2) == Words{"z"});
  REQUIRE(shell.comments.size() == 1);
  CHECK(place_of(shell, shell.comments[0].span.begin).line == 2);
  CHECK(place_of(shell, shell.comments[0].span.begin).column == 7);
  CHECK(shell.remarks.empty());
}

TEST_CASE("a command ends where its last word does") {
  for (const char* text : {"a b\\ ", "a b\\\\", "A=\\ ", "a >b\\ "}) {
    INFO(text);
    for (const char* more : {"", "\n", " ", " \\\n", "; c"}) {
      const std::string whole = std::string(text) + more;
      const Shell shell = read_shell(whole);
      REQUIRE(!shell.commands.empty());
      CHECK(shell.at(shell.commands[0].span) == text);
    }
  }
}

TEST_CASE("parts of words") {
  const Shell shell = read_shell("a ${B:-c} $(d 'e)' $(f)) `g` $((1 + 2)) ${H I} $J.k");
  REQUIRE(shell.commands.size() == 1);
  std::vector<Part::Kind> kinds;
  for (const Word& word : shell.commands[0].words) kinds.push_back(word.parts.at(0).kind);
  using Kind = Part::Kind;
  CHECK(kinds == std::vector{Kind::text, Kind::parameter, Kind::command, Kind::command,
                             Kind::arithmetic, Kind::bad, Kind::parameter});
  CHECK(shell.commands[0].words[1].parts[0].text == "B");
  CHECK(shell.commands[0].words[1].parts[0].rest == ":-c");
  CHECK(shell.commands[0].words[2].parts[0].text == "d 'e)' $(f)");
  CHECK(shell.commands[0].words[6].parts[0].text == "J");
  CHECK(shell.commands[0].words[6].parts[1].text == ".k");
}

TEST_CASE("blocks say what may not run") {
  const Shell shell = read_shell(
      "a\nif b; then c; else d; fi\nfor x in 1 2; do e; done\ncase $y in 1|2) f ;; *) g ;; esac\n"
      "h() { i; }\n(j)\nk && l\nm\n");
  std::string maybe, sure, lost;
  for (const Command& one : shell.commands) {
    if (one.words.empty() || shell.at(one.words[0].span) == "for") continue;
    (one.conditional ? maybe : sure) += shell.at(one.words[0].span);
    if (one.subshell) lost += shell.at(one.words[0].span);
  }
  CHECK(sure == "aijkm");
  CHECK(maybe == "bcdefgl");
  CHECK(lost == "j");
  REQUIRE(shell.functions.size() == 1);
  CHECK(shell.functions[0].name == "h");
  CHECK(shell.functions[0].last == shell.functions[0].first + 1);
}

TEST_CASE("heredocs are no commands") {
  const Shell shell = read_shell("cat <<EOF > out\nexport A=$B\nEOF\nx\n");
  REQUIRE(shell.commands.size() == 2);
  CHECK(shell.at(shell.commands[0].redirects.at(0).body) == "export A=$B\n");
  CHECK(words_of(shell, 1) == Words{"x"});
}

TEST_CASE("what has no end costs one line") {
  for (const char* text : {"a \"b\nc\n", "a $(b\nc\n", "a ${b\nc\n", "a 'b\nc\n", "a `b\nc\n"}) {
    const Shell shell = read_shell(text);
    INFO(text);
    CHECK(shell.remarks.size() == 1);
    REQUIRE(shell.commands.size() == 2);
    CHECK(words_of(shell, 1) == Words{"c"});
  }
}

TEST_CASE("values along a script") {
  const std::string text =
      "N=4\nexport A=$((N * 2 + 1)) B=${C:-7}\nif x; then N=5; fi\nD=$N\nARGS=(-n \"$A\" "
      "--label)\nARGS+=(-v)\n"
      "srun \"${ARGS[@]}\" env E=1 ./prog\nL=$(wc -l < $PBS_NODEFILE)\nM=$(hostname)\n";
  const Script script = read_script(text, "job.sh");
  const auto value = [&](const char* name) {
    return script.last(name, script.settings.size())->value;
  };
  CHECK(value("A").text == "9");
  CHECK(value("B").text == "7");
  CHECK(!value("D").known());
  CHECK(value("L").kind == Value::Kind::node_lines);
  CHECK(value("M").kind == Value::Kind::hostname);
  REQUIRE(script.launches.size() == 1);
  const Launch& launch = script.launches[0];
  REQUIRE(launch.option({"-n", "--ntasks"}) != nullptr);
  CHECK(launch.option({"-n"})->value.text() == "9");
  CHECK(script.given("A", launch) != nullptr);
  CHECK(script.given("N", launch) == nullptr);
  CHECK(script.given("E", launch)->value.text == "1");
}

TEST_CASE("launches in launches, functions and containers") {
  const std::string text =
      "run() { srun -N 2 \"$@\"; }\nexport A=1\nrun apptainer exec --bind /a:/b image.sif torchrun "
      "--nproc-per-node=4 x.py\n"
      "mpiexec -n 4 -genv B 2 bash -c 'cd x && python -m torch.distributed.run y.py'\n";
  const Script script = read_script(text, "job.sh");
  std::vector<std::string> kinds;
  for (const Launch& one : script.launches) kinds.push_back(one.kind);
  CHECK(kinds == Words{"srun", "container", "torchrun", "mpiexec", "torchrun"});
  CHECK(script.launches[2].outer == 1);
  CHECK(script.launches[4].outer == 3);
  CHECK(script.given("A", script.launches[0]) != nullptr);
  CHECK(script.given("B", script.launches[3])->value.text == "2");
}

TEST_CASE("requests of batch systems") {
  const Script slurm = read_script(
      "#!/bin/sh\n#SBATCH -N4 --ntasks-per-node 8 # c\n#SBATCH --gres=gpu:a100:4\n#SBATCH -p "
      "gpu\nx\n",
      "a");
  CHECK(slurm.request.system == "slurm");
  CHECK(slurm.request.nodes == 4);
  CHECK(slurm.request.tasks_per_node == 8);
  CHECK(slurm.request.gpus_per_node == "a100:4");
  CHECK(slurm.ask({"--partition"})->value == "gpu");
  const Script pbs = read_script(
      "#!/bin/sh\n#PBS -l select=2:mpiprocs=4,walltime=1:00:00\n#PBS -q prod -A x\n", "a");
  CHECK(pbs.request.system == "pbs");
  CHECK(pbs.request.nodes == 2);
  CHECK(pbs.request.tasks_per_node == 4);
  CHECK(pbs.ask({"-l walltime"})->value == "1:00:00");
  CHECK(pbs.ask({"-A"})->value == "x");
}

TEST_CASE("csh") {
  const Script script = read_script(
      "#!/bin/csh\nsetenv NCCL_DEBUG WARN\nset n = 4\nif ($n > 2) then\n  setenv A 1\nendif\nsrun "
      "-n $n x\n",
      "a");
  CHECK(script.shell.remarks.empty());
  REQUIRE(script.launches.size() == 1);
  CHECK(script.launches[0].option({"-n"})->value.text() == "4");
  CHECK(script.given("NCCL_DEBUG", script.launches[0])->value.text == "WARN");
  CHECK(script.given("A", script.launches[0])->conditional);
}

TEST_CASE("reading is linear, however deep or open the text is") {
  const auto repeat = [](std::string_view piece, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += piece;
    return text;
  };
  for (const char* piece : {"$(", "${a:-", "if a; then\n", "(", "{ ", "\"$(", "a <<EOF\n",
                            "f() {\n", "case a in b)\n", "'\n", "x=(", "fi\n", "$((", "`a "}) {
    INFO(piece);
    // A quadratic reader would need minutes for the second text.
    const std::string text = repeat(piece, 30000);
    CHECK(read_shell(text).text.size() == text.size());
  }
}

TEST_CASE("fixes leave nothing of what they fix") {
  const std::string text =
      "#!/bin/bash\r\nexport "
      "CCL_ALLREDUCE_SCALEOUT=direct:0-1048576;rabenseifner:1048577-max\r\nCCL_WORKER_AFFINITY=1,"
      "2\r\n"
      "export FI_CXI_OVFLOW_BUF_SIZE=1\r\nmpiexec -n 2 x\r\n";
  const std::vector<Finding> before = check_text(text, "job.sh");
  const std::string once = fixed(text, before);
  for (const Finding& one : check_text(once, "job.sh")) {
    INFO(one.diagnostic.message);
    CHECK(!one.certain);
  }
  CHECK(fixed(once, check_text(once, "job.sh")) == once);
  CHECK(once.find('\r') == std::string::npos);
}

// CONTRIBUTING.md, "A scheduler".
TEST_CASE("the directives of every batch system are read", "[places]") {
  using hpclaunch::test::expect;
  for (const hpclaunch::Scheduler& one : hpclaunch::rows<hpclaunch::Scheduler>()) {
    const std::string line = std::string(one.sentinels.front()) + " -N 2";
    const Script script = read_script("#!/bin/bash\n" + line + "\nx\n", "job.sh");
    expect(!script.shell.directives.empty(), "profiles/programs/batch-systems.json",
           line + " read as a directive", "a row of \"directives\" with its first word");
    expect(script.request.system == one.name, "profiles/programs/batch-systems.json",
           line + " read as one of " + std::string(one.name), "a row of \"directives\"");
  }
}

TEST_CASE("every rule has a page, and no page is empty") {
  CHECK(hpclaunch::rows<Rule>().size() >= 20);
  for (const Rule& rule : hpclaunch::rows<Rule>()) {
    INFO(rule.code);
    CHECK(!rule.title.empty());
    CHECK(!rule.why.empty());
  }
  CHECK(codes("export A=1\nsrun x\n").empty());
}
