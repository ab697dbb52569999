#pragma once
// What the table's rows are made of: one pair of functions for each batch system.
#include "hpclaunch/scheduler.h"

namespace hpclaunch {

using HostsOf = Result<HostList>(const EnvSnapshot& env, const Request& request,
                                 const std::string& text, const std::string& path);
HostsOf flux_hosts, slurm_hosts, lsf_hosts, sge_hosts;

using TimeLeftOf = std::optional<TimeLeft>(std::string_view text);
TimeLeftOf flux_time_left, pbs_time_left, slurm_time_left, lsf_time_left;

}  // namespace hpclaunch
