// Outside a job: whether ranks may start on this machine, and how a script finds its first host later.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/render.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "world/site.h"

namespace hpclaunch::job {

namespace {

// "salloc -N 2 -t 01:00:00 -A PROJECT, ..."
std::string how_to_get_one(const Scheduler& system, const Request& request,
                           const std::shared_ptr<const Profile>& profile) {
  JobOptions options;
  options.nodes = requested_nodes(request);
  options.seconds = 3600;
  std::vector<std::string> rules;
  if (profile != nullptr) {
    const Result<const NodeModel*> model = choose_model(request, profile.get(), EnvSnapshot{}, {});
    const JobNeeds needs =
        needs_on(profile->job, model && *model != nullptr ? (*model)->name : std::string());
    const Queue* own = find_named(needs.queues, "interactive");
    if (own != nullptr && takes(*own, options.nodes, options.seconds)) {
      options.queue = own->name;
      options.queue_option = own->option;
    }
    (void)add_job_needs(needs, options);  // without a queue where none fits
    if (const auto made = prepare(before_the_job(request), made_up_world(profile), Purpose::show))
      rules = made->plan.launch.batch;
  }
  std::vector<std::string> words;
  if (const auto known = job_directives(system, options)) words = *known;
  for (const std::string& option : rules)
    if (std::ranges::count(words, option) == 0) words.push_back(option);
  const std::string line = fmt::format(fmt::runtime(system.allocate), fmt::join(words, " "));
  return fmt::format("{}, or hpclaunch submit for a script; --force starts here", line);
}

const Scheduler* of_profile(const Profile* profile) {
  return profile == nullptr ? nullptr : find_scheduler(profile->scheduler);
}

}  // namespace

// In the table's order, since PATH may be long.
const Scheduler* installed(const World& world) {
  const auto exists = [&](std::string_view path) { return world.has(std::string(path)); };
  for (const Scheduler& one : schedulers()) {
    const std::string named = world.env.get(one.configured_by);
    const std::string command(one.submit.substr(0, one.submit.find(' ')));
    if ((named.empty() ? std::ranges::any_of(one.configurations, exists) : exists(named)) &&
        world.program(command))
      return &one;
  }
  return nullptr;
}

Status add_job_needs(const JobNeeds& needs, JobOptions& options) {
  if (options.account.empty()) options.account = needs.account;
  if (options.filesystems.empty()) options.filesystems = needs.filesystems;
  if (options.constraint.empty()) options.constraint = needs.constraint;
  const Queue* queue = find_named(needs.queues, options.queue);
  if (options.queue.empty()) {
    const Result<const Queue*> chosen = choose_queue(needs, options.nodes, options.seconds);
    if (!chosen) return chosen.error();
    queue = *chosen;
  }
  if (queue != nullptr) {
    options.queue = queue->name;
    options.queue_option = queue->option;
  } else if (!needs.queues.empty() && options.queue_option.empty()) {
    options.queue_option = needs.queues.front().option;
  }
  return Done{};
}

Status check_allocation(const Request& request, const World& world, const Site& site,
                        Purpose purpose, Diagnostics& diagnostics) {
  const bool chosen_here = !request.hostfile.empty() || request.launcher == kLocalLauncher;
  if (site.batch.scheduler != nullptr || site.hosts.invented || chosen_here || request.force)
    return Done{};
  const Scheduler* known = of_profile(site.profile());
  const Scheduler* system = known != nullptr ? known : installed(world);
  if (system == nullptr) return Done{};
  const std::string message =
      fmt::format("not in an allocation: {} is outside a {} job{}", world.host, system->title,
                  known != nullptr ? " of " + site.profile()->name : "");
  const std::string fix = how_to_get_one(*system, request, site.chosen.profile);
  if (purpose == Purpose::start) return Error{ErrorKind::usage, message, fix};
  diagnostics.push_back({"not-in-allocation", Severity::note, message, fix});
  return Done{};
}

LateHost late_host(const Site& site, const Plan& plan) {
  LateHost late;
  if (!plan.hosts.invented) return late;
  late.name = plan.hosts.names.front();
  const Scheduler* system = of_profile(site.profile());
  for (const Scheduler& one : schedulers())
    if (system == nullptr && one.launcher == plan.launch.launcher) system = &one;
  if (system == nullptr) return late;
  late.command = system->first_host;
  late.job = fmt::format("{} job", system->title);
  return late;
}

namespace {

// `value` with the stand-in, or its name without domain, as an expression of sh.
std::string with_first_host(const std::string& value, const std::string& name) {
  const std::string short_name = short_host(name);
  std::size_t at = value.find(name);
  const bool whole = at != std::string::npos;
  if (!whole) at = value.find(short_name);
  const std::string before = value.substr(0, at);
  const std::string after = value.substr(at + (whole ? name : short_name).size());
  return (before.empty() ? "" : quote_sh(before)) +
         (whole ? "\"$HPCLAUNCH_FIRST_HOST\"" : "\"${HPCLAUNCH_FIRST_HOST%%.*}\"") +
         (after.empty() ? "" : quote_sh(after));
}

// Removes them where the script runs: what is exported there is not known here.
std::string remove_foreign(const std::vector<std::string>& patterns) {
  constexpr int kWidth = 110;
  return fmt::format(
      "# Remove the rank variables of the job's own tasks: programs would take them for these "
      "ranks'.\n"
      "for name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z_0-9]*\\)=.*/\\1/p'); do\n"
      "  case $name in\n    {}) unset \"$name\" ;;\n  esac\ndone\n\n",
      fmt::join(render::fill(patterns, kWidth, " | "), " | \\\n    "));
}

// The job's first host where the plan has a stand-in for it.
Status use_first_host(const Prepared& prepared, bool argv, ShellChanges& made) {
  const LateHost& late = prepared.late_host;
  const auto has_it = [&](const std::string& text) {
    return text.find(short_host(late.name)) != std::string::npos;
  };
  bool used = false;
  for (EnvChange& change : made.changes) {
    if (!change.value || !has_it(*change.value)) continue;
    change.shell = with_first_host(*change.value, late.name);
    used = true;
  }
  const bool named = argv && std::ranges::any_of(prepared.argv, has_it);
  if (named || (used && late.command.empty()))
    return Error{ErrorKind::unsupported,
                 named ? fmt::format("the launch line of {} has host names, known only in the job",
                                     prepared.plan.launch.launcher)
                       : "the address of rank 0 is known only in the job",
                 "run this command in the job, or pass --hostfile FILE"};
  if (used)
    made.preamble = fmt::format(
        "# The address of rank 0 comes from the job that runs this.\n"
        "HPCLAUNCH_FIRST_HOST=$({})\n: \"${{HPCLAUNCH_FIRST_HOST:?run this in a {}}}\"\n\n",
        late.command, late.job);
  return Done{};
}

}  // namespace

Result<ShellChanges> shell_changes(const Prepared& prepared, ShellNeeds needs) {
  ShellChanges made{"", environment_changes(prepared.plan)};
  for (EnvChange& change : made.changes) {
    const std::string value = change.value.value_or("");
    const bool secret = is_secret(change.name, value);
    if (secret && !needs.show_secrets && !value.empty() && !parse_natural(value))
      change.prints = EnvChange::Prints::reference;
  }
  if (!prepared.late_host.name.empty())
    if (const Status done = use_first_host(prepared, needs.argv, made); !done) return done.error();
  if (needs.argv && !prepared.foreign.empty())
    made.preamble = remove_foreign(prepared.foreign) + made.preamble;
  made.preamble = prepared.activation + made.preamble;
  return made;
}

}  // namespace hpclaunch::job
