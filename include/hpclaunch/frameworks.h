#pragma once
// What other programs call things: options of launchers, and variables that frameworks and libfabric read.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/grammar.h"
#include "hpclaunch/plan.h"

namespace hpclaunch::job {

/// What an option of another program is here, for an error: "--ppn 8" for {"--nproc-per-node", "8", ...}. `has`: does the
/// command take this option? "" for an option that is not known.
std::string meant_option(std::span<const std::string> words,
                         const std::function<bool(std::string_view)>& has);

/// The options of another program, profiles/programs/grammars.json.
Grammars program_grammar(std::string_view name);

/// What a framework of profiles/programs/frameworks.json reads, as label and text; empty for another name.
std::vector<std::pair<std::string, std::string>> framework_facts(const std::string& name,
                                                                 const Plan& plan);
/// Which frameworks read a variable, for what and behind which others.
std::vector<std::pair<std::string, std::string>> framework_readers(const std::string& variable);
/// What the libfabric of this machine says of its variable; empty for other names, and where it does not know it.
std::vector<std::pair<std::string, std::string>> fabric_facts(const std::string& variable);

}  // namespace hpclaunch::job
