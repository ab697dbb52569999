#pragma once
// Which nodes there are.
#include <string>
#include <vector>

#include "cli/options.h"
#include "hpclaunch/env.h"
#include "hpclaunch/result.h"

namespace hpclaunch::cli {

struct Hosts {
  std::vector<std::string> names;  ///< launch order, each once; never empty
  std::string why;
  std::string
      file;  ///< absolute path of the file that has exactly these names, a line each; "" for none
  std::vector<int> slots;  ///< ranks for each host; empty when the list does not say for all
  std::string slots_why;
  bool only_here = false;  ///< the one host is this machine
  bool allocation =
      false;  ///< the batch system's own list, as it stands: its launcher has the same
};

/// --hostfile, else the innermost batch system's list (a Flux instance may run inside another's job),
/// else this machine. Asks `flux hostlist` inside a Flux instance; runs nothing otherwise.
/// Errors: as parse_host_file and expand_hostlist; `unsupported` for a job whose nodes cannot be told.
Result<Hosts> find_hosts(const LaunchArgs& args, const EnvSnapshot& env);

}  // namespace hpclaunch::cli
