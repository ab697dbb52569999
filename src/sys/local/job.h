#pragma once
#include <sys/resource.h>

#include <string>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/result.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::sys::local {

/// One open file per rank, or none at all.
struct Logs {
  std::string directory;           ///< where they are; "" for none
  std::vector<std::string> paths;  ///< index = rank
  std::vector<int> files;          ///< index = rank; close-on-exec
};

/// <directory>/rank-3.log, the number as wide as the largest rank's; the directory and those above
/// it are made. When it holds a log of an earlier launch already, <directory>/2, /3, ... is made
/// and used instead: nothing is overwritten, and no log mixes two launches. Errors: `system` with
/// the path.
Result<Logs> open_logs(const std::string& directory, int ranks);

/// Everything that the supervisor needs, made before it is forked.
struct Job {
  int ranks = 1;
  std::string host;
  OutputOptions output;
  TimeLimitSignal notice;
  std::vector<std::string> argv;  ///< the shim, the program, its arguments
  std::vector<std::string> env;   ///< without HPCLAUNCH_LOCAL_RANK
  Logs logs;
  rlimit files{};            ///< RLIMIT_NOFILE as the user has it
  bool ignore_pipe = false;  ///< SIGPIPE was ignored when we started
};

/// How the job went.
struct Outcome {
  Ending ending;
  bool clean = true;  ///< nothing of what was started is left
};

/// Starts the ranks and stays until everything that they started has ended. Runs in a process of
/// its own that has no other children and is a subreaper. `control`: a stream socket from the
/// process the user started; each byte is a signal to pass on, its end means that this process is
/// gone. Errors: `program_not_found` and `not_executable` when the shim is not there or cannot be
/// executed, `system`; whatever had been started has been ended then.
Result<Outcome> supervise(const Job& job, int control);

}  // namespace hpclaunch::sys::local
