#pragma once
// Launches that run: whom `hpclaunch stacks` asks, and what --stall sees.
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/launches.h"
#include "hpclaunch/result.h"
#include "hpclaunch/stacks.h"

namespace hpclaunch::job {

/// The ranks of a launch, looked at twice.
struct Look {
  RunningLaunch launch;
  stacks::Snapshot before, now;
  stacks::Sequences sequences_before, sequences;
};

/// Asks a launch of this user on this machine. `which`: the process ID of its hpclaunch, or the id of its job: "4711";
/// "": the only one there is. Errors: `not_found` with what there is; `system`: it has ended meanwhile.
Result<Look> look_at(std::string_view which, bool all_threads);

/// How the same question is put on the first node of a job: {"srun", "--jobid=4711", ..., "hpclaunch", "stacks"}; empty:
/// we are in it, or this machine has no batch system that starts something there. `words`: what follows "hpclaunch".
std::vector<std::string> elsewhere(const EnvSnapshot& env, std::string_view job,
                                   const std::vector<std::string>& words);

}  // namespace hpclaunch::job
