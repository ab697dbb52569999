#pragma once
// Ending everything that was started below this process, and nothing else.
//
// A child that has not been reaped keeps its pid, so a signal to it cannot hit a stranger. Only
// such children are signalled, each with its process group. A process whose parent ended becomes
// our child, because we are a subreaper, and gets its turn in the next round.
#include <sys/types.h>

#include <vector>

namespace hpclaunch::sys::local {

/// Sends `signal` to every child, as it is found, and to the child's process group unless that is
/// our own (members of a group share its session, and every session below us was made below us).
/// Zombies are left out. Newest pid first: what forks and exits quickly is met while it is there.
/// Returns how many living children were found.
int signal_children(int signal);

/// True when no child is left, dead or alive.
bool no_children();

/// KILL, round by round, until no child is left. False: some did not end within `limit_seconds`
/// (they hang in the kernel, where KILL does not reach them).
bool end_children(double limit_seconds);

/// How long to wait, in seconds, for what does not end when it is killed.
inline constexpr double kHopeless = 10;

/// CLOCK_MONOTONIC in milliseconds.
long clock_ms();

}  // namespace hpclaunch::sys::local
