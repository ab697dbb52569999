#pragma once
// The Plan: everything that the launch does, decided and explained in advance.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/diagnostic.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/result.h"

namespace hpclaunch {

class EnvSnapshot;

/// The source of a decision, weakest first (docs/reference/plan.md).
enum class Layer {
  batch_system,     ///< what the batch system set by itself: OMP_NUM_THREADS in a PBS job
  builtin,          ///< a default of hpclaunch
  profile_default,  ///< a site's recommendation that yields to the user
  environment,      ///< what the user exported
  profile_require,  ///< a site's requirement
  computed,         ///< follows from the placement: ranks, masks, rendezvous
  command_line,     ///< what was typed
};

std::string_view to_string(Layer layer);

/// A fact of the rank, which the shim writes to the variable as a decimal number.
enum class RankFact {
  rank,        ///< 0..world size-1
  local_rank,  ///< position on its node, from 0
  node,        ///< position of its node in Hosts::names, from 0
  local_size,  ///< ranks on its node
  address,     ///< IPv4 address of the node on the first interface of GLOO_SOCKET_IFNAME; no number
};

std::string_view to_string(
    RankFact fact);  ///< "rank", "local-rank", "node", "local-size", "address"

/// One value per local rank: items[node class][local rank].
struct PerRank {
  std::vector<std::vector<std::string>> items;
  friend bool operator==(const PerRank&, const PerRank&) = default;
};

struct Unset {
  friend bool operator==(const Unset&, const Unset&) = default;
};

using Value = std::variant<Unset, std::string, PerRank, RankFact>;

/// One decision, kept even when a later one overrides it. Of a profile's rule it has the whole origin; of other layers
/// `why` and `where` only: a file and line, "<command line>", "<environment>", or a rule's name.
struct Decision : Origin {
  Decision() = default;
  Decision(Layer by, Value chosen, SourceRef place, std::string reason)
      : layer(by), value(std::move(chosen)) {
    where = std::move(place);
    why = std::move(reason);
  }
  Layer layer = Layer::builtin;
  Value value;
  std::string rule;       ///< id of the profile's rule
  std::string condition;  ///< each test with the fact that met it; "" without tests
};

/// True for a value that the process was started with: the launcher inherits it.
inline bool is_exported(const Decision& one) {
  return one.layer == Layer::environment || one.layer == Layer::batch_system;
}

/// A variable or a choice, with the history of its decisions.
struct Setting {
  std::string name;
  std::vector<Decision> history;  ///< oldest first, never empty; the last one is the value
  const Value& value() const { return history.back().value; }
};

/// nullptr: it is not among them.
const Setting* find(const std::vector<Setting>& settings, std::string_view name);

/// What a rank can get of a node: a device or a part of one. Tile 1 of card 2 under FLAT: {5, 2, 1, "5"}.
struct Slot {
  int unit = -1;           ///< the driver's number of it
  int device = -1;         ///< Device::index; -1: unknown
  int part = -1;           ///< tile, or position in Device::instances; -1: the whole device
  std::string entry = {};  ///< what the vendor's mask holds to reach it
  CpuSet pus = {};         ///< nearest hardware threads; empty when unknown

