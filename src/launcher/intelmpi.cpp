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
#include <fmt/ranges.h>

#include "launcher/line.h"
#include "launcher/rows.h"

namespace hpclaunch::intelmpi {

namespace {

Status check_layout(const Plan& plan) {
  return line::check_filled(plan, "mpiexec of Intel MPI",
                            "a file with a line HOST:RANKS for each node and "
                            "--launcher-arg=-machinefile --launcher-arg=FILE");
}

}  // namespace

LauncherTraits traits() {
  LauncherTraits traits;
  traits.name = "intelmpi";
  traits.rank_var = "PMI_RANK";
  traits.local_rank_var = "MPI_LOCALRANKID";
  traits.multi_node = true;
  // As MPICH's: INT, TERM, QUIT and USR1 reach the ranks; HUP and USR2 kill mpiexec.
  traits.termination = {.fails_fast = false,
                        .steps = {{kKill, 10'000}},
                        .on_parent_death = kKill,
                        .sent = {{kHup, kTerm}, {kUsr2, 0}}};
  traits.distribution = Distribution::fill;
  const char* preset = "presets an option of mpiexec, which gets its own here";
  for (const char* name :
       {"HYDRA_HOST_FILE", "I_MPI_HYDRA_HOSTS_GROUP", "I_MPI_HYDRA_HOST_FILE", "I_MPI_PERHOST"})
    traits.conflicting.push_back({name, preset});
  traits.conflicting.push_back(
      {"I_MPI_PIN_", "would let the MPI library bind ranks again, away from the plan's CPUs", false,
       false, true});
  traits.presets = {
      {"I_MPI_JOB_RESPECT_PROCESS_PLACEMENT", "0",
       "the batch system's number of ranks on a node would win over the plan's", false},
      {"I_MPI_PIN", "0", "the shim binds; the MPI library would bind again in MPI_Init", false}};
  return traits;
}

Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim) {
  if (const Status logs =
          line::refuse_log_dir(plan, "mpiexec of Intel MPI",
                               "--launcher-arg=-outfile-pattern --launcher-arg=DIR/rank-%r.log");
      !logs)
    return logs.error();
  const std::vector<std::string> given = line::given_args(plan);
  const bool machines = line::gives_word(given, {"machinefile", "machine"});
  if (!machines)
    if (const Status fits = check_layout(plan); !fits) return fits.error();
  Argv argv = {mpiexec.path};
  if (!machines && !line::gives_word(given, {"hosts", "hosts-group", "f", "hostfile", "host"})) {
    const Result<Argv> hosts =
        line::hosts_or_file(plan, {"-hosts", "-f"}, fmt::format("{}", fmt::join(plan.hosts, ",")));
    if (!hosts) return hosts.error();
    argv.insert(argv.end(), hosts->begin(), hosts->end());
  }
  if (!line::gives_word(given, {"n", "np"}))
    argv.insert(argv.end(), {"-n", fmt::format("{}", plan.world_size())});
  if (!machines && !line::gives_word(given, {"ppn", "perhost", "grr", "rr"}))
    argv.insert(argv.end(), {"-ppn", fmt::format("{}", plan.max_local_size())});
  if (!line::gives_word(given, {"genvall", "genvnone", "genvlist"})) argv.emplace_back("-genvall");
  if (plan.output.label && !line::gives_word(given, {"prepend-rank", "l", "prepend-pattern"}))
    argv.emplace_back("-prepend-rank");
  return line::finish(std::move(argv), plan, "", shim);
}

}  // namespace hpclaunch::intelmpi
