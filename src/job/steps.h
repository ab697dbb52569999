#pragma once
// The steps of prepare, in their order: hosts, profile, node model; launcher, rendezvous, time
// limit.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/job.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::job {

using Diagnostics = std::vector<Diagnostic>;

/// The request with its short forms spelled out: --env and --env-file become --set, "-m MODULE" and a script without
/// "#!" get the python of PATH. Errors: those of the file; `usage` for a variable that is not set; `program_not_found`.
Result<Request> spelled_out(Request request, const World& world, Diagnostics& diagnostics);

/// The request without what only the job can answer: what a batch script asks for is known before.
Request before_the_job(Request request);

/// One rank per node, not bound, with the constants of the job.
Plan one_rank_per_node(const Plan& plan);

/// What preflight asks of every node beside a report, where the ranks' environment names a provider or a network plug-in:
/// whether the first is offered there, and the second can be loaded. Errors: as examine_nodes.
Status ask_fabric(const Prepared& prepared, double limit_seconds, const OtherLines& other,
                  Diagnostics& diagnostics);

extern const char* const kMpsSteps;  ///< mps.sh

/// A command that runs once on every node of the plan, through its launcher.
struct NodeStep {
  Argv argv;
  EnvSnapshot env;
};

/// Errors: as the launcher's render and encode_wire.
Result<NodeStep> node_step(const Prepared& prepared, std::vector<std::string> command);

bool is_here(std::string_view host, const World& world);    ///< a name of this machine
bool only_here(const HostList& hosts, const World& world);  ///< this machine is the one host
HostList invented_hosts(
    int nodes, HostNames known = {});  ///< for plans away from the site; the known ones first
int requested_nodes(const Request& request);  ///< 1 when neither nodes nor ranks were typed

/// --hostfile, else the batch system's list, else this machine. Runs the command or reads the file
/// that the batch system's row names. Errors: as parse_host_file and Scheduler::hosts;
/// `unsupported` for a list that cannot be read.
Result<HostList> find_hosts(const Request& request, const World& world, const BatchJob& batch);

/// Runs what a row of the batch systems names, the program found on PATH. Errors: as sys::find_program and sys::capture.
Result<sys::Captured> ask_batch_system(std::vector<std::string> question, const World& world);

struct ChosenProfile {
  std::shared_ptr<const Profile> profile;  ///< nullptr: none
  std::string why;                         ///< for the plan's "profile" choice
};

/// `ref` is --profile, "" for none typed. `hosts`: this machine's and the job's. Errors: as
/// load_profile; `usage` when two sites are detected.
Result<ChosenProfile> choose_profile(const std::string& ref, const World& world,
                                     const std::vector<std::string>& hosts, bool in_job,
                                     Diagnostics& diagnostics);

/// The model that --node-type names, else the first whose condition is met, else the first without
/// one; nullptr when the profile has none. Errors: `usage` for an unknown name.
Result<const NodeModel*> choose_model(const Request& request, const Profile* profile,
                                      const EnvSnapshot& env, const JobFacts& facts);

/// Where the job runs.
struct Site {
  BatchJob batch;
  HostList hosts;
  JobFacts facts;
  ChosenProfile chosen;
  const NodeModel* model = nullptr;  ///< of `chosen`
  bool is_here = false;              ///< this machine is a node of the job

  const Profile* profile() const { return chosen.profile.get(); }
};

/// What another attempt needs: a rank or a node failed by itself, and nobody asked the job to end.
bool can_restart(const sys::Ending& ending);

/// "rank 3 on n1: exit status 1", of an ending that can_restart.
std::string failure_text(const sys::Ending& ending);

/// The last attempt failed as one before it did: the same rank, in the same way, in the same place of its traceback if
/// it left one. What it was; "" for anything else.
std::string same_fault(const std::vector<Attempt>& attempts);

JobFacts job_facts(const BatchJob& batch, const World& world);

/// Hosts are invented where a profile is planned for away from its site, and only shown.
Result<Site> find_site(const Request& request, const World& world, Purpose purpose,
                       Diagnostics& diagnostics);

