#pragma once
// Directives of a batch script that exclude or need one another, by profiles/programs/requests.json.
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/scheduler.h"

namespace hpclaunch::job {

/// A directive of a rule that one of `typed` excludes, and so replaces: "--mem=0" beside "--mem-per-cpu=4G".
bool is_replaced(std::string_view system, const std::string& directive,
                 const std::vector<std::string>& typed);

/// Errors: `usage` where the system refuses two of them together, or one without another.
Status check_directives(const Scheduler& system, const std::vector<std::string>& directives);

}  // namespace hpclaunch::job
