#include "plan/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "hpclaunch/text.h"
#include "plan/devices/node_ranks.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

struct Wanted {
  int nodes = 1;
  int ranks = 1;
  int per_node = 1;  // on the fullest node
};

Setting chosen(std::string name, Layer layer, int value, std::string why) {
  return choice(std::move(name), layer, std::to_string(value), std::move(why));
}

int divide_up(int a, int b) { return (a + b - 1) / b; }

// One rank per NUMA node that has cores for us: memory stays local, and a small machine gets one rank.
int natural_per_node(const Topology& node) {
  std::set<int> numa;
  for (const Core& core : node.cores)
    if (core.pus.intersects(node.allowed)) numa.insert(core.numa);
  return std::max<int>(1, static_cast<int>(numa.size()));
}

Error contradiction(const Wanted& want, std::string hint) {
  return request_error(
      fmt::format("{} on {} with {} each do not fit together", counted(want.ranks, "rank"),
                  counted(want.nodes, "node"), counted(want.per_node, "rank")),
      std::move(hint));
}

// A node file with one line per node says nothing about ranks where nodes have devices: sites write one
// line whatever the job is.
bool slots_count(const PlanInput& input, const Units& units, int nodes) {
  if (input.slots.empty()) return false;
  return units.count() == 0 ||
         *std::max_element(input.slots.begin(), input.slots.begin() + nodes) > 1;
}

// Per-node count when it was not typed: from the total, else the allocation, else the node.
Setting decide_per_node(const PlanInput& input, const Units& units, int nodes) {
  const Request& typed = input.request;
  if (typed.ranks_per_node)
    return chosen("ranks-per-node", Layer::command_line, *typed.ranks_per_node, "--ranks-per-node");
  if (typed.ranks)
    return chosen(
        "ranks-per-node", Layer::computed, divide_up(*typed.ranks, nodes),
        fmt::format("{} spread over {}", counted(*typed.ranks, "rank"), counted(nodes, "node")));
  if (slots_count(input, units, nodes)) {
    const auto most = std::max_element(input.slots.begin(), input.slots.begin() + nodes);
    return chosen("ranks-per-node", Layer::environment, *most, input.slots_why);
  }
  if (units.filled > 0)
    return chosen(
        "ranks-per-node", Layer::command_line, units.filled * units.count(),
        fmt::format("--ranks-per-device {} on {}", units.filled, counted(units.count(), "device")));
  if (units.count() > 0) {
    const int each = std::max(1, units.ranks_per_unit);
    return chosen("ranks-per-node", Layer::builtin, each * units.count(),
                  each == 1 ? fmt::format("no count was given: one rank for each of {}",
                                          counted(units.count(), "device"))
                            : fmt::format("no count was given: {} for each of {}",
                                          counted(each, "rank"), counted(units.count(), "device")));
  }
  if (knows_amounts(input, nodes))
    return chosen(
        "ranks-per-node", Layer::builtin, 1,
        "no count was given: one rank on each part of a node, since which NUMA nodes that "
        "touches is not known");
  const int natural = natural_per_node(input.node);
  return chosen("ranks-per-node", Layer::builtin, natural,
                natural == 1 ? "no count was given: one rank on a node with one NUMA node"
                             : "no count was given: one rank per NUMA node");
}

Result<Setting> decide_nodes(const PlanInput& input) {
  const Request& typed = input.request;
  const int available = static_cast<int>(input.hosts.size());
  if (typed.nodes && *typed.nodes > available)
    return request_error(fmt::format("{} requested, {} available ({})",
                                     counted(*typed.nodes, "node"), available, input.hosts_why),
                         "name the nodes with --hostfile FILE, or ask for fewer");
  if (typed.nodes) return chosen("nodes", Layer::command_line, *typed.nodes, "--nodes");
  if (typed.ranks && typed.ranks_per_node) {
    const int needed = divide_up(*typed.ranks, *typed.ranks_per_node);
    if (needed > available)
      return request_error(
          fmt::format("{} at {} per node need {}, {} available ({})", counted(*typed.ranks, "rank"),
                      *typed.ranks_per_node, counted(needed, "node"), available, input.hosts_why),
          "raise --ranks-per-node or name more nodes with --hostfile FILE");
    return chosen("nodes", Layer::computed, needed, "as many as the ranks need");
  }
  if (typed.ranks && *typed.ranks < available)
    return chosen("nodes", Layer::computed, *typed.ranks, "fewer ranks than nodes: one each");
  return chosen("nodes", Layer::environment, available, input.hosts_why);
}

int number(const Setting& setting) {
  return static_cast<int>(*parse_natural(std::get<std::string>(setting.value())));
}

