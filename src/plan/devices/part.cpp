#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/node_ranks.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

// Of the cores with most of them: the others may have some switched off.
int threads_per_core(const Topology& node) {
  int most = 1;
  for (const Core& core : node.cores) most = std::max(most, core.pus.count());
  return most;
}

int width_of(const PlanInput& input) {
  return std::max(1, input.request->cores_per_rank.value_or(1));
}

int cores_on(const PlanInput& input, std::size_t host) {
  return is_whole(input, host) ? cores_of(input.node, whole_node(input)).count()
                               : granted_cores(input.node, input.granted[host]);
}

// Ranks that a node can take.
long room(const PlanInput& input, std::size_t host) {
  if (input.request->oversubscribe) return std::numeric_limits<int>::max();
  return cores_on(input, host) / width_of(input);
}

Error too_small(const PlanInput& input, std::string_view host, int cores, int ranks) {
  const int width = width_of(input);
  std::string need = counted(ranks, "rank");
  if (width > 1) need += fmt::format(" with {} each", counted(width, "core"));
  return request_error(fmt::format("{} requested on {}, {} granted ({})", need, host,
                                   counted(cores, "core"), input.granted_why),
                       cores >= width
                           ? fmt::format("use {} there{}", counted(cores / width, "rank"),
                                         width > 1 ? "" : ", or share cores with --oversubscribe")
                           : fmt::format("use --cpus-per-rank {} or fewer", cores));
}

}  // namespace

bool nameless_cores(const PlanInput& input, int nodes) {
  return input.part_of_node && (nodes > 1 || !input.cores_known);
}

bool knows_amounts(const PlanInput& input, int nodes) {
  return nameless_cores(input, nodes) && static_cast<int>(input.granted.size()) >= nodes;
}

bool can_count_through(const PlanInput& input, int nodes) {
  return knows_amounts(input, nodes) && input.launcher.multi_node && core_runs(input.node);
}

CpuSet whole_node(const PlanInput& input) {
  return input.whole_node.empty() ? input.node.all_pus() : input.whole_node;
}

bool is_whole(const PlanInput& input, std::size_t host) {
  return input.granted[host] >= whole_node(input).count();
}

std::string why_not_counted(const PlanInput& input) {
  if (!input.launcher.multi_node)
    return fmt::format("{} starts ranks on this process's CPUs, which are not the job's",
                       input.launcher.name);
  return "the numbers of its cores' hardware threads follow no order";
}

int granted_cores(const Topology& node, int granted) {
  const int threads = threads_per_core(node);
  return std::clamp((granted + threads - 1) / threads, 1, static_cast<int>(node.cores.size()));
}

Result<NodeRanks> share_part(const PlanInput& input, const Slots& slots, std::string_view host,
                             int granted, int ranks, bool count_through) {
  const int cores = granted_cores(input.node, granted);
  const int width = input.request->cores_per_rank.value_or(0);
  const bool shared = ranks > cores && input.request->oversubscribe && width <= 1;
  if (!shared && static_cast<long>(ranks) * width_of(input) > cores)
    return too_small(input, host, cores, ranks);
  NodeRanks result;
  for (int r = 0; r < ranks; ++r) {
    const int even = cores / ranks + (r < cores % ranks ? 1 : 0);
    result.ranks.emplace_back().cores = shared ? 1 : width > 0 ? width : even;
  }
  if (count_through) number_parts(cores, result);
  result.assigned = assign_slots(slots, ranks);
  give_devices(input.node, slots, result);
  return result;
}

void number_parts(int cores, NodeRanks& placed) {
  const auto ranks = static_cast<long>(placed.ranks.size());
  const bool shared = ranks > cores;
  int next = 0;
  for (long r = 0; r < ranks; ++r) {
    RankPlan& rank = placed.ranks[static_cast<std::size_t>(r)];
    rank.part_first = shared ? static_cast<int>(r * cores / ranks) : next;
    rank.part_last = rank.part_first + rank.cores - 1;
    next += rank.cores;
  }
}

Result<std::vector<int>> distribute_over_parts(const PlanInput& input, int nodes, int ranks) {
  std::vector<int> on(static_cast<std::size_t>(nodes), 0);
  int left = ranks;
  for (bool taken = true; left > 0 && taken;) {
    taken = false;
    for (std::size_t n = 0; n < on.size() && left > 0; ++n) {
      if (on[n] >= room(input, n)) continue;
      ++on[n];
      --left;
      taken = true;
    }
  }
  int cores = 0;
  for (std::size_t n = 0; n < on.size(); ++n) {
    const int here = cores_on(input, n);
    if (on[n] == 0) return too_small(input, input.hosts[n], here, 1);
    cores += here;
  }
  if (left == 0) return on;
  return request_error(
      fmt::format("{} requested on {}, {} granted in all ({})", counted(ranks, "rank"),
                  counted(nodes, "node"), counted(cores, "core"), input.granted_why),
      fmt::format("use --ranks {} or fewer{}", ranks - left,
                  width_of(input) > 1 ? "" : ", or share cores with --oversubscribe"));
}

}  // namespace hpclaunch
