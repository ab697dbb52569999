#pragma once
// Directives of a batch script: which exclude or need one another, by profiles/programs/requests.json, and what is asked
// for where no profile says it.
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/prepared.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/world.h"

namespace hpclaunch::job {

/// All that it asks for, one of `typed` asks for: "--gres=gpu:4" beside "--gpus-per-node=2".
bool is_replaced(std::string_view system, const std::string& directive,
                 const std::vector<std::string>& typed);
/// It is replaced, or the system refuses it beside one of `typed`: "--mem=0" beside "--mem-per-cpu=4G". For directives
/// that nobody typed.
bool gives_way(std::string_view system, const std::string& directive,
               const std::vector<std::string>& typed);

/// Errors: `usage` where the system refuses two of them together, or one without another; `invalid` for a control
/// character.
Status check_directives(const Scheduler& system, const std::vector<std::string>& directives);

/// Directives for whole nodes, or for the part that is typed, where the nodes are not known; `options` gets the part.
std::vector<std::string> node_directives(const Scheduler& system, const Request& request,
                                         JobOptions& options, Diagnostics& diagnostics);

/// In a directory the file gets the name that the system gives it. Errors: `usage` where it takes no directory.
Status name_in_directory(const Scheduler& system, const char* option, const World& world,
                         std::string& file);

}  // namespace hpclaunch::job
