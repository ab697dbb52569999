// MPICH Hydra's mpiexec.
//
// Source: mpich src/pm/hydra/lib/tools/topo/hwloc/topo_hwloc.c (binding), mansrc/mpiexec.adoc, and runs
// of 4.0.2 and 4.2.1.
// -bind-to user:SET,SET,...   one SET per local rank; inside a SET '+' joins, '-' is a range, numbers
//                             are OS indices in decimal. Hydra ignores in silence what it cannot read,
//                             too short a list and CPUs that do not exist: the shim compares.
// An option that comes twice is an error ("duplicate setting"), so a given one replaces that of hpclaunch.
// It waits for ranks that have not called MPI_Init when another one has failed (proxy/pmip_cb.c).
// -hosts a:4,b:2              ranks in blocks of the counts; without counts, round robin.
// In a Slurm job srun starts the proxies, in an order of its own, by which they are numbered.
// -ppn 4                      overrides the counts: a:3,b:2,c:2 with -ppn 3 puts the sixth rank on b.
// A rank sees PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS. The environment is inherited whole.
#include <fmt/format.h>

#include <algorithm>

#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

constexpr std::string_view kGrammar = "hydra";

std::string binding_set(const CpuSet& cpus) {
  std::string set = cpus.to_list();
  std::ranges::replace(set, ',', '+');
  return set;
}

// Source: runs of 4.0.2 with each variable alone.
bool uses_srun(const EnvSnapshot& env) {
  for (const char* name : {"HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP", "HYDRA_RMK"})
    if (const std::string typed = env.get(name); !typed.empty()) return typed == "slurm";
  return env.has("SLURM_NODELIST") && env.has("SLURM_NNODES") && env.has("SLURM_TASKS_PER_NODE");
}

Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim) {
  Line line(plan, {mpiexec.path}, kGrammar);
  if (!line.given({"hosts", "host", "hostlist", "machine", "machines", "machinelist", "f",
                   "hostfile", "machinefile"})) {
    if (mpiexec.uses_srun && !plan.hosts.whole_allocation &&
        !line.given({"launcher", "bootstrap", "rmk"}))
      line.require(check_order_of_srun(
          plan, "mpiexec of MPICH starts its proxies by srun in a Slurm job, which",
          "order the host file by name; or, where ssh reaches the nodes, "
          "--launcher-arg=-launcher --launcher-arg=ssh"));
    line.add_hosts({.list = "-hosts", .file = "-f"}, host_counts(plan));
  }
  if (!mpiexec.agent.empty())
    line.add({"-launcher", mpiexec.agent_kind, "-launcher-exec", mpiexec.agent},
             {"launcher", "bootstrap", "launcher-exec", "bootstrap-exec", "rmk"});
  line.add({"-n", fmt::format("{}", plan.world_size())}, {"n", "np"});
  if (stretches(plan).size() == 1)
    line.add({"-ppn", fmt::format("{}", plan.max_local_size())}, {"ppn"});
  line.add(
      {"-bind-to", launcher_binds(plan) ? "user:" + join_sets(plan, ",", binding_set) : "none"},
      {"bind-to"});
  if (plan.supervision.output.label)
    line.add({"-prepend-rank"}, {"prepend-rank", "l", "prepend-pattern"});
  return line.finish(shim);
}

}  // namespace

TerminationPolicy hydra_termination() {
  return {.fails_fast = false, .steps = {{kKill, 10'000}}, .on_parent_death = kKill};
}

Launcher hydra = {
    .name = "hydra",
    .programs = {"mpiexec.hydra", "mpiexec.mpich", "mpiexec"},
    .recognition = {.texts = {{"HYDRA build details", "Version:"}},
                    .name_parts = {"hydra", "mpich"}},
    .shared_names = true,
    .rank_mark = "PMI_FD",
    .rank_variables =
        "PMI_RANK PMI_SIZE PMI_ID PMI_FD PMI_PORT MPI_LOCALRANKID MPI_LOCALNRANKS "
        "MPICH_LOCALRANKID",
    .place = {{Identity::rank, "PMI_RANK"},
              {Identity::ranks, "PMI_SIZE"},
              {Identity::local_rank, "MPI_LOCALRANKID"},
              {Identity::local_size, "MPI_LOCALNRANKS"}},
    .mpi = "mpich",
    .rereads = {":"},
    .traits = {.rank_var = "PMI_RANK",
               .local_rank_var = "MPI_LOCALRANKID",
               .binds_sets = true,
               .shim_binds_why =
                   "mpiexec reads the whole topology on each node to bind, and silently drops "
                   "what it cannot bind; the shim binds",
               .multi_node = true,
               .by_ssh = true,
               .termination = hydra_termination(),
               .conflicting = one_by_one(
                   {{"HYDRA_BINDING HYDRA_MAPPING HYDRA_MEMBIND HYDRA_HOST_FILE HYDRA_CONFIG_FILE",
                     "changes what the command line of mpiexec asks for"},
                    {"HYDRA_ENV",
                     "keeps variables from ranks on other nodes, the plan among them"}})},
    .grammar = kGrammar,
    .agent_variables = "HYDRA_LAUNCHER HYDRA_BOOTSTRAP HYDRA_LAUNCHER_EXEC HYDRA_BOOTSTRAP_EXEC",
    .render = render,
    .uses_srun = uses_srun};

}  // namespace hpclaunch::launcher
