#pragma once
// Profiles: what a site recommends, as data. docs/reference/profile-format.md is the manual, src/profile/fields.h
// the list of keys. Pure: nothing here reads a file or asks the machine, and nothing in a profile is executed.
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/env.h"
#include "hpclaunch/golden_case.h"
#include "hpclaunch/request.h"
#include "hpclaunch/result.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

// ---- conditions and facts --------------------------------------------------------------------------

/// One test of one fact. Operators that compare order take both sides as whole numbers, or, where one
/// is a dotted version, part by part. A fact that is not set passes `is_unset`, `ne` and `unlike` only.
struct Test {
  enum class Op { eq, ne, lt, le, gt, ge, like, unlike, is_set, is_unset };
  std::string fact;
  Op op = Op::eq;
  std::vector<std::string> values;  ///< eq, like: any of them; ne, unlike: none; order: exactly one
};

using When = std::vector<Test>;  ///< all must hold; empty: always

/// A name that conditions and ${...} may use; docs/reference/profile-format.md has their meanings.
struct FactInfo {
  enum class Scope {
    job,    ///< the same for every rank
    rank,   ///< one per rank; for values, not for conditions
    group,  ///< any name that begins with `name`, which ends in '.'
    late,   ///< as group, and known only when the environment is folded: value.NAME
  };
  enum class Kind { text, version, word /* one of `words` */, number, count /* from 1 */ };
  enum class Known { node, stack, binding, rule };  ///< the first conditions that find it set
  std::string_view name;
  Scope scope;
  Kind kind = Kind::text;
  Known known = Known::stack;
  std::span<const std::string_view> words = {};
};

std::span<const FactInfo> known_facts();           ///< ascending name
const FactInfo* find_fact(std::string_view name);  ///< nullptr: there is none; also for "env."

using TextMap = std::map<std::string, std::string, std::less<>>;

/// Facts by name. A look-up falls through: rank facts, job facts, then the groups.
struct Facts {
  TextMap job, rank;                 ///< rank: of one, usually empty
  TextMap modules;                   ///< module.NAME: version, "" without one
  TextMap values;                    ///< value.NAME: what NAME is in the plan
  const EnvSnapshot* env = nullptr;  ///< env.NAME
  bool late = false;                 ///< in values ${env.NAME} is a stand-in (hpclaunch/late.h)

  std::optional<std::string> find(std::string_view name) const;
};

/// Name and version of each module in LOADEDMODULES ("a/1.2:b"); a name that comes again keeps the last.
/// "a/b/1.2" is a with version b/1.2, and also a/b with version 1.2.
TextMap loaded_modules(const EnvSnapshot& env);

bool holds(const Test& test, const Facts& facts);
bool holds(const When& when, const Facts& facts);  ///< tests of value.NAME included
bool is_late(const When& when);                    ///< asks for value.NAME
std::string when_text(const When& when);  ///< "nodes > 16, stack = a or b"; "" for no tests

/// "nodes = 32 > 16, stack = a": each test with the fact that met it, for explain.
std::string met(const When& when, const Facts& facts);

/// "nodes > 16, and it is 16": each test that fails, with the fact; "" when all hold.
std::string unmet(const When& when, const Facts& facts);

/// A value with ${fact} in it; `$$` is one '$'.
struct Template {
  std::string text;
  /// Repeats `text` and joins the results: `rank` once per local rank, `unit` once per device that a
  /// rank can get, with ${unit} counting from 0; `once`: no repetition.
  enum class Each { once, rank, unit } each = Each::once;
  std::string join;
  friend bool operator==(const Template&, const Template&) = default;
};

std::vector<std::string> facts_in(const Template& value);  ///< in order, each once

/// One expansion of `text`. Errors: `invalid`, naming the fact that is not set.
Result<std::string> expand(std::string_view text, const Facts& facts);

// ---- the parts of a profile ------------------------------------------------------------------------

struct ServiceCores {
  std::string name;
  CpuSet pus;
  std::string why;
  std::vector<When> when;  ///< the job uses it when one of them holds; empty: always
};