  /// Tells devices of a job apart: `device`, else the driver's number, below -1. -2: its first one
  int id() const { return device >= 0 ? device : -2 - unit; }
  friend bool operator==(const Slot& a, const Slot& b) {
    return a.unit == b.unit && a.device == b.device && a.part == b.part;
  }
};

/// What one local rank gets.
struct RankPlan {
  CpuSet cpus;       ///< empty: not bound
  int cores = 0;     ///< physical cores in `cpus`, at least 1; a shared core counts as one
  int package = -1;  ///< OS index when all its PUs are in one package; -1 otherwise or unknown
  int numa = -1;     ///< OS index when all its PUs are on one NUMA node; -1 otherwise or unknown
  std::vector<Slot> slots = {};  ///< its devices or parts of them, its first one first
  /// Where only the number of granted CPUs is known: the positions of this rank's cores, from 0, among the
  /// granted cores of its node, in the order of Placement::counted. With `cpus` too these are for nodes that grant all
  /// CPUs of their class, the positions for any other. -1: not used.
  int part_first = -1;
  int part_last = -1;                     ///< inclusive
  std::map<std::string, int> roles = {};  ///< PU of each helper thread of the site's binding
  int nic = -1;  ///< position of the nearest one in Topology::nics; -1 unknown
  /// Of the first unit; -1: none, or unknown.
  int unit() const { return slots.empty() ? -1 : slots.front().unit; }
  int device() const { return slots.empty() ? -1 : slots.front().device; }
  friend bool operator==(const RankPlan&, const RankPlan&) = default;
};

/// The CPUs of all of them.
CpuSet cpus_of(const std::vector<RankPlan>& ranks);

/// Nodes with equal layout.
struct NodeClass {
  std::vector<RankPlan> ranks;  ///< index = local rank; never empty
  int granted = 0;              ///< granted hardware threads on such a node; 0: all, or unknown
  int granted_cores = 0;        ///< the cores that have them; 0 with `granted`
  int grant = 0;                ///< position in PlanInput::grants
  friend bool operator==(const NodeClass&, const NodeClass&) = default;
};

/// `nodes` consecutive nodes of class `node_class`.
struct NodeRun {
  int node_class = 0;  ///< position in Placement::classes
  int nodes = 1;       ///< >= 1
  friend bool operator==(const NodeRun&, const NodeRun&) = default;
};

enum class BindVia {
  launcher,  ///< the launcher binds; the shim compares and rebinds
  shim,      ///< the launcher binds nothing; the shim binds
  none,      ///< ranks are not bound
};

std::string_view to_string(BindVia via);

/// What to do about a rank with other CPUs than planned.
enum class Verify { off, warn, strict };

std::string_view to_string(Verify verify);

/// Where the shim and Python write the times of --profile-start, one file per rank, on each node.
inline constexpr const char* kStartFolder = "HPCLAUNCH_START";
inline constexpr const char* kStartRank = "HPCLAUNCH_START_RANK";

inline constexpr int kLostSeconds = 30;

/// Output of the ranks, and how they are stopped.
struct OutputOptions {
  bool label = false;                     ///< prefix each line with the rank
  std::string log_dir;                    ///< one file per rank below it; "" for none
  double grace_seconds = 30;              ///< between TERM and KILL
  std::string shown_ranks = {};           ///< local ranks whose output is shown, "0,2-3"; "": all
  std::string report = {};                ///< file for the JSON job report; "" for none
  std::optional<int> start_seconds = {};  ///< for every node to start; 0: no limit
  std::optional<int> lost_seconds =
      {};  ///< a node that is silent for so long is lost; nullopt: kLostSeconds
  std::optional<int> end_seconds = {};  ///< for the other ranks, once one has ended with 0
  /// Without a movement of any rank, after which somebody looks who hangs; kLearned; nullopt: nobody looks.
  std::optional<int> stall_seconds = {};
  std::string on_stall = {};  ///< what then comes after the report: "" nothing, "end", "restart"
};

/// --stall auto: the run itself shows how long it is silent.
inline constexpr int kLearned = 0;

/// A signal to every rank before the allocation ends.
struct TimeLimitSignal {
  int signal = 0;       ///< 0: none
  long long at = 0;     ///< UNIX time in seconds
  long long after = 0;  ///< seconds from the start of a job that does not run yet; 0: it runs
  long long ends = 0;   ///< the allocation, UNIX time; 0: unknown
  friend bool operator==(const TimeLimitSignal&, const TimeLimitSignal&) = default;
};

/// Signals that --signal accepts, by their Linux numbers.
struct SignalName {
  std::string_view name;  ///< "USR1"
  int number = 0;
};
inline constexpr SignalName kTimeLimitSignals[] = {{"HUP", kHup},   {"INT", kInt},
                                                   {"QUIT", kQuit}, {"TERM", kTerm},
                                                   {"USR1", kUsr1}, {"USR2", kUsr2}};

/// "SIGUSR1"; "" for a number that is not in kTimeLimitSignals.
std::string time_limit_signal_name(int signal);

/// A rule of the profile that is inactive in this launch.
struct IdleRule {
  std::string variable;
  std::string rule;
  std::string profile;
  SourceRef where;
  std::string needs;  ///< the tests that fail, each with the fact
};

/// A rule that the environment decides where the plan is made, before its job runs: another one may be in the job.
struct OutsideRule {
  std::string rule;
  std::string tests;  ///< of variables, modules and libraries: "env.A is not set"
  bool holds = false;
  bool of_script = false;  ///< has directives of the batch system
};

/// The place of a rank in the plan.
struct RankPlace {
  int rank = 0;
  int node = 0;
  int node_class = 0;
  int local = 0;
  int local_size = 0;
};

/// What `value` is on that rank; "" for Unset.
std::string value_on(const Value& value, const RankPlace& place);

/// The nodes of the launch.
struct Hosts {
  HostNames names;                ///< launch order, each once; never empty
  std::string file;               ///< absolute path, exactly these names, one per line; "" for none
  bool whole_allocation = false;  ///< the job's own list, known to the launcher
  bool invented = false;          ///< they stand for those of a job that does not run yet
  bool later = false;             ///< a shell of that job finds out the rest (hpclaunch/late.h)
  bool first_is_here = false;     ///< hpclaunch runs on the first one
  /// Of each host in the launcher's own order of the job's nodes, {3, 0}; empty: unknown, or as they stand.
  std::vector<int> places = {};
  int available = 1;  ///< so many the plan could have; not in the JSON
  int own =
      -1;  ///< started once per node by somebody else: this node; -1: hpclaunch starts all of them
  std::string own_why = {};  ///< "PET_NODE_RANK=1"

