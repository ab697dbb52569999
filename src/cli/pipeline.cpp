#include "cli/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "hpclaunch/job.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

// Equal launches get equal ports, so that a dry run shows what a run does; jobs get ports of their own.
std::string port_key(const LaunchArgs& args, const EnvSnapshot& env) {
  for (const char* name : {"PBS_JOBID", "SLURM_JOB_ID", "FLUX_URI", "LSB_JOBID"})
    if (const std::string* job = env.find(name))
      return fmt::format("{}/{}", *job, fmt::join(args.command, " "));
  return fmt::format("{}/{}/{}", sys::user_id(), sys::working_directory(),
                     fmt::join(args.command, " "));
}

struct Meeting {
  Rendezvous rendezvous;
  int lock = -1;
};

// A port that somebody else chose is checked, not changed.
void check_given_port(int port, const std::string& who, Meeting& meeting,
                      std::vector<Finding>& findings) {
  const Result<sys::PortClaim> claim = sys::claim_port({port});
  if (claim) {
    meeting.lock = claim->lock;
    return;
  }
  findings.push_back({"port-taken", Severity::error,
                      fmt::format("MASTER_PORT {} ({}): {}", port, who, claim.error().message),
                      "leave the port to hpclaunch, or name a free one with --master-port"});
}

Result<Meeting> choose_meeting(const LaunchArgs& args, const EnvSnapshot& env, const Hosts& hosts,
                               bool one_node, std::vector<Finding>& findings) {
  Meeting meeting;
  const std::string& first = hosts.names.front();
  const bool here = hosts.only_here || same_host(first, sys::host_name());
  Rendezvous& meet = meeting.rendezvous;
  if (one_node && here) {
    meet.address = "127.0.0.1";
    meet.address_why = "all ranks are on this machine";
  } else if (here && sys::resolves_to_loopback(first)) {
    meet.address = sys::outward_address().value_or(first);
    meet.address_why =
        fmt::format("{} leads to loopback here; this is the machine's address for others", first);
  } else {
    meet.address = first;
    meet.address_why = "the first host, where rank 0 runs";
  }
  const std::string* exported = env.find("MASTER_PORT");
  if (args.master_port || exported != nullptr) {
    const long port =
        args.master_port ? *args.master_port : parse_natural(*exported, 65535).value_or(0);
    if (port == 0)
      findings.push_back({"bad-port", Severity::error,
                          fmt::format("MASTER_PORT=\"{}\" is no port", *exported),
                          "unset MASTER_PORT"});
    else if (here)
      check_given_port(static_cast<int>(port), args.master_port ? "--master-port" : "exported",
                       meeting, findings);
    return meeting;
  }
  const auto [low, high] = sys::ephemeral_ports();
  const std::vector<int> candidates = candidate_ports(port_key(args, env), low, high);
  meet.port = candidates.front();
  meet.port_why = fmt::format("outside the kernel's own range {}-{}", low, high);
  if (!here) {
    meet.port_why += fmt::format("; not checked, since rank 0 runs on {}", first);
    return meeting;
  }
  const Result<sys::PortClaim> claim = sys::claim_port(candidates);
  if (!claim) return claim.error();
  meet.port = claim->port;
  meet.port_why += "; nobody listens on it here";
  meeting.lock = claim->lock;
  return meeting;
}

Result<std::string> find_shim() {
  const std::string bin =
      sys::own_directory();  // links resolved: its parent is the installation's root
  const std::string shim = bin.substr(0, bin.rfind('/')) + "/libexec/hpclaunch/hpclaunch-shim";
  if (sys::is_executable(shim)) return shim;
  return Error{ErrorKind::system,
               fmt::format("the installation is not whole: \"{}\" is missing", shim),
               "install again with cmake --install; bin and libexec belong together"};
}

// The program as execve(2) wants it. Planning for another machine may name what is not here.
Result<std::vector<std::string>> resolve(const LaunchArgs& args, const EnvSnapshot& env,
                                         Purpose purpose, std::vector<Finding>& findings) {
  std::vector<std::string> command = args.command;
  if (command.empty()) return command;
  std::string path = env.get("PATH");
  for (const std::string& assignment : args.set)
    if (assignment.starts_with("PATH=")) path = assignment.substr(5);
  const Result<std::string> found = sys::find_program(command.front(), path);
  if (found)
    command.front() = *found;
  else if (purpose == Purpose::start)
    return found.error();
  else
    findings.push_back(
        {"program-not-here", Severity::warning, found.error().message, found.error().hint});
  return command;
}

Result<PlacementOptions> placement_options(const LaunchArgs& args) {
  PlacementOptions options;
  options.nodes = args.nodes;
  options.ranks = args.ranks;
  options.ranks_per_node = args.ranks_per_node;
  options.cores_per_rank = args.cores_per_rank;
  options.oversubscribe = args.oversubscribe;
  options.bind_via = bind_via_from(args.bind_via);
  if (!args.master_addr.empty()) options.master_addr = args.master_addr;
  options.master_port = args.master_port;
  Result<std::vector<std::pair<std::string, std::string>>> set = assignments(args.set);
  if (!set) return set.error();
  options.set = std::move(*set);
  options.unset = args.unset;
  return options;
}

