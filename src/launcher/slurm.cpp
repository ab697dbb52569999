// Slurm's srun.
//
// Source: slurm doc/man/man1/srun.1, src/plugins/task/affinity (binding), src/srun (options, variables),
// src/common/slurm_step_layout.c (distribution of tasks).
// --nodes --ntasks           tasks are counted out one per node in turn, so the first nodes get more;
// --distribution=block       and then numbered node by node. Sites may preset another distribution.
// --nodelist=a,b             a set: srun puts the nodes into its own order.
// --distribution=arbitrary --nodelist=a,a,b   the host of each rank in turn, for all other numbers and orders. With
//                            --nodes srun refuses it from 23.11 on.
// --cpu-bind=mask_cpu:0x..,  one mask per local task, OS indices. Without 0x a mask that begins with a
//                            letter is read as the next keyword. A mask outside the step's CPUs fails
//                            the launch, so the plan must have been made from what the job has.
// --gpu-bind=none            every rank opens every GPU of the node: devices that are hidden from
//                            one another cannot share memory. The ranks of a node with several then find
//                            no device mask, whatever was exported (runs of 22.05.8): the shim sets it.
// --export=ALL               a batch job submitted with --export=NONE would start ranks with nothing.
// --kill-on-bad-exit=1 --wait=0   end all when one fails; never because one has ended well.
// --overlap                  where the shell is a step already (srun --pty bash), or another launch of the job has a
//                            step on the same nodes: without it the new step waits for the end of the old one.
// SLURM_CPUS_PER_TASK is an option of srun up to 21.08 and from 23.11, SRUN_CPUS_PER_TASK between them
// (CHANGELOG/slurm-22.05.md, slurm-23.11.md): both are removed, so that no version matters. What else is removed:
// profiles/programs/requests.json.
// A rank sees SLURM_PROCID and SLURM_LOCALID.
#include <fmt/format.h>

#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

constexpr std::string_view kGrammar = "srun";

std::string mask(const CpuSet& cpus) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::vector<unsigned> digits;
  for (const int cpu : cpus.to_vector()) {
    const auto digit = static_cast<std::size_t>(cpu) / 4;
    if (digits.size() <= digit) digits.resize(digit + 1, 0);
    digits[digit] |= 1u << (cpu % 4);
  }
  std::string text = "0x";
  for (std::size_t i = digits.size(); i > 0; --i) text += kHex[digits[i - 1]];
  return text;
}

// Ranks where srun would put them by itself, or on the host that is named for each.
void add_places(const Plan& plan, Line& line) {
  const Status even = check_even(plan, "srun");
  const bool own_hosts = line.given({"--nodelist", "-w", "--nodefile", "-F"});
  const bool named = !plan.hosts.whole_allocation && !own_hosts;
  const Status order =
      named
          ? check_order_of_srun(
                plan, "srun", "order the host file by name, or omit it and use the job's own nodes")
          : Done{};
  const auto add_ranks = [&] {
    line.add({fmt::format("--ntasks={}", plan.world_size())}, {"--ntasks", "-n"});
  };
  const bool typed = own_hosts || line.given({"--distribution", "-m", "--nodes", "-N"});
  if (!typed && !plan.hosts.invented && !(even && order)) {
    add_ranks();
    line.add({"--distribution=arbitrary"});
    return line.add_hosts({.list = "--nodelist=",
                           .hint = even ? "order the host file by name"
                                        : "use the same number of ranks on each node: --ppn N"},
                          host_of_ranks(plan));
  }
  line.require(even);
  line.require(order);
  line.add({fmt::format("--nodes={}", plan.nodes())}, {"--nodes", "-N"});
  add_ranks();
  // srun warns where they contradict each other, and then ignores the former.
  if (plan.world_size() == plan.max_local_size() * plan.nodes())
    line.add({fmt::format("--ntasks-per-node={}", plan.max_local_size())}, {"--ntasks-per-node"});
  if (named)
    line.add_hosts(
        {.list = "--nodelist=",
         .hint = "use the job's nodes without a host file, or --launcher-arg=--nodefile=FILE",
         .with_counts = false},
        host_list(plan));
  line.add({"--distribution=block"}, {"--distribution", "-m"});
}

