#pragma once
// Which nodes there are, and by which launcher they are reached.
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/session.h"
#include "hpclaunch/dialect.h"

namespace hpclaunch::cli {

struct Hosts {
  std::vector<std::string> names;  ///< launch order, each once; never empty
  std::string why;
  std::vector<int> slots;  ///< ranks for each host; empty when the list does not say for all
  std::string slots_why;
  bool only_here = false;  ///< the one host is this machine
};

/// --hostfile, else the batch system's list, else this machine.
/// Errors: as parse_host_file; `unsupported` for an allocation of several nodes that cannot be read yet.
Result<Hosts> find_hosts(const LaunchArgs& args, const EnvSnapshot& env);

struct Launcher {
  const Dialect* dialect = nullptr;
  LauncherFacts facts;
  std::string why;
};

/// --launcher, else the local one when `only_here` and `one_node`, else the first on PATH that we speak.
/// Errors: `usage` for an unknown name, `program_not_found`; the message lists what was found instead.
Result<Launcher> find_launcher(const LaunchArgs& args, const EnvSnapshot& env, const Hosts& hosts);

}  // namespace hpclaunch::cli
