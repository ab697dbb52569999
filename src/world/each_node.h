#pragma once
// Somebody else starts one hpclaunch on each node: a platform of pods, a script, a step with one task per node.
#include <string>
#include <vector>

#include "hpclaunch/hosts.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/world.h"

namespace hpclaunch::job {

/// Which node this is, and which the others are. Node 1 of 2, "PET_NODE_RANK=1".
struct EachNode {
  int own = -1;  ///< -1: hpclaunch starts all nodes itself
  int nodes = 1;
  std::string by;          ///< "Kubeflow"; "" where it was typed
  std::string why;         ///< "PET_NODE_RANK=1"
  HostNames names;         ///< of all nodes; empty: not known
  std::vector<int> slots;  ///< ranks of each node; empty: not told
  std::string slots_why;
  std::string ranks_by;  ///< torchrun's word for them: "auto"
  std::string address;   ///< of node 0; "": not told
  std::string address_why;
  int port = 0;  ///< 0: not told
  std::string port_why;

  /// "started by Kubeflow: PET_NODE_RANK=1", "--node-rank 1"
  std::string reason() const { return by.empty() ? why : "started by " + by + ": " + why; }
};

/// By --node-rank, else by the first row of profiles/programs/platforms.json that holds. Errors: `usage` where node,
/// number of nodes or address are missing, contradict each other, or cannot be read; `unsupported` for nodes that have no
/// numbers.
Result<EachNode> find_each_node(const Request& request, const World& world,
                                Diagnostics& diagnostics);

/// torchrun sets MASTER_ADDR and MASTER_PORT itself, whatever was exported. Not before find_each_node: platforms are known by them.
EnvSnapshot env_of_torchrun(const EnvSnapshot& env);

/// Its nodes: the batch system's or a host file's where these are as many, else those that are known, else "(node 0)", which
/// is no name; there the ranks meet where `request` says. Errors: `usage` for a number beyond them, or no address.
Result<HostList> hosts_of_each(const Request& request, HostList known, const World& world,
                               EachNode& each);

/// What holds for one node alone is left to who starts all of them: restarts.
Request for_each_node(Request request, const EachNode& each, Diagnostics& diagnostics);

}  // namespace hpclaunch::job