  int count() const { return static_cast<int>(names.size()); }
};

/// Cores that are alike, in the order of the machine: core c has the hardware threads
/// first + c * step + t * stride. "0, 56, 1, 2, 112": core 0 has CPUs 0 and 112, core 1 has 1 and 113.
struct CoreRun {
  int first = 0;
  int cores = 1;
  int step = 1;
  int threads = 1;
  int stride = 1;
  friend bool operator==(const CoreRun&, const CoreRun&) = default;
};

/// Ranks on nodes, and what each of them gets there.
struct Placement {
  std::vector<NodeClass> classes;  ///< never empty
  std::vector<NodeRun> layout;     ///< covers Hosts::names exactly, in order; block distribution
  bool shared_cpus = false;        ///< ranks of a node have CPUs in common
  std::string gpu_view;            ///< "own", "all", "launcher"; "" without devices
  BindVia bind_via = BindVia::shim;
  /// How ranks with a part count the cores that they find; empty: each CPU is one, ascending.
  std::vector<CoreRun> counted = {};
  int cores = 0;  ///< that the job has on all of the nodes together; 0: unknown

  const NodeClass& of(const NodeRun& run) const { return classes[run.node_class]; }
  int world_size() const;
  int max_local_size() const;                       ///< ranks on the fullest node
  bool even() const { return layout.size() == 1; }  ///< every node alike
};

/// What ranks find in their environment and on their node.
struct Environment {
  std::vector<Setting> settings;           ///< ascending name
  std::vector<std::string> removed;        ///< variables that must not reach a rank
  std::vector<std::string> launcher_only;  ///< the launcher's own variables, not expected in ranks
  /// Variables that this launcher must name to pass them on (docs/reference/launchers.md); ascending.
  std::vector<std::string> forward;
  std::string core_limit;              ///< of every rank: bytes, "unlimited", or "" for no change
  std::vector<std::string> make_dirs;  ///< created by the ranks on every node
  std::string wire;                    ///< HPCLAUNCH_PLAN for the shim; "" before encoding
};

/// What is started, and the launcher's command line.
struct Launch {
  std::string launcher;                    ///< name of the launcher
  std::vector<std::string> profile_args;   ///< launcher flags of the profile's rules
  std::vector<std::string> launcher_args;  ///< of --launcher-arg, unchanged
  std::vector<std::string> batch;          ///< batch directives of the profile's rules
  std::string image;                       ///< of the container that the ranks run in; "" for none
  std::string directory;                   ///< where they start inside it; "" for the image's own
  bool beside_steps = false;               ///< other steps of this launcher run on the same nodes
  /// Program and arguments; [0] absolute once resolved; may be empty for reports.
  std::vector<std::string> command;
};

/// Who watches the ranks, and how they end.
struct Supervision {
  Verify verify = Verify::warn;
  OutputOptions output;
  /// The shim waits for the program and reports its exit, and hpclaunch waits for the launcher. Never with
  /// the local launcher, which waits for its ranks itself.
  bool supervise = false;
  bool mps = false;  ///< ranks of a node share devices by NVIDIA's MPS, which hpclaunch starts
  /// Sent by the shim under supervise, or by the local launcher.
  TimeLimitSignal time_limit_signal;
  TerminationPolicy termination;  ///< of the launcher
};

/// Why the plan is what it is, and what to say about it.
struct Explanation {
  std::vector<Setting> choices = {};      ///< counts, binding, launcher, ...
  std::vector<Diagnostic> reports = {};   ///< from rules of the profile and from the planner
  std::vector<IdleRule> idle = {};        ///< for explain; not in the JSON
  std::vector<OutsideRule> outside = {};  ///< not in the JSON
};

/// Each part is made by one step of make_plan and printed by one function of plan_to_json.
struct Plan {
  Hosts hosts;
  Placement placement;
  Environment environment;
  Launch launch;
  Supervision supervision;
  Explanation explanation;

  int nodes() const { return hosts.count(); }
  /// What this hpclaunch starts, number of the first rank and how many: all, or those of Hosts::own. {4, 4}
  std::pair<int, int> own_ranks() const;
  int world_size() const { return placement.world_size(); }
  int max_local_size() const { return placement.max_local_size(); }
  bool even() const { return placement.even(); }
  const Setting* find_env(std::string_view name) const { return find(environment.settings, name); }
  const Setting* find_choice(std::string_view name) const {
    return find(explanation.choices, name);
  }
};

/// The value of a variable on every rank; nullptr where it differs or is not set.
const std::string* everywhere(const Plan& plan, const EnvSnapshot& env, std::string_view name);

/// {"schema": 1, ...}: everything in the Plan, with histories. Ends with a newline. docs/reference/plan.md.
std::string plan_to_json(const Plan& plan);

/// The name says so: HF_TOKEN, WANDB_API_KEY, DB_PASSWORD; not PAD_TOKEN or NUM_TOKENS. For values that are not known.
bool is_secret(std::string_view name);
/// The value is never printed: it looks like a token ("hf_...") or is a URL with a password, or the name says so and the
/// value may be one: no number, switch, "<pad>" or "your_token".
bool is_secret(std::string_view name, std::string_view value);

/// True when a printer must not show this decision: a secret name, and a value that the user gave.
bool is_hidden(std::string_view name, const Decision& decision);

}  // namespace hpclaunch
