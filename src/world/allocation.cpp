// Outside a job: whether ranks may start on this machine.
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
  if (profile == nullptr && !system.directives.whole.empty())
    words.emplace_back(system.directives.whole);
  for (const std::string& option : rules)
    if (std::ranges::count(words, option) == 0) words.push_back(option);
  const std::string line = fmt::format(fmt::runtime(system.allocate), fmt::join(words, " "));
  return fmt::format("{}, or hpclaunch submit for a script; --force starts here", line);
}

const Scheduler* of_profile(const Profile* profile) {
  return profile == nullptr ? nullptr : find_row<Scheduler>(profile->scheduler);
}

}  // namespace

// In the table's order, since PATH may be long.
const Scheduler* installed(const World& world) {
  const auto exists = [&](std::string_view path) { return world.has(std::string(path)); };
  for (const Scheduler& one : rows<Scheduler>()) {
    const std::string named = world.env.get(one.configured_by);
    if ((named.empty() ? std::ranges::any_of(one.configurations, exists) : exists(named)) &&
        world.program(one.program()))
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
  if (site.batch.scheduler != nullptr || site.hosts.own >= 0 || site.hosts.invented ||
      world.made_up() || chosen_here || request.force)
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

}  // namespace hpclaunch::job
