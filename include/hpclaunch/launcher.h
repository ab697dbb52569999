#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/plan.h"

namespace hpclaunch {

/// argv[0] is absolute; passed to execve, never to a shell.
using Argv = std::vector<std::string>;

/// A launcher that was found on this machine and told apart. A launcher never runs anything.
struct LauncherFacts {
  std::string path;     ///< absolute; a bare name in plans for machines that have the program
  std::string version;  ///< "4.0.2"; "" when the program does not say
  bool uses_srun =
      false;  ///< by the environment, Hydra starts what it needs on other nodes by srun
};

/// How one launcher wants to be spoken to. A row of a table, not a class: no state, no base.
struct Launcher {
  std::string_view name;  ///< as in --launcher and in profiles
  std::span<const std::string_view>
      programs;  ///< names to look for on PATH, best first; empty: none needed
  LauncherTraits (*traits)();
  /// Errors: `unsupported` when the plan needs what this launcher cannot do.
  Result<Argv> (*render)(const Plan&, const LauncherFacts&, const std::string& shim);
  bool shared_names = false;  ///< other launchers' programs have the same names
  bool by_version = false;    ///< spelled by version: the program is asked even where it is known
};

/// All launchers, ascending name.
std::span<const Launcher> launchers();
const Launcher* find_launcher(std::string_view name);

/// Which program printed `version_text` (stdout and stderr of `PROGRAM --version`)?
struct LauncherIdentity {
  std::string name;     ///< a launcher's name; never empty
  std::string version;  ///< may be empty
};

/// nullopt when the text is nobody's. `real_path` is the program's path with links resolved.
std::optional<LauncherIdentity> identify_launcher(std::string_view real_path,
                                                  std::string_view version_text);

/// The launcher that `real_path` tells by itself: "pals" below .../cray/pals/, "hydra" for
/// .../mpiexec.hydra, "openmpi" for .../orterun. "" when it could be anybody's, as .../bin/mpiexec.
/// Intel's mpiexec.hydra looks like MPICH's; only what lies beside it tells (kBesideIntelMpi).
std::string_view evident_launcher(std::string_view real_path);

/// A program in the folder of Intel's mpiexec.hydra and of no other.
inline constexpr std::string_view kBesideIntelMpi = "hydra_bstrap_proxy";

/// A flag passed with --launcher-arg that decides what the plan has decided.
struct ArgClash {
  std::string flag;     ///< as typed: "--cpu-bind=none", "-n 3"
  std::string ours;     ///< what the plan has: "8 ranks"
  std::string holds;    ///< what holds now
  std::string follows;  ///< what comes of it
  std::string instead;  ///< what to type
  bool fatal = false;   ///< the job cannot run as planned
};

/// Of Plan::launcher_args, in their order; flags that agree with the plan are none. Every launcher leaves
/// out its own flag where the same one is given. Pure; docs/launchers.md has the table.
std::vector<ArgClash> arg_clashes(const Plan& plan);

/// `args` without what decides how many ranks there are, where they sit and on which CPUs: for a start
/// with another layout than the one they were given for.
std::vector<std::string> without_placement(std::string_view launcher,
                                           std::vector<std::string> args);

}  // namespace hpclaunch