/// The MPI library that a program is linked with.
struct MpiLibrary {
  std::string family;  ///< "mpich", "openmpi"; "" for none, or none that is known
  std::string title;
  std::string why;                      ///< "/usr/bin/prog needs libmpi.so.40"
  std::vector<std::string> srun_types;  ///< of srun's --mpi, best first
};

/// By the program's ELF file; for a Python script that imports mpi4py, by the extension in its environment.
MpiLibrary mpi_of(const std::vector<std::string>& command, const World& world);

bool fits(const Launcher& launcher, const MpiLibrary& mpi);
/// A plugin of srun's --mpi is the wanted one, or a version of it: "pmix_v4" is pmix.
bool serves_type(std::string_view wanted, std::string_view type);

/// "mpi-mismatch": every rank would be alone in its MPI_COMM_WORLD.
void check_mpi(const MpiLibrary& mpi, const ChosenLauncher& launcher, const Request& request,
               const World& world, const Plan& plan, Diagnostics& diagnostics);

/// --launcher, else `preferred` (the profile's, "" for none), else the local one when the only node
/// is this machine, else the batch system's own, else the first known one on PATH.
///
/// A named launcher that is not found: an error when it `must_exist`, else its bare name and a
/// remark. A preferred one yields to the local one where that is possible. `PROGRAM --version` is
/// run only where several launchers share the program's name and none was named. Errors: `usage`
/// for an unknown name, `program_not_found` with what was found instead.
/// Where nothing is typed or preferred, one that fits `mpi` goes before one that does not.
Result<ChosenLauncher> choose_launcher(const Request& request, const World& world, const Site& site,
                                       const std::string& preferred, const MpiLibrary& mpi,
                                       bool must_exist);

/// `usage` for a name that no launcher has; `who` begins the message.
Error unknown_launcher(const std::string& wanted, std::string_view who);

struct Meeting {
  Rendezvous point;
  int port_lock = -1;  ///< see sys::PortClaim
};

/// Errors: as sys::claim_port. A given port that is taken becomes a diagnostic.
Result<Meeting> choose_rendezvous(const Request& request, const World& world, const Site& site,
                                  Diagnostics& diagnostics);

/// --container, before the plan is known.
struct ChosenContainer {
  ContainerUse use;  ///< without an engine: none
  std::string why;   ///< why this engine
};

/// From what the plan was made.
struct Means {
  std::shared_ptr<const World> world;
  Site site;
  PlanInput input;
  MpiLibrary mpi;
  ChosenLauncher launcher;
  ChosenContainer container;
  std::string shim;
  int port_lock = -1;
};

/// The next attempt: with its number and, unless the user chose one, a new MASTER_PORT. Errors: as prepare.
Result<Prepared> plan_restart(const Prepared& before, int restart);

// ---- --signal SIGNAL@SECONDS --------------------------------------------------------------------

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

/// "2026-11-21T22:00:05Z"
std::string utc(long long unix_time);

/// What is wrong with MASTER_ADDR as seen from here. A given name is looked up before a start, and in plans for this
/// machine.
void check_address(const Plan& plan, const Request& request, const World& world, Purpose purpose,
                   Diagnostics& diagnostics);

/// A login node, by the profile or by a batch system that is installed here. Errors: `usage` before a start
/// without --force; else a diagnostic.
Status check_allocation(const Request& request, const World& world, const Site& site,
                        Purpose purpose, Diagnostics& diagnostics);

/// The batch system that this machine can submit to: its configuration and its command are here. nullptr: none.
const Scheduler* installed(const World& world);

/// What every job of the site needs, where `options` does not say so. Errors: as choose_queue, where no queue is named.
Status add_job_needs(const JobNeeds& needs, JobOptions& options);

/// For invented hosts: how a script finds the first one in its job.
LateHost late_host(const Site& site, const Plan& plan);

// ---- script --plain -----------------------------------------------------------------------------

inline constexpr std::string_view kJob =
    "HPCLAUNCHJOBID";  ///< in a plan for --plain: the id that the job will have

/// Errors: `usage` for an option that needs hpclaunch in the job.
Status check_plain(const Request& request);

/// The exports, what every rank does first, and the launch line. Errors: `unsupported` where only hpclaunch can do it.
Result<std::string> plain_launch(const Prepared& prepared, const Profile& profile,
                                 const Scheduler& system);

}  // namespace hpclaunch::job
