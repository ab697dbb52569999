// Another attempt of a launch: the same nodes but those that were lost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/launch.h"
#include "hpclaunch/text.h"
#include "world/means.h"

namespace hpclaunch::job {

namespace {

template <class Item>
void keep_at(const std::vector<std::size_t>& order, std::vector<Item>& items) {
  if (items.size() < order.size()) return;
  std::vector<Item> kept;
  for (const std::size_t place : order) kept.push_back(items[place]);
  items = std::move(kept);
}

// The first spare takes a lost node's place, so that the others keep their ranks. Without a spare there are fewer nodes,
// where the user has allowed that.
Status replace_nodes(const std::vector<int>& lost, int nodes, PlanInput& input) {
  const Request& request = *input.request;
  std::vector<std::size_t> order;
  auto spare = static_cast<std::size_t>(nodes);
  int spares = request.spares.value_or(0);
  int fewer = 0;
  std::vector<std::string> names;
  for (std::size_t at = 0; at < static_cast<std::size_t>(nodes); ++at) {
    const bool gone = std::ranges::count(lost, static_cast<int>(at)) > 0;
    if (gone) names.push_back(input.hosts[at]);
    if (!gone)
      order.push_back(at);
    else if (spares > 0 && spare < input.hosts.size())
      order.push_back(spare++), --spares;
    else
      ++fewer;
  }
  const int least = request.least_nodes.value_or(nodes);
  if (nodes - fewer < least || nodes == fewer)
    return Error{ErrorKind::usage,
                 fmt::format("{} was lost, and {}", fmt::join(names, ", "),
                             request.spares ? "no spare is left" : "there is no spare node"),
                 fmt::format("--spares N in a larger job, or --nodes MIN:{}",
                             request.nodes.value_or(nodes))};
  for (; spare < input.hosts.size(); ++spare) order.push_back(spare);
  HostNames hosts;
  for (const std::size_t place : order) hosts.push_back(input.hosts[place]);
  if (input.places.empty() && input.job.whole_allocation)
    for (const std::size_t place : order) input.places.push_back(static_cast<int>(place));
  else
    keep_at(order, input.places);
  keep_at(order, input.granted);
  keep_at(order, input.grant_of);
  keep_at(order, input.slots);
  input.hosts = std::move(hosts);
  input.hosts_file.clear();
  input.job.whole_allocation = false;
  if (std::ranges::count(lost, 0) > 0) input.first_is_here = false;
  input.lost += (input.lost.empty() ? "" : " ") + fmt::format("{}", fmt::join(names, " "));
  const auto replaced = std::make_shared<Request>(request);
  if (replaced->spares) replaced->spares = static_cast<int>(input.hosts.size()) - (nodes - fewer);
  if (replaced->spares == 0) replaced->spares.reset();
  input.request = replaced;
  return Done{};
}

}  // namespace

Result<Prepared> plan_restart(const Prepared& before, int restart, const std::vector<int>& lost) {
  const auto means = std::make_shared<Means>(*before.means);
  PlanInput& input = means->input;
  input.restart = restart;
  Diagnostics known;  // the user has read them
  if (!lost.empty())
    if (const Status replaced = replace_nodes(lost, before.plan.nodes(), input); !replaced)
      return replaced.error();
  const bool chosen = input.request->master_port || input.env.find("MASTER_PORT") != nullptr;
  if (!chosen || !lost.empty()) {
    means->site.hosts.names = input.hosts;
    // Ports of the attempts before stay held: ranks of theirs may still answer there.
    Result<Meeting> meeting = choose_rendezvous(*input.request, *means->world, means->site, known);
    if (!meeting) return meeting.error();
    input.rendezvous = std::move(meeting->point);
    means->port_lock = meeting->port_lock;
  }
  Result<Made> made = complete(*means);
  if (!made) return made.error();
  Prepared next = before;
  next.plan = std::move(made->plan);
  next.container = std::move(made->container);
  next.argv = std::move(made->argv);
  next.port_lock = means->port_lock;
  next.means = means;
  return next;
}

}  // namespace hpclaunch::job
