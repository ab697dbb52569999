#include <algorithm>
#include <array>
#include <set>

#include "hpclaunch/text.h"
#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

// Of this process, this host or this login: on another node the value would be wrong or means nothing.
constexpr std::array<std::string_view, 22> kOwnOfHost = {
    "_",         "COLUMNS", "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",   "HOST",    "HOSTNAME",
    "LINES",     "LOGNAME", "LS_COLORS",
    "MAIL",      "OLDPWD",  "PPID",
    "PS1",       "PWD",     "SHELL",
    "SHLVL",     "STY",     "TMUX",
    "TTY",       "USER",    "WINDOWID",
    "XAUTHORITY"};

// Of the session, the batch system, or a launcher. Open MPI sends OMPI_* and PMIX_* on by itself.
constexpr std::array<std::string_view, 21> kPrefixes = {
    "SSH_",      "TERM",    "XDG_",    "OMPI_",   "PMIX_",  "PRTE_", "PMI_",
    "SLURM_",    "SLURMD_", "SRUN_",   "SBATCH_", "PBS_",   "LSB_",  "LSF_",
    "LS_JOBPID", "FLUX_",   "COBALT_", "PALS_",   "HYDRA_", "HYDI_", "I_MPI_PIN"};

bool goes_along(const std::string& name) {
  // A shell function ("BASH_FUNC_ml%%") is exported too, and no launcher takes its name.
  if (!is_identifier(name)) return false;
  if (std::ranges::count(kOwnOfHost, name) > 0) return false;
  return std::ranges::none_of(kPrefixes,
                              [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Open MPI and PRRTE hand these to their own daemons, which know better.
bool is_of_launcher(std::string_view name) {
  return name.starts_with("OMPI_") || name.starts_with("PMIX_") || name.starts_with("PRTE_");
}

}  // namespace

std::vector<std::string> names_to_forward(const PlanInput& input, const Plan& plan) {
  if (!input.launcher.names_variables || (plan.nodes() < 2 && input.first_is_here)) return {};
  std::set<std::string> names;
  for (const auto& [name, value] : input.env.values())
    if (goes_along(name)) names.insert(name);
  for (const Setting& setting : plan.env) {
    const bool constant = std::holds_alternative<std::string>(setting.value());
    if (!constant)
      names.erase(setting.name);
    else if (setting.history.back().layer != Layer::environment && is_identifier(setting.name) &&
             !is_of_launcher(setting.name))
      names.insert(setting.name);
  }
  names.insert("HPCLAUNCH_PLAN");
  if (plan.supervise) names.insert("HPCLAUNCH_RECORDS");
  return {names.begin(), names.end()};
}

}  // namespace hpclaunch
