#pragma once
// The rows of the dialect table, one pair of functions per launcher.
#include "hpclaunch/dialect.h"

namespace hpclaunch {

namespace hydra {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim);
}  // namespace hydra

namespace local {
LauncherTraits traits();
Result<Argv> render(const Plan& plan, const LauncherFacts& unused, const std::string& shim);
}  // namespace local

}  // namespace hpclaunch
