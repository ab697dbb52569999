#pragma once
// What the table's rows are made of: functions of each batch system.
#include "hpclaunch/scheduler.h"

namespace hpclaunch {

using HostsOf = Result<HostList>(const EnvSnapshot& env, const Request& request,
                                 const std::string& text, const std::string& path);
HostsOf flux_hosts, slurm_hosts, lsf_hosts, sge_hosts;

using TimeLeftOf = std::optional<TimeLeft>(std::string_view text);
TimeLeftOf flux_time_left, pbs_time_left, slurm_time_left, lsf_time_left;

using TimeText = std::string(long seconds);
TimeText minutes_time, hours_time;

using StateOf = std::optional<JobState>(std::string_view text);
StateOf pbs_state, slurm_state, slurm_accounting, flux_state;

using GrantsOf = std::optional<JobGrants>(std::string_view text);
GrantsOf pbs_grants;
using NodeOf = NodeShare(std::string_view text);
NodeOf pbs_node;

/// "    key = value" in the output of qstat -f, of which long lines are broken.
std::string pbs_value(std::string_view text, std::string_view key);

}  // namespace hpclaunch
