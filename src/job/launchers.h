#pragma once
// By which launcher the nodes are reached.
#include <string>
#include <string_view>

#include "hpclaunch/launcher.h"
#include "job/hosts.h"

namespace hpclaunch::cli {

struct ChosenLauncher {
  const Launcher* launcher = nullptr;
  LauncherFacts facts;
  std::string why;
  /// Why it is not the one that was asked for, or not on this machine; mostly "".
  std::string remark;
};

/// --launcher, else `preferred` (the profile's, "" for none), else the local one when the only node is
/// this machine, else the batch system's own, else the first on PATH that we speak.
///
/// A launcher that is named and not here: an error when it `must_exist`, else its bare name and a remark.
/// A preferred one gives way to the local one where that does. `PROGRAM --version` is asked only where
/// several launchers share the program's name and nobody has said which one it is.
/// Errors: `usage` for an unknown name, `program_not_found`; the message lists what was found instead.
Result<ChosenLauncher> choose_launcher(const Request& args, const EnvSnapshot& env,
                                       const Hosts& hosts, const std::string& preferred,
                                       bool must_exist);

/// `usage` for a name that no launcher has; `who`, before the message, says whose it is.
Error unknown_launcher(const std::string& wanted, std::string_view who);

}  // namespace hpclaunch::cli
