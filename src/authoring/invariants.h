#pragma once
// The laws that every plan obeys, one function each; profile_laws.cpp asks for the plans.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "hpclaunch/launcher.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"

namespace hpclaunch::cli {

/// A list that a rule builds, one item for each rank or unit.
struct ListRule {
  std::string rule;
  std::string variable;
  std::string join;
  bool per_unit = false;
};

/// What does not change between the plans of one kind of node.
struct LawBench {
  const Profile* profile = nullptr;
  const NodeModel* model = nullptr;
  const Launcher* launcher = nullptr;
  std::vector<int> core_of;  ///< by PU; -1 for none
  std::vector<ListRule> lists;
  std::map<std::string, std::string> known;  ///< "NAME=value" -> what the catalogue has against it
};

struct LawCase {
  int ranks = 1;  ///< on each node
  int nodes = 1;
  std::string mode;
  const Plan* plan = nullptr;
  const Plan* again = nullptr;  ///< planned a second time from the same; nullptr: not done here
};

/// A law holds when it returns "".
struct Law {
  const char* name;
  const char* what;
  std::string (*breach)(LawBench& bench, const LawCase& one);
  bool needs_again = false;  ///< asked only where there is a second plan
};

extern const std::array<Law, 9> kLaws;

/// The plan says by itself that ranks are not near their devices.
bool says_far(const Plan& plan);

LawBench make_bench(const Profile& profile, const NodeModel& model, const Launcher& launcher);

}  // namespace hpclaunch::cli
