#pragma once
// The environment of a job: who sets which variable, weakest first, and what the launcher gets by name.
#include <optional>
#include <string>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/devices/slots.h"
#include "plan/environment/settings.h"
#include "plan/steps.h"

namespace hpclaunch {

/// Names of --set and --unset. Errors: `usage`.
Status check_names(const Request& request);

/// The environment but for its wire, and what else the profile's rules decide.
struct Settled {
  Environment environment;
  std::vector<std::string> args;   ///< launcher flags
  std::vector<std::string> batch;  ///< directives
  Explanation said;
};
Result<Settled> decide_environment(const PlanInput& input, const Facts& facts, const Slots& slots,
                                   const Hosts& hosts, const Placement& placement,
                                   const Supervision& supervision);

/// RANK, WORLD_SIZE and the other names of a rank's identity (docs/reference/identity.md).
/// LauncherTraits::aliases, over what was inherited of another launch.
void add_aliases(const PlanInput& input, const Hosts& hosts, const Placement& placement,
                 EnvSettings& settings);
void add_identity(const PlanInput& input, const Hosts& hosts, const Placement& placement,
                  EnvSettings& settings);

/// What the data has for the program under --agent, and for --for. After everything that it refers to.
void add_program_env(const PlanInput& input, const Slots& slots, const Hosts& hosts,
                     const Placement& placement, EnvSettings& settings);

/// GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME (docs/reference/placement.md). After the profile's rules.
void add_interfaces(const PlanInput& input, int nodes, EnvSettings& settings);

/// --set and --unset.
void add_typed(const Request& typed, EnvSettings& settings);

/// A proxy for HTTP is exported or typed.
bool has_proxies(const PlanInput& input);

/// no_proxy and NO_PROXY on several nodes where a proxy is set: what either names, MASTER_ADDR, and the job's first
/// 512 hosts. After the profile's rules.
void add_proxy_exceptions(const PlanInput& input, const Hosts& hosts, EnvSettings& settings);

/// The stack in use, as a choice with its reason. nullopt when the profile has none.
/// Errors: `usage` for a stack that there is not.
Result<std::optional<Setting>> decide_stack(const PlanInput& input, const Facts& facts);

/// A decision of a profile's rule, with its id, condition, reason and source.
Decision decided_by_rule(Layer layer, Value value, const std::string& id, const Origin& origin,
                         std::string condition);

/// The fact ranks_per_node, which differs between nodes.
void set_ranks_per_node(std::ptrdiff_t ranks, Facts& facts);

/// Facts that are known before ranks are placed.
Facts early_facts(const PlanInput& input, const Slots& slots, const Counts& counts);

/// Whether ranks that share a device of NVIDIA's do so by MPS; nullopt where none do, or it cannot be. Reports, where
/// it is not used and would help, or was typed in vain.
std::optional<Setting> mps_choice(const PlanInput& input, const Slots& slots,
                                  const Placement& placement, std::vector<Diagnostic>& reports);

/// The variables of the daemon; its directory.
std::string add_mps(const PlanInput& input, EnvSettings& settings);

/// What --profile-start needs on every rank, after all rules; its directory.
std::string add_start_profile(const PlanInput& input, EnvSettings& settings);

/// What --stall asks of PyTorch and NCCL, RCCL or XCCL, where devices of theirs are used and nobody has chosen; the
/// directory for dumps and pipes, "" without them.
std::string add_stall(const PlanInput& input, const Slots& slots, EnvSettings& settings);

/// Adds the facts of placed ranks: min_cores, cores_divide.
void add_placed_facts(const PlanInput& input, int nodes, const Placement& placement, Facts& facts);

/// The rules that ask for value.NAME, with what every variable is in the end, where `late`; else the others.
void apply_rules(const PlanInput& input, Facts facts, bool late, const Slots& slots,
                 const Placement& placement, Settled& made, EnvSettings& settings);

/// With the choices "supervise" and "signal". `mps`: hpclaunch starts it. Errors: `usage` when --no-supervise was typed
/// and something needs it.
Result<Made<Supervision>> decide_supervision(const PlanInput& input, bool mps);

/// The choice "inside-step", where this shell is itself in a step of the job.
std::optional<Setting> step_choice(const PlanInput& input);

}  // namespace hpclaunch
