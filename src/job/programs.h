#pragma once
// Programs that ranks run: which of them start processes themselves, and which MPI library
// they are linked with.
#include <nlohmann/json.hpp>

#include "job/steps.h"

namespace hpclaunch::job {

extern const char* const kPrograms;  ///< profiles/programs/launchers.json

/// The same as JSON, parsed once.
const nlohmann::json& known_programs();

/// A program that starts processes itself.
struct Starter {
  std::string name;
  bool agent = false;   ///< one on each node is meant, which serves all of the node
  bool python = false;  ///< starts Python programs, one of it on each node works too
  std::string instead;  ///< the command that is meant
};

/// By the names in `command`, also behind `env`, `numactl`, `python -m` and others that exec.
std::optional<Starter> find_starter(const std::vector<std::string>& command);

/// "program-is-launcher"
void check_program(const Request& request, const Plan& plan, Diagnostics& diagnostics);

/// DT_NEEDED of an ELF file of 64 bits; empty for anything else.
std::vector<std::string> needed_libraries(std::string_view file);

}  // namespace hpclaunch::job
