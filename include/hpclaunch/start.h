#pragma once
// The start of a prepared job, and of a rank that another launcher has started.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/prepared.h"
#include "hpclaunch/session.h"
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

/// An attempt that is about to be ended, for the case that hpclaunch is as well.
using Unfinished = std::function<void(const Attempt& so_far)>;

/// Stages, starts the job, waits for it, starts it again after a failure as often as the request allows, each time with
/// a new plan, and removes what was staged; or, without staging and supervision, replaces
/// this process by the launcher (returns only on errors). `attempts` gets each that was started.
Result<sys::Ending> start(const Prepared& prepared, const StageLines& lines,
                          std::vector<Attempt>& attempts, const Unfinished& unfinished);

// ---- hpclaunch bind: this process is one of the ranks of this node --------------------------------------

/// What was typed. `launch` has the program, and what `run` shares with it.
struct BindRequest {
  Request launch;
  std::optional<int> local_rank, local_size;
  std::string memory = "none";  ///< "preferred", "bind": where the rank's memory is to be
  bool strict = false;          ///< end where what was planned cannot be done
  bool verbose = false;
};

/// Where a rank is, by its own variables. {3, 8, 11, 16, 1, 2, "slurm", "SLURM_LOCALID"}
struct BindPlace {
  int local = 0, size = 1;
  std::optional<int> rank, ranks;  ///< of the whole job
  std::optional<int> node;
  int nodes = 1;
  std::string launcher;                         ///< as Request::started_by
  std::string by;                               ///< what says so
  bool nodes_told = false, nodes_known = true;  ///< by the launcher; at all
  bool pods = false;                            ///< RANK and WORLD_SIZE count nodes
};

/// Errors: `usage` where nothing says it, or what says it is no place.
Result<BindPlace> bind_place(const BindRequest& request, const EnvSnapshot& env);

/// Binds this process, sets what `run` would set, and becomes the program. Returns the status only where it cannot.
int bind(const BindRequest& request, Session& session);

}  // namespace hpclaunch::job
