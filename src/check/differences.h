#pragma once
// Collects differences, so that equal ones of several ranks or nodes become one.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "hpclaunch/check.h"

namespace hpclaunch::check {

/// What makes two differences equal, apart from whom they are about.
struct Text {
  std::string kind;
  Severity severity = Severity::error;
  std::string planned;
  std::string found;
  std::string cause;
  std::string fix;
  auto key() const { return std::tie(kind, severity, planned, found, cause, fix); }
  friend bool operator<(const Text& a, const Text& b) { return a.key() < b.key(); }
};

class Differences {
 public:
  void of_rank(int rank, int node, Text text);
  void of_node(int node, Text text);
  /// Sorted as Comparison has them.
  std::vector<Difference> finish() &&;

 private:
  struct Whom {
    std::vector<int> ranks;
    std::vector<int> nodes;
  };
  std::map<Text, Whom> found_;
};

/// Where a rank stands in the plan.
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

/// The expected fingerprints of every rank, worked out as far as possible once.
class Variables {
 public:
  Variables(const Plan& plan, const Observed& seen);
  void compare(const Seat& seat, const RankReport& report, Differences& out) const;

 private:
  struct Wanted {
    std::string name;
    const Setting* setting = nullptr;  // nullptr: exported, and looked at for being there only
    bool removed = false;
    bool ignored = false;
    std::string constant;  // its fingerprint
  };
  const Plan& plan_;
  std::vector<Wanted> wanted_;
};

/// Facts of nodes, clocks among them.
void compare_nodes(const Plan& plan, const Topology& node, const Observed& seen,
                   const std::vector<Seat>& seats, Differences& out);

/// Which machine each planned host turned out to be.
void compare_hosts(const Plan& plan, const Observed& seen, const std::vector<Seat>& seats,
                   Differences& out);

}  // namespace hpclaunch::check
