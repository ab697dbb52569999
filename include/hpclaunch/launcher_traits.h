#pragma once
// What planning and supervision know of a launcher, as data. Each file in src/launcher fills in one
// LauncherTraits.
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hpclaunch {

class EnvSnapshot;

/// Every launcher, ascending: the one line outside of src/launcher/NAME.cpp that a new one adds.
#define HPCLAUNCH_LAUNCHERS(ROW) \
  ROW(flux)                      \
  ROW(hydra)                     \
  ROW(intelmpi)                  \
  ROW(jsrun)                     \
  ROW(local)                     \
  ROW(openmpi)                   \
  ROW(pals)                      \
  ROW(prrte)                     \
  ROW(slurm)                     \
  ROW(ssh)

#define HPCLAUNCH_NAME(name) std::string_view(#name),
inline constexpr std::string_view kLauncherNames[] = {HPCLAUNCH_LAUNCHERS(HPCLAUNCH_NAME)};
#undef HPCLAUNCH_NAME

/// hpclaunch itself, which starts ranks on the node that it runs on.
inline constexpr std::string_view kLocalLauncher = "local";

/// Every batch system, as profiles spell it: the rows of profiles/programs/batch-systems.json.
std::span<const std::string_view> scheduler_names();

/// How a launcher distributes a number of ranks over its nodes.
enum class Distribution {
  any,   ///< each node gets what the plan says
  fill,  ///< every node the same number; the last node gets the rest
  even,  ///< evenly; the first nodes get one more where the division leaves a remainder
};

/// Signals by their Linux numbers, which are equal on every supported architecture.
enum : int { kHup = 1, kInt = 2, kQuit = 3, kKill = 9, kUsr1 = 10, kUsr2 = 12, kTerm = 15 };

/// How a launcher is stopped (docs/reference/supervise.md).
struct TerminationPolicy {
  bool fails_fast = true;     ///< one rank that exits non-zero stops the job, MPI program or not
  bool loses_output = false;  ///< when it does so: not asked to where hpclaunch can stop the ranks
  bool queues = false;        ///< it may wait for free nodes, as long as that takes
  /// Arguments with which its program prints what waits and why, a line each; more than one answer: in turn.
  std::vector<std::vector<std::string>> ask_waiting = {};
  bool ranks_outlive_launcher = false;  ///< ranks survive a SIGKILL of the launcher
  /// To stop the launcher with everything it has started: one signal after the other.
  struct Step {
    int signal = 0;
    long wait_ms = 0;  ///< for the launcher to exit, before the next step
  };
  std::vector<Step> steps = {{kTerm, 10'000}, {kKill, 10'000}};
  int on_parent_death = kTerm;  ///< sent by the kernel when hpclaunch dies
};

/// A part of a rank's identity, as launchers and batch systems give it to each task.
enum class Identity {
  rank,
  local_rank,
  node,        ///< position of the node, from 0
  local_size,  ///< ranks on the node
  ranks,       ///< in all
  nodes,
  counts,  ///< "4(x2),3": ranks on each node
  hosts,   ///< "a,b"
};

/// Variables with the same part of the identity, separated by blanks.
struct IdentityVariables {
  Identity what = Identity::rank;
  std::string_view names;
};

/// What the chosen launcher can do.
struct LauncherTraits {
  std::string name = {};       ///< of the launcher; launchers() sets it
  std::string rank_var;        ///< variable with the global rank at the rank
  std::string local_rank_var;  ///< "" when there is none
  bool binds_sets = false;     ///< takes one explicit set of OS indices per local rank
  /// Why the shim binds although the launcher takes sets; "" where the launcher binds.
  std::string shim_binds_why = {};
  bool multi_node = false;
  bool by_ssh = false;    ///< reaches other nodes by ssh, where the batch system starts nothing
  bool built_in = false;  ///< kLocalLauncher: always supervises, opens the logs itself
  bool names_variables = false;  ///< passes on to other nodes only variables that are named to it
  Distribution distribution = Distribution::any;
  TerminationPolicy termination = {};
  /// A variable of the launcher's own that would change what the launch line asks for.
  struct ConflictingVariable {
    std::string name;
    std::string why;
    bool of_batch = false;     ///< set by the batch system, not by the user
    bool shapes_step = false;  ///< stays when the launcher binds by the profile's own flags
    bool prefix = false;       ///< every variable whose name begins with `name`
    /// Only where one of `beside` is set too, or one of `without` is not; both empty: always.
    std::vector<std::string> beside = {}, without = {};
  };
  std::vector<ConflictingVariable> conflicting = {};  ///< removed from the launcher's environment
  /// Of the job's batch system, where its tasks are not the ranks: the shim sets them for each rank.
  std::vector<IdentityVariables> batch_identity = {};
  /// Names of another launcher that programs read under this one too, which sets none of them.
  std::vector<IdentityVariables> aliases = {};
  /// A variable of the launcher's own for what its command line cannot express.
  struct Preset {
    std::string name;
    std::string value;
    std::string why;
    /// Those that depend on a circumstance yield to an exported value.
    enum When { always, as_root, qualified_hosts } when = always;
  };
  std::vector<Preset> presets = {};  ///< ascending name; set in the launcher's environment
  std::string removes = {};  ///< beginnings of names that its ranks do not get: "PRTE_ PMIX_"
  /// Variable with the step's number inside a step of this launcher; "" when it has no steps.
  std::string step_var = {};
  /// Set to 1, it lets another step use what the step of this shell holds: "SLURM_OVERLAP".
  std::string step_shares = {};

  /// Is this shell in an ordinary step of this launcher? (src/model/plan.cpp)
  bool inside_step(const EnvSnapshot& env) const;
};

}  // namespace hpclaunch
