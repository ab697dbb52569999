#pragma once
// What the nodes are made of: a file, the profile's model, or this machine.
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/session.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"

namespace hpclaunch::cli {

/// The model that --node-type names, else the first whose condition holds, else the first without one;
/// nullptr when the profile has none.
/// Errors: `usage` for a name that there is not.
Result<const NodeModel*> choose_model(const LaunchArgs& args, const Profile* profile,
                                      const EnvSnapshot& env, const JobFacts& job);

struct Node {
  Topology topology;
  const NodeModel* model = nullptr;  ///< where it comes from; nullptr: measured or from a file
  bool part = false;                 ///< only some cores of it are ours
  bool known = true;                 ///< and it is known which
};

/// `live`: this machine, when it was probed because it is a node of the job. A model that leaves
/// locality to the node itself gives way to it; any other is compared with it.
Node settle_node(const NodeModel* model, const std::optional<Topology>& live,
                 const EnvSnapshot& env, std::vector<Finding>& findings);

}  // namespace hpclaunch::cli
