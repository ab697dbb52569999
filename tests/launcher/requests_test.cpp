// profiles/programs/requests.json: options that exclude or need one another, variables that are not inherited.
#include <algorithm>

#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"
#include "launcher/line.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

std::vector<std::string> ids(std::string_view where, std::string_view version,
                             const std::vector<GivenOption>& options, std::size_t steps = 0,
                             std::string_view system = "slurm") {
  std::vector<std::string> found;
  for (const BrokenRelation& one : Relations(system, where, version).broken(options, steps))
    found.emplace_back(one.id);
  return found;
}

using Ids = std::vector<std::string>;

}  // namespace

TEST_CASE("options that exclude each other are found, by version", "[launcher][requests]") {
  CHECK(ids("job", "22.05.8", {{"--mem", "4G"}, {"--mem-per-cpu", "1G"}}) == Ids{"mem-1"});
  CHECK(ids("job", "22.05.8", {{"--mem", "4G"}, {"--nodes", "1"}}).empty());
  CHECK(ids("step", "", {{"-c", "2"}, {"--cpus-per-gpu", "2"}}) == Ids{"cpu-1"});
  const std::vector<GivenOption> twice = {{"--gres", "nic:1,gpu:2"}, {"--gpus-per-node", "2"}};
  CHECK(ids("job", "25.11.7", twice).empty());
  CHECK(ids("job", "26.05.0", twice) == Ids{"gpu-1"});
  CHECK(ids("job", "", twice) == Ids{"gpu-1"});  // the current version
  CHECK(ids("job", "", {{"--gres", "nic:1"}, {"--gpus-per-node", "2"}}).empty());
  CHECK(ids("job", "", {{"--exact", ""}, {"--whole", ""}}).empty());  // of steps
  CHECK(ids("step", "", {{"--exact", ""}, {"--whole", ""}}) == Ids{"excl-3"});
  CHECK(ids("job", "", {{"-l select", "1"}, {"-l ncpus", "8"}}, 0, "pbs") == Ids{"pbs-1"});
  CHECK(ids("step", "", {{"--tasks-per-node", "4"}, {"-n", "8"}}, 0, "flux") == Ids{"flux-6"});
}

TEST_CASE("options of a job and of its step exclude each other either way",
          "[launcher][requests]") {
  const GivenOption of_gpu{"--ntasks-per-gpu", "1"}, of_node{"--ntasks-per-node", "4"};
  CHECK(ids("mixed", "", {of_gpu, of_node}, 1) == Ids{"ntg-1"});
  CHECK(ids("mixed", "", {of_node, of_gpu}, 1) == Ids{"ntg-1"});
  CHECK(ids("mixed", "", {of_gpu, of_node}, 2).empty());  // both of the job
  CHECK(ids("mixed", "", {{"--mem", "4G"}, {"--mem-per-cpu", "1G"}}, 1).empty());  // overridden
}

TEST_CASE("options that need others name them", "[launcher][requests]") {
  const auto broken =
      Relations("slurm", "job", "23.02").broken({{"--cpus-per-gpu", "2"}, {"--nodes", "1"}});
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].id == "cpu-4");
  CHECK(broken[0].second == BrokenRelation::kNone);
  CHECK(std::ranges::count(broken[0].needed, "--gpus-per-node") == 1);
  CHECK(ids("job", "22.05", {{"--cpus-per-gpu", "2"}}).empty());
  CHECK(ids("job", "", {{"--cpus-per-gpu", "2"}, {"--gres", "gpu:2"}}).empty());
  const std::vector<GivenOption> order = {{"--distribution", "arbitrary"}};
  CHECK(ids("step", "", order) == Ids{"dist-1"});
  CHECK(Relations("slurm", "step")
            .broken(order, 0, [](std::string_view name) { return name == "SLURM_HOSTFILE"; })
            .empty());
}

TEST_CASE("what a job's variables would change of a launch is removed", "[launcher][requests]") {
  const auto& all = find_launcher("slurm")->traits.conflicting;
  const auto find = [&](std::string_view name) {
    return std::ranges::find(all, name, &LauncherTraits::ConflictingVariable::name);
  };
  for (const char* name : {"SLURM_CPUS_PER_GPU", "SLURM_CPUS_PER_TASK", "SLURM_NTASKS_PER_GPU",
                           "SLURM_TRES_PER_TASK", "SLURM_GPUS_PER_SOCKET"}) {
    INFO(name);
    REQUIRE(find(name) != all.end());
    CHECK(find(name)->shapes_step);
    CHECK(find(name)->beside.empty());
  }
  REQUIRE(find("SLURM_MEM_PER_NODE") != all.end());
  CHECK(find("SLURM_MEM_PER_NODE")->beside ==
        std::vector<std::string>{"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU"});
  CHECK_FALSE(find("SLURM_LABELIO")->shapes_step);
}

TEST_CASE("a job that is submitted from inside another inherits nothing of it",
          "[launcher][requests]") {
  const EnvSnapshot env(
      {"SLURM_NTASKS=8", "SLURM_CONF=/etc/s", "SRUN_X=1", "SBATCH_ACCOUNT=a", "PATH=/bin"});
  const EnvSnapshot slurm = submission_environment("slurm", env);
  CHECK_FALSE(slurm.has("SLURM_NTASKS"));
  CHECK_FALSE(slurm.has("SRUN_X"));
  CHECK(slurm.get("SLURM_CONF") == "/etc/s");
  CHECK(slurm.get("SBATCH_ACCOUNT") == "a");
  CHECK(submission_environment("pbs", env).has("SLURM_NTASKS"));
}

TEST_CASE("srun's line refuses options that exclude those of hpclaunch", "[launcher][requests]") {
  Plan plan;
  plan.hosts.names = {"a", "b"};
  NodeClass one;
  one.ranks.resize(2);
  plan.placement.classes = {one};
  plan.placement.layout = {NodeRun{0, 2}};
  plan.launch.command = {"/bin/true"};
  const auto line = [&](std::vector<std::string> args, const std::string& version) {
    plan.launch.launcher_args = std::move(args);
    return find_launcher("slurm")->render(plan, {"/bin/srun", version}, "/shim");
  };
  const auto refused = line({"--ntasks-per-gpu=1"}, "22.05.8");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "/bin/srun refuses --ntasks-per-gpu together with --ntasks-per-node");
  CHECK(refused.error().hint == "omit --launcher-arg --ntasks-per-gpu");
  CHECK(line({"--gpus-per-task=1"}, "22.05.8"));
  CHECK(line({"--gres=gpu:2", "--gpus-per-node=2"}, "25.11.7"));
  CHECK_FALSE(line({"--gres=gpu:2", "--gpus-per-node=2"}, "26.05.3"));
}