Result<Argv> render(const Plan& plan, const LauncherFacts& srun, const std::string& shim) {
  Line line(plan, {srun.path}, kGrammar);
  add_places(plan, line);
  if (plan.placement.shared_cpus) line.add({"--overcommit"}, {"--overcommit", "-O"});
  const std::string& view = plan.placement.gpu_view;
  if (view != "launcher") {  // then the profile's flags bind CPUs and GPUs together
    line.add({launcher_binds(plan) ? "--cpu-bind=mask_cpu:" + join_sets(plan, ",", mask)
                                   : "--cpu-bind=none"},
             {"--cpu-bind", "--cpu_bind"});
    if (!view.empty()) line.add({"--gpu-bind=none"}, {"--gpu-bind", "--tres-bind"});
  }
  if (!srun.mpi_type.empty()) line.add({"--mpi=" + srun.mpi_type}, {"--mpi"});
  line.add({"--export=ALL"}, {"--export"});
  line.add({"--kill-on-bad-exit=1"}, {"--kill-on-bad-exit", "-K"});
  line.add({"--wait=0"}, {"--wait", "-W"});
  if (plan.launch.beside_steps) line.add({"--overlap"}, {"--overlap"});
  if (plan.supervision.output.label) line.add({"--label"}, {"--label", "-l"});
  line.refuse_exclusions("slurm", srun.version);
  return line.finish(shim, "--");
}

}  // namespace

Launcher slurm = {
    .name = "slurm",
    .programs = {"srun"},
    // Without a configuration in reach it complains instead of printing its version.
    .recognition = {.texts = {{"slurm ", "slurm", true},
                              {"slurm-wlm ", "slurm", true},
                              {"srun: ", std::nullopt, true}},
                    .name_parts = {"srun"}},
    .step_tasks = "SLURM_STEP_NUM_TASKS",
    .rank_variables = "SLURM_GTIDS SLURM_STEP_ID SLURM_STEPID",
    // Source: slurm src/common/env.c. A batch script has the first three as a task of its own, all 0.
    .identity = {{Identity::rank, "SLURM_PROCID"},
                 {Identity::local_rank, "SLURM_LOCALID"},
                 {Identity::node, "SLURM_NODEID"},
                 {Identity::local_size, "SLURM_NTASKS_PER_NODE"},
                 {Identity::ranks, "SLURM_NTASKS SLURM_NPROCS SLURM_STEP_NUM_TASKS"},
                 {Identity::nodes, "SLURM_NNODES SLURM_STEP_NUM_NODES"},
                 {Identity::counts, "SLURM_TASKS_PER_NODE SLURM_STEP_TASKS_PER_NODE"},
                 {Identity::hosts, "SLURM_STEP_NODELIST"}},
    .mpi = "mpich openmpi",
    .list_mpi = "--mpi=list",
    .het_group = "--het-group={}",
    .enters_containers = true,
    .rereads = {":"},
    .traits =
        {.rank_var = "SLURM_PROCID",
         .local_rank_var = "SLURM_LOCALID",
         .binds_sets = true,
         .multi_node = true,
         .distribution = Distribution::even,
         .termination = {.queues = true},
         // As --input=0. Unasked, srun sends all of it to every rank, and waits for ranks that do not read.
         .presets = {{"SLURM_STDINMODE", "0",
                      "standard input goes to rank 0, as under other launchers; "
                      "--launcher-arg=--input=all sends it to all"}},
         .step_var = "SLURM_STEP_ID",
         .step_shares = "SLURM_OVERLAP"},
    .grammar = kGrammar,
    .sorts_hosts = true,
    .strict_step = true,
    .render = render};

}  // namespace hpclaunch::launcher
