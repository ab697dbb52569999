#pragma once
// Programs that ranks run: which of them start processes themselves, and which MPI library
// they are linked with.
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/prepared.h"

namespace hpclaunch::job {

/// The program that ranks run, behind `env`, `timeout` and others that exec it; an interpreter stays.
std::vector<std::string> behind_wrappers(const std::vector<std::string>& command);

/// What the data has for a launcher under --agent.
ProgramEnv agent_env(const std::vector<std::string>& typed);

/// The device masks that it reads, where it refuses or ignores others.
std::vector<std::string> agent_masks(const std::vector<std::string>& typed);

/// What --for adds. Errors: `usage` for a name that the data lacks, and for a variable that the user must set.
Result<ProgramEnv> framework_env(const Request& request, const EnvSnapshot& env);
std::vector<std::string> framework_notes(const Request& request);

/// `command`, which is `typed` resolved, with the options that tell its launcher about the nodes, as far as they are not
/// typed; they differ by node, so that a shell adds them.
std::vector<std::string> agent_command(const std::vector<std::string>& typed,
                                       std::vector<std::string> command);

/// "program-is-launcher": the program starts processes itself. By the names in the command, also behind `env`, `numactl`,
/// `python -m` and others that exec.
void check_program(const Request& request, const Plan& plan, Diagnostics& diagnostics);

/// "program-sets-devices": a script of the command sets a device mask from the local rank, and so takes other devices
/// than those beside the ranks' cores.
void check_own_mask(const Request& request, const Plan& plan, const World& world,
                    Diagnostics& diagnostics);

}  // namespace hpclaunch::job
