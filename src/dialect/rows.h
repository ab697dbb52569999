#pragma once
// The rows of the dialect table, a pair of functions per launcher.
#include "hpclaunch/dialect.h"

namespace hpclaunch {

namespace flux {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& flux, const std::string& shim);
}  // namespace flux

namespace hydra {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim);
}  // namespace hydra

namespace local {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& unused, const std::string& shim);
}  // namespace local

namespace pals {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim);
}  // namespace pals

namespace slurm {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& srun, const std::string& shim);
}  // namespace slurm

}  // namespace hpclaunch
