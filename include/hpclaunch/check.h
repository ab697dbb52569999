#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/rank_report.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

/// Compares a finished plan with its node and with what the user exported.
std::vector<Diagnostic> check_plan(const Plan& plan, const Topology& node, const EnvSnapshot& env);

// ---- the planned node against the live one (docs/reference/topology.md, "Drift") -------------------------------

/// What the live node may lack because the batch system granted only a part of the node.
struct DriftScope {
  bool part_of_cpus = false;
  bool part_of_devices = false;
};

/// Every difference that can affect a plan, CPUs first, links last. Diagnostic::id is one of "caches",
/// "cpus", "devices", "links", "memory", "nics", "numa", "packages", "threads". What either node does not
/// know (empty lists, 0, -1, "") is not compared, nor are names of models, host names, addresses and
/// `allowed`; memory and cache sizes may differ by an eighth; UUIDs count on one and the same host.
std::vector<Diagnostic> find_drift(const Topology& planned, const Topology& found,
                                   DriftScope scope = {});

/// Eight hexadecimal digits, equal for nodes of one make and mode: without names, memory, UUIDs,
/// addresses and `allowed`.
std::string node_fingerprint(const Topology& node);

// ---- the plan against the ranks' reports (docs/reference/verify-checks.md) --------------------------------------------

/// What came back from the nodes.
struct Observed {
  std::vector<RankSeen> reports;  ///< in the order of their arrival
  std::vector<double> arrivals;   ///< UNIX time here; one per report, or none at all
  EnvSnapshot env;                ///< of the launcher
  RankReport usual;               ///< what most ranks have in common beside the plan
  bool counts_locals = false;     ///< the launcher has a variable for local ranks
  std::string module;             ///< that Python imported first; "" for none
  std::string after;              ///< seconds of the program, or "end"; "": before its start
  /// Addresses of planned hosts that were looked up: a node may use another name for itself.
  std::map<std::string, std::set<std::string>> addresses;
  int garbled = 0;          ///< reports that could not be read
  int launcher_status = 0;  ///< exit status, 128+n for signal n
  bool too_late = false;    ///< the launcher was stopped at the time limit
  double limit_seconds = 0;
  bool one_per_node = false;  ///< unbound, before the job: only facts of nodes are compared
};

/// A program that was started with --after has failed on some rank: so does the launcher.
bool program_failed(const Observed& seen);

/// How ranks or nodes differ from the plan. Equal differences of several ranks are one.
struct Difference {
  /// id: the kind (docs/reference/verify-checks.md); message: the likely cause; severity: of a preflight, where an error
  /// keeps the job from starting.
  Diagnostic what;
  std::string planned;
  std::string found;
  std::vector<int> ranks = {};  ///< ascending; empty when it is about nodes
  std::vector<int> nodes = {};  ///< positions in Hosts::names, ascending; empty: the launcher
};

struct Comparison {
  std::vector<Difference> differences;  ///< by kind, then by the first node and rank
  int ranks_as_planned = 0;
  bool as_planned() const;  ///< no difference but notes
};

/// Names that the ranks compare: what the plan sets and removes, and search paths of programs.
std::vector<std::string> names_to_report(const Plan& plan, const EnvSnapshot& env);

/// True for variables that are removed for the launcher only: ranks may have them.
bool is_for_launcher(const Setting& setting);

/// Index = rank; with `one_per_node` the one rank of each node: index = node.
std::vector<RankPlace> rank_places(const Plan& plan, bool one_per_node = false);

/// The report of the rank at `place`, with all that it leaves out.
RankReport complete(const Plan& plan, const Observed& seen, const RankPlace& place,
                    const RankReport& brief);

/// `node`: every node as planned. Time grows with ranks times variables.
Comparison compare(const Plan& plan, const Topology& node, const Observed& seen);

/// Of each kind at most `most`; more of them become one, with the first values and the number of others.
std::vector<Difference> condense(const std::vector<Difference>& differences, std::size_t most);

/// "ranks 8-15 on n2", "local rank 3 on 128 nodes", "n7, n9", "the launcher".
std::string where_text(const Plan& plan, const Difference& difference);

}  // namespace hpclaunch