/// Nodes that jobs share: what a job on a part of one asks for. A model without has nodes that are given whole.
struct Share {
  int cores = 0;            ///< per device; 0: jobs have all devices of a node
  bool exact = false;       ///< a job with devices gets no other number of cores
  long memory_mb = 0;       ///< per device; 0: not asked for
  long core_memory_mb = 0;  ///< per core of a job without devices; 0: not asked for
  std::vector<int> counts;  ///< devices that a part may have; empty: any number
};

struct NodeModel {
  std::string name;
  std::string doc;
  int count = 0;      ///< nodes of this kind at the site; 0 unknown
  Topology topology;  ///< `allowed` is everything but `reserved`
  CpuSet reserved;    ///< PUs reserved for the system
  std::string reserved_why;
  std::vector<ServiceCores> services;  ///< used by a service only while it runs
  bool live = false;  ///< locality is not published: inside a job the node itself is asked
  std::optional<Share> share;
  When when;  ///< chosen when it holds and --node-type was not typed
  Origin origin;
};

/// The environment modules that make a stack: words of `module` and conda, never executed as anything else.
struct Modules {
  bool purge = false;             ///< `module purge` first
  std::vector<std::string> use;   ///< directories
  std::vector<std::string> load;  ///< "rocm/7.1.1", in this order
  std::string conda;              ///< environment to activate; "" none
};

/// "module load x", "conda activate y": lines of sh.
std::vector<std::string> module_lines(const Modules& modules);

struct Stack {
  std::string name;
  std::string doc;
  std::vector<When> when;  ///< chosen when one of them holds and --stack was not typed
  Modules modules;
  Origin origin;
};

struct DeviceMode {
  std::string name;
  std::string doc;
  bool subdevices = false;  ///< a rank's unit is a sub-device (tile), else a whole device
  std::string mask;         ///< variable; "" for the vendor's own
  std::string mask_item;    ///< template of one entry; "" for ${unit}
  Origin origin;
};

/// The cores of each rank by rule. Offsets count cores from the first core of the rank's group,
/// reserved cores included.
struct Binding {
  std::string id;
  When when;
  enum class Per { node, package, numa, l3 } per = Per::package;
  int first = 0;
  int stride = 1;
  int at_least = 0;                  ///< base = max(at_least, first + stride * i)
  std::vector<std::vector<int>> at;  ///< explicit bases, one list for all groups or one per group
  bool split = false;       ///< cores from `first` on are shared evenly; stride and cores unused
  bool across = false;      ///< split; each rank gets its share of every group
  int low = 0, high = 0;    ///< the rank's cores: base+low .. base+high
  bool siblings = false;    ///< all hardware threads of the cores, else the first ones
  std::vector<int> groups;  ///< order of groups by OS index or position; empty: as they stand
  bool interleave = false;  ///< rank i goes to group i mod groups
  struct Role {             ///< cores for helper threads: ${role.NAME}
    std::string name;
    bool from_base = true;  ///< offset counts from the rank's base, else first + stride * i
    int first = 0;
    int stride = 0;
  };
  std::vector<Role> roles;
  Origin origin;
};

struct Assignment {
  std::string name;
  Template value;
};

struct Report {
  std::string severity;  ///< "note", "warning", "error"
  std::string message;   ///< template
  std::string fix;
};

struct Rule {
  std::string id;
  When when;
  std::vector<Assignment> defaults;  ///< yield to what was exported
  std::vector<Assignment> require;   ///< override what was exported
  std::vector<Assignment> prepend;   ///< put before what was exported, ':' between
  std::vector<std::string> unset;    ///< removed, also when exported
  std::map<std::string, std::vector<std::string>> launch;  ///< launcher -> its flags (templates)
  std::map<std::string, std::vector<std::string>> batch;   ///< scheduler -> directives of the job
  std::optional<std::string> core_limit;  ///< "0", a number of bytes, or "unlimited"
  std::vector<std::string> make_dirs;     ///< templates; made on every node by the ranks
  std::optional<Report> report;
  /// By variable or kind of action, in place of origin.why: {"NCCL_NET": "...", "make_dirs": "..."}
  TextMap whys;
  TextMap disputes;  ///< the same of origin.disputed; not each has one
  Origin origin;
};

