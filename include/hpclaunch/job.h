#pragma once
// From a Request to a job: what is asked of this machine, the plan, its start, and what its ranks
// report. Knows no command line; cli and authoring print what it returns.
#include <array>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/check.h"
#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/rank_report.h"
#include "hpclaunch/render.h"
#include "hpclaunch/request.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/topology.h"
#include "hpclaunch/world.h"

namespace hpclaunch {
struct Scheduler;
}

namespace hpclaunch::job {

// ---- what a command may touch -------------------------------------------------------------------

/// `launch`: the exit statuses of env(1) and timeout(1) before they exec (125, 126, 127).
enum class ExitRules { report, launch };

/// Made once, in main.
struct Session {
  EnvSnapshot env;
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  Style style;  ///< of `out`
  ExitRules exit_rules = ExitRules::report;
  /// Width of `out` and `err` where they are terminals: lines for people are wrapped to it.
  std::optional<int> columns, err_columns;
};

/// The exit status for an error of this kind; the one place that decides it.
int exit_status(ErrorKind kind, ExitRules rules);

/// Prints place, message and hint to session.err; returns the exit status.
int report(Session& session, const Error& error);

/// One line per diagnostic to session.err, and its fix; more where a terminal is narrower. Returns the lines that a
/// terminal shows, 0 without one.
int report(Session& session, const std::vector<Diagnostic>& diagnostics);

/// session.style for text of which a program may read a line: wrapped on a terminal only.
Style line_style(const Session& session);

/// Writes all of `text` to session.out. False: the reader is gone or the disk is full.
bool print(Session& session, const std::string& text);

/// The same; returns the exit status.
int print_all(Session& session, const std::string& text);

/// Checks that `path` can be written before any work is done. `option` is named in errors. Errors:
/// `usage` when the file cannot be created, or is no regular file.
Status check_file(const std::string& option, const std::string& path);

/// Atomically: written beside the old file, then renamed. Errors: `system`.
Status write_file(const std::string& option, const std::string& path, const std::string& text);

// ---- profiles -----------------------------------------------------------------------------------

/// A profile that exists somewhere, not read yet.
struct ProfileEntry {
  std::string name;
  std::string scope;  ///< "builtin", "site", "user", "file"
  std::string file;   ///< path, or "builtin:..."
  const BuiltinProfile* builtin = nullptr;
  std::vector<std::string> shadows;  ///< files of weaker scopes that have the same name
};

/// Every profile, ascending name; the strongest scope of each name. `diagnostics` gets a note for a folder
/// of the user's that cannot be read. Errors: `system` when a folder of the site cannot be read.
Result<std::vector<ProfileEntry>> list_profiles(const EnvSnapshot& env,
                                                std::vector<Diagnostic>* diagnostics = nullptr);

/// Where a profile for this user, or for everybody, is installed. Errors: `usage` where no folder is known.
Result<std::string> profile_folder(const EnvSnapshot& env, bool everybody);

/// The text of an entry. Errors: as sys::read_trusted_file.
Result<std::string> profile_text(const ProfileEntry& entry);

/// True for a path: it has a '/' or ends in ".json".
bool is_profile_file(const std::string& ref);

/// The profile that `file` extends as `name`: beside it, or in `part` or `site` next to its directory, else one
/// of `entries`, as where `file` is "". Errors: `not_found` with a suggestion.
Result<ProfileEntry> find_profile(const std::string& name, const std::string& file,
                                  const std::vector<ProfileEntry>& entries);

/// Parsed, not resolved. Errors: as profile_text; `invalid` with the first problem, and for a name that is not
/// the entry's.
Result<Profile> read_profile(const ProfileEntry& entry);

/// Parsed and resolved. `ref` is a name, or a path (is_profile_file). Errors:
/// `not_found` with a suggestion; `invalid` with the first problem, and how many more there are.
Result<Profile> load_profile(const std::string& ref, const EnvSnapshot& env);

// ---- programs -----------------------------------------------------------------------------------

/// What an option of another launcher is here, for an error: "--ppn 8" for "--nproc-per-node=8", or for that word and
/// `next`. "" for an option that is not known.
std::string meant_option(const std::string& word, const std::string& next);

/// What a framework of profiles/programs/frameworks.json reads, as label and text; empty for another name.
std::vector<std::pair<std::string, std::string>> framework_facts(const std::string& name,
                                                                 const Plan& plan);
/// Which frameworks read a variable, for what and behind which others.
std::vector<std::pair<std::string, std::string>> framework_readers(const std::string& variable);
/// What the libfabric of this machine says of its variable; empty for other names, and where it does not know it.
std::vector<std::pair<std::string, std::string>> fabric_facts(const std::string& variable);

// ---- doctor -----------------------------------------------------------------------------------------

/// One line of `hpclaunch doctor`: what is there, or what is wrong with it.
struct DoctorRow {
  std::string area;  ///< "limits", "torch", ...
  std::string found;
  std::optional<Diagnostic> fault;
};

/// What `hpclaunch doctor` is asked beside the request.
struct DoctorSubject {
  std::string python;    ///< "" for the program's, else the one on PATH
  bool network = false;  ///< connect to proxies; else the network is not touched
  bool fabric = false;   ///< only libraries and providers of the network; no Python but a named one
};

/// Examines this machine and the environment that a job would have: nothing is imported, nothing but small files in HOME
/// and TMPDIR is written.
std::vector<DoctorRow> examine(const Request& request, const EnvSnapshot& env,
                               const DoctorSubject& subject);
/// Of this node alone, as a rank finds it: no site and no plan.
std::vector<DoctorRow> examine_node(const EnvSnapshot& env, const DoctorSubject& subject);
/// The findings in one line, with the node's position (RANK); ends in a newline.
std::string node_line(const std::vector<DoctorRow>& rows, const EnvSnapshot& env);

// ---- the plan -----------------------------------------------------------------------------------

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

/// How a script finds the first host of its job, where the plan has a stand-in for it.
struct LateHost {
  std::string name;     ///< the stand-in; "" where the hosts are known
  std::string command;  ///< of sh; "": there is none
  std::string job;      ///< "Slurm job"
};

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
  LateHost late_host;  ///< where the hosts of the plan are invented
  /// Outside a job: patterns of sh for variables of other launches, which a job may have that runs a script.
  std::vector<std::string> foreign;
  int port_lock = -1;                  ///< see sys::PortClaim
  std::shared_ptr<const Means> means;  ///< of `plan`, where another attempt may come after it
};

