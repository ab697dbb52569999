#pragma once
// The launchers: how each is recognised, and its command line for a plan. Nothing here runs a program.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/grammar.h"
#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/programs.h"

namespace hpclaunch {

/// argv[0] is absolute; passed to execve, never to a shell.
using Argv = std::vector<std::string>;

/// A launcher that was found on this machine.
struct LauncherFacts {
  std::string path;           ///< absolute; a bare name in plans for machines that have the program
  std::string version;        ///< "4.0.2"; "" when unknown
  bool uses_srun = false;     ///< Launcher::uses_srun of the environment
  std::string mpi_type = {};  ///< srun's --mpi for the program's MPI library; "" for the default
  /// In place of ssh: the batch system's Scheduler::remote_start, absolute, and its remote_kind.
  std::string agent = {}, agent_kind = {};
};

/// A text that `PROGRAM --version` prints.
struct VersionText {
  std::string_view part;
  std::optional<std::string_view> before_version;  ///< the version follows it; nullopt: none does
  bool at_start = false;                           ///< of the output
};

/// How a program is recognised, strongest evidence first. Files are named by resolved paths.
struct Recognition {
  std::string_view folder = {};  ///< "/cray/pals/": part of the path; a version follows
  std::vector<VersionText> texts = {};
  std::string_view companion = {};  ///< a program in the same folder that no other launcher brings
  std::vector<std::string_view> name_parts = {};  ///< of the file name; the longest one decides
};

/// One launcher: a row of data and pure functions, defined in src/launcher/NAME.cpp.
struct Launcher {
  std::string_view name;                        ///< as in --launcher and in profiles
  std::vector<std::string_view> programs = {};  ///< to look for on PATH, best first; empty: none
  bool is_hpclaunch = false;  ///< a hidden command of hpclaunch, which runs one of `programs`
  Recognition recognition = {};
  bool shared_names = false;         ///< other launchers' programs have the same names
  bool by_version = false;           ///< its flags depend on the version
  std::string_view rank_mark = {};   ///< set in its ranks and nowhere else; "" for none
  std::string_view step_tasks = {};  ///< has the number of tasks where one of its steps is
  /// Set in its ranks, separated by blanks ("NAME*": all that begin so). Those of another launch mislead
  /// programs and are removed.
  std::string_view rank_variables = {};
  /// What each of its tasks is told, where a batch system's script and tools find the same variables.
  std::vector<IdentityVariables> identity = {};
  /// The same of a launcher whose ranks alone find them; of several names the last one that is set.
  std::vector<IdentityVariables> place = {};
  std::string_view mpi =
      {};  ///< MPI libraries whose ranks find each other: "mpich", "openmpi"; "" none
  std::string_view list_mpi = {};  ///< argument that prints its MPI plug-ins; "": it has none
  std::string_view het_group =
      {};  ///< option for one group of a heterogeneous job, {} is its number
  bool enters_containers = false;              ///< ContainerEngine::srun_option
  std::vector<std::string_view> rereads = {};  ///< words of the program that it takes for its own
  LauncherTraits traits = {};
  /// Makes `traits` those of a version; nullptr where all are alike.
  void (*of_version)(LauncherTraits& traits, std::string_view version) = nullptr;
  std::string_view grammar = {};  ///< of its options; "": takes none
  /// Of the user, with which it starts its helpers by something else than ssh. "": it takes no LauncherFacts::agent.
  std::string_view agent_variables = {};
  bool sorts_hosts = false;  ///< takes "n[1-2]", and orders nodes by itself
  bool strict_step = false;  ///< does not start ranks with CPUs outside of the step
  /// Errors: `unsupported` when the plan needs what this launcher cannot do.
  Result<Argv> (*render)(const Plan&, const LauncherFacts&, const std::string& shim) = nullptr;
  /// By this environment, the launcher starts its helpers on other nodes by srun; nullptr: never.
  bool (*uses_srun)(const EnvSnapshot&) = nullptr;
};

/// All launchers, ascending name.
std::span<const Launcher> launchers();
const Launcher* find_launcher(std::string_view name);

/// `command` as the shim is given it: where `launcher` would read some of its words, these are quoted.
/// {"a.out", ":"} becomes {"-q", "a.out", "%:"}.
std::vector<std::string> quoted_command(const Launcher& launcher, std::vector<std::string> command);

struct LauncherIdentity {
  std::string name;     ///< a launcher's name; never empty
  std::string version;  ///< may be empty
};

/// By what `PROGRAM --version` printed (stdout and stderr); nullopt for unknown text. `real_path` is the
/// program's path with links resolved.
std::optional<LauncherIdentity> identify_launcher(std::string_view real_path,
                                                  std::string_view version_text);

/// By the path alone: a folder, a companion (looked for with `is_executable`), or a name like
/// mpiexec.hydra; nullopt for a name that several launchers use, as mpiexec.
std::optional<LauncherIdentity> identify_launcher_by_path(
    std::string_view real_path, const std::function<bool(const std::string& path)>& is_executable);

/// True for a variable by which some launcher tells its ranks who they are: rank_variables and identity of all.
bool is_rank_variable(std::string_view name);

/// "inside-a-rank": `env` is that of a rank (Launcher::rank_mark).
std::optional<Diagnostic> inside_a_rank(const EnvSnapshot& env);

/// "launcher-arg-clash" for each of Launch::launcher_args that contradicts the plan, in their order; an error
/// where the job cannot run as planned. docs/reference/launchers.md has the table.
std::vector<Diagnostic> arg_clashes(const Plan& plan);

/// `args` without what decides the number of ranks, their nodes and CPUs: for a start with another layout.
std::vector<std::string> without_placement(std::string_view launcher,
                                           std::vector<std::string> args);

// ---- containers -----------------------------------------------------------------------------------------

/// A resource limit as getrlimit(2) has it; -1 for unlimited.
struct ResourceLimit {
  std::string name;
  long long soft = 0, hard = 0;
};

/// What one launch asks of an engine.
struct ContainerUse {
  const ContainerEngine* engine = nullptr;  ///< nullptr: no container
  std::string program;                      ///< absolute; "" where srun enters
  std::string image;
  bool is_directory = false;
  std::vector<std::string> options;                        ///< the site's, or those for devices
  std::vector<std::pair<std::string, std::string>> binds;  ///< source and target
  std::vector<std::string> env;                            ///< names
  std::vector<ResourceLimit> limits;
  bool writes = false;  ///< with ContainerEngine::write
};

/// The words before the shim; without a program, options for srun.
Argv container_words(const ContainerUse& use);

/// Where a text has a variable for the local rank, as PMI_LOCAL_RANK, SLURM_LOCALID or local_rank; npos: nowhere.
std::size_t find_local_rank(std::string_view text);

// ---- requests: options of batch systems and launchers (profiles/programs/requests.json) ------------------

/// Two options that exclude each other, or one that lacks what it needs.
struct BrokenRelation {
  std::string_view id;                   ///< "mem-1"
  std::size_t first = 0;                 ///< index of an option
  std::size_t second = kNone;            ///< index of the other one; kNone: `needed` is missing
  std::vector<std::string> needed = {};  ///< names of which one is needed
  bool ignored = false;                  ///< one of the two is ignored; else the job is refused
  std::string_view since = {};           ///< first version that does so; "" for every supported one
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

/// The rows of one system for options of one place: "job", "step", or "mixed" for those of a job beside those of a step in
/// it. `version`: of the batch system; "" when unknown.
class Relations {
 public:
  Relations(std::string_view system, std::string_view where, std::string_view version = "");
  /// Some row is about it.
  bool concerns(const GivenOption& option) const;
  /// For "mixed" the options from `steps` on are the step's. `has_variable`: is a variable set?
  std::vector<BrokenRelation> broken(
      const std::vector<GivenOption>& options, std::size_t steps = 0,
      const std::function<bool(std::string_view)>& has_variable = nullptr) const;

 private:
  /// An option's name, and what its value, or an item of it, begins with. {"--gres", "gpu"}
  struct Pattern {
    std::string_view option, value;
    bool is(const GivenOption& given) const;
  };
  struct Row {
    std::string_view id, since;
    bool ignored = false;
    bool needs = false;  ///< else an exclusion
    std::vector<Pattern> of, with;
    std::vector<std::string> needed;  ///< names in `with`, one of each
  };
  bool mixed_ = false;
  std::vector<Row> rows_;
};

/// `env` as a job must inherit it that is submitted from inside another one.
EnvSnapshot submission_environment(std::string_view system, const EnvSnapshot& env);

/// By its file name: python3.11, pypy.
bool is_python(std::string_view program);

}  // namespace hpclaunch
