#pragma once
// Which nodes there are.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/request.h"
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
  /// CPUs that the batch system gives on each host, as it counts them; empty when it does not say.
  std::vector<int> granted;
  std::string granted_why;
  int het_group = -1;           ///< component of a heterogeneous Slurm job; -1: the job is none
  bool slots_are_cpus = false;  ///< the batch system's slots are cores: no ranks where devices are
  bool of_lsf = false;
};

/// --hostfile, else the innermost batch system's list (a Flux instance may run inside another's job),
/// else this machine. Asks `flux hostlist` inside a Flux instance; runs nothing otherwise.
/// Errors: as parse_host_file and expand_hostlist; `unsupported` for a job whose nodes cannot be told;
/// `usage` for a heterogeneous Slurm job of which no component was named.
Result<Hosts> find_hosts(const Request& args, const EnvSnapshot& env);

/// A PBS job with its list of nodes. Slurm's and LSF's variables are then conflicting of the shell that
/// submitted it.
inline bool pbs_names_nodes(const EnvSnapshot& env) {
  return !env.get("PBS_JOBID").empty() && !env.get("PBS_NODEFILE").empty();
}

/// Takes the launch node out of an LSF job's hosts: where the profile says that the first one is
/// one; where it says nothing, when jsrun is here and the first host has one slot and every other the
/// same larger number. Nothing is told by names.
void drop_launch_node(std::optional<bool> by_profile, bool jsrun_here, Hosts& hosts);

// One for each batch system; to be called inside such a job.
Result<Hosts> hosts_of_slurm(const Request& args, const EnvSnapshot& env);
Result<Hosts> hosts_of_lsf(const EnvSnapshot& env);

/// A host file's text as hosts. `what` names it in the reasons.
Result<Hosts> hosts_from_text(const std::string& text, const std::string& file,
                              const std::string& what);

/// Each name once, in order. `why` says where they come from.
Hosts hosts_from_names(const std::vector<std::string>& names, std::string why);

}  // namespace hpclaunch::cli
