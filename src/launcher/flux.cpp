// Flux's `flux run`.
//
// Source: flux-core src/shell/affinity.c and gpubind.c, doc/man1/flux-run.rst, doc/man7/flux-shell-options.rst,
// and runs of 0.88.0.
// -N nodes -n tasks          distributed evenly, the first nodes get more; in blocks.
// -x                         whole nodes: without it a task gets one core.
// --requires=host:a,b        a set; Flux keeps its own order.
// -o cpu-affinity=map:S;S    one set per local task, OS indices; passed to execve, so ';' needs no quotes.
//                            A set outside the node is dropped with a warning at most: the shim compares.
// -o gpu-affinity=off        otherwise CUDA_VISIBLE_DEVICES is set, to -1 where no GPU was asked for.
// -o exit-timeout=none -o exit-on-error   end all when one fails; without them 30 s after the first one
//                            has ended, also when it ended well.
// A rank sees FLUX_TASK_RANK and FLUX_TASK_LOCAL_ID. The environment is inherited whole.
#include <fmt/format.h>

#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

using enum Decides;

constexpr Flag kFlags[] = {{ranks, "--ntasks -n"},
                           {per_node, "--tasks-per-node"},
                           {nodes, "--nodes -N"},
                           {host_file, "--requires"},
                           {order, "--taskmap", 1, "block"},
                           {no_env, "--env-remove"},
                           {edit_env, "--env"},
                           {step, "--cores-per-task -c"},
                           {binding, "-o --setopt", 1, {}, "cpu-affinity"},
                           {devices, "-o --setopt", 1, "off", "gpu-affinity"},
                           {failure, "-o --setopt", 1, "none", "exit-timeout"}};
constexpr FlagTable kTable = {.flags = kFlags};

Result<Argv> render(const Plan& plan, const LauncherFacts& program, const std::string& shim) {
  Line line(plan, {program.path, "run"}, kTable.words);
  line.require(check_even(plan, "flux run"));
  line.add({"-N", fmt::format("{}", plan.nodes())}, {"--nodes", "-N"});
  line.add({"-n", fmt::format("{}", plan.world_size())}, {"--ntasks", "-n"});
  line.add({"-x"}, {"--exclusive", "-x"});
  if (!plan.hosts.whole_allocation && !line.given({"--requires"}))
    line.add_hosts({.list = "--requires=host:",
                    .hint = "use the job's nodes without a host file",
                    .with_counts = false},
                   host_list(plan));
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!line.given({"-o", "--setopt"}, key))
      line.add({"-o", value.empty() ? std::string(key) : fmt::format("{}={}", key, value)});
  };
  if (plan.placement.gpu_view != "launcher") {
    add("cpu-affinity", launcher_binds(plan) ? "map:" + join_sets(plan, ";", cpu_list) : "off");
    add("gpu-affinity", "off");
  }
  add("exit-timeout", "none");
  add("exit-on-error", "");
  if (plan.supervision.output.label) line.add({"--label-io"}, {"--label-io", "-l"});
  return line.finish(shim, "", false);
}

}  // namespace

const Launcher flux = {
    .name = "flux",
    .programs = {"flux"},
    .recognition = {.texts = {{"libflux-core:", "libflux-core:"}}, .name_parts = {"flux"}},
    .rank_mark = "FLUX_TASK_RANK",
    .rank_variables = "FLUX_TASK_RANK FLUX_TASK_LOCAL_ID FLUX_JOB_SIZE FLUX_JOB_NNODES",
    .mpi = "mpich openmpi",
    .traits = {.rank_var = "FLUX_TASK_RANK",
               .local_rank_var = "FLUX_TASK_LOCAL_ID",
               .binds_sets = true,
               .multi_node = true,
               .distribution = Distribution::even,
               // Runs of 0.88: a job belongs to the instance; two INT within 2 s cancel it.
               .termination = {.hides_status = true,
                               .queues = true,
                               .steps = {{kInt, 500}, {kInt, 10'000}, {kKill, 10'000}},
                               .sent =
                                   {{kHup, kTerm}, {kInt, kTerm}, {kQuit, kTerm}, {kTerm, kTerm}}}},
    .flags = &kTable,
    .render = render};

}  // namespace hpclaunch::launcher