/// `start` requires that program and launcher exist; `show` plans for other machines too.
enum class Purpose { show, start };

/// Finds hosts, batch system, profile, node, launcher, rendezvous and time limit in that world, and plans. The one way
/// from a request to a plan, also for golden cases and for a site's pages (made_up_world).
Result<Prepared> prepare(const Request& request, World world, Purpose purpose);

/// The same before a start: makes what its container's image lacks for binds, and tries the container once on this node.
/// Errors: `program_not_found`, `not_executable`; `system` with the engine's message.
Result<Prepared> with_container_tried(Prepared prepared);

/// What changes in the launcher's environment: the constants of the plan and HPCLAUNCH_PLAN,
/// ascending name; the shim sets what differs by rank. Comments have the deciding layer and the
/// reason.
std::vector<EnvChange> environment_changes(const Plan& plan);

/// What a shell script has to do before the launch line.
struct ShellChanges {
  std::string preamble;  ///< finds the first host of the job; "" where the plan knows it
  std::vector<EnvChange> changes;
};

/// What a printed text has beside the changes.
struct ShellNeeds {
  bool argv = false;          ///< the launch line follows
  bool show_secrets = false;  ///< else a secret is printed as a reference to its variable
};

/// environment_changes, with the job's first host where the plan has a stand-in. Errors: `unsupported` where the
/// launch line names hosts, or no command finds the first one.
Result<ShellChanges> shell_changes(const Prepared& prepared, ShellNeeds needs);

/// `env` with the changes applied.
EnvSnapshot launch_environment(const Plan& plan, const EnvSnapshot& env);

/// The node of a topology file, or this machine with everything the vendors' libraries and
/// libfabric know; failed ones are reported to the session. A launch asks only for what it needs.
Result<Topology> known_node(const std::string& file, Session& session);

/// As topology_xml of hpclaunch/probe.h.
Result<std::string> known_xml(const std::string& file);

/// The endpoint of a typed rendezvous that is no node of the plan, or not the first one. nullopt: it is, or nothing can
/// be said.
std::optional<Diagnostic> endpoint_elsewhere(const Plan& plan, const World& world,
                                             const std::string& host);

// ---- the job ------------------------------------------------------------------------------------

/// A line about staging; `last`: the line that stays.
using StageLines = std::function<void(std::string_view line, bool last)>;

/// One start of all ranks.
struct Attempt {
  std::vector<std::string> argv;  ///< of the launcher
  sys::Ending ending;
  double ended = 0;  ///< UNIX time
};

/// Stages, starts the job, waits for it, starts it again after a failure as often as the request allows, each time with
/// a new plan, and removes what was staged; or, without staging and supervision, replaces
/// this process by the launcher (returns only on errors). `attempts` gets each that was started.
Result<sys::Ending> start(const Prepared& prepared, const StageLines& lines,
                          std::vector<Attempt>& attempts);

// ---- batch scripts ------------------------------------------------------------------------------

/// What `script` and `submit` take beside a Request; "": not typed.
struct BatchRequest {
  std::string scheduler;  ///< "pbs", "slurm", ...
  std::string time;       ///< as parse_time_limit takes it
  std::string account, queue, filesystems, constraint, name;
  std::string output;                  ///< file of the job's output
  bool plain = false;                  ///< hpclaunch is not there when the job runs
  std::vector<std::string> run_words;  ///< options of `hpclaunch run` in the script
  std::vector<std::string> typed;      ///< the whole command line, for a comment
};

