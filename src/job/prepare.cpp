#include "job/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/hosts.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "job/node.h"
#include "job/preflight.h"
#include "job/rendezvous.h"
#include "job/site.h"
#include "job/time_limit.h"

namespace hpclaunch::cli {

namespace {

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
Result<std::vector<std::string>> resolve(const Request& args, const EnvSnapshot& env,
                                         Purpose purpose, std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> command = args.command;
  if (command.empty()) return command;
  std::string path = env.get("PATH");
  for (const auto& [name, value] : args.set)
    if (name == "PATH") path = value;
  const Result<std::string> found = sys::find_program(command.front(), path);
  if (found)
    command.front() = *found;
  else if (purpose == Purpose::start)
    return found.error();
  else
    diagnostics.push_back(
        {"program-not-here", Severity::warning, found.error().message, found.error().hint});
  return command;
}

bool uses_one_node(const Request& args, const Hosts& hosts) {
  if (hosts.names.size() == 1 || args.nodes == 1 || args.ranks == 1) return true;
  return args.ranks && args.ranks_per_node && *args.ranks <= *args.ranks_per_node;
}

// What there is to know apart from the node itself.
struct Surroundings {
  std::vector<std::string> command;
  ChosenLauncher launcher;
  Meeting meeting;
  std::string shim;
  bool as_root = false;  // of who starts the job; nobody's where a plan is made for a page
  PlannedNotice notice;
};

Result<Surroundings> look_around(const Request& args, const EnvSnapshot& env, Purpose purpose,
                                 const Site& site, std::vector<Diagnostic>& diagnostics) {
  Result<std::vector<std::string>> command = resolve(args, env, purpose, diagnostics);
  if (!command) return command.error();
  const std::string preferred = site.profile() != nullptr ? site.profile()->launcher : "";
  Result<ChosenLauncher> launcher =
      choose_launcher(args, env, site.hosts, preferred, purpose == Purpose::start);
  if (!launcher) return launcher.error();
  if (!launcher->remark.empty())
    diagnostics.push_back({"launcher-not-here", Severity::note, launcher->remark, ""});
  Result<Meeting> meeting =
      choose_meeting(args, env, site.hosts, uses_one_node(args, site.hosts), diagnostics);
  if (!meeting) return meeting.error();
  Result<std::string> shim = find_shim();
  if (!shim) return shim.error();
  Result<PlannedNotice> notice = find_notice(args, env, diagnostics);
  if (!notice) return notice.error();
  return Surroundings{std::move(*command), std::move(*launcher), std::move(*meeting),
                      std::move(*shim),    sys::user_id() == 0,  std::move(*notice)};
}

PlanInput plan_input(const Request& args, const EnvSnapshot& env, Site& site, Seen seen,
                     const Surroundings& around) {
  PlanInput input;
  input.node = std::move(seen.node);
  input.profile = site.profile();
  input.profile_why = site.chosen.why;
  input.model = seen.model;
  input.part_of_node = seen.part;
  input.cores_known = seen.known;
  if (site.is_here && args.topology.empty()) input.live = std::move(seen.live);
  input.reachable = std::move(seen.reachable);
  input.job = site.job;
  input.first_is_here =
      site.hosts.only_here || same_host(site.hosts.names.front(), sys::host_name());
  input.hosts = std::move(site.hosts.names);  // a large job has a megabyte of them
  input.hosts_file = site.hosts.file;
  input.hosts_why = site.hosts.why;
  input.granted = std::move(seen.granted);
  input.granted_why = site.hosts.granted_why;
  if (!site.hosts.slots_are_cpus || input.node.devices.empty())
    input.slots = std::move(site.hosts.slots);
  input.slots_why = site.hosts.slots_why;
  input.env = env;
  input.as_root = around.as_root;
  input.launcher = around.launcher.launcher->traits();
  if (pbs_names_nodes(env) && input.launcher.name != "slurm" && env.has("SLURM_JOB_ID"))
    input.launcher.conflicting.push_back(
        {"SLURM_",
         "of the Slurm job whose shell has submitted this PBS job; mpiexec would start there", true,
         false, true});
  input.launcher_why = around.launcher.why;
  input.rendezvous = around.meeting.rendezvous;
  input.options = args;
  input.time_limit_signal = around.notice.notice;
  input.time_limit_why = around.notice.why;
  std::vector<std::string>& launcher_args = input.options.launcher_args;
  if (args.het_group && input.launcher.name == "slurm")
    launcher_args.insert(launcher_args.begin(), fmt::format("--het-group={}", *args.het_group));
  input.options.command = around.command;
  return input;
}

void add_clashes(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  for (const ArgClash& one : arg_clashes(plan))
    diagnostics.push_back({"launcher-arg-clash", one.fatal ? Severity::error : Severity::warning,
                           fmt::format("--launcher-arg {}: the plan has {}, now holds {}: {}",
                                       one.flag, one.ours, one.holds, one.follows),
                           one.instead});
}

PictureMarks marks_of(const NodeModel* model) {
  PictureMarks marks;
  if (model == nullptr) return marks;
  marks.reserved = model->reserved;
  marks.reserved_why = model->reserved_why;
  for (const ServiceCores& service : model->services)
    marks.services.push_back({service.name, service.pus, service.why});
  return marks;
}

// The plan with everything that is said about it, and its launch line.
Status complete(const PlanInput& input, Surroundings around, Prepared& prepared) {
  Result<Plan> plan = make_plan(input);
  if (!plan) return plan.error();
  prepared.node = input.node;
  prepared.marks = marks_of(input.model);
  prepared.plan = std::move(*plan);
  prepared.launcher = std::move(around.launcher);
  prepared.shim = std::move(around.shim);
  prepared.port_lock = around.meeting.lock;
  prepared.diagnostics.insert(prepared.diagnostics.end(), prepared.plan.reports.begin(),
                              prepared.plan.reports.end());
  for (Diagnostic& diagnostic : check_plan(prepared.plan, input.env))
    prepared.diagnostics.push_back(std::move(diagnostic));
  add_clashes(prepared.plan, prepared.diagnostics);
  if (prepared.plan.command.empty()) return Done{};
  Result<Argv> argv =
      prepared.launcher.launcher->render(prepared.plan, prepared.launcher.facts, prepared.shim);
  if (!argv) return argv.error();
  prepared.argv = std::move(*argv);
  return Done{};
}

}  // namespace

Result<Prepared> prepare(const Request& args, Session& session, Purpose purpose) {
  Prepared prepared;
  Site site;
  if (const Status found = find_site(args, session.env, purpose, site, prepared.diagnostics);
      !found)
    return found.error();
  Result<Surroundings> around = Error{};
  const auto look = [&] {
    around = look_around(args, session.env, purpose, site, prepared.diagnostics);
  };
  Result<Seen> seen = see_node(args, session.env, site, look, prepared.diagnostics);
  if (!around) return around.error();
  if (!seen) return seen.error();
  const PlanInput input = plan_input(args, session.env, site, std::move(*seen), *around);
  if (const Status done = complete(input, std::move(*around), prepared); !done) return done.error();
  if (purpose == Purpose::start) check_address(prepared.plan, prepared.diagnostics);
  return prepared;
}

Result<Prepared> prepare_elsewhere(const Request& args, const EnvSnapshot& env,
                                   const Profile& profile, const std::vector<std::string>& hosts) {
  Prepared prepared;
  Site site;
  site.chosen = {profile, "named by the case"};
  site.job = job_facts(env);
  site.job.whole_allocation = true;
  Result<const NodeModel*> model = choose_model(args, site.profile(), env, site.job);
  if (!model) return model.error();
  if (*model == nullptr)
    return Error{ErrorKind::usage, fmt::format("{} has no node model", profile.name),
                 "describe its nodes under \"nodes\""};
  site.model = *model;
  make_up_hosts(std::max(nodes_asked_for(args), static_cast<int>(hosts.size())), site.hosts);
  std::copy(hosts.begin(), hosts.end(), site.hosts.names.begin());
  Surroundings around;
  const std::string wanted = args.launcher.empty() ? profile.launcher : args.launcher;
  around.launcher.launcher = find_launcher(wanted.empty() ? "local" : wanted);
  if (around.launcher.launcher == nullptr) return unknown_launcher(wanted, "");
  const auto programs = around.launcher.launcher->programs;
  around.launcher.facts.path = programs.empty() ? "hpclaunch" : std::string(programs.front());
  around.launcher.why = "the profile's";
  around.meeting.rendezvous = {site.hosts.names.front(), "the first host, where rank 0 runs",
                               candidate_ports(profile.name, 1, 0).front(), "made up"};
  around.shim = "hpclaunch-shim";
  around.command = args.command;
  const PlanInput input = plan_input(
      args, env, site, Seen{(*model)->topology, *model, false, true, std::nullopt, {}}, around);
  if (const Status done = complete(input, std::move(around), prepared); !done) return done.error();
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
