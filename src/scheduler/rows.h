#pragma once
// What the table's rows are made of: functions of each batch system.
#include "hpclaunch/scheduler.h"

namespace hpclaunch {

template <class Pointer>
using Of = std::remove_pointer_t<Pointer>;

Of<decltype(Scheduler::hosts)> flux_hosts, slurm_hosts, lsf_hosts, sge_hosts;
Of<decltype(Scheduler::time_left)> flux_time_left, pbs_time_left, slurm_time_left, lsf_time_left;
Of<decltype(Scheduler::grants)> pbs_grants;
Of<decltype(Scheduler::node)> pbs_node;
Of<decltype(StateQuestion::read)> pbs_state, slurm_state, slurm_accounting, flux_state;
Of<decltype(Directives::time_text)> minutes_time, hours_time;

/// "    key = value" in the output of qstat -f, of which long lines are broken.
std::string pbs_value(std::string_view text, std::string_view key);

}  // namespace hpclaunch
