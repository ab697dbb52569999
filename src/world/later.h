#pragma once
// A plan that is made before its job runs, for a text that a shell of the job runs.
#include <string>

#include "hpclaunch/render.h"
#include "world/site.h"

namespace hpclaunch::job {

/// The batch system that the job will be of; nullptr: not known.
const Scheduler* later_system(const Request& request, const Profile& profile);

/// Stand-ins for what only the job knows of itself, where it was not typed.
void make_late(const Request& request, const Profile& profile, JobFacts& facts);

/// The shim of the hpclaunch that the job finds; "" where this machine's is the job's.
std::string later_shim(const Request& request, const Site& site, const World& world);

/// With what has stand-ins in Prepared::late; the plan has what people read.
Prepared with_late(const Request& request, const Site& site, Prepared prepared);

/// Removes variables of these patterns where the text runs: what is exported there is not known here.
std::string remove_foreign(const std::vector<std::string>& patterns);

/// Removes what the job's batch system sets by itself, since a default yields to what the job exports. "" for formats
/// that have no commands.
std::string without_own(const Late& late, const std::vector<EnvChange>& changes, EnvFormat format);

}  // namespace hpclaunch::job
