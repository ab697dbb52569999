#pragma once
// What the launch lines of several launchers have in common.
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/launcher.h"

namespace hpclaunch::launcher {

// The rows of the table; each is defined in the file of its name.
#define HPCLAUNCH_DECLARE(name) extern Launcher name;
HPCLAUNCH_LAUNCHERS(HPCLAUNCH_DECLARE)
#undef HPCLAUNCH_DECLARE

using Names = std::initializer_list<std::string_view>;

/// Linux refuses a longer argument (MAX_ARG_STRLEN is 32 pages).
inline constexpr std::size_t kMaxArgument = 131'000;

/// A launch line under construction. Flags of the profile and of --launcher-arg replace those of the same
/// name; the first error is kept, and returned at the end.
class Line {
 public:
  /// Names below are written as in `grammar`.
  Line(const Plan& plan, Argv start, std::string_view grammar);

  /// Is there a flag of the profile or the user with one of these names?
  /// With `key`, one with "KEY" or "KEY=value" behind it: "-o KEY=v", "-oKEY", "--setopt=KEY=v".
  bool given(Names names, std::string_view key = "") const;

  void add(Argv words) { argv_.insert(argv_.end(), words.begin(), words.end()); }
  /// "-x NAME" for the variables of the plan that other nodes would not get.
  void add_variables();
  /// A given "--bind-to=core" becomes two words, for launchers that refuse the joined one.
  void split_given(Names names);
  void add(Argv words, Names unless);  ///< nothing where one of `unless` is given
  void require(const Status& status);

  /// How a launcher is given many hosts: in one argument, else in the plan's file of hosts.
  struct HostOption {
    std::string_view list;  ///< "--hosts", or "--nodelist=" with the list joined to it
    std::string_view file = {};
    std::string_view hint = {};  ///< where the list is too long; "" for the usual one
    bool with_counts = true;  ///< uneven nodes need the counts, which a file of names does not have
  };
  /// Errors: `unsupported` when the list is too long and no file can replace it.
  void add_hosts(const HostOption& option, const std::string& list);

  /// Errors: `unsupported` where two options of the line, the given ones included, exclude one another.
  void refuse_exclusions(std::string_view system, std::string_view version);

  /// Adds the given flags, `separator` unless empty, the shim and the program.
  /// Errors: `unsupported` for an IPv6 address among the hosts, which all read as a host and a count.
  Result<Argv> finish(const std::string& shim, std::string_view separator = "");

 private:
  const Plan& plan_;
  Argv argv_;
  Grammars grammars_;
  std::vector<std::string> given_;    // the profile's, then the user's
  std::vector<GivenOption> options_;  // in given_
  Status status_ = Done{};
};

using Conflicting = LauncherTraits::ConflictingVariable;
using Preset = LauncherTraits::Preset;

/// `rows` with one name in each, where "A B" are two names of one row.
std::vector<Conflicting> one_by_one(const std::vector<Conflicting>& rows);

/// Adds the variables that the launcher must not inherit, of profiles/programs/requests.json.
void add_inherited(LauncherTraits& traits);

/// The launcher binds, and one list for all nodes has a set for each rank.
bool launcher_binds(const Plan& plan);

/// The CPUs of each local rank as `text`, joined. Only when launcher_binds.
std::string join_sets(const Plan& plan, std::string_view separator,
                      std::string (*text)(const CpuSet&));
std::string cpu_list(const CpuSet& cpus);  ///< "0-3,8"

/// What `text` makes of each host and the number of its ranks, joined by commas.
using HostText = std::function<std::string(std::string_view host, std::size_t ranks)>;
std::string host_texts(const Plan& plan, const HostText& text);
std::string host_list(const Plan& plan);      ///< "a,b"
std::string host_counts(const Plan& plan);    ///< "a:4,b:2": each host with its ranks
std::string host_of_ranks(const Plan& plan);  ///< "a,a,b": the host of each rank in turn

/// Neighbouring nodes with equal numbers of ranks, in node order.
struct Stretch {
  int nodes = 0;
  int ranks = 0;  ///< on each
};
std::vector<Stretch> stretches(const Plan& plan);

/// "4 ranks on each of 2 nodes, then 1 on 1 node"
std::string in_words(const std::vector<Stretch>& layout);

/// Counts near the plan's that every node can have: "-n 3 or -n 6 (1 or 2 ranks on each of 3 nodes)".
std::string even_counts(const Plan& plan);

/// Errors: `unsupported` unless all nodes have equal numbers of ranks, or only the last one fewer.
Status check_filled(const Plan& plan, std::string_view program, std::string_view instead);

/// Errors: `unsupported` unless the ranks are distributed evenly, the first nodes with one more, or round
/// robin over nodes whose granted CPUs are counted.
Status check_even(const Plan& plan, std::string_view program);

/// Of each host its place in the launcher's own order, among the hosts of the launch: as Hosts::places has it, else by name
/// where hosts are listed. Empty: as they stand.
std::vector<int> places_of(const Plan& plan);

/// Evenly, the first nodes with one rank more.
bool is_even(const Plan& plan);

/// Errors: `unsupported` when srun would order the hosts otherwise: rank 0 would not run on the node of
/// the rendezvous.
Status check_order_of_srun(const Plan& plan, std::string_view who, std::string_view instead);

/// The rest of prterun's line, also for the mpirun of Open MPI 5, which is a prterun.
Result<Argv> finish_prrte(const Plan& plan, const LauncherFacts& prterun, Line& line,
                          const std::string& shim);
/// LauncherFacts::agent, where the user names none: "--mca plm_rsh_agent pbs_tmrsh".
void add_mca_agent(const LauncherFacts& mpirun, std::string_view option, std::string_view name,
                   Line& line);
inline constexpr std::string_view kMcaAgents =
    "OMPI_MCA_plm OMPI_MCA_plm_rsh_agent OMPI_MCA_plm_ssh_agent PRTE_MCA_plm "
    "PRTE_MCA_plm_ssh_agent";
LauncherTraits prrte_traits();  ///< as finish_prrte needs them, but for variables for root
/// Words of the program that prterun takes for its own, and mpirun of Open MPI 4 the first one.
std::vector<std::string_view> prrte_rereads();
TerminationPolicy hydra_termination();

}  // namespace hpclaunch::launcher