/// What a rule sets, prepends or unsets.
std::vector<std::string> variables_of(const Rule& rule);

/// `rule.origin` with the words about one of its variables, or about "launch", "batch", "core_limit" or "make_dirs".
Origin origin_of(const Rule& rule, std::string_view action);

struct Signal {
  std::string env;     ///< variable whose value is matched; "" for a host name
  std::string like;    ///< fnmatch(3) pattern; letter case counts for variables, not for hosts
  bool proves = true;  ///< false: supports a proof, and is not one (names that several sites share)
};

struct Retirement {
  std::string date;       ///< YYYY-MM-DD
  std::string successor;  ///< name of a profile; may be empty
  Origin origin;
};

struct Note {
  std::string id;
  std::string title;
  std::string text;
  Origin origin;
};

/// The names of nodes, stacks, device modes or the like.
template <class Entry>
std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

/// nullptr: none has this name.
template <class Entry>
const Entry* find_named(const std::vector<Entry>& entries, std::string_view name) {
  for (const Entry& entry : entries)
    if (entry.name == name) return &entry;
  return nullptr;
}

/// A queue (partition, QOS) and the jobs that it takes. Several entries may have one name: a larger job, another limit.
struct Queue {
  std::string name;
  std::string option;  ///< that names it, as in "-q"; "" for the batch system's own
  int least_nodes = 1, most_nodes = 0;       ///< most: 0 for no limit
  long least_seconds = 0, most_seconds = 0;  ///< most: 0 for no limit
  std::vector<std::string> node_types;       ///< for jobs on one of these alone; empty: on any
  std::optional<Share> share;                ///< of jobs that name it, in place of the node's
  Origin origin;
};

/// What the site asks of every batch job, beside the "batch" directives of rules.
struct JobNeeds {
  std::string account;      ///< stands for the account, which is mandatory; "": there is a default
  std::string filesystems;  ///< of a job that names none
  std::string constraint;
  std::string local;          ///< template: a disk of each node, for --stage
  std::vector<Queue> queues;  ///< the first that fits is taken; inherited as one list
};

/// Without the queues for other node types.
JobNeeds needs_on(const JobNeeds& job, std::string_view node_type);
bool takes(const Queue& queue, int nodes, long seconds);
/// "2-256 nodes, 5 min to 1 h"
std::string limits_text(const Queue& queue);

/// The first queue that takes such a job; nullptr where the profile lists none. Errors: `usage` with all limits and the
/// nearest job that fits.
Result<const Queue*> choose_queue(const JobNeeds& job, int nodes, long seconds);

struct Profile {
  std::string name;
  std::string doc;
  bool part = false;  ///< a building block: never matched, only extended
  std::vector<std::string> extends;
  std::optional<Retirement> retired;
  std::vector<Signal> detect;
  std::string launcher;                 ///< launcher; "" for any
  std::string scheduler;                ///< one of scheduler_names(); "" unknown
  std::optional<bool> lsf_launch_node;  ///< a job's first host runs no ranks; nullopt: not said
  JobNeeds job;
  std::string example_host;  ///< a compute node as the batch system names it; "" not said
  int ranks_per_device = 0;  ///< 0: not said
  std::string gpu_view;      ///< "own", "all", "launcher"; "" not said
  std::string device_mode;   ///< the default one; "" for the first
  std::string stack;         ///< the default one; "" for the first
  std::string mps;           ///< NVIDIA's MPS where ranks share a device: "on", "off"; "" not said
  std::string fill;  ///< devices of fewer ranks than devices: "spread", "compact"; "" not said
  std::vector<NodeModel> nodes;  ///< the first is the default
  std::vector<Stack> stacks;
  std::vector<DeviceMode> device_modes;
  std::vector<Binding> bindings;  ///< the last that holds and fits is used
  std::vector<Rule> rules;        ///< all that hold, in order; later ones override earlier ones
  std::vector<Note> notes;
  std::vector<SiteContainer> containers;  ///< the first engine that is there is used
  std::vector<Case> expect;               ///< own cases only: they are not inherited
  SourceRef where;
  /// By JSON pointer: names of other profiles, and of defaults, for errors that need those profiles.
  std::map<std::string, SourceRef> places;

