#pragma once
// Programs that ranks run: which of them start processes themselves, and which MPI library
// they are linked with.
#include <nlohmann/json.hpp>

#include "job/steps.h"

namespace hpclaunch::job {

extern const char* const kPrograms;  ///< profiles/programs/launchers.json

/// The same as JSON, parsed once.
const nlohmann::json& known_programs();

/// The program that ranks run, behind `env`, `timeout` and others that exec it; an interpreter stays.
std::vector<std::string> behind_wrappers(const std::vector<std::string>& command);

/// "program-is-launcher": the program starts processes itself. By the names in the command, also behind `env`, `numactl`,
/// `python -m` and others that exec.
void check_program(const Request& request, const Plan& plan, Diagnostics& diagnostics);

}  // namespace hpclaunch::job
