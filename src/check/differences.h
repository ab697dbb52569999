#pragma once
// Collects differences, so that equal ones of several ranks or nodes become one.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "hpclaunch/check.h"

namespace hpclaunch::check {

/// `cause` is the likely one.
Difference different(std::string kind, std::string planned, std::string found, std::string cause,
                     std::string fix, Severity severity = Severity::error);

class Differences {
 public:
  void of_rank(int rank, int node, Difference one);
  void of_node(int node, Difference one) { found_[std::move(one)].nodes.push_back(node); }
  /// Sorted as Comparison has them.
  std::vector<Difference> finish() &&;

 private:
  struct Places {
    std::vector<int> ranks;
    std::vector<int> nodes;
  };
  struct Before {
    bool operator()(const Difference& a, const Difference& b) const;
  };
  std::map<Difference, Places, Before> found_;  // keys without places
};

/// The place of a rank in the plan.
struct Seat {
  int node = 0;
  int node_class = 0;
  int local = 0;
  int local_size = 0;
};

/// Index = rank.
std::vector<Seat> seats_of(const Plan& plan);

// The parts of compare(). Each looks at one report; `seat` is its rank's.
void compare_cpus(const Plan& plan, const Seat& seat, const RankReport& report, Differences& out);
void compare_import(const Plan& plan, const RankReport& report,
                    const std::vector<std::string>& names, int node, Differences& out);
void compare_memory(const Plan& plan, const Seat& seat, const RankReport& report, Differences& out);
void compare_devices(const Plan& plan, const Topology& node, const EnvSnapshot& env,
                     const Seat& seat, const RankReport& report, Differences& out);
void compare_core_limit(const Plan& plan, const RankReport& report, int node, Differences& out);

/// The expected fingerprints of every rank, as far as possible computed once.
class Variables {
 public:
  Variables(const Plan& plan, const Observed& seen);
  void compare(const Seat& seat, const RankReport& report, Differences& out) const;

 private:
  struct Wanted {
    std::string name;
    const Setting* setting = nullptr;  // nullptr: exported; must only be set
    bool removed = false;
    bool ignored = false;
    std::string constant;  // its fingerprint
  };
  const Plan& plan_;
  std::vector<Wanted> wanted_;
};

/// Facts of nodes, and their clocks.
void compare_nodes(const Plan& plan, const Topology& node, const Observed& seen,
                   const std::vector<Seat>& seats, Differences& out);

/// The name of each node.
void compare_hosts(const Plan& plan, const Observed& seen, const std::vector<Seat>& seats,
                   Differences& out);

}  // namespace hpclaunch::check
