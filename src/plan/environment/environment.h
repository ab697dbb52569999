#pragma once
// The environment of a job: who sets which variable, weakest first, and what the launcher gets by name.
#include <optional>
#include <string>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/devices/units.h"
#include "plan/environment/settings.h"
#include "plan/steps.h"

namespace hpclaunch {

/// Names of --set and --unset. Errors: `usage`.
Status check_names(const Request& request);

/// Sets Plan::env, removed, launcher_only, forward and what rules add. `plan` has its classes and choices.
Status decide_environment(const PlanInput& input, const Facts& facts, const Units& units,
                          Plan& plan);

/// Sets Plan::wire; a report names the checks that it has no room for. Errors: as encode_wire.
Status add_wire(const PlanInput& input, Plan& plan);

/// RANK, WORLD_SIZE and the other names of a rank's identity (docs/reference/identity.md).
void add_identity(const PlanInput& input, const Plan& placed, EnvSettings& settings);

/// What the data has for the program under --agent, and for --for. After everything that it refers to.
void add_program_env(const PlanInput& input, const Plan& placed, EnvSettings& settings);

/// GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME (docs/reference/placement.md). After the profile's rules.
void add_interfaces(const PlanInput& input, const Plan& placed, EnvSettings& settings);

/// --set and --unset.
void add_typed(const Request& typed, EnvSettings& settings);

/// A proxy for HTTP is exported or typed.
bool has_proxies(const PlanInput& input);

/// no_proxy and NO_PROXY on several nodes where a proxy is set: what either names, MASTER_ADDR, and the job's first
/// 512 hosts. After the profile's rules.
void add_proxy_exceptions(const PlanInput& input, const Plan& placed, EnvSettings& settings);

/// The stack in use, as a choice with its reason. nullopt when the profile has none.
/// Errors: `usage` for a stack that there is not.
Result<std::optional<Setting>> decide_stack(const PlanInput& input, const Facts& facts);

/// A decision of a profile's rule, with its id, condition, reason and source.
Decision decided_by_rule(Layer layer, Value value, const std::string& id, const Origin& origin,
                         std::string condition);

/// Facts that are known before ranks are placed.
Facts early_facts(const PlanInput& input, const Units& units, const Counts& counts);

/// Whether ranks that share a device of NVIDIA's do so by MPS; nullopt where none do, or it cannot be. Reports, where
/// it is not used and would help, or was typed in vain.
std::optional<Setting> mps_choice(const PlanInput& input, const Units& units, Plan& plan);

/// The variables and the directory of the daemon, where the choice is "on".
void add_mps(const PlanInput& input, Plan& plan, EnvSettings& settings);

/// What --profile-start needs on every rank, after all rules.
void add_start_profile(const PlanInput& input, Plan& plan, EnvSettings& settings);

/// Adds the facts of placed ranks: min_cores, cores_divide.
void add_placed_facts(const PlanInput& input, const Plan& plan, Facts& facts);

/// The rules that ask for value.NAME, with what every variable is in the end, where `late`; else the others.
/// Adds to `settings` and to everything in `plan` but its env.
void apply_rules(const PlanInput& input, Facts facts, bool late, const Units& units, Plan& plan,
                 EnvSettings& settings);

/// Sets Plan::supervise and Plan::notice, with the choices "supervise" and "signal".
/// Errors: `usage` when --no-supervise was typed and something needs it.
Status decide_supervise(const PlanInput& input, Plan& plan);

/// Sets Plan::inside_step, with the choice "inside-step", where this shell is itself in a step of the job.
void note_step(const PlanInput& input, Plan& plan);

}  // namespace hpclaunch
