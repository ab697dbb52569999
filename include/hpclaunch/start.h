#pragma once
// The start of a prepared job.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/prepared.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::job {

/// The same before a start: makes what its container's image lacks for binds, and tries the container once on this node.
/// Errors: `program_not_found`, `not_executable`; `system` with the engine's message.
Result<Prepared> with_container_tried(Prepared prepared);

/// A line about staging; `last`: the line that stays.
using StageLines = std::function<void(std::string_view line, bool last)>;

/// One start of all ranks.
struct Attempt {
  std::vector<std::string> argv;  ///< of the launcher
  sys::Ending ending;
  double ended = 0;  ///< UNIX time
  HostNames hosts = {};
  int world_size = 0;
};

/// Stages, starts the job, waits for it, starts it again after a failure as often as the request allows, each time with
/// a new plan, and removes what was staged; or, without staging and supervision, replaces
/// this process by the launcher (returns only on errors). `attempts` gets each that was started.
Result<sys::Ending> start(const Prepared& prepared, const StageLines& lines,
                          std::vector<Attempt>& attempts);

}  // namespace hpclaunch::job