struct BatchScript {
  std::string text;
  const Scheduler* scheduler = nullptr;
  std::string output;  ///< as the batch system was told; "" for its own choice
  std::vector<Diagnostic> diagnostics;
};

/// The script for the site of the profile, else for the batch system that this machine has. `start`: it is about to be
/// submitted. Errors: `usage` when no batch system is known or no queue takes the job; those of the plan.
Result<BatchScript> batch_script(const Request& request, const BatchRequest& wanted,
                                 const EnvSnapshot& env, Purpose purpose);

/// Hands it to the batch system; the job id. Errors: as sys::find_program; `system` with the batch system's message.
Result<std::string> submit(const BatchScript& script, const EnvSnapshot& env);

/// Prints states of the job to session.err and its output to session.out until it ends or the user interrupts; its exit
/// status, or 128+n. Errors: `system` when the batch system does not know the job (any more).
Result<int> follow(const BatchScript& script, const std::string& id, Session& session);

/// What --profile-start measures of a rank, in seconds and in this order; docs/reference/supervise.md.
inline constexpr const char* kStartPhases[] = {"launch",     "interpreter", "import",
                                               "rendezvous", "collective",  "output"};
inline constexpr std::size_t kStartPhaseCount = std::size(kStartPhases);

struct RankStart {
  std::string host;  ///< "" where nothing is known of the rank
  std::array<std::optional<double>, kStartPhaseCount> seconds = {};
  std::optional<double> ran, delayed;  ///< of the import: running, and ready without a processor
  std::string import_from;             ///< directory of the package
  bool python = false;                 ///< an interpreter has started

  double waited() const;  ///< of the import, for files; 0 unknown
};

struct StartProfile {
  std::vector<RankStart> ranks;                     ///< index = rank
  std::map<std::string, std::string> file_systems;  ///< type by directory
  std::vector<Diagnostic> diagnostics;              ///< which staging would help
};

/// Gathers what the ranks have written, and removes it on every node.
StartProfile start_profile(const Prepared& prepared, const sys::Ending& ending,
                           const std::function<void(std::string_view line)>& other);

/// The table, whole lines.
std::string start_profile_text(const StartProfile& profile, const Plan& plan);
std::string start_profile_json(const StartProfile& profile, const Plan& plan);

/// --report FILE: how a job went. docs/reference/supervise.md has the keys.
struct RunRecord {
  std::vector<std::string> command;  ///< as typed, or resolved
  const Plan* plan = nullptr;        ///< nullptr: there is none
  std::vector<std::string> argv;     ///< of the launcher
  double started = 0;                ///< UNIX time
  double ended = 0;
  int status = 0;
  std::vector<Attempt> attempts;  ///< empty: nothing was started, and `error` says why
  std::optional<Error> error;
  std::optional<StartProfile> start;
};

std::string run_record_json(const RunRecord& record);

struct Verification {
  Observed seen;
  sys::Ended ended;
  std::vector<std::string> argv;  ///< the launch line
  Comparison comparison;
};

/// Lines of the launcher's output that are no report.
using OtherLines = std::function<void(std::string_view line)>;

/// When the ranks report.
struct ReportTime {
  std::string module;  ///< after Python has imported it, in place of the program; "" for none
  std::string after;  ///< after so many seconds of the program, or at its "end"; "": in place of it
  double limit_seconds = 0;  ///< for all reports, beside the time of the program
};

/// What is wrong with `time`, of the plan's program. Errors: `usage`.
Status check_time(const ReportTime& time, const std::vector<std::string>& program);

/// Starts a report on each rank and compares. With ended.interrupted_by there is no comparison. Errors: as the
/// launcher's render and sys::listen_to; `system` when no rank reported in time.
Result<Verification> verify(const Prepared& prepared, const ReportTime& time,
                            const OtherLines& other);

/// The same with one unbound report per node, before a start. A diagnostic per difference. Where the ranks' environment
/// names a provider or a network plug-in, every node is also asked for it (examine_nodes).
Result<std::vector<Diagnostic>> preflight(const Prepared& prepared, double limit_seconds,
                                          const OtherLines& other);

struct NodesExamined {
  std::vector<Difference> findings;  ///< what.message is the first node's; errors first
  int answered = 0;                  ///< nodes
  int interrupted_by = 0;            ///< signal, 0 for none
};

/// `hpclaunch doctor --node` on each node of the plan, by its launcher. Lines of others go to `other`. `fabric`: as
/// DoctorSubject has it. Errors: as the launcher's render; `system`.
Result<NodesExamined> examine_nodes(const Prepared& prepared, bool fabric, double limit_seconds,
                                    const OtherLines& other);

}  // namespace hpclaunch::job
