#pragma once
// The rows of the launcher table, a pair of functions per launcher.
#include "hpclaunch/launcher.h"

namespace hpclaunch {

namespace flux {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& flux, const std::string& shim);
}  // namespace flux

namespace hydra {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim);
}  // namespace hydra

namespace intelmpi {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim);
}  // namespace intelmpi

namespace jsrun {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& jsrun, const std::string& shim);
}  // namespace jsrun

namespace local {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& unused, const std::string& shim);
}  // namespace local

namespace openmpi {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& mpirun, const std::string& shim);
}  // namespace openmpi

namespace pals {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim);
}  // namespace pals

namespace prrte {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& prterun, const std::string& shim);

/// What `prterun` and the mpirun of Open MPI 5, which is a prterun, both understand, behind `argv`.
Result<Argv> render_behind(Argv argv, const Plan& plan, const std::string& shim);
}  // namespace prrte

namespace slurm {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& srun, const std::string& shim);
}  // namespace slurm

}  // namespace hpclaunch
