// Intel MPI's mpiexec.hydra, also behind its mpirun.
//
// Source: Intel MPI Library Developer Reference for Linux 2021.15: "Global Hydra Options", "Hydra
// Environment Variables", "Environment Variables for Process Pinning". The program has not been run.
// -hosts a,b -ppn P          nodes are filled one after the other; -f FILE takes each name once.
// -machinefile FILE          lines "host:n", the only form for other counts.
// I_MPI_PIN=0                pinning is the MPI library's, in MPI_Init, and none for other programs:
//                            the shim binds, and the library must not bind again afterwards.
// I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0   the batch system's counts win over -ppn otherwise.
// A rank sees PMI_RANK and MPI_LOCALRANKID. The environment is inherited whole (-genvall).
#include <fmt/format.h>

#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

constexpr std::string_view kGrammar = "intelmpi";

Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim) {
  Line line(plan, {mpiexec.path}, kGrammar);
  const bool machines = line.given({"machinefile", "machine"});
  if (!machines) {
    line.require(check_filled(plan, "mpiexec of Intel MPI",
                              "a file with a line HOST:RANKS for each node and "
                              "--launcher-arg=-machinefile --launcher-arg=FILE"));
    if (!line.given({"hosts", "hosts-group", "f", "hostfile", "host"}))
      line.add_hosts({.list = "-hosts", .file = "-f"}, host_list(plan));
  }
  if (!mpiexec.agent.empty())  // whose names for it are the older ones
    line.add({"-bootstrap", mpiexec.agent_kind, "-bootstrap-exec", mpiexec.agent},
             {"launcher", "bootstrap", "launcher-exec", "bootstrap-exec", "rmk"});
  line.add({"-n", fmt::format("{}", plan.world_size())}, {"n", "np"});
  if (!machines)
    line.add({"-ppn", fmt::format("{}", plan.max_local_size())}, {"ppn", "perhost", "grr", "rr"});
  line.add({"-genvall"}, {"genvall", "genvnone", "genvlist"});
  if (plan.supervision.output.label)
    line.add({"-prepend-rank"}, {"prepend-rank", "l", "prepend-pattern"});
  return line.finish(shim);
}

}  // namespace

Launcher intelmpi = {
    .name = "intelmpi",
    .programs = {"mpiexec.hydra", "mpiexec", "mpirun"},
    .recognition = {.texts = {{"Intel(R) MPI", "Version"}}, .companion = "hydra_bstrap_proxy"},
    .shared_names = true,
    .mpi = "mpich",
    .rereads = {":"},
    .traits = {.rank_var = "PMI_RANK",
               .local_rank_var = "MPI_LOCALRANKID",
               .multi_node = true,
               .by_ssh = true,
               .distribution = Distribution::fill,
               .termination = hydra_termination(),
               .conflicting = one_by_one(
                   {{"HYDRA_HOST_FILE I_MPI_HYDRA_HOSTS_GROUP I_MPI_HYDRA_HOST_FILE I_MPI_PERHOST",
                     "presets an option of mpiexec that hpclaunch passes"},
                    {.name = "I_MPI_PIN_",
                     .why = "makes the MPI library rebind ranks, off the planned CPUs",
                     .prefix = true}}),
               .presets = {{"I_MPI_JOB_RESPECT_PROCESS_PLACEMENT", "0",
                            "the batch system's ranks per node would override the plan's"},
                           {"I_MPI_PIN", "0",
                            "the shim binds; the MPI library would bind again in MPI_Init"}}},
    .grammar = kGrammar,
    .agent_variables =
        "I_MPI_HYDRA_BOOTSTRAP I_MPI_HYDRA_BOOTSTRAP_EXEC HYDRA_LAUNCHER "
        "HYDRA_BOOTSTRAP",
    .render = render};

}  // namespace hpclaunch::launcher
