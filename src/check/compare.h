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

/// Where a rank, or with `one_per_node` a node, is in the plan; nullopt: it is not.
std::optional<RankPlace> place_of(const Plan& plan, int rank, bool one_per_node = false);

/// Index = rank; index = node with `one_per_node`.
std::vector<RankPlace> seats_of(const Plan& plan, bool one_per_node = false);

/// A fingerprinted variable, as far as it is the same for all ranks.
struct WantedVariable {
  std::string name;
  const Setting* setting = nullptr;  // nullptr: exported; must only be set
  bool removed = false;
  bool ignored = false;
  std::string constant = {};  // its fingerprint
};

/// What is compared, and what needs all reports to be known.
struct Job {
  const Plan& plan;
  const Topology& node;
  const Observed& seen;
  std::vector<RankPlace> seats = seats_of(plan, seen.one_per_node);
  std::vector<WantedVariable> wanted = {};             // as Observed::names
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
  const RankReport& report;
  Differences& out;

  const RankPlan& planned() const { return ranks[static_cast<std::size_t>(seat.local)]; }
  /// A placement variable that is set there; nullptr for none.
  const std::string* value(const std::string& name) const;
  /// These take what different() takes.
  void rank_differs(auto&&... texts) const {
    out.add(different(std::forward<decltype(texts)>(texts)...), seat.node,
            job.seen.one_per_node ? -1 : report.rank);
  }
  void node_differs(auto&&... texts) const {
    out.add(different(std::forward<decltype(texts)>(texts)...), seat.node);
  }
};

void compare_rank(const Subject& at);
void compare_devices(const Subject& at);
void compare_node(const Subject& at);

/// The clocks of all nodes.
void compare_clocks(const Job& job, Differences& out);

}  // namespace hpclaunch::check