bool uses_one_node(const LaunchArgs& args, const Hosts& hosts) {
  if (hosts.names.size() == 1 || args.nodes == 1 || args.ranks == 1) return true;
  return args.ranks && args.ranks_per_node && *args.ranks <= *args.ranks_per_node;
}

// What there is to know apart from the node itself.
struct Surroundings {
  std::vector<std::string> command;
  Hosts hosts;
  Launcher launcher;
  Meeting meeting;
  std::string shim;
};

Result<Surroundings> look_around(const LaunchArgs& args, const EnvSnapshot& env, Purpose purpose,
                                 std::vector<Finding>& findings) {
  Result<std::vector<std::string>> command = resolve(args, env, purpose, findings);
  if (!command) return command.error();
  Result<Hosts> hosts = find_hosts(args, env);
  if (!hosts) return hosts.error();
  Result<Launcher> launcher = find_launcher(args, env, *hosts);
  if (!launcher) return launcher.error();
  Result<Meeting> meeting =
      choose_meeting(args, env, *hosts, uses_one_node(args, *hosts), findings);
  if (!meeting) return meeting.error();
  Result<std::string> shim = find_shim();
  if (!shim) return shim.error();
  return Surroundings{std::move(*command), std::move(*hosts), std::move(*launcher),
                      std::move(*meeting), std::move(*shim)};
}

}  // namespace

Result<Prepared> prepare(const LaunchArgs& args, Session& session, Purpose purpose) {
  Prepared prepared;
  Result<PlacementOptions> options = placement_options(args);
  if (!options) return options.error();
  Result<Surroundings> around = Error{};
  const auto look = [&] { around = look_around(args, session.env, purpose, prepared.findings); };
  constexpr double kProbeSeconds = 20;
  Result<Topology> node = Error{};
  if (args.topology.empty()) {
    node = probe_live(kProbeSeconds, look);
  } else {
    look();
    if (around) node = read_topology(args.topology, kProbeSeconds);
  }
  if (!around) return around.error();
  if (!node) return node.error();

  PlanInput input;
  input.node = *node;
  input.hosts = around->hosts.names;
  input.hosts_why = around->hosts.why;
  input.slots = around->hosts.slots;
  input.slots_why = around->hosts.slots_why;
  input.env = session.env;
  input.launcher = around->launcher.dialect->traits();
  input.launcher_why = around->launcher.why;
  input.rendezvous = std::move(around->meeting.rendezvous);
  input.options = std::move(*options);
  input.verify = verify_from(args.verify);
  input.output = {args.label, args.log_dir, args.grace_seconds};
  input.launcher_args = args.launcher_args;
  input.command = std::move(around->command);
  Result<Plan> plan = make_plan(input);
  if (!plan) return plan.error();

  prepared.node = std::move(*node);
  prepared.plan = std::move(*plan);
  prepared.launcher = std::move(around->launcher);
  prepared.shim = std::move(around->shim);
  prepared.port_lock = around->meeting.lock;
  for (Finding& finding : check_plan(prepared.plan, session.env))
    prepared.findings.push_back(std::move(finding));
  if (!prepared.plan.command.empty()) {
    Result<Argv> argv =
        prepared.launcher.dialect->render(prepared.plan, prepared.launcher.facts, prepared.shim);
    if (!argv) return argv.error();
    prepared.argv = std::move(*argv);
  }
  return prepared;
}

std::vector<EnvChange> environment_changes(const Plan& plan) {
  std::vector<EnvChange> changes;
  const auto comment = [](const Decision& decision) {
    return fmt::format("{}: {}", to_string(decision.layer), decision.why);
  };
  for (const Setting& setting : plan.env) {
    const Decision& holds = setting.history.back();
    if (holds.layer == Layer::environment) continue;  // it is there already
    if (const auto* text = std::get_if<std::string>(&holds.value))
      changes.push_back({setting.name, *text, comment(holds)});
    else if (std::holds_alternative<Unset>(holds.value))
      changes.push_back({setting.name, std::nullopt, comment(holds)});
  }
  const EnvChange wire{"HPCLAUNCH_PLAN", plan.wire,
                       "computed: what differs by rank; hpclaunch-shim reads it"};
  const auto at =
      std::lower_bound(changes.begin(), changes.end(), wire,
                       [](const EnvChange& a, const EnvChange& b) { return a.name < b.name; });
  changes.insert(at, wire);
  return changes;
}

EnvSnapshot launch_environment(const Plan& plan, const EnvSnapshot& env) {
  std::map<std::string, std::optional<std::string>> changes;
  for (EnvChange& change : environment_changes(plan))
    changes[std::move(change.name)] = std::move(change.value);
  return env.with(changes);
}

}  // namespace hpclaunch::cli
