#pragma once
// --signal SIGNAL@SECONDS: when the allocation ends, and what to send before it does.
#include <optional>
#include <string>
#include <string_view>

#include "hpclaunch/check.h"
#include "hpclaunch/env.h"
#include "hpclaunch/request.h"

namespace hpclaunch::cli {

/// As typed.
struct NoticeWish {
  int signal = 0;
  long seconds = 300;  ///< before the end
};

/// "USR1", "SIGUSR1@300". Errors: `usage`.
Result<NoticeWish> parse_notice(const std::string& text);

/// "HH:MM:SS", "MM:SS", with "D-" or "D:" in front of three: the forms of Slurm and PBS. In seconds. nullopt
/// for anything else, a bare number too, which one batch system takes for minutes and the other for seconds.
std::optional<long> parse_duration(std::string_view text);

/// When the allocation ends.
struct AllocationEnd {
  std::optional<long long> at;  ///< UNIX time; nullopt: there is no limit
  std::string who;              ///< "squeue says 1:00:00 left"
};

/// Asks what the environment names: --ends-in, SLURM_JOB_END_TIME, squeue, flux, qstat, bjobs, in this
/// order. `now`: UNIX time. Errors: `usage` when nobody knows, with what to type.
Result<AllocationEnd> allocation_end(const std::string& ends_in, const EnvSnapshot& env,
                                     long long now);

// What the commands print, for allocation_end; nullopt: no answer in it. Seconds from now.
struct TimeLeft {
  std::optional<long> seconds;  ///< nullopt: unlimited
};
std::optional<TimeLeft> squeue_left(std::string_view text);
std::optional<TimeLeft> flux_left(std::string_view text);
std::optional<TimeLeft> qstat_left(std::string_view text, long long now);
std::optional<TimeLeft> bjobs_left(std::string_view text);

struct PlannedNotice {
  TimeLimitSignal notice;
  std::string why;
};

/// Half of what is left when there is less left than was asked for. Diagnostics: `notice-late`,
/// `notice-never`. Errors: `usage` when the allocation has ended.
Result<PlannedNotice> plan_notice(const NoticeWish& wish, const AllocationEnd& end, long long now,
                                  std::vector<Diagnostic>& diagnostics);

/// All of it, for what was typed; without a signal when --signal was not.
Result<PlannedNotice> find_notice(const Request& args, const EnvSnapshot& env,
                                  std::vector<Diagnostic>& diagnostics);

/// "2026-11-21T22:00:05Z"
std::string utc(long long unix_time);

}  // namespace hpclaunch::cli
