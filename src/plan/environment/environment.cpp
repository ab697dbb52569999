#include "plan/environment/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "hpclaunch/text.h"
#include "plan/devices/visibility.h"

namespace hpclaunch {

namespace {

constexpr const char* kLeader = "OMP_NUM_THREADS";

// Thread counts follow the cores of the rank. The libraries that read a name of their own follow
// OMP_NUM_THREADS where the user has set that, since their own name would beat it.
// Source for NumExpr: it raises when NUMEXPR_NUM_THREADS exceeds NUMEXPR_MAX_THREADS (64 by default),
// so both are set. numexpr/utils.py, read 2026-08.
void add_threads(EnvSettings& settings, const PlanInput& input, const Placement& placement) {
  constexpr std::array kOthers = {"BLIS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS",
                                  "NUMEXPR_NUM_THREADS", "OPENBLAS_NUM_THREADS"};
  Value leader = constant_or_per_rank(
      per_rank(placement, [](const RankPlan& rank) { return std::to_string(rank.cores); }));
  settings.add(kLeader, Layer::builtin, leader,
               placement.bind_via == BindVia::none
                   ? "one thread per core of an equal share of the node"
                   : "one thread per core that the rank is bound to");

  std::string typed = input.of_batch.contains(kLeader) ? "" : input.env.get(kLeader);
  for (const TypedVariable& one : input.request->set)
    if (one.name == kLeader) typed = one.value;
  std::string why = "one thread per core, as OMP_NUM_THREADS";
  // A list is one number per nesting level; the outermost is what a library's own threads compare to.
  const std::string_view outer = split(typed, ',').front();
  if (parse_natural(trim(outer)).value_or(0) > 0) {
    leader = std::string(trim(outer));
    why = "as the given OMP_NUM_THREADS";
  }
  for (const char* name : kOthers) settings.add(name, Layer::builtin, leader, why);
}

// What was exported or typed wins here: a script that names its rendezvous means it.
void add_rendezvous(EnvSettings& settings, const PlanInput& input) {
  const Rendezvous& rendezvous = input.rendezvous;
  if (!rendezvous.address.empty())
    settings.add("MASTER_ADDR", Layer::builtin, rendezvous.address, rendezvous.address_why);
  // Gloo looks up the host name to find its interface, and some machines' names cannot be resolved.
  if (rendezvous.address == "127.0.0.1" && input.own < 0)
    settings.add("GLOO_SOCKET_IFNAME", Layer::builtin, std::string("lo"),
                 "all ranks are on this machine; loopback does not depend on the host name");
  if (rendezvous.port != 0)
    settings.add("MASTER_PORT", Layer::builtin, std::to_string(rendezvous.port),
                 rendezvous.port_why);
  if (rendezvous.own_address) {
    settings.add("MASTER_ADDR", Layer::command_line, rendezvous.address, rendezvous.address_why);
  } else {
    settings.keep_export("MASTER_ADDR");
  }
  settings.keep_export("MASTER_PORT");
  if (!input.request->master_addr.empty() && !rendezvous.own_address)
    settings.add("MASTER_ADDR", Layer::command_line, input.request->master_addr, "--master-addr");
  if (input.request->master_port)
    settings.add("MASTER_PORT", Layer::command_line, std::to_string(*input.request->master_port),
                 "--master-port");
}

bool matches(const LauncherTraits::ConflictingVariable& one, const std::string& name) {
  return one.prefix ? name.starts_with(one.name) : one.name == name;
}

// What the launcher itself reads: variables that conflict with its command line are removed, and what
// has no option there is set.
void add_launcher(EnvSettings& settings, const PlanInput& input, const Placement& placed) {
  for (const LauncherTraits::ConflictingVariable& variable : input.launcher.conflicting) {
    if (variable.shapes_step && placed.gpu_view == "launcher") continue;
    const auto is_set = [&](const std::string& name) { return input.env.has(name); };
    const bool always = variable.beside.empty() && variable.without.empty();
    if (!always && std::ranges::none_of(variable.beside, is_set) &&
        std::ranges::all_of(variable.without, is_set))
      continue;
    for (const auto& [name, value] : input.env.values()) {
      if (!matches(variable, name)) continue;
      Decision removed = decided(Layer::computed, Unset{}, variable.why);
      if (variable.of_batch) removed.where = kBatchSystem;
      settings.add(name, std::move(removed));
    }
  }
  using Preset = LauncherTraits::Preset;
  for (const Preset& preset : input.launcher.presets)
    if (preset.when == Preset::always ||
        (preset.when == Preset::as_root ? input.as_root
                                        : std::ranges::any_of(input.hosts, is_qualified)))
      settings.add(preset.name, preset.when == Preset::always ? Layer::computed : Layer::builtin,
                   preset.value, preset.why);
}

// ---- what the launcher gets by name -----------------------------------------------------------------

// Of this process, this host or this login: on another node the value would be wrong or means nothing.
constexpr std::string_view kOwnOfHost =
    "_,COLUMNS,DBUS_SESSION_BUS_ADDRESS,DISPLAY,HOST,HOSTNAME,LINES,LOGNAME,LS_COLORS,MAIL,"
    "OLDPWD,PPID,PS1,PWD,SHELL,SHLVL,STY,TMUX,TTY,USER,WINDOWID,XAUTHORITY";

// Of the session, the batch system, or a launcher. Open MPI sends OMPI_* and PMIX_* on by itself.
constexpr std::string_view kPrefixes =
    "SSH_,TERM,XDG_,OMPI_,PMIX_,PRTE_,PMI_,SLURM_,SLURMD_,SRUN_,SBATCH_,PBS_,LSB_,LSF_,LS_JOBPID,"
    "FLUX_,COBALT_,PALS_,HYDRA_,HYDI_,I_MPI_PIN";

bool begins_with(std::string_view name, std::string_view prefixes) {
  return std::ranges::any_of(split(prefixes, ','),
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// A shell function ("BASH_FUNC_ml%%") is exported too, and no launcher takes its name.
bool goes_along(const std::string& name) {
  return is_identifier(name) && std::ranges::count(split(kOwnOfHost, ','), name) == 0 &&
         !begins_with(name, kPrefixes);
}

// Ascending: constants of the plan, and what was exported and means something elsewhere (docs/reference/launchers.md).
// Empty where the launcher passes everything on, or there is one node, this one.
std::vector<std::string> names_to_forward(const PlanInput& input,
                                          const std::vector<Setting>& settings, int nodes,
                                          bool supervise) {
  if (!input.launcher.names_variables || (nodes < 2 && input.first_is_here)) return {};
  std::set<std::string> names;
  for (const auto& [name, value] : input.env.values())
    if (goes_along(name)) names.insert(name);
  for (const Setting& setting : settings) {
    const bool constant = std::holds_alternative<std::string>(setting.value());
    if (!constant)
      names.erase(setting.name);
    else if (!is_exported(setting.history.back()) && is_identifier(setting.name) &&
             !begins_with(setting.name, "OMPI_,PMIX_,PRTE_"))  // which their daemons know better
      names.insert(setting.name);
  }
  names.insert("HPCLAUNCH_PLAN");
  if (supervise) names.insert("HPCLAUNCH_CHANNEL");
  return {names.begin(), names.end()};
}

}  // namespace

Status check_names(const Request& options) {
  const auto check = [](const std::string& name, const char* option) -> Status {
    if (!name.empty() && name.find_first_of(std::string_view("=\0", 2)) == std::string::npos)
      return Done{};
    return request_error(fmt::format("{}: invalid variable name \"{}\"", option, name),
                         "a name must not be empty or contain \"=\": --set NAME=VALUE");
  };
  for (const TypedVariable& one : options.set)
    if (Status good = check(one.name, one.option.c_str()); !good) return good;
  for (const std::string& name : options.unset)
    if (Status good = check(name, "--unset"); !good) return good;
  return Done{};
}

void add_typed(const Request& typed, EnvSettings& settings) {
  for (const TypedVariable& one : typed.set)
    settings.add(one.name, Layer::command_line, one.value, one.option);
  for (const std::string& name : typed.unset)
    settings.add(name, Layer::command_line, Unset{}, "--unset");
}

Result<Settled> decide_environment(const PlanInput& input, const Facts& facts, const Slots& slots,
                                   const Hosts& hosts, const Placement& placement,
                                   const Supervision& supervision) {
  Settled made;
  Environment& environment = made.environment;
  EnvSettings settings(input.env, input.of_batch);
  for (const auto& [name, why] : input.of_batch) settings.keep_export(name);
  if (!input.request->agent)
    add_threads(settings, input, placement);
  else if (input.of_batch.contains(kLeader))
    settings.add(kLeader, Layer::builtin, Unset{}, "the program chooses for its own processes");
  add_identity(input, hosts, placement, settings);
  add_rendezvous(settings, input);
  settings.add("PYTHONUNBUFFERED", Layer::builtin, std::string("1"),
               "Python's output appears at once, although it goes to a pipe");
  add_launcher(settings, input, placement);
  add_aliases(input, hosts, placement, settings);
  add_typed(*input.request, settings);
  apply_rules(input, facts, false, slots, placement, made, settings);
  add_interfaces(input, hosts.count(), settings);
  add_proxy_exceptions(input, hosts, settings);
  add_program_env(input, slots, hosts, placement, settings);
  add_visibility(input, slots, placement, made.said.reports, settings);
  apply_rules(input, facts, true, slots, placement, made, settings);
  if (supervision.mps) environment.make_dirs.push_back(add_mps(input, settings));
  if (input.request->profile_start)
    environment.make_dirs.push_back(add_start_profile(input, settings));
  if (input.request->output.stall_seconds)
    if (std::string folder = add_stall(input, slots, settings); !folder.empty())
      environment.make_dirs.push_back(std::move(folder));
  environment.settings = std::move(settings).finish();
  // The launcher may set its own again for each rank.
  for (const Setting& setting : environment.settings)
    if (std::holds_alternative<Unset>(setting.value()) &&
        std::ranges::none_of(input.launcher.conflicting,
                             [&](const auto& one) { return matches(one, setting.name); }))
      environment.removed.push_back(setting.name);
  for (const LauncherTraits::Preset& preset : input.launcher.presets)
    environment.launcher_only.push_back(preset.name);
  for (const std::string_view prefix : split(input.launcher.removes, ' '))
    for (const Setting& setting : environment.settings)
      if (!prefix.empty() && setting.name.starts_with(prefix))
        environment.launcher_only.push_back(setting.name);
  environment.forward =
      names_to_forward(input, environment.settings, hosts.count(), supervision.supervise);
  return made;
}

}  // namespace hpclaunch
