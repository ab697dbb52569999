#pragma once
#include <map>
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

/// Compares a finished plan with what the user exported. Empty: nothing to say.
std::vector<Diagnostic> check_plan(const Plan& plan, const EnvSnapshot& env);

// ---- the node that was planned against the one that is there (docs/topology.md, "Drift") -------------

/// One way in which a node is not the one that was planned.
struct Drift {
  std::string
      kind;  ///< "caches", "cpus", "devices", "links", "memory", "nics", "numa", "packages",
             ///< "threads"
  std::string text;  ///< "CPUs 5,69 are not there"
  friend bool operator==(const Drift&, const Drift&) = default;
};

/// What of the found node may be a part only, because the batch system has granted a part: what is
/// missing of it is no drift then.
struct DriftScope {
  bool part_of_cpus = false;
  bool part_of_devices = false;
};

/// Every difference that a plan could feel, CPUs first, links last. What either does not
/// know (empty lists, 0, -1, "") is not judged; names of models, host names, addresses and `allowed` are
/// not compared; memory and cache sizes may differ by an eighth; UUIDs count on one and the same host.
std::vector<Drift> find_drift(const Topology& planned, const Topology& found,
                              DriftScope scope = {});

/// Eight hexadecimal digits, equal for nodes of one make and mode: without names, memory, UUIDs,
/// addresses and what is allowed.
std::string node_fingerprint(const Topology& node);

// ---- the plan against what the ranks report (docs/verify.md) ---------------------------------------

/// What came back from the nodes.
struct Observed {
  std::vector<RankReport> reports;  ///< in the order of their arrival
  std::vector<double> arrivals;     ///< UNIX time here; one per report, or none at all
  std::vector<std::string> names;   ///< of the variables that were fingerprinted
  EnvSnapshot env;                  ///< what the launcher was started with
  /// Addresses of planned hosts, where they were looked up: a node may call itself otherwise.
  std::map<std::string, std::set<std::string>> addresses;
  int garbled = 0;          ///< reports that could not be read
  int launcher_status = 0;  ///< exit status, 128+n for signal n
  bool too_late = false;    ///< the launcher was ended because the time was over
  double limit_seconds = 0;
  bool one_per_node = false;  ///< unbound, before the job: only facts of nodes are compared
};

/// One way in which ranks or nodes are not as planned. Equal ones of several ranks are one.
struct Difference {
  std::string kind;                     ///< kebab-case; docs/verify.md lists them
  Severity severity = Severity::error;  ///< of a preflight: an error keeps the job from starting
  std::vector<int> ranks;               ///< ascending; empty when it is about nodes
  std::vector<int> nodes;               ///< places in Plan::hosts, ascending; empty: the launcher
  std::string planned;
  std::string found;
  std::string cause;  ///< likely
  std::string fix;    ///< what to do; may be empty
};

struct Comparison {
  std::vector<Difference> differences;  ///< by kind, then by the first rank or node
  int ranks_as_planned = 0;
};

/// Names that the ranks are to fingerprint: what the plan sets and removes, and what programs are
/// found by.
std::vector<std::string> names_to_report(const Plan& plan, const EnvSnapshot& env);

/// `node`: what every node was planned as. Time grows with ranks times variables.
Comparison compare(const Plan& plan, const Topology& node, const Observed& seen);

/// Of each kind at most `most`: where there are more, they become one that tells the first and how
/// many others there are.
std::vector<Difference> condense(const std::vector<Difference>& differences, std::size_t most);

/// Whom it is about: "ranks 8-15 on n2", "local rank 3 on 128 nodes", "n7, n9", "the launcher".
std::string where_text(const Plan& plan, const Difference& difference);

/// "1,536"
std::string with_separators(long number);

}  // namespace hpclaunch
