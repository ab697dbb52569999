#pragma once
// From a Request and a World to a plan with all that a start needs.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/late.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/render.h"
#include "hpclaunch/request.h"
#include "hpclaunch/topology.h"
#include "hpclaunch/world.h"

namespace hpclaunch::job {

struct ChosenLauncher {
  const Launcher* launcher = nullptr;
  LauncherFacts facts;
  std::string why;
  std::string remark;  ///< why it is not the one requested, or not on this machine; mostly ""
  std::vector<std::string> srun_types =
      {};  ///< plugins of srun's --mpi, asked for a program with MPI
};

/// The first launcher on PATH that reaches several nodes, or the batch system's; nullopt: none.
std::optional<ChosenLauncher> launcher_for_many_nodes(const World& world);

/// What --stage does on every node before the start.
struct Stage {
  std::string method;       ///< "sbcast", "copy", "venv", "copper"; "" for nothing
  std::string source;       ///< absolute: an archive, an environment, or a requirements file
  bool tree = false;        ///< `source` is an environment, which is packed first
  std::string old_prefix;   ///< where the environment was made; "" unknown
  std::string base;         ///< a directory of each node; of copper, where it mounts
  std::string id;           ///< name of the copy, the same for the same source
  std::string root;         ///< place of the environment in the archive; "" for its top
  std::string environment;  ///< absolute path of the environment on each node
  std::string variable;     ///< "VIRTUAL_ENV" or "CONDA_PREFIX", which names it
  std::string sbcast;       ///< absolute
  std::string copper;       ///< absolute: the script that starts it
  std::string packages;     ///< for PYTHONPATH, through copper; "" none
  std::string known_file;   ///< of the source, which copper has to show
  int seconds = 0;          ///< for all steps
  bool keep = false;
};

struct Means;

struct Prepared {
  EnvSnapshot env;         ///< given, then activated, then with the staged environment in place
  std::string activation;  ///< the same as lines of a POSIX shell, without staging
  Stage stage;
  std::string useful_stage;  ///< for --profile-start: what to type
  Topology node;
  Plan plan;
  PictureMarks marks;       ///< cores that the profile's node model reserves
  std::vector<Note> notes;  ///< of the profile
  ChosenLauncher launcher;
  std::string shim;               ///< absolute
  ContainerUse container;         ///< without an engine: none
  std::vector<std::string> argv;  ///< the launch line; empty without a program
  std::vector<Diagnostic> diagnostics;
  Late late;  ///< where Plan::later
  /// Outside a job: patterns of sh for variables of other launches, which a job may have that runs a script.
  std::vector<std::string> foreign;
  int port_lock = -1;                  ///< see sys::PortClaim
  std::string job;                     ///< as RunningLaunch::job
  int launch_lock = -1;                ///< see LaunchTurn::announce
  int max_restarts = 0;                ///< of the whole job
  std::vector<std::string> requeue;    ///< command of --on-time-limit; empty: none
  std::shared_ptr<const Means> means;  ///< of `plan`, where another attempt may come after it
};

/// `start` requires that program and launcher exist; `show` plans for other machines too.
enum class Purpose { show, start };

/// Finds hosts, batch system, profile, node, launcher, rendezvous and time limit in that world, and plans. The one way
/// from a request to a plan, also for golden cases and for a site's pages (made_up_world).
Result<Prepared> prepare(const Request& request, World world, Purpose purpose);

/// What changes in the launcher's environment: the constants of the plan and HPCLAUNCH_PLAN,
/// ascending name; the shim sets what differs by rank. Comments have the deciding layer and the
/// reason.
std::vector<EnvChange> environment_changes(const Plan& plan);

/// What a shell script has to do before the launch line.
struct ShellChanges {
  std::string preamble;  ///< finds what only the job knows; "" where the plan knows it
  std::vector<EnvChange> changes;
  std::vector<std::string> argv;                       ///< the launch line
  std::map<std::string, std::vector<LatePart>> words;  ///< of it, as EnvChange::late
};

/// What a printed text has beside the changes.
struct ShellNeeds {
  bool argv = false;          ///< the launch line follows
  bool show_secrets = false;  ///< else a secret is printed as a reference to its variable
  EnvFormat format = EnvFormat::sh;
};

/// environment_changes, with expressions for what only the job knows. Errors: `unsupported` where the text would name
/// hosts, or no command finds the first one.
Result<ShellChanges> shell_changes(const Prepared& prepared, ShellNeeds needs);

/// For the reader of such a text: what was decided where it was made.
std::vector<std::string> late_notes(const Prepared& prepared);

/// `env` with the changes applied.
EnvSnapshot launch_environment(const Plan& plan, const EnvSnapshot& env);

/// The endpoint of a typed rendezvous that is no node of the plan, or not the first one. nullopt: it is, or nothing can
/// be said.
std::optional<Diagnostic> endpoint_elsewhere(const Plan& plan, const World& world,
                                             const std::string& host);

}  // namespace hpclaunch::job
