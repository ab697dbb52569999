// From a Request to a plan and its launch line: the steps of steps.h in their order.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "hpclaunch/hosts.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "job/activate.h"
#include "job/container.h"
#include "job/node.h"
#include "job/programs.h"
#include "job/stage.h"
#include "job/steps.h"

namespace hpclaunch::job {

namespace {

Result<std::string> find_shim() {
  const std::string bin = sys::own_directory();  // links resolved: its parent is the prefix
  const std::string shim = bin.substr(0, bin.rfind('/')) + "/libexec/hpclaunch/hpclaunch-shim";
  if (sys::is_executable(shim)) return shim;
  return Error{ErrorKind::system, fmt::format("incomplete installation: \"{}\" is missing", shim),
               "install again with cmake --install, bin and libexec together"};
}

// Equal inputs show equal plans: only a start has a key of its own.
std::string launch_key(Purpose purpose) {
  if (purpose == Purpose::show) return fmt::format("{}-KEY", sys::user_id());
  const std::string launch =
      fmt::format("{} {} {:.6f}", sys::host_name(), getpid(), sys::wall_clock());
  return fmt::format("{}-{:08x}", sys::user_id(), fnv1a(launch));
}

// The program as execve(2) needs it. A plan for another machine may name a program that is not
// here.
Result<std::vector<std::string>> resolve(const Request& request, const EnvSnapshot& env,
                                         Purpose purpose, const Stage& stage,
                                         Diagnostics& diagnostics) {
  std::vector<std::string> command = request.command;
  if (command.empty() || !request.container.image.empty()) return command;  // the image has it
  std::string path = env.get("PATH");
  for (const TypedVariable& one : request.set)
    if (one.name == "PATH") path = one.value;
  const Result<std::string> found = sys::find_program(command.front(), path);
  if (!found && staged_program(command.front(), "", stage) != "") return command;
  if (!found && purpose == Purpose::start) return found.error();
  if (found)
    command.front() = *found;
  else
    diagnostics.push_back(
        {"program-not-here", Severity::warning, found.error().message, found.error().hint});
  return command;
}

// What is found out while the probe works: all but the node.
Status find_means(const Request& request, const EnvSnapshot& env, Purpose purpose, const Site& site,
                  PlanInput& input, Prepared& prepared, MpiLibrary& mpi) {
  Result<std::vector<std::string>> command =
      resolve(request, env, purpose, prepared.stage, prepared.diagnostics);
  if (!command) return command.error();
  // A plan for a machine that is not here: its programs lie elsewhere.
  const bool elsewhere = purpose == Purpose::show && site.facts.invented_hosts;
  input.command = elsewhere ? request.command : *command;
  input.stages = !prepared.stage.method.empty();
  if (!command->empty() && !elsewhere)
    input.command.front() =
        staged_program(request.command.front(), command->front(), prepared.stage);
  Result<ProgramEnv> wanted = framework_env(request, env);
  if (!wanted) return wanted.error();
  input.program_env = *std::move(wanted);
  for (std::string& note : framework_notes(request))
    prepared.diagnostics.push_back({"framework", Severity::note, std::move(note)});
  if (request.agent) {
    const ProgramEnv more = agent_env(request.command);
    input.program_env.insert(input.program_env.begin(), more.begin(), more.end());
    input.command = agent_command(request.command, std::move(input.command));
  }
  const std::string preferred = site.profile() != nullptr ? site.profile()->launcher : "";
  const bool contained = !request.container.image.empty();
  mpi = mpi_of(contained ? std::vector<std::string>() : *command, env);
  Result<ChosenLauncher> launcher =
      choose_launcher(request, env, site, preferred, mpi, purpose == Purpose::start);
  if (!launcher) return launcher.error();
  prepared.launcher = *std::move(launcher);
  if (const Status found = find_container(request, env, site, prepared.launcher, purpose, prepared);
      !found)
    return found.error();
  input.image = prepared.container.image;
  if (contained) input.directory = sys::working_directory();
  std::string& program = prepared.launcher.facts.path;
  if (elsewhere && request.launcher.find('/') == std::string::npos)
    program = program.substr(program.rfind('/') + 1);
  if (!prepared.launcher.remark.empty())
    prepared.diagnostics.push_back({"launcher-not-here", Severity::note, prepared.launcher.remark});
  if (sys::working_directory().empty())
    prepared.diagnostics.push_back(
        {"working-directory-gone", Severity::error,
         "the working directory has been removed: ranks cannot start in it",
         "cd to one that is there"});
  Result<Rendezvous> rendezvous =
      choose_rendezvous(request, env, site, prepared.port_lock, prepared.diagnostics);
  if (!rendezvous) return rendezvous.error();
  input.rendezvous = *std::move(rendezvous);
  Result<std::string> shim = find_shim();
  if (!shim) return shim.error();
  prepared.shim = *std::move(shim);
  input.start_hook = prepared.shim.substr(0, prepared.shim.rfind('/')) + "/start";
  input.launch_key = launch_key(purpose);
  Result<PlannedSignal> signal = find_signal(request, env, site.batch, prepared.diagnostics);
  if (!signal) return signal.error();
  input.time_limit_signal = signal->signal;
  input.time_limit_why = std::move(signal->why);
  input.as_root = sys::user_id() == 0;
  return Done{};
}

// Names that other launchers and batch systems give their tasks: set for each rank where such a batch system's job is
// the allocation, else removed where this process has inherited them.
void add_identities(const BatchJob& batch, LauncherTraits& traits) {
  constexpr const char* kWhy = "of another launch; programs would take it for this rank's";
  for (const Launcher& one : launchers()) {
    const auto gives = [&](const Scheduler* system) {
      return system != nullptr && system->launcher == one.name;
    };
    std::vector<std::string_view> names = split(one.rank_variables, ' ');
    for (const IdentityVariables& variables : one.identity) {
      if (one.name == traits.name) continue;
      if (gives(batch.scheduler) || gives(batch.outer))
        traits.batch_identity.push_back(variables);
      else
        for (const std::string_view name : split(variables.names, ' ')) names.push_back(name);
    }
    for (std::string_view name : names) {
      const bool prefix = name.ends_with('*');
      if (prefix) name.remove_suffix(1);
      if (!name.empty())
        traits.conflicting.push_back({std::string(name), kWhy, true, false, prefix});
    }
  }
}

// The launcher's traits, and what this job adds to them.
LauncherTraits traits_of(const ChosenLauncher& launcher, const Site& site, const Request& request) {
  LauncherTraits traits = launcher.launcher->traits;
  add_identities(site.batch, traits);
  traits.errors_elsewhere = redirects_errors(traits.name, request.launcher_args);
  for (const Scheduler* other : site.batch.inherited)
    if (!other->inherited_prefix.empty() && traits.name != other->launcher)
      traits.conflicting.push_back({std::string(other->inherited_prefix),
                                    std::string(other->inherited_why), true, false, true});
  return traits;
}

// Where LD_LIBRARY_PATH has the libraries that conditions of the profile's rules name.
std::map<std::string, std::string> find_libraries(const Profile* profile, const EnvSnapshot& env) {
  constexpr std::string_view kGroup = "library.";
  std::map<std::string, std::string> found;
  const std::string path = env.get("LD_LIBRARY_PATH");
  if (profile == nullptr || path.empty()) return found;
  std::set<std::string> names;
  for (const Rule& rule : profile->rules)
    for (const Test& test : rule.when)
      if (test.fact.starts_with(kGroup)) names.insert(test.fact.substr(kGroup.size()));
  for (const std::string& name : names) {
    const Result<std::string> file = sys::find_program(name, path);
    if (file || file.error().kind == ErrorKind::not_executable) found[name] = file ? *file : name;
  }
  return found;
}

void add_site(const EnvSnapshot& env, Site& site, JobNode job, const ChosenLauncher& launcher,
              PlanInput& input) {
  input.node = std::move(job.topology);
  input.profile = site.profile();
  input.profile_why = site.chosen.why;
  input.model = job.model;
  input.part_of_node = job.part;
  input.cores_known = job.known;
  if (site.is_here && input.request->topology.empty()) input.live = std::move(job.live);
  input.reachable = std::move(job.reachable);
  input.job = site.facts;
  input.first_is_here = only_here(site.hosts) || is_here(site.hosts.names.front());
  input.hosts = std::move(site.hosts.names);  // a large job has a megabyte of them
  input.hosts_file = site.hosts.file;
  input.hosts_why = site.hosts.why;
  input.granted = std::move(job.granted);
  input.granted_why = site.hosts.granted_why;
  if (!site.hosts.slots_are_cores || input.node.devices.empty())
    input.slots = std::move(site.hosts.slots);
  input.slots_why = site.hosts.slots_why;
  input.env = env;
  const Request& request = *input.request;
  input.launcher = traits_of(launcher, site, request);
  input.launcher_why = launcher.why;
  input.launcher_args = request.launcher_args;
  if (const std::string_view option = launcher.launcher->het_group;
      request.het_group && !option.empty())
    input.launcher_args.insert(input.launcher_args.begin(),
                               fmt::format(fmt::runtime(option), *request.het_group));
  // Ranks of other nodes open their logs themselves.
  input.log_dir = request.output.log_dir;
  if (!input.log_dir.empty() && !input.launcher.built_in)
    input.log_dir = std::filesystem::absolute(input.log_dir).lexically_normal();
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

// The plan, its diagnostics, and its launch line.
Status complete(const PlanInput& input, const Site& site, Prepared& prepared) {
  Result<Plan> plan = make_plan(input);
  if (!plan) return plan.error();
  prepared.node = input.node;
  prepared.marks = marks_of(input.model);
  prepared.plan = std::move(*plan);
  const auto add = [&](const Diagnostics& found) {
    std::ranges::copy(found, std::back_inserter(prepared.diagnostics));
  };
  add(prepared.plan.explanation.reports);
  if (auto inside = inside_a_rank(input.env)) prepared.diagnostics.push_back(std::move(*inside));
  add(check_plan(prepared.plan, input.node, input.env));
  add(arg_clashes(prepared.plan));
  if (const Status entered = complete_container(*input.request, input.env, site, prepared);
      !entered)
    return entered.error();
  if (prepared.plan.launch.command.empty()) return Done{};
  Result<Argv> argv = launch_line(prepared, prepared.plan);
  if (!argv) return argv.error();
  prepared.argv = std::move(*argv);
  return Done{};
}

}  // namespace

Result<Prepared> prepare(const Request& asked, const EnvSnapshot& given, Purpose purpose) {
  Prepared prepared;
  Request typed = asked;
  use_own_venv(typed, given, prepared.diagnostics);
  if (const Status good = check_container(typed); !good) return good.error();
  EnvSnapshot env = given;
  if (const Status active = activate(typed, purpose, env, prepared.diagnostics); !active)
    return active.error();
  Result<Request> spelled = spelled_out(std::move(typed), env, prepared.diagnostics);
  if (!spelled) return spelled.error();
  const auto kept = std::make_shared<const Request>(*std::move(spelled));
  const Request& request = *kept;
  prepared.activation = activation_lines(request);
  prepared.means = std::make_shared<Means>();
  Site& site = prepared.means->site;
  if (const Status found = find_site(request, env, purpose, site, prepared.diagnostics); !found)
    return found.error();
  const Status inside = check_allocation(request, env, site, purpose, prepared.diagnostics);
  if (!inside) return inside.error();
  Result<std::optional<Setting>> stage = find_stage(request, site, env, prepared);
  if (!stage) return stage.error();
  prepared.env = staged_environment(env, prepared.stage);
  if (request.profile_start && prepared.stage.method.empty())
    prepared.useful_stage = useful_stage(request, site, env);
  PlanInput& input = prepared.means->input;
  input.request = kept;
  MpiLibrary mpi;
  Status means = Error{};
  const auto meanwhile = [&] {
    means = find_means(request, env, purpose, site, input, prepared, mpi);
  };
  Result<JobNode> node = find_node(request, env, site, meanwhile, prepared.diagnostics);
  if (!means) return means.error();
  if (!node) return node.error();
  add_site(prepared.env, site, std::move(*node), prepared.launcher, input);
  input.libraries = find_libraries(site.profile(), env);
  if (site.profile() != nullptr) prepared.notes = site.profile()->notes;
  if (const Status done = complete(input, site, prepared); !done) return done.error();
  if (*stage) prepared.plan.explanation.choices.push_back(std::move(**stage));
  if (prepared.stage.method == "sbcast" && !prepared.plan.hosts.whole_allocation)
    return Error{ErrorKind::usage, "--stage sbcast: the launch does not use all nodes of the job",
                 "--stage copy"};
  if (purpose == Purpose::start && !any_from(Severity::error, prepared.diagnostics)) {
    if (const Status made = make_bind_targets(prepared.container); !made) return made.error();
    if (const Status tried = try_container(prepared); !tried) return tried.error();
  }
  check_program(request, prepared.plan, prepared.diagnostics);
  check_mpi(mpi, prepared.launcher, request, env, prepared.plan, prepared.diagnostics);
  check_address(prepared.plan, request, purpose, prepared.diagnostics);
  prepared.late_host = late_host(site, prepared.plan);
  if (site.batch.scheduler == nullptr)
    for (const LauncherTraits::ConflictingVariable& one : input.launcher.conflicting)
      if (!one.shapes_step || prepared.plan.placement.gpu_view != "launcher")
        prepared.foreign.push_back(one.name + (one.prefix ? "*" : ""));
  if (request.max_restarts.value_or(0) == 0) prepared.means.reset();
  return prepared;
}

Status plan_restart(Prepared& prepared) {
  auto& [site, input] = *prepared.means;
  ++input.restart;
  Diagnostics known;  // the user has read them
  if (!input.request->master_port && input.env.find("MASTER_PORT") == nullptr) {
    int lock = -1;  // the old one is held until there is another
    site.hosts.names = input.hosts;
    Result<Rendezvous> rendezvous = choose_rendezvous(*input.request, input.env, site, lock, known);
    if (!rendezvous) return rendezvous.error();
    input.rendezvous = *std::move(rendezvous);
    if (prepared.port_lock >= 0) close(prepared.port_lock);
    prepared.port_lock = lock;
  }
  known.swap(prepared.diagnostics);
  Status done = complete(input, site, prepared);
  known.swap(prepared.diagnostics);
  return done;
}

Result<Prepared> prepare_elsewhere(const Request& request, const EnvSnapshot& env,
                                   const Profile& profile, const std::vector<std::string>& hosts) {
  Prepared prepared;
  Site site;
  site.chosen = {profile, "named by the case"};
  site.batch = find_batch(env);
  site.facts = job_facts(site.batch, env);
  site.facts.whole_allocation = true;
  Result<const NodeModel*> model = choose_model(request, site.profile(), env, site.facts);
  if (!model) return model.error();
  if (*model == nullptr)
    return Error{ErrorKind::usage, fmt::format("{} has no node model", profile.name),
                 "describe its nodes under \"nodes\""};
  site.model = *model;
  site.hosts = invented_hosts(requested_nodes(request), hosts);
  const std::string wanted = request.launcher.empty() ? profile.launcher : request.launcher;
  ChosenLauncher& chosen = prepared.launcher;
  chosen.launcher = find_launcher(wanted.empty() ? kLocalLauncher : wanted);
  if (chosen.launcher == nullptr) return unknown_launcher(wanted, "");
  const auto programs = chosen.launcher->programs;
  chosen.facts.path = programs.empty() ? "hpclaunch" : std::string(programs.front());
  chosen.why = "the profile's";
  prepared.shim = "hpclaunch-shim";
  PlanInput input;
  input.request = std::make_shared<Request>(request);
  input.command = request.command;
  input.rendezvous = {site.hosts.names.front(), "the first host, where rank 0 runs",
                      candidate_ports(profile.name, 1, 0).front(), "made up"};
  add_site(env, site, JobNode{(*model)->topology, *model}, chosen, input);
  if (const Status done = complete(input, site, prepared); !done) return done.error();
  return prepared;
}

std::vector<EnvChange> environment_changes(const Plan& plan) {
  std::vector<EnvChange> changes;
  const auto comment = [](const Decision& decision) {
    return fmt::format("{}: {}", to_string(decision.layer), decision.why);
  };
  for (const Setting& setting : plan.environment.settings) {
    const Decision& holds = setting.history.back();
    if (holds.layer == Layer::environment) continue;  // it is there already
    if (const auto* text = std::get_if<std::string>(&holds.value))
      changes.push_back({setting.name, *text, comment(holds)});
    else if (std::holds_alternative<Unset>(holds.value))
      changes.push_back({setting.name, std::nullopt, comment(holds)});
  }
  changes.push_back({"HPCLAUNCH_PLAN", plan.environment.wire,
                     "computed: what differs by rank; hpclaunch-shim reads it"});
  std::ranges::sort(changes, {}, &EnvChange::name);
  return changes;
}

EnvSnapshot launch_environment(const Plan& plan, const EnvSnapshot& env) {
  std::map<std::string, std::optional<std::string>> changes;
  for (EnvChange& change : environment_changes(plan))
    changes[std::move(change.name)] = std::move(change.value);
  return env.with(changes);
}

}  // namespace hpclaunch::job
