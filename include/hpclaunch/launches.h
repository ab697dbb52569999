#pragma once
// Launches of one user that share a job: what each uses, and what is free.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/plan.h"

namespace hpclaunch::job {

/// Slot::id and Slot::part (tile, MIG instance); -1: the whole device. {3, -1}
using DeviceInUse = std::pair<int, int>;

/// Nodes that a launch uses alike.
struct NodesInUse {
  HostNames hosts;
  CpuSet cpus;           ///< of all ranks of such a node
  bool unbound = false;  ///< its ranks run on CPUs that nobody chose
  std::vector<DeviceInUse> devices;
};

/// A launch of `hpclaunch run`, while it runs.
struct RunningLaunch {
  std::string job;        ///< "slurm 4711"; "none 0" outside of any
  int pid = 0;            ///< of hpclaunch, and then of the launcher
  std::string program;    ///< "python train.py": no more arguments, which may be secrets
  long long started = 0;  ///< UNIX time in seconds
  int ranks = 0;
  std::vector<NodesInUse> nodes;
};

/// What the plan will use; without pid and time.
RunningLaunch launch_of(const Plan& plan, std::string job);

/// One line of JSON, and back. nullopt for any other text.
std::string to_json(const RunningLaunch& launch);
std::optional<RunningLaunch> parse_launch(std::string_view text);

/// Those on this machine that run, the oldest first; what others left is removed.
std::vector<RunningLaunch> running_launches();

/// One launch of a user plans at a time on a machine, so that each knows what those before it have taken.
class LaunchTurn {
 public:
  LaunchTurn();   ///< waits for its turn, at most half a minute
  ~LaunchTurn();  ///< the next one's turn
  LaunchTurn(const LaunchTurn&) = delete;
  LaunchTurn& operator=(const LaunchTurn&) = delete;
  /// Lets others know of the launch while a process has the descriptor that is returned, also across exec. -1: the user
  /// has no directory for it.
  static int announce(const Plan& plan, const std::string& job);

 private:
  int lock_ = -1;
};

/// What this process has announced is over.
void withdraw_launch();

}  // namespace hpclaunch::job
