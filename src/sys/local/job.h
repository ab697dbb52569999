#pragma once
// The local launcher's job and its three processes: the one the user started (run_local), the guard,
// which cleans up if the others are killed, and the supervisor, parent of the ranks.
// docs/reference/local-launcher.md.
#include <sys/resource.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/result.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::sys::local {

/// One open file per rank, or none at all.
struct Logs {
  std::string directory;           ///< "" for none
  std::vector<std::string> paths;  ///< of each rank of this node
  std::vector<int> files;          ///< the same; close-on-exec
};

/// <directory>/rank-3.log, the number as wide as the largest rank's; the directory and those above
/// it are created. When it contains a log of an earlier launch, <directory>/2, /3, ... is created
/// and used instead: nothing is overwritten, and no log mixes two launches. Errors: `system` with
/// the path. Opens `files` of them, from that of rank `first` on.
Result<Logs> open_logs(const std::string& directory, int ranks, int first, int files);

/// Open files of the supervisor: two pipes, the end of another one and perhaps a log for every rank, and a few more.
constexpr int files_needed(int ranks, bool logs) { return ranks * (logs ? 4 : 3) + 64; }

/// Everything that the supervisor needs, complete before it is forked.
struct Job {
  const Plan& plan;                    ///< of one node, or of all with Hosts::own
  std::vector<std::string> argv = {};  ///< the shim, the program, its arguments
  std::vector<std::string> env = {};   ///< without HPCLAUNCH_LOCAL_RANK
  Logs logs = {};
  rlimit files{};            ///< RLIMIT_NOFILE as the user has it
  bool ignore_pipe = false;  ///< SIGPIPE was ignored when we started
  const Asking& asking;
  int pid = 0;  ///< of the process that the user started
};

inline constexpr unsigned kFromBatch = 0x80;  ///< beside a signal's number

/// Starts the ranks and stays until everything that they started has ended. Runs in a process of
/// its own that has no other children and is a subreaper. `control`: a stream socket from the
/// process the user started; each byte is a signal to forward, with kFromBatch where the batch system has sent it; its end
/// means that this process is gone. Errors: `program_not_found` and `not_executable` when the shim is missing or cannot be
/// executed, `system`; whatever had been started has been ended then.
Result<Ending> supervise(const Job& job, int control);

/// Becomes the guard: forks the supervisor, waits for it, ends what is left below it. `control` is the
/// supervisor's end of the socket. All signals are blocked.
[[noreturn]] void guard(const Job& job, int control);

/// The supervisor's last message.
std::string encode(const Result<Ending>& outcome);

/// nullopt: cut short, so the supervisor was killed.
std::optional<Result<Ending>> decode(std::string_view message);

}  // namespace hpclaunch::sys::local
