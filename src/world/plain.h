#pragma once
#include "world/site.h"

namespace hpclaunch::job {

// ---- script --plain -----------------------------------------------------------------------------

inline constexpr std::string_view kJob =
    "HPCLAUNCHJOBID";  ///< in a plan for --plain: the id that the job will have

/// Errors: `usage` for an option that needs hpclaunch in the job.
Status check_plain(const Request& request);

/// The exports, what every rank does first, and the launch line. Errors: `unsupported` where only hpclaunch can do it.
Result<std::string> plain_launch(const Prepared& prepared, const Profile& profile,
                                 const Scheduler& system);

}  // namespace hpclaunch::job
