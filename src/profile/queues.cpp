// Which queue takes a job, and what to ask for where none does.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"

namespace hpclaunch {
namespace {

long into(long value, long least, long most) {
  return std::max(least, most == 0 ? value : std::min(value, most));
}

std::string duration(long seconds) {
  constexpr long kMinute = 60;
  constexpr long kHour = 60 * kMinute;
  return seconds % kHour == 0 ? fmt::format("{}h", seconds / kHour)
                              : fmt::format("{}m", (seconds + kMinute - 1) / kMinute);
}

// How far a job must change for this queue: 0 for one that it takes, log 2 for half the nodes or half the time.
double distance(const Queue& queue, int nodes, long seconds) {
  const auto change = [](long from, long to) {
    return std::abs(std::log(static_cast<double>(to) / static_cast<double>(std::max(from, 1L))));
  };
  return change(nodes, into(nodes, queue.least_nodes, queue.most_nodes)) +
         change(seconds, into(seconds, queue.least_seconds, queue.most_seconds));
}

}  // namespace

std::vector<std::string> module_lines(const Modules& modules) {
  std::vector<std::string> lines;
  if (modules.purge) lines.emplace_back("module purge");
  for (const std::string& folder : modules.use) lines.push_back("module use " + folder);
  if (!modules.load.empty()) lines.push_back("module load " + joined(modules.load, " "));
  if (!modules.conda.empty()) lines.push_back("conda activate " + modules.conda);
  return lines;
}

JobNeeds needs_on(const JobNeeds& job, std::string_view node_type) {
  JobNeeds needs = job;
  std::erase_if(needs.queues, [&](const Queue& queue) {
    return !queue.node_types.empty() && std::ranges::count(queue.node_types, node_type) == 0;
  });
  return needs;
}

bool takes(const Queue& queue, int nodes, long seconds) {
  return into(nodes, queue.least_nodes, queue.most_nodes) == nodes &&
         into(seconds, queue.least_seconds, queue.most_seconds) == seconds;
}

std::string limits_text(const Queue& queue) {
  std::string nodes = "any number of nodes";
  if (queue.most_nodes != 0)
    nodes = queue.least_nodes < queue.most_nodes
                ? fmt::format("{}-{} nodes", queue.least_nodes, queue.most_nodes)
                : counted(queue.most_nodes, "node");
  else if (queue.least_nodes > 1)
    nodes = fmt::format("from {} nodes on", queue.least_nodes);
  if (queue.most_seconds == 0) return nodes;
  const std::string most = duration(queue.most_seconds);
  return queue.least_seconds == 0
             ? fmt::format("{}, up to {}", nodes, most)
             : fmt::format("{}, {} to {}", nodes, duration(queue.least_seconds), most);
}

Result<const Queue*> choose_queue(const JobNeeds& job, int nodes, long seconds) {
  if (job.queues.empty()) return nullptr;
  const auto fits = [&](const Queue& queue) { return takes(queue, nodes, seconds); };
  const auto found = std::ranges::find_if(job.queues, fits);
  if (found != job.queues.end()) return &*found;
  const Queue& nearest = *std::ranges::min_element(
      job.queues, {}, [&](const Queue& queue) { return distance(queue, nodes, seconds); });
  std::vector<std::string> all;
  for (const Queue& queue : job.queues)
    all.push_back((queue.name.empty() ? "" : queue.name + ": ") + limits_text(queue));
  return Error{ErrorKind::usage,
               fmt::format("no queue takes {} for {} ({})", counted(nodes, "node"),
                           duration(seconds), joined(all, "; ")),
               fmt::format("-N {} -t {}{}, or name another queue with -q",
                           into(nodes, nearest.least_nodes, nearest.most_nodes),
                           duration(into(seconds, nearest.least_seconds, nearest.most_seconds)),
                           nearest.name.empty() ? "" : " for queue " + nearest.name)};
}

}  // namespace hpclaunch
