#pragma once
// Numbers that a script says plainly; -1 where it does not.
#include "lint/engine.h"

namespace hpclaunch::lint {

long number_of(const Value& value);    ///< of a plain natural number
long number_of(const Option* option);  ///< nullptr: -1
long nodes_of(const Script& script, const Launch& launch);
long ranks_per_node_of(const Script& script,
                       const Launch& launch);               ///< given, or ranks on one node
long ranks_of(const Script& script, const Launch& launch);  ///< on all nodes
long gpus_per_node_of(const Script& script);

bool is_slurm(const Launch& launch);      ///< srun
bool is_mpi(const Launch& launch);        ///< mpiexec, mpirun and their kind
bool starts_ranks(const Launch& launch);  ///< a launcher of a site, not one that a node runs
bool is_agent(const Launch& launch);  ///< torchrun, accelerate, deepspeed: one per node is meant
/// torchrun without --nnodes: for one node. False where a variable that the text does not know may hold the option.
bool is_for_one_node(const Script& script, const Launch& launch);
/// The launch that starts this one; nullptr: none.
const Launch* around(const Script& script, const Launch& launch);
/// "localhost", "127.0.0.1:29500", "::1".
bool is_loopback(std::string_view host);
/// One of `names`, options or variables, is given: "--nv", "APPTAINER_NV".
bool shows(const Script& script, const Launch& launch, Words names);
/// The program is a small tool whose placement does not matter: hostname, nvidia-smi, mkdir.
bool is_tool(const Launch& launch);
/// The program is hpclaunch-shim: each rank gets its place and its devices from HPCLAUNCH_PLAN.
bool is_planned(const Launch& launch);

}  // namespace hpclaunch::lint
