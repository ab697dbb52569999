#pragma once
// One command on every node, a container tried, and whether another attempt makes sense.
#include <string>
#include <vector>

#include "hpclaunch/launch.h"
#include "hpclaunch/stacks.h"
#include "hpclaunch/start.h"
#include "hpclaunch/verify.h"

namespace hpclaunch::job {

/// Where somebody else starts the nodes: until the name of node 0 resolves here. Errors: `system` after --start-timeout.
Status wait_for_head(const Prepared& prepared, const StageLines& lines);

/// One rank per node, not bound, with the constants of the job.
Plan one_rank_per_node(const Plan& plan);

extern const char* const kMpsSteps;  ///< mps.sh

/// A command that runs once on every node of the plan, through its launcher.
struct NodeStep {
  Argv argv;
  EnvSnapshot env;
};

/// Errors: as the launcher's render and encode_wire.
Result<NodeStep> node_step(const Prepared& prepared, std::vector<std::string> command);

/// What preflight asks of every node beside a report, where the ranks' environment names a provider or a network plug-in:
/// whether the first is offered there, and the second can be loaded. Errors: as examine_nodes.
Status ask_fabric(const Prepared& prepared, double limit_seconds, const OtherLines& other,
                  Diagnostics& diagnostics);

/// After what the image, a directory, lacks for the binds has been made. Errors: `system`.
Result<ContainerUse> with_bind_targets(ContainerUse use);

/// Starts one container here, whose shim reports whether it finds the program. Errors: `program_not_found`,
/// `not_executable`; `system` with the engine's message.
Status try_container(const Prepared& prepared);

/// Of the monitors of this plan's ranks; `env` is that of the launcher.
sys::ChannelPlace channel_place(const Plan& plan, const EnvSnapshot& env);

/// What the readers of all ranks have written.
stacks::Snapshot snapshot_of(const std::vector<sys::RankStacks>& ranks);
/// The answers of NCCL's RAS in it.
stacks::Sequences sequences_of(const stacks::Snapshot& snapshot);

/// How ranks are asked what they do: by `hpclaunch stacks`, and by --stall.
sys::Asking asking_of(const Prepared& prepared, const Unfinished& unfinished);

/// What another attempt needs: a rank or a node failed by itself, and nobody asked the job to end.
bool can_restart(const sys::Ending& ending);

/// Indices in Hosts::names of the nodes that no other attempt uses.
std::vector<int> lost_nodes(const sys::Ending& ending);

/// "n4 takes the place of n2, whose connection ended", or that there is a node less.
std::string replacement_text(const Plan& before, const Plan& next, int node);

/// "rank 3 on n1: exit status 1", of an ending that can_restart.
std::string failure_text(const sys::Ending& ending);

/// The last attempt failed as one before it did: the same rank, in the same way, in the same place of its traceback if
/// it left one. What it was; "" for anything else.
std::string same_fault(const std::vector<Attempt>& attempts);

}  // namespace hpclaunch::job
