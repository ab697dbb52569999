#pragma once
// The three processes: the one the user started, the guard, the supervisor. docs/local-launcher.md.
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "hpclaunch/result.h"
#include "sys/local/job.h"

namespace hpclaunch::sys::local {

/// Signals that are passed on to the ranks.
inline constexpr int kPassedOn[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                    SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

/// Becomes the guard: forks the supervisor, waits for it, ends what it leaves. `control` is the
/// supervisor's end of the socket. All signals are blocked.
[[noreturn]] void guard(const Job& job, int control);

/// What the supervisor sends at its end, in one message.
std::string encode(const Result<Outcome>& outcome);

/// nullopt: cut short, so the supervisor did not get to its end.
std::optional<Result<Outcome>> decode(std::string_view message);

}  // namespace hpclaunch::sys::local
