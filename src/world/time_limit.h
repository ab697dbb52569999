#pragma once
// --signal SIGNAL@SECONDS: when the allocation ends, and which signal the ranks get before it.
#include <optional>
#include <string>

#include "hpclaunch/scheduler.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/world.h"

namespace hpclaunch::job {

/// As typed.
struct SignalRequest {
  int signal = 0;
  long seconds = 300;  ///< before the end
};

/// "USR1", "SIGUSR1@300". Errors: `usage`.
Result<SignalRequest> parse_signal(const std::string& text);

struct AllocationEnd {
  std::optional<long long> at;  ///< UNIX time; nullopt: no limit
  std::string source;           ///< "squeue: 3600 s left"
};

/// The answer to Scheduler::ask_time_left. Errors: as ask_batch_system.
Result<sys::Captured> ask_about_job(const BatchJob& batch, const World& world);

/// --ends-in, else the batch system's variable, else its command. Errors: `usage` when the end is unknown.
Result<AllocationEnd> allocation_end(const std::string& ends_in, const World& world,
                                     const BatchJob& batch);

struct PlannedSignal {
  TimeLimitSignal signal;
  std::string why;
};

/// At half of the time left when less is left than requested. Diagnostics: `signal-late`,
/// `signal-never`. Errors: `usage` when the allocation has ended.
Result<PlannedSignal> plan_signal(const SignalRequest& wanted, const AllocationEnd& end,
                                  long long now, Diagnostics& diagnostics);

/// All of it; without a signal when --signal was not typed.
Result<PlannedSignal> find_signal(const Request& request, const World& world, const BatchJob& batch,
                                  Diagnostics& diagnostics);

}  // namespace hpclaunch::job
