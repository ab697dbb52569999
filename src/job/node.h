#pragma once
// What the nodes are made of: a file, the profile's model, or this machine.
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/request.h"
#include "job/drift.h"

namespace hpclaunch::cli {

/// The model that --node-type names, else the first whose condition holds, else the first without one;
/// nullptr when the profile has none.
/// Errors: `usage` for a name that there is not.
Result<const NodeModel*> choose_model(const Request& args, const Profile* profile,
                                      const EnvSnapshot& env, const JobFacts& job);

struct Node {
  Topology topology;
  const NodeModel* model = nullptr;  ///< where it comes from; nullptr: measured or from a file
  bool part = false;                 ///< only some cores of it are ours
  bool known = true;                 ///< and it is known which
  int whole = 0;                     ///< hardware threads that a job with all of it has
};

/// How many hardware threads of its first node a Slurm job has; 0: nobody says.
int granted_cpus(const EnvSnapshot& env);

/// What the job has of each host; empty: whole nodes, as far as can be told.
struct Grants {
  std::vector<int> each;
};

/// `counts`: CPUs of each host, as Slurm counts them; `whole`: the hardware threads that a job with
/// all of a node has. Slurm's CPUs are hardware threads or cores, as the site has set it up. Where cores
/// have several threads, equal counts may therefore be whole nodes, and are taken for that.
Grants settle_grants(const std::vector<int>& counts, int whole, const Topology& node);

/// `granted`: CPUs of the first host, 0 for unknown.
/// `live`: this machine, when it was probed because it is a node of the job. A model that leaves
/// locality to the node itself gives way to it; any other is compared with it (judge_drift).
Node settle_node(const NodeModel* model, const std::optional<Topology>& live, int granted,
                 const EnvSnapshot& env, OnDrift how, std::vector<Diagnostic>& diagnostics);

/// The same for a node from a file, which is compared only where `live` was probed.
Node settle_file(Topology file, const std::string& name, const std::optional<Topology>& live,
                 const EnvSnapshot& env, OnDrift how, std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch::cli