  const Stack* find_stack(std::string_view wanted) const { return find_named(stacks, wanted); }
  const DeviceMode* find_mode(std::string_view wanted) const {
    return find_named(device_modes, wanted);
  }
  const NodeModel* find_node(std::string_view wanted) const { return find_named(nodes, wanted); }
};

/// The contents of a text, and every problem in it (each with file, line, column and pointer).
/// With problems the profile is what could be read, and must not be used to launch.
struct ParsedProfile {
  Profile profile;
  std::vector<Error> problems;
};

/// Of network interfaces (docs/reference/topology.md), best first.
inline constexpr std::array<std::string_view, 6> kNicKinds = {"slingshot", "efa",  "infiniband",
                                                              "omni-path", "roce", "ethernet"};

bool is_pci_address(std::string_view text);  ///< "0000:18:00.0", as profiles write it

/// Letters, digits, '-' and '.', and what the command line takes for a name.
bool is_profile_name(std::string_view text);

/// Golden cases are for `profile test`: a start does not need them, nor that they are correct.
enum class Cases { read, skip };

/// One file by itself: syntax, closed schema, types, known facts and operators, ids unique, templates
/// well formed. JSON with `//` comments. Never throws; texts above 1 MiB are a problem.
ParsedProfile parse_profile(std::string_view text, const std::string& file,
                            Cases cases = Cases::read);

/// Finds another profile by name. Errors: `not_found` with a suggestion.
using ProfileLookup = std::function<Result<Profile>(const std::string& name)>;

/// The profile with what it extends merged in, left to right, its own last: entries of a list with the
/// same id or name are replaced whole, in place. `extends` is kept for display.
/// Errors: `invalid` for a cycle or more than four levels; those of `find`; a default mode, stack or
/// retirement successor that does not exist.
Result<Profile> resolve_profile(Profile profile, const ProfileLookup& find);

/// A parsed profile without its golden cases, as bytes for this program: compact, lossless.
std::string pack_profile(const Profile& profile);
Profile unpack_profile(std::string_view bytes);  ///< that pack_profile wrote

/// A Signal, compiled into the program.
struct BuiltinSignal {
  std::string_view env, like;
  bool proves = true;
};

/// Compiled into the program.
struct BuiltinProfile {
  std::string_view name;
  std::string_view file;                  ///< "builtin:profiles/site/NAME.json"
  std::string_view text;                  ///< the file, byte for byte
  std::string_view parsed;                ///< the profile in it, for unpack_profile
  std::span<const BuiltinSignal> detect;  ///< those of the file; none for parts
};

std::span<const BuiltinProfile> builtin_profiles();  ///< ascending name

// ---- which site is this? ---------------------------------------------------------------------------

struct SiteSignals {
  std::string profile;
  std::vector<Signal> detect;
};

/// The signals of a site that match.
struct SiteMatch {
  std::string profile;
  std::vector<std::string> proofs;   ///< "PBS_JOBID=1.x.example matches *.example", best first
  std::vector<std::string> support;  ///< the same for signals that prove nothing by themselves
};

/// The site that is proved; empty when none is, or more than one.
struct Detection : SiteMatch {
  std::vector<SiteMatch> rivals;  ///< those that are proved, where that is not one
  std::vector<SiteMatch> hints;   ///< supported only
};

/// `hosts`: names of this machine and of the job's nodes; any that matches will do.
Detection detect_site(std::span<const SiteSignals> sites, const EnvSnapshot& env,
                      std::span<const std::string> hosts);

}  // namespace hpclaunch
