// From a Request to a plan and its launch line: what is asked of the world, then the plan.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "hpclaunch/check.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/late.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "world/activate.h"
#include "world/container.h"
#include "world/later.h"
#include "world/node.h"
#include "world/programs.h"
#include "world/share.h"
#include "world/stage_choice.h"
#include "world/time_limit.h"

namespace hpclaunch::job {

namespace {

Result<std::string> find_shim(const World& world) {
  const std::string& bin = world.installation;  // links resolved: its parent is the prefix
  if (bin.empty() && world.made_up()) return std::string("hpclaunch-shim");
  if (bin.empty())
    return Error{
        ErrorKind::system,
        fmt::format("cannot read /proc/self/exe: /proc {}",
                    world.has("/proc/self") ? "does not show this process" : "is not mounted"),
        "mount -t proc proc /proc as root; in a container, start it with /proc"};
  const std::string shim = bin.substr(0, bin.rfind('/')) + "/libexec/hpclaunch/hpclaunch-shim";
  if (world.is_program(shim)) return shim;
  return Error{ErrorKind::system, fmt::format("incomplete installation: \"{}\" is missing", shim),
               "install again with cmake --install, bin and libexec together"};
}

// Equal inputs show equal plans: only a start has a key of its own.
std::string launch_key(const World& world, const Site& site, Purpose purpose) {
  if (site.facts.later) return stand_in("UID") + "-KEY";
  if (purpose == Purpose::show) return fmt::format("{}-KEY", world.user_id);
  const std::string launch = fmt::format("{} {} {:.6f}", world.host, getpid(), sys::wall_clock());
  return fmt::format("{}-{:08x}", world.user_id, fnv1a(launch));
}

// The program as execve(2) needs it. A plan for another machine may name a program that is not
// here.
Result<std::vector<std::string>> resolve(const Request& request, const World& world,
                                         Purpose purpose, const Stage& stage,
                                         Diagnostics& diagnostics) {
  std::vector<std::string> command = request.command;
  if (command.empty() || !request.container.image.empty()) return command;  // the image has it
  if (world.made_up()) return command;  // a case's program is in its job
  std::string path = world.env.get("PATH");
  for (const TypedVariable& one : request.set)
    if (one.name == "PATH") path = one.value;
  const Result<std::string> found = world.find_program(command.front(), path);
  if (!found && staged_program(command.front(), "", stage) != "") return command;
  if (!found && purpose == Purpose::start) return found.error();
  if (found)
    command.front() = *found;
  else
    diagnostics.push_back(
        {"program-not-here", Severity::warning, found.error().message, found.error().hint});
  return command;
}

// Without the folder, which is this machine's.
void drop_folder(std::string& program) { program = program.substr(program.rfind('/') + 1); }

// What is found out while the probe works: all but the node.
Result<Means> find_means(const std::shared_ptr<const Request>& shared, const World& world,
                         Purpose purpose, const Site& site, const Stage& stage,
                         Diagnostics& diagnostics) {
  const Request& request = *shared;
  Means means;
  PlanInput& input = means.input;
  input.request = shared;
  Result<std::vector<std::string>> command = resolve(request, world, purpose, stage, diagnostics);
  if (!command) return command.error();
  // A plan for a machine that is not here: its programs lie elsewhere.
  const bool elsewhere = world.made_up() || (purpose == Purpose::show && site.facts.invented_hosts);
  input.command = elsewhere ? request.command : *command;
  input.stages = !stage.method.empty();
  if (!command->empty() && !elsewhere)
    input.command.front() = staged_program(request.command.front(), command->front(), stage);
  Result<ProgramEnv> wanted = framework_env(request, world.env);
  if (!wanted) return wanted.error();
  input.program_env = *std::move(wanted);
  for (std::string& note : framework_notes(request))
    diagnostics.push_back({"framework", Severity::note, std::move(note)});
  if (request.agent) {
    const ProgramEnv more = agent_env(request.command);
    input.program_env.insert(input.program_env.begin(), more.begin(), more.end());
    input.agent_masks = agent_masks(request.command);
    input.command = agent_command(request.command, std::move(input.command));
  }
  const std::string preferred = site.profile() != nullptr ? site.profile()->launcher : "";
  const bool contained = !request.container.image.empty();
  means.mpi = mpi_of(contained ? std::vector<std::string>() : *command, world);
  Result<ChosenLauncher> launcher =
      choose_launcher(request, world, site, preferred, means.mpi, purpose == Purpose::start);
  if (!launcher) return launcher.error();
  means.launcher = *std::move(launcher);
  Result<ChosenContainer> container = find_container(request, world, site, means.launcher, purpose);
  if (!container) return container.error();
  means.container = *std::move(container);
  input.image = means.container.use.image;
  if (contained) input.directory = site.facts.later ? stand_in("PWD") : world.directory;
  if (elsewhere && request.launcher.find('/') == std::string::npos)
    drop_folder(means.launcher.facts.path);
  if (!means.launcher.remark.empty())
    diagnostics.push_back({"launcher-not-here", Severity::note, means.launcher.remark});
  if (world.directory.empty())
    diagnostics.push_back({"working-directory-gone", Severity::error,
                           "the working directory has been removed: ranks cannot start in it",
                           "cd to one that is there"});
  Result<Meeting> meeting = choose_rendezvous(request, world, site, diagnostics);
  if (!meeting) return meeting.error();
  input.rendezvous = std::move(meeting->point);
  means.port_lock = meeting->port_lock;
  Result<std::string> shim = later_shim(request, site, world);
  if (shim->empty()) shim = find_shim(world);
  if (!shim) return shim.error();
  means.shim = *std::move(shim);
  input.start_hook = means.shim.substr(0, means.shim.rfind('/')) + "/start";
  input.launch_key = launch_key(world, site, purpose);
  Result<PlannedSignal> signal = find_signal(request, world, site.batch, diagnostics);
  if (!signal) return signal.error();
  input.time_limit_signal = signal->signal;
  if (site.facts.later && signal->signal.signal > 0)
    input.time_limit_signal.after = std::max(signal->signal.at - world.clock(), 1LL);
  input.time_limit_why = std::move(signal->why);
  input.as_root = world.user_id == 0 && !elsewhere;
  return means;
}

// Where LD_LIBRARY_PATH has the libraries that conditions of the profile's rules name.
std::map<std::string, std::string> find_libraries(const Profile* profile, const World& world) {
  constexpr std::string_view kGroup = "library.";
  std::map<std::string, std::string> found;
  const std::string path = world.env.get("LD_LIBRARY_PATH");
  if (profile == nullptr || path.empty()) return found;
  std::set<std::string> names;
  for (const Rule& rule : profile->rules)
    for (const Test& test : rule.when)
      if (test.fact.starts_with(kGroup)) names.insert(test.fact.substr(kGroup.size()));
  for (const std::string& name : names) {
    const Result<std::string> file = world.find_program(name, path);
    if (file || file.error().kind == ErrorKind::not_executable) found[name] = file ? *file : name;
  }
  return found;
}

PlanInput planned_at(Site& site, JobNode job, const World& world, const ChosenLauncher& launcher,
                     PlanInput input) {
  input.node = std::move(job.topology);
  input.profile = site.profile();
  input.profile_why = site.chosen.why;
  input.model = job.model;
  input.part_of_node = job.part;
  input.cores_known = job.known;
  if (site.is_here && input.request->topology.empty()) input.live = std::move(job.live);
  input.reachable = std::move(job.reachable);
  input.job = site.facts;
  input.first_is_here = first_is_here(site.hosts, world);
  input.own = site.hosts.own;
  input.own_why = site.each.reason();
  input.places = std::move(site.hosts.places);
  input.hosts = std::move(site.hosts.names);  // a large job has a megabyte of them
  input.hosts_file = site.hosts.file;
  input.hosts_why = site.hosts.why;
  input.granted = std::move(job.granted);
  input.granted_why = std::move(job.granted_why);
  input.granted_assumed = job.assumed;
  input.grants = std::move(job.grants);
  input.grant_of = std::move(job.grant_of);
  input.grants_mask = std::move(job.grants_mask);
  input.grants_by = site.hosts.grants_by;
  input.whole_node = std::move(job.whole);
  input.cpu_quota = job.quota.cpus;
  input.cpu_quota_why = std::move(job.quota.why);
  input.cpu_quota_by = std::move(job.quota.by);
  input.cpu_quota_fix = std::move(job.quota.fix);
  if (!site.hosts.slots_are_cores || input.node.devices.empty())
    input.slots = std::move(site.hosts.slots);
  input.slots_why = site.hosts.slots_why;
  input.slots_told = !site.each.slots.empty();
  input.libraries = find_libraries(site.profile(), world);
  const Request& request = *input.request;
  input.launcher = traits_of(launcher, site, request, world.env);
  input.launcher_why = launcher.why;
  input.launcher_args = request.launcher_args;
  if (const std::string_view option = launcher.launcher->het_group;
      request.het_group && !option.empty())
    input.launcher_args.insert(input.launcher_args.begin(),
                               fmt::format(fmt::runtime(option), *request.het_group));
  // Ranks of other nodes open their logs themselves.
  input.log_dir = request.output.log_dir;
  if (!input.log_dir.empty() && !input.launcher.built_in)
    input.log_dir = site.facts.later && !input.log_dir.starts_with('/')
                        ? stand_in("PWD") + "/" + input.log_dir
                        : world.absolute(input.log_dir);
  return input;
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

}  // namespace

Result<Made> complete(const Means& means) {
  const PlanInput& input = means.input;
  Result<Plan> plan = make_plan(input);
  if (!plan) return plan.error();
  Made made;
  made.plan = *std::move(plan);
  const auto add = [&](const Diagnostics& found) {
    std::ranges::copy(found, std::back_inserter(made.diagnostics));
  };
  add(made.plan.explanation.reports);
  if (auto inside = inside_a_rank(input.env); inside && input.own < 0)
    made.diagnostics.push_back(std::move(*inside));
  add(check_plan(made.plan, input.node, input.env));
  add(arg_clashes(made.plan));
  Result<CompleteContainer> container = complete_container(
      means.container, *input.request, *means.world, means.site, means, made.plan);
  if (!container) return container.error();
  made.container = std::move(container->use);
  if (container->choice) made.plan.explanation.choices.push_back(*std::move(container->choice));
  if (made.plan.launch.command.empty()) return {std::move(made)};
  Result<Argv> argv = launch_line(made.container, means.launcher, means.shim, made.plan);
  if (!argv) return argv.error();
  made.argv = *std::move(argv);
  return {std::move(made)};
}

namespace {

// Of --on-time-limit requeue; outside of a job there is none.
Result<std::vector<std::string>> requeue_command(const BatchJob& batch, Purpose purpose) {
  if (batch.scheduler == nullptr && purpose == Purpose::show) return std::vector<std::string>();
  if (batch.scheduler == nullptr || batch.scheduler->requeue.empty())
    return Error{ErrorKind::usage,
                 batch.scheduler == nullptr
                     ? std::string("--on-time-limit requeue: this is no job of a batch system")
                     : fmt::format("--on-time-limit requeue: {} has no command for it",
                                   batch.scheduler->title),
                 "omit it; in jobs of Slurm and PBS it works"};
  std::vector<std::string> words;
  for (const std::string_view word : split(batch.scheduler->requeue, ' ')) words.emplace_back(word);
  words.push_back(batch.id);
  return words;
}

// The same, and what it has in common with other launches; steps that have nothing in common run side by side.
Result<Made> complete_beside(const std::vector<RunningLaunch>& others, Means& means) {
  Result<Made> made = complete(means);
  if (!made || others.empty()) return made;
  Shared shared = compare_launches(launch_of(made->plan, ""), others, *means.launcher.launcher);
  means.input.beside = std::move(shared.beside);
  if (!means.input.beside.empty()) made = complete(means);
  if (made) std::ranges::move(shared.diagnostics, std::back_inserter(made->diagnostics));
  return made;
}

// Patterns of variables of other launches, which a job may have that runs a printed script.
std::vector<std::string> foreign_variables(const Site& site, const LauncherTraits& launcher,
                                           const Plan& plan) {
  std::vector<std::string> patterns;
  if (site.batch.scheduler == nullptr)
    for (const LauncherTraits::ConflictingVariable& one : launcher.conflicting)
      if (one.beside.empty() && one.without.empty() &&
          (!one.shapes_step || plan.placement.gpu_view != "launcher"))
        patterns.push_back(one.name + (one.prefix ? "*" : ""));
  return patterns;
}

// All but the stage and the diagnostics.
Prepared assembled(const Means& means, Made made) {
  Prepared prepared;
  prepared.env = means.input.env;
  prepared.activation = activation_lines(*means.input.request, *means.world);
  prepared.node = means.input.node;
  prepared.plan = std::move(made.plan);
  prepared.marks = marks_of(means.input.model);
  if (const Profile* profile = means.site.profile()) prepared.notes = profile->notes;
  prepared.launcher = means.launcher;
  prepared.shim = means.shim;
  prepared.container = std::move(made.container);
  prepared.argv = std::move(made.argv);
  prepared.port_lock = means.port_lock;
  prepared.job = job_of(means.site.facts);
  prepared.foreign = foreign_variables(means.site, means.input.launcher, prepared.plan);
  return prepared;
}

}  // namespace

Result<Prepared> prepare(const Request& asked, World given, Purpose purpose) {
  Diagnostics diagnostics;
  Request typed = asked;
  typed.venv = own_venv(asked, given, diagnostics);
  if (const Status good = check_container(typed); !good) return good.error();
  Result<EnvSnapshot> active = activate(typed, given, purpose, diagnostics);
  if (!active) return active.error();
  given.env = *std::move(active);
  Result<Request> spelled = spelled_out(std::move(typed), given, diagnostics);
  if (!spelled) return spelled.error();
  const Result<EachNode> each = find_each_node(*spelled, given, diagnostics);
  if (!each) return each.error();
  if (spelled->static_nodes) given.env = env_of_torchrun(given.env);
  const auto world = std::make_shared<const World>(std::move(given));
  const auto shared =
      std::make_shared<const Request>(for_each_node(*std::move(spelled), *each, diagnostics));
  const Request& request = *shared;
  Result<Site> site = find_site(request, *world, purpose, *each, diagnostics);
  if (!site) return site.error();
  if (const Status inside = check_allocation(request, *world, *site, purpose, diagnostics); !inside)
    return inside.error();
  const std::vector<RunningLaunch> others = other_launches(*world, *site);
  if (request.free) keep_free_hosts(request, others, *site);
  Result<ChosenStage> stage = find_stage(request, *site, *world);
  if (!stage) return stage.error();
  site->batch.said = describe_job(request, *world, *site);
  std::optional<Result<Means>> found;
  const auto meanwhile = [&] {
    found.emplace(find_means(shared, *world, purpose, *site, stage->stage, diagnostics));
  };
  Diagnostics of_node;
  Result<JobNode> node = find_node(request, *world, *site, meanwhile, of_node);
  std::ranges::copy(of_node, std::back_inserter(diagnostics));
  if (found && !*found) return found->error();
  if (!node) return node.error();
  const auto means = std::make_shared<Means>(**std::move(found));
  means->world = world;
  if (const Status free =
          request.free ? keep_free_cores(others, *site, *node, means->input) : Done{};
      !free)
    return free.error();
  means->input =
      planned_at(*site, *std::move(node), *world, means->launcher, std::move(means->input));
  means->input.env = staged_environment(world->env, stage->stage);
  means->input.of_batch = set_by_job(*world, *site, means->input.node);
  if (const Status part = ask_for_part(world->made_up(), means->input); !part) return part.error();
  means->site = *std::move(site);
  Result<Made> made = complete_beside(others, *means);
  if (!made) return made.error();
  const Plan& plan = made->plan;
  if (stage->choice) made->plan.explanation.choices.push_back(*std::move(stage->choice));
  if (stage->stage.method == "sbcast" && !plan.hosts.whole_allocation)
    return Error{ErrorKind::usage, "--stage sbcast: the launch does not use all nodes of the job",
                 "--stage copy"};
  std::ranges::copy(made->diagnostics, std::back_inserter(diagnostics));
  check_program(request, plan, diagnostics);
  if (means->site.is_here && plan.max_local_size() > 1) check_shared_memory(*world, diagnostics);
  check_own_mask(request, plan, *world, diagnostics);
  check_mpi(means->mpi, means->launcher, request, *world, plan, diagnostics);
  check_address(plan, request, *world, purpose, diagnostics);
  Prepared prepared = assembled(*means, *std::move(made));
  if (request.profile_start && stage->stage.method.empty())
    prepared.useful_stage = useful_stage(request, means->site, *world);
  prepared.stage = std::move(stage->stage);
  prepared.diagnostics = std::move(diagnostics);
  prepared.max_restarts = request.max_restarts.value_or(0);
  if (!request.on_time_limit.empty()) {
    Result<std::vector<std::string>> requeue = requeue_command(means->site.batch, purpose);
    if (!requeue) return requeue.error();
    prepared.requeue = *std::move(requeue);
  }
  if (prepared.max_restarts > 0) prepared.means = means;
  return with_late(request, means->site, std::move(prepared));
}

Request before_the_job(Request request) {
  for (std::string* text : {&request.profile, &request.hostfile, &request.topology, &request.signal,
                            &request.ends_in, &request.conda, &request.venv})
    text->clear();
  request.env_files.clear();
  request.env.clear();
  request.stage = {};
  request.container = {};
  return request;
}

}  // namespace hpclaunch::job
