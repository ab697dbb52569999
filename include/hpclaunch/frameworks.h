#pragma once
// What other programs call things: options of launchers, and variables that frameworks and libfabric read.
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/plan.h"

namespace hpclaunch::job {

/// What an option of another launcher is here, for an error: "--ppn 8" for "--nproc-per-node=8", or for that word and
/// `next`. "" for an option that is not known.
std::string meant_option(const std::string& word, const std::string& next);

/// What a framework of profiles/programs/frameworks.json reads, as label and text; empty for another name.
std::vector<std::pair<std::string, std::string>> framework_facts(const std::string& name,
                                                                 const Plan& plan);
/// Which frameworks read a variable, for what and behind which others.
std::vector<std::pair<std::string, std::string>> framework_readers(const std::string& variable);
/// What the libfabric of this machine says of its variable; empty for other names, and where it does not know it.
std::vector<std::pair<std::string, std::string>> fabric_facts(const std::string& variable);

}  // namespace hpclaunch::job
