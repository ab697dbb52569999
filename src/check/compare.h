#pragma once
// The parts of compare(): one report against its part of the plan. Each difference is one row: what was
// planned, what was found, the likely cause and the fix.
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hpclaunch/check.h"

namespace hpclaunch::check {

/// `cause` is the likely one.
Difference different(std::string kind, std::string planned, std::string found, std::string cause,
                     std::string fix, Severity severity = Severity::error);

/// Collects differences, so that equal ones of several ranks or nodes become one.
class Differences {
 public:
  /// `rank` -1: it is about the node.
  void add(const Difference& one, int node, int rank = -1);
  int added() const { return added_; }
  /// Sorted as Comparison has them.
  std::vector<Difference> finish() &&;

 private:
  using Key = std::tuple<std::string, Severity, std::string, std::string, std::string, std::string>;
  std::map<Key, Difference> found_;
  int added_ = 0;
};

/// What is compared, and what needs all reports to be known.
struct Job {
  const Plan& plan;
  const Topology& node;
  const Observed& seen;
  std::vector<RankPlace> seats = rank_places(plan, seen.one_per_node);
  std::set<std::string> hosts = {};                    // short names of the planned nodes
  std::map<std::string, const NodeFacts*> facts = {};  // by the node's own name
  std::vector<const NodeFacts*> facts_of = {};         // by node
};

/// One report, and what was planned for its rank.
struct Subject {
  const Job& job;
  const Plan& plan;
  const RankPlace& seat;
  const std::vector<RankPlan>& ranks;  // of its node
  const std::string& host;             // as the rank names it
  const RankReport& report;
  Differences& out;

  const RankPlan& planned() const { return ranks[static_cast<std::size_t>(seat.local)]; }
  /// A placement variable that is set there; nullptr for none.
  const std::string* value(const std::string& name) const;
  /// These take what different() takes.
  void rank_differs(auto&&... texts) const {
    out.add(different(std::forward<decltype(texts)>(texts)...), seat.node,
            job.seen.one_per_node ? -1 : seat.rank);
  }
  void node_differs(auto&&... texts) const {
    out.add(different(std::forward<decltype(texts)>(texts)...), seat.node);
  }
};

/// Programs or their libraries are found by it. Launchers and nodes add to these, so they are only expected to be there.
bool is_search_path(std::string_view name);

/// Why something differs, probably.
struct Reason {
  std::string cause;
  std::string fix;
};

/// OpenMP settings of the rank that bind threads.
struct OpenMpBinding {
  std::string settings;  ///< "OMP_PLACES=cores, OMP_PROC_BIND=true"; "" for none
  std::string fix;
};
OpenMpBinding openmp_binding(const Subject& at);

void compare_rank(const Subject& at);
void compare_running(const Subject& at);
void compare_devices(const Subject& at);
void compare_node(const Subject& at);

/// The clocks of all nodes.
void compare_clocks(const Job& job, Differences& out);

}  // namespace hpclaunch::check
