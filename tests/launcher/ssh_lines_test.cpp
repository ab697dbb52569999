// The launcher ssh, and what other launchers take in place of ssh.
#include "launcher/lines.h"

using namespace hpclaunch;
using namespace lines;

namespace {

std::string ssh_line(const Plan& plan) {
  const auto argv = find_launcher("ssh")->render(plan, {"/opt/bin/hpclaunch", ""}, "/opt/shim");
  if (!argv) FAIL(argv.error().message);
  return fmt::format("{}", fmt::join(*argv, "\n"));
}

std::string line_with_agent(const std::string& launcher, const std::string& version,
                            const std::vector<std::string>& args = {}) {
  Plan plan = uneven({1, 1});
  plan.launch.launcher_args = args;
  LauncherFacts facts{"/opt/bin/x", version};
  facts.agent = "/pbs/tmrsh";
  facts.agent_kind = "rsh";
  const auto argv = find_launcher(launcher)->render(plan, facts, "/opt/shim");
  if (!argv) FAIL(argv.error().message);
  return fmt::format("{}", fmt::join(*argv, " "));
}

}  // namespace

TEST_CASE("ssh: the whole line", "[launcher][ssh]") {
  Plan plan = uneven({4, 2});
  plan.launch.profile_args = {"-4"};
  plan.launch.launcher_args = {"-p", "2222"};
  plan.supervision.output.label = true;
  plan.supervision.supervise = true;
  CHECK(ssh_line(plan) ==
        "/opt/bin/hpclaunch\nlaunch-ssh\n--label\n--grace\n5\n--hosts\nn0:4,n1:2\n--\nssh\n-4\n-p\n"
        "2222\n--\n/opt/shim\n/bin/true");
  plan.supervision.supervise = false;  // then nobody else waits for the ranks
  plan.supervision.output.grace_seconds = 30;
  CHECK_THAT(ssh_line(plan), ContainsSubstring("--grace\n30\n"));
}

TEST_CASE("ssh: not on more nodes than this machine can have clients for", "[launcher][ssh]") {
  CHECK_FALSE(ssh_line(uneven(std::vector<int>(512, 1))).empty());
  CHECK_THAT(refusal("ssh", uneven(std::vector<int>(513, 1))).message,
             ContainsSubstring("513 nodes: the launcher ssh starts at most 512"));
}

TEST_CASE("what takes the place of ssh, in each launcher's words", "[launcher]") {
  const auto has = [](const char* words) { return ContainsSubstring(words); };
  CHECK_THAT(line_with_agent("hydra", ""), has(" -launcher rsh -launcher-exec /pbs/tmrsh "));
  CHECK_THAT(line_with_agent("intelmpi", ""), has(" -bootstrap rsh -bootstrap-exec /pbs/tmrsh "));
  CHECK_THAT(line_with_agent("openmpi", "4.1.4"), has(" --mca plm_rsh_agent /pbs/tmrsh "));
  CHECK_THAT(line_with_agent("openmpi", "5.0.7"), has(" --prtemca plm_ssh_agent /pbs/tmrsh "));
  CHECK_THAT(line_with_agent("prrte", "3.0.8"), has(" --prtemca plm_ssh_agent /pbs/tmrsh "));
  const auto lacks = [](const std::string& line) {
    return line.find("/pbs/tmrsh") == std::string::npos;
  };
  CHECK(lacks(line_with_agent("hydra", "", {"-launcher", "ssh"})));
  CHECK(lacks(line_with_agent("hydra", "", {"-bootstrap-exec", "/x"})));
  CHECK(lacks(line_with_agent("intelmpi", "", {"-bootstrap", "ssh"})));
  CHECK(lacks(line_with_agent("openmpi", "4.1.4", {"--mca", "plm_rsh_agent", "/x"})));
  CHECK(lacks(line_with_agent("openmpi", "5.0.7", {"--prtemca", "plm_ssh_agent", "/x"})));
  CHECK(lacks(line_with_agent("prrte", "3.0.8", {"--mca", "plm", "slurm"})));
}
