#pragma once
// By which launcher the nodes are reached, and for which MPI library.
#include <string>
#include <string_view>
#include <vector>

#include "world/site.h"

namespace hpclaunch::job {

/// The MPI library that a program is linked with.
struct MpiLibrary {
  std::string family;  ///< "mpich", "openmpi"; "" for none, or none that is known
  std::string title;
  std::string why;                      ///< "/usr/bin/prog needs libmpi.so.40"
  std::vector<std::string> srun_types;  ///< of srun's --mpi, best first
};

/// By the program's ELF file; for a Python script that imports mpi4py, by the extension in its environment.
MpiLibrary mpi_of(const std::vector<std::string>& command, const World& world);

bool fits(const Launcher& launcher, const MpiLibrary& mpi);
/// A plugin of srun's --mpi is the wanted one, or a version of it: "pmix_v4" is pmix.
bool serves_type(std::string_view wanted, std::string_view type);

/// "mpi-mismatch": every rank would be alone in its MPI_COMM_WORLD.
void check_mpi(const MpiLibrary& mpi, const ChosenLauncher& launcher, const Request& request,
               const World& world, const Plan& plan, Diagnostics& diagnostics);

/// --launcher, else `preferred` (the profile's, "" for none), else the local one when the only node
/// is this machine, else the batch system's own, else the first known one on PATH.
///
/// A named launcher that is not found: an error when it `must_exist`, else its bare name and a
/// remark. A preferred one yields to the local one where that is possible. `PROGRAM --version` is
/// run only where several launchers share the program's name and none was named. Errors: `usage`
/// for an unknown name, `program_not_found` with what was found instead.
/// Where nothing is typed or preferred, one that fits `mpi` goes before one that does not.
Result<ChosenLauncher> choose_launcher(const Request& request, const World& world, const Site& site,
                                       const std::string& preferred, const MpiLibrary& mpi,
                                       bool must_exist);

/// Path of what lies in libexec/hpclaunch.
std::string program_of_installation(const World& world, const std::string& name);

/// In a job whose nodes ssh does not reach: the batch system's own program in its place, where the launcher takes one and
/// the user has named none. Tries ssh on one node.
void choose_remote_start(ChosenLauncher& launcher, const Request& request, const World& world,
                         const Site& site);

/// The launcher's traits, and what this job adds to them.
LauncherTraits traits_of(const ChosenLauncher& launcher, const Site& site, const Request& request,
                         const EnvSnapshot& env);

/// `usage` for a name that no launcher has; `who` begins the message.
Error unknown_launcher(const std::string& wanted, std::string_view who);

}  // namespace hpclaunch::job