// Ranks on each node: as in the allocation's list unless a count was typed, filled up
// node by node under --ranks-per-node, spread evenly otherwise. Every node gets one at least.
// Parts of nodes take as many as they have cores, and the list's own numbers where it has that many.
Result<std::vector<int>> distribute(const PlanInput& input, const Units& units,
                                    const Wanted& want) {
  const Request& typed = input.request;
  const auto listed = [&] {
    return std::vector<int>(input.slots.begin(), input.slots.begin() + want.nodes);
  };
  if (!typed.ranks && !typed.ranks_per_node && slots_count(input, units, want.nodes))
    return listed();
  if (typed.ranks && !typed.ranks_per_node && knows_amounts(input, want.nodes)) {
    const bool same_sum =
        static_cast<int>(input.slots.size()) >= want.nodes &&
        std::accumulate(input.slots.begin(), input.slots.begin() + want.nodes, 0) == want.ranks;
    if (same_sum) return listed();
    if (input.launcher.distribution != Distribution::fill)
      return distribute_over_parts(input, want.nodes, want.ranks);
  }
  const bool fill = input.launcher.distribution == Distribution::fill ||
                    (typed.ranks_per_node && input.launcher.distribution == Distribution::any);
  std::vector<int> ranks_on;
  int left = want.ranks;
  for (int after = want.nodes - 1; after >= 0; --after) {
    ranks_on.push_back(fill ? std::min(want.per_node, left - after) : divide_up(left, after + 1));
    left -= ranks_on.back();
  }
  return ranks_on;
}

// --ranks-per-device where a mask or the allocation leaves no device.
Status check_shortage(const Request& typed, const Units& units) {
  if (!typed.ranks_per_device || !units.list.empty() || units.shortage.by.empty()) return Done{};
  return request_error(
      fmt::format("--ranks-per-device {}: {}", *typed.ranks_per_device, units.shortage.by),
      fmt::format("{}, or use --ranks-per-node", units.shortage.fix));
}

// More devices than the ranks can have: what there is of them and who left so few; `fewer`: what would do.
Error too_few(const Units& units, const std::string& what, int needed, const std::string& fewer) {
  const Shortage& shortage = units.shortage;
  return request_error(
      fmt::format("{} need {} devices, and {}", what, needed,
                  shortage.by.empty() ? fmt::format("a node has {}", units.total) : shortage.by),
      shortage.fix_for(needed, fewer));
}

// More ranks than --ranks-per-device allows on the devices of a node, or than it has groups of devices.
Status check_groups(const Units& units, int ranks_per_node) {
  const int count = units.count();
  const std::string ranks = counted(ranks_per_node, "rank");
  if (units.filled > 0 && ranks_per_node > units.filled * count)
    return too_few(units, fmt::format("{} at {} per device", ranks, units.filled),
                   (ranks_per_node + units.filled - 1) / units.filled,
                   fmt::format("use --ranks-per-node {} or fewer, or a larger --ranks-per-device",
                               units.filled * count));
  if (units.per_rank > 1 && ranks_per_node > count)
    return too_few(
        units, fmt::format("{} with {} devices each", ranks, units.per_rank),
        ranks_per_node * units.per_rank,
        fmt::format("use --ranks-per-node {} or fewer, or a smaller --devices-per-rank", count));
  return Done{};
}

Status check_launcher(const PlanInput& input, int nodes) {
  if (nodes <= 1 || input.launcher.multi_node) return Done{};
  return Error{ErrorKind::unsupported,
               fmt::format("launcher {} starts ranks on this machine only, the plan has {}",
                           input.launcher.name, counted(nodes, "node")),
               "use --nodes 1, or another launcher with --launcher NAME"};
}

}  // namespace

int Counts::most() const { return *std::max_element(ranks_on.begin(), ranks_on.end()); }

int Counts::ranks() const { return std::accumulate(ranks_on.begin(), ranks_on.end(), 0); }

bool Counts::even() const {
  return ranks_on.front() == ranks_on.back() && ranks() == most() * nodes();
}

Result<Counts> decide_counts(const PlanInput& input, const Units& units) {
  if (const Status some = check_shortage(input.request, units); !some) return some.error();
  Result<Setting> nodes = decide_nodes(input);
  if (!nodes) return nodes.error();
  Wanted want;
  want.nodes = number(*nodes);
  Setting per_node = decide_per_node(input, units, want.nodes);
  want.per_node = number(per_node);
  want.ranks = input.request.ranks.value_or(want.nodes * want.per_node);
  if (want.ranks < want.nodes)
    return contradiction(want, "every node used gets one rank at least; lower --nodes");
  if (want.ranks > want.nodes * want.per_node)
    return contradiction(
        want, fmt::format("raise --ranks-per-node to {} or lower --ranks to {}",
                          divide_up(want.ranks, want.nodes), want.nodes * want.per_node));
  Counts counts;
  Result<std::vector<int>> assigned = distribute(input, units, want);
  if (!assigned) return assigned.error();
  counts.ranks_on = std::move(*assigned);
  const int most = counts.most();
  if (input.request.ranks && !input.request.ranks_per_node && most > want.per_node)
    per_node = chosen(
        "ranks-per-node", Layer::computed, most,
        fmt::format("{} distributed over the granted parts of {}, {}", counted(want.ranks, "rank"),
                    counted(want.nodes, "node"), input.granted_why));
  const bool typed_total = input.request.ranks.has_value();
  counts.choices.push_back(std::move(*nodes));
  counts.choices.push_back(std::move(per_node));
  counts.choices.push_back(chosen("ranks", typed_total ? Layer::command_line : Layer::computed,
                                  counts.ranks(),
                                  typed_total ? "--ranks" : "the sum over the nodes"));
  if (const Status launcher = check_launcher(input, want.nodes); !launcher) return launcher.error();
  if (const Status groups = check_groups(units, most); !groups) return groups.error();
  return counts;
}

}  // namespace hpclaunch
