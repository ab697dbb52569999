// Slurm's srun.
//
// Source: slurm doc/man/man1/srun.1, src/plugins/task/affinity (binding), src/srun (options, variables),
// src/common/slurm_step_layout.c (how tasks are dealt).
// --nodes --ntasks           tasks are counted out one per node in turn, so the first nodes get more;
// --distribution=block       and then numbered node by node. Sites may preset another distribution.
// --nodelist=a,b             a set: srun puts the nodes into its own order.
// --cpu-bind=mask_cpu:0x..,  one mask per local task, OS indices. Without 0x a mask that begins with a
//                            letter is read as the next keyword. A mask outside the step's CPUs fails
//                            the launch, so the plan must have been made from what the job has.
// --gpu-bind=none            every rank opens every GPU of the node: devices that are hidden from
//                            one another cannot share memory.
// --export=ALL               a batch job submitted with --export=NONE would start ranks with nothing.
// --kill-on-bad-exit=1 --wait=0   end all when one fails; never because one has ended well.
// --overlap                  where the shell is a step already (srun --pty bash): without it the new
//                            step waits for the nodes that the old one holds, for ever.
// SLURM_CPUS_PER_TASK is an option of srun up to 21.08 and from 23.11, SRUN_CPUS_PER_TASK between them
// (CHANGELOG/slurm-22.05.md, slurm-23.11.md): both are removed, so that no version matters.
// A rank sees SLURM_PROCID and SLURM_LOCALID.
#include <fmt/format.h>

#include <algorithm>

#include "launcher/line.h"
#include "launcher/rows.h"

namespace hpclaunch::slurm {

namespace {

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

void add_binding(const Plan& plan, const std::vector<std::string>& given, Argv& argv) {
  if (plan.gpu_view == "launcher") return;  // the profile's flags bind CPUs and GPUs together
  if (!line::gives(given, {"--cpu-bind", "--cpu_bind"}))
    argv.push_back(line::launcher_binds(plan)
                       ? "--cpu-bind=mask_cpu:" + line::join_sets(plan, ",", mask)
                       : "--cpu-bind=none");
  if (!plan.gpu_view.empty() && !line::gives(given, {"--gpu-bind", "--tres-bind"}))
    argv.emplace_back("--gpu-bind=none");
}

}  // namespace

LauncherTraits traits() {
  LauncherTraits traits;
  traits.name = "slurm";
  traits.rank_var = "SLURM_PROCID";
  traits.local_rank_var = "SLURM_LOCALID";
  traits.binds_sets = true;
  traits.multi_node = true;
  traits.distribution = Distribution::even;
  // Runs of 22.05: TERM to srun is KILL for the ranks; it forwards the first INT with this variable only.
  traits.termination.variable = "SLURM_DISABLE_STATUS=1";
  traits.termination.sent = {{kHup, kInt}, {kInt, kInt}, {kQuit, kInt}, {kTerm, kInt}};
  traits.step_var = "SLURM_STEP_ID";
  const char* preset = "presets an option of srun, which gets its own here";
  for (const char* name : {"SLURM_CPU_BIND", "SLURM_CPU_BIND_LIST", "SLURM_CPU_BIND_TYPE",
                           "SLURM_CPU_BIND_VERBOSE", "SLURM_DISTRIBUTION", "SLURM_EXPORT_ENV",
                           "SRUN_EXPORT_ENV", "SLURM_GPU_BIND", "SLURM_TRES_BIND", "SLURM_LABELIO"})
    traits.conflicting.push_back({name, preset, true});
  traits.conflicting.push_back(
      {"SLURM_HOSTFILE", "would put the ranks onto hosts in its own order"});
  traits.conflicting.push_back(
      {"SLURM_SRUN_MULTI", "would read the program as a list of programs"});
  for (const char* name : {"SLURM_STDERRMODE", "SLURM_STDOUTMODE"})
    traits.conflicting.push_back({name,
                                  "would send output elsewhere, and with it how each rank ended; "
                                  "--launcher-arg=--output=FILE says it for this launch"});
  for (const char* name : {"SLURM_GRES", "SLURM_STEP_GRES"})
    traits.conflicting.push_back(
        {name, "would give srun's step other devices than the job has", false, true});
  // As --input=0. Unasked, srun sends all of it to every rank, and waits for ranks that do not read.
  traits.presets = {{"SLURM_STDINMODE", "0",
                     "standard input goes to rank 0, as under other launchers; "
                     "--launcher-arg=--input=all sends it to all",
                     false}};
  // Each of these makes a step smaller than the nodes of the job, and the masks would not fit into it.
  for (const char* name : {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_EXACT",
                           "SLURM_EXCLUSIVE", "SLURM_GPUS_PER_TASK", "SLURM_HINT",
                           "SLURM_NTASKS_PER_GPU", "SLURM_THREADS_PER_CORE", "SLURM_TRES_PER_TASK"})
    traits.conflicting.push_back(
        {name,
         "would make srun's step smaller than the nodes, and refuse what is bound to the rest",
         true, true});
  return traits;
}

Result<Argv> render(const Plan& plan, const LauncherFacts& srun, const std::string& shim) {
  const Status fits = line::check_spread(plan, "srun");
  if (!fits) return fits.error();
  if (!plan.output.log_dir.empty())
    return Error{ErrorKind::unsupported,
                 "srun cannot write a log file per rank and keep the output",
                 "leave --log-dir out, or pass --launcher-arg=--output=DIR/rank-%t.log"};
  const std::vector<std::string> given = line::given_args(plan);
  Argv argv = {srun.path};
  const auto add = [&](std::string flag, std::initializer_list<std::string_view> names) {
    if (!line::gives(given, names)) argv.push_back(std::move(flag));
  };
  add(fmt::format("--nodes={}", plan.nodes()), {"--nodes", "-N"});
  add(fmt::format("--ntasks={}", plan.world_size()), {"--ntasks", "-n"});
  add(fmt::format("--ntasks-per-node={}", plan.max_local_size()), {"--ntasks-per-node"});
  if (!plan.whole_allocation && !line::gives(given, {"--nodelist", "-w", "--nodefile", "-F"})) {
    const Status ordered = line::check_order_of_srun(
        plan, "srun", "order the host file by name, or leave it out and use the job's own nodes");
    if (!ordered) return ordered.error();
    const Result<std::string> hosts = line::host_list(
        plan, "use the job's nodes without a host file, or --launcher-arg=--nodefile=FILE");
    if (!hosts) return hosts.error();
    argv.push_back("--nodelist=" + *hosts);
  }
  add("--distribution=block", {"--distribution", "-m"});
  add_binding(plan, given, argv);
  add("--export=ALL", {"--export"});
  add("--kill-on-bad-exit=1", {"--kill-on-bad-exit", "-K"});
  add("--wait=0", {"--wait", "-W"});
  if (plan.inside_step) add("--overlap", {"--overlap"});
  if (plan.output.label) add("--label", {"--label", "-l"});
  return line::finish(std::move(argv), plan, "--", shim);
}

}  // namespace hpclaunch::slurm
