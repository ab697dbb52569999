#pragma once
// The invariants of every plan, one function each; invariants.cpp makes the plans.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/request.h"
#include "hpclaunch/scheduler.h"

namespace hpclaunch::authoring {

/// A list that a rule builds, one item for each rank or unit.
struct ListRule {
  std::string rule;
  std::string variable;
  std::string join;
  bool per_unit = false;
};

/// What the plans of one node type have in common.
struct InvariantContext {
  const Profile* profile = nullptr;
  const NodeModel* model = nullptr;
  const Launcher* launcher = nullptr;
  std::vector<ListRule> lists;
  std::map<std::string, std::string> known;  ///< "NAME=value" -> the catalogue's objection, or ""
};

struct Sample {
  const Request* asked = nullptr;
  const Plan* plan = nullptr;
  const Plan* again = nullptr;  ///< planned a second time from the same; nullptr: not done here
  const Launcher* launcher = nullptr;  ///< of a plan for the identity; else the context's
  const EnvSnapshot* env = nullptr;    ///< of such a plan
};

/// Devices of a node, or parts of them, in this device mode.
int units_of(const InvariantContext& context, const std::string& mode);

/// Holds when `violation` returns "".
struct Invariant {
  const char* name;
  const char* what;
  std::string (*violation)(InvariantContext& context, const Sample& one);
  enum class Of {
    plan,      ///< every plan
    pair,      ///< where there is a second plan
    identity,  ///< plans under every launcher, with variables of other launches in the environment
  } of = Of::plan;
};

extern const std::array<Invariant, 13> kInvariants;

/// An environment with every variable by which a rank is known, all with a number that is no rank's, as
/// launches inside launches leave it; `system`: inside one of its jobs, nullptr: outside.
EnvSnapshot misleading_environment(const Scheduler* system);

/// Whether the plan has a diagnostic with this id.
bool reports(const Plan& plan, std::string_view id);

InvariantContext make_context(const Profile& profile, const NodeModel& model,
                              const Launcher& launcher);

}  // namespace hpclaunch::authoring
