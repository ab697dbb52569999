#include "sys/supervised/conduct.h"

#include <csignal>

namespace hpclaunch::sys::supervised {
namespace {

bool is_hydra(std::string_view launcher) { return launcher == "hydra" || launcher == "intelmpi"; }

}  // namespace

// Sources: runs of MPICH 4.0.2 (INT, TERM, QUIT, USR1 reach the ranks; HUP and USR2 kill mpiexec), Open MPI
// 4.1.4 and 5.0.7 (ranks survive the KILL of mpirun, TERM ends them within seconds) and Slurm 22.05 (TERM to
// srun is KILL for the ranks; the first INT is passed on under SLURM_DISABLE_STATUS only); Flux 0.88 (a job
// belongs to the instance, two INT within 2 s cancel it).
Conduct conduct(std::string_view launcher) {
  constexpr Conduct::Step kKill{SIGKILL, 10'000};
  constexpr Conduct::Step kTerm{SIGTERM, 10'000};
  constexpr Conduct::Step kFirstInt{SIGINT, 500};
  constexpr Conduct::Step kSecondInt{SIGINT, 10'000};
  if (is_hydra(launcher)) return {launcher, {kKill}, SIGKILL, ""};
  if (launcher == "slurm") return {launcher, {kTerm, kKill}, SIGTERM, "SLURM_DISABLE_STATUS=1"};
  if (launcher == "flux") return {launcher, {kFirstInt, kSecondInt, kKill}, SIGTERM, ""};
  return {launcher, {kTerm, kKill}, SIGTERM, ""};
}

int passed_as(std::string_view launcher, int signal) {
  const bool ends = signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
  if (is_hydra(launcher)) {
    if (signal == SIGHUP) return SIGTERM;
    if (signal == SIGUSR2) return 0;
  }
  if (launcher == "slurm" && ends) return SIGINT;
  if (launcher == "flux" && ends) return SIGTERM;
  return signal;
}

}  // namespace hpclaunch::sys::supervised
