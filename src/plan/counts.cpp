#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/node_ranks.h"
#include "plan/environment/settings.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

int divide_up(int a, int b) { return (a + b - 1) / b; }

// A rank on each granted device, where nodes have different numbers of them; empty where they have not.
std::vector<int> granted_slots(const PlanInput& input, const Slots& slots, int nodes) {
  const auto as_many = [&](const Slots& one) { return one.count() == slots.count(); };
  if (slots.filled > 0 || std::ranges::all_of(slots.others, as_many)) return {};
  const int each = std::max(1, slots.ranks_per_slot);
  std::vector<int> of_hosts;
  for (int n = 0; n < nodes; ++n)
    of_hosts.push_back(
        std::max(1, each * slots.of(input.grant_of[static_cast<std::size_t>(n)]).count()));
  return of_hosts;
}

// The allocation's ranks on the first nodes; empty where it has none. A node file with one line per node says nothing
// about ranks where nodes have devices: sites write one line whatever the job is.
std::vector<int> host_slots(const PlanInput& input, const Slots& slots, int nodes) {
  if (input.slots.empty()) return granted_slots(input, slots, nodes);
  std::vector<int> of_hosts(input.slots.begin(), input.slots.begin() + nodes);
  const bool told =
      input.own >= 0 || input.slots_told || slots.count() == 0 || std::ranges::max(of_hosts) > 1;
  return told ? of_hosts : std::vector<int>{};
}

// --nproc-per-node gpu, xpu, cpu, auto. Source: torch/distributed/run.py, determine_local_world_size.
Result<Count> counted_per_node(const PlanInput& input, const Slots& slots) {
  const std::string& by = input.request->ranks_by;
  const bool platform = input.own >= 0 && !input.request->static_nodes;  // it has the same words
  const std::string who =
      platform ? fmt::format("the platform's \"{}\"", by) : fmt::format("--nproc-per-node {}", by);
  const auto found = [&](int count, std::string_view what) {
    return Count{count, platform ? Layer::environment : Layer::command_line,
                 fmt::format("{}: {}", who, counted(count, what))};
  };
  const bool intel = slots.count() > 0 && slots.vendor->name == "intel";
  const bool devices = slots.count() > 0 && (by == "auto" || intel == (by == "xpu"));
  if (by != "cpu" && devices) return found(slots.count(), "device");
  if (by == "gpu" || by == "xpu")
    return request_error(
        slots.count() == 0 ? fmt::format("{}: no device on this node", who)
                           : fmt::format("{}: the devices are of {}", who, slots.vendor->name),
        platform ? "--ppn with a number" : "--nproc-per-node with a number, cpu or auto");
  if (const int quota = limiting_quota(input); quota > 0)
    return found(quota, "CPU of the control group's time");
  return found(std::max(1, input.node.allowed.count()), "allowed CPU");
}

// Per-node count when it was not typed: from the total, else the allocation, else the node.
Count decide_per_node(const PlanInput& input, const Slots& slots, int nodes) {
  const Request& typed = *input.request;
  if (typed.ranks_per_node) return {*typed.ranks_per_node, Layer::command_line, "--ranks-per-node"};
  if (typed.ranks)
    return {divide_up(*typed.ranks, nodes), Layer::computed,
            fmt::format("{} distributed over {}", counted(*typed.ranks, "rank"),
                        counted(nodes, "node"))};
  if (const std::vector<int> of_hosts = host_slots(input, slots, nodes); !of_hosts.empty())
    return {std::ranges::max(of_hosts), Layer::environment,
            input.slots.empty() ? input.grants_by + " has a number of devices for each node"
                                : input.slots_why};
  const std::string devices = counted(slots.count(), "device");
  if (slots.filled > 0)
    return {slots.filled * slots.count(), Layer::command_line,
            fmt::format("--ranks-per-device {} on {}", slots.filled, devices)};
  if (slots.count() > 0) {
    const int each = std::max(1, slots.ranks_per_slot);
    return {each * slots.count(), Layer::builtin,
            fmt::format("default: {} for each of {}", counted(each, "rank"), devices)};
  }
  const bool as_here = input.cores_known && std::ranges::all_of(input.granted, [&](int granted) {
                         return granted == input.granted.front();
                       });
  if (knows_amounts(input, nodes) && !as_here)
    return {1, Layer::builtin,
            "default: one rank on each granted part of a node, whose NUMA nodes are not known"};
  // Memory stays local, and a small machine gets one rank.
  const auto numa = static_cast<int>(cores_by_numa(usable_part(input.node)).size());
  return {numa, Layer::builtin, "default: one rank per NUMA node"};
}

Result<Count> decide_nodes(const PlanInput& input) {
  const Request& typed = *input.request;
  const int all = static_cast<int>(input.hosts.size());
  const int spares = typed.spares.value_or(0);
  const int available = all - spares;
  if (spares > 0 && input.own >= 0)
    return request_error("--spares: this hpclaunch starts one node, and not the others",
                         "omit it: who starts the nodes replaces a lost one");
  if (spares > 0 && typed.max_restarts.value_or(0) == 0)
    return request_error("--spares has no use without restarts", "--max-restarts 1 with it");
  if (available < 1)
    return request_error(
        fmt::format("--spares {} leaves no node of {} ({})", spares, all, input.hosts_why),
        all > 1 ? fmt::format("--spares {}, or a larger job", all - 1)
                : std::string("a job of more nodes, or omit --spares"));
  if (input.own >= 0)
    return Count{all, typed.nodes ? Layer::command_line : Layer::environment, input.hosts_why};
  const int least = typed.least_nodes.value_or(typed.nodes.value_or(1));
  if (typed.least_nodes && least <= available)
    return Count{std::min(*typed.nodes, available), Layer::command_line,
                 fmt::format("{} to {} nodes, {} available", least, *typed.nodes, available)};
  if (least > available)
    return request_error(
        fmt::format("{} requested, {} available ({}{})", counted(least, "node"), available,
                    input.hosts_why, spares == 0 ? "" : fmt::format(", --spares {}", spares)),
        typed.static_nodes
            ? "--node-rank R on each node, name the nodes with --hostfile FILE, or fewer"
            : "name the nodes with --hosts a,b or --hostfile FILE, --node-rank R on each node, or "
              "request fewer");
  if (typed.nodes) return Count{*typed.nodes, Layer::command_line, "--nodes"};
  if (typed.ranks && typed.ranks_per_node) {
    const int needed = divide_up(*typed.ranks, *typed.ranks_per_node);
    if (needed > available)
      return request_error(
          fmt::format("{} at {} per node need {}, {} available ({})", counted(*typed.ranks, "rank"),
                      *typed.ranks_per_node, counted(needed, "node"), available, input.hosts_why),
          "increase --ranks-per-node, or name more nodes with --hostfile FILE");
    return Count{needed, Layer::computed, "as many as the ranks need"};
  }
  if (typed.ranks && *typed.ranks < available)
    return Count{*typed.ranks, Layer::computed, "fewer ranks than nodes: one rank each"};
  return Count{available, Layer::environment,
               spares == 0
                   ? input.hosts_why
                   : fmt::format("{}, without {}", input.hosts_why, counted(spares, "spare"))};
}

// Ranks on each node: as in the allocation's list unless a count was typed, filled up
// node by node under --ranks-per-node, spread evenly otherwise. Every node gets one at least.
// Parts of nodes take as many as they have cores, and the list's own numbers where it has that many.
Result<std::vector<int>> distribute(const PlanInput& input, const Slots& slots, int nodes,
                                    int ranks, int per_node) {
  const Request& typed = *input.request;
  if (!typed.ranks && !typed.ranks_per_node)
    if (std::vector<int> of_hosts = host_slots(input, slots, nodes); !of_hosts.empty())
      return of_hosts;
  if (typed.ranks && !typed.ranks_per_node && knows_amounts(input, nodes)) {
    std::vector<int> of_hosts = input.slots;
    of_hosts.resize(static_cast<std::size_t>(nodes), 0);
    if (std::ssize(input.slots) >= nodes &&
        std::accumulate(of_hosts.begin(), of_hosts.end(), 0) == ranks)
      return of_hosts;
    if (input.launcher.distribution != Distribution::fill)
      return distribute_over_parts(input, nodes, ranks);
  }
  const bool fill = input.launcher.distribution == Distribution::fill ||
                    (typed.ranks_per_node && input.launcher.distribution == Distribution::any);
  std::vector<int> ranks_on;
  int left = ranks;
  for (int after = nodes - 1; after >= 0; --after) {
    ranks_on.push_back(fill ? std::min(per_node, left - after) : divide_up(left, after + 1));
    left -= ranks_on.back();
  }
  return ranks_on;
}

// More ranks than --ranks-per-device allows on the devices of a node, or than it has groups of devices.
Status check_groups(const Slots& slots, int ranks_per_node) {
  const int count = slots.count();
  const auto too_few = [&](const std::string& how, int needed, int most, const char* option) {
    return request_error(
        fmt::format("{} {} need {} devices, {}", counted(ranks_per_node, "rank"), how, needed,
                    slots.available()),
        slots.shortage.fix_for(
            needed, fmt::format("use --ranks-per-node {} or fewer, or a {}", most, option)));
  };
  if (slots.filled > 0 && ranks_per_node > slots.filled * count)
    return too_few(fmt::format("at {} per device", slots.filled),
                   divide_up(ranks_per_node, slots.filled), slots.filled * count,
                   "larger --ranks-per-device");
  if (slots.per_rank > 1 && ranks_per_node > count)
    return too_few(fmt::format("with {} devices each", slots.per_rank),
                   ranks_per_node * slots.per_rank, count, "smaller --devices-per-rank");
  return Done{};
}

}  // namespace

int Counts::most() const { return std::ranges::max(ranks_on); }

bool Counts::even() const {
  return ranks_on.front() == ranks_on.back() && ranks.value == most() * nodes.value;
}

std::vector<Setting> Counts::choices() const {
  const auto setting = [](const char* name, const Count& count) {
    return choice(name, count.layer, std::to_string(count.value), count.why);
  };
  return {setting("nodes", nodes), setting("ranks-per-node", per_node), setting("ranks", ranks)};
}

Result<Counts> decide_counts(const PlanInput& input, const Slots& slots) {
  const Request& typed = *input.request;
  if (const auto& each = typed.ranks_per_device;
      each && slots.list.empty() && !slots.shortage.by.empty())
    return request_error(fmt::format("--ranks-per-device {}: {}", *each, slots.shortage.by),
                         fmt::format("{}, or use --ranks-per-node", slots.shortage.fix));
  Result<Count> on = decide_nodes(input);
  if (!on) return on.error();
  const int nodes = on->value;
  Result<Count> each = typed.ranks_by.empty() ? decide_per_node(input, slots, nodes)
                                              : counted_per_node(input, slots);
  if (!each) return each.error();
  const int per_node = each->value;
  const int room = nodes * per_node;
  const int ranks = typed.ranks.value_or(room);
  if (ranks < nodes)
    return request_error(
        fmt::format("{} on {}: every node needs a rank{}", counted(ranks, "rank"),
                    counted(nodes, "node"),
                    input.own >= 0 ? fmt::format(" ({})", input.hosts_why) : ""),
        fmt::format("use --nodes {} or fewer, or --ranks {} or more", ranks, nodes));
  if (ranks > room)
    return request_error(fmt::format("{} on {} contradict {} per node", counted(ranks, "rank"),
                                     counted(nodes, "node"), counted(per_node, "rank")),
                         fmt::format("increase --ranks-per-node to {}, or decrease --ranks to {}",
                                     divide_up(ranks, nodes), room));
  const Result<std::vector<int>> assigned = distribute(input, slots, nodes, ranks, per_node);
  if (!assigned) return assigned.error();
  Counts counts{*assigned, *std::move(on), *std::move(each), {}};
  counts.ranks = {std::accumulate(assigned->begin(), assigned->end(), 0),
                  typed.ranks ? Layer::command_line : Layer::computed,
                  typed.ranks ? "--ranks" : "sum over the nodes"};
  const int most = counts.most();
  if (typed.ranks && !typed.ranks_per_node && most > per_node)
    counts.per_node = {
        most, Layer::computed,
        fmt::format("{} distributed over the granted parts of {} ({})", counted(ranks, "rank"),
                    counted(nodes, "node"), input.granted_why)};
  if (nodes > 1 && !input.launcher.multi_node && input.own < 0)
    return Error{ErrorKind::unsupported,
                 fmt::format("launcher {} works on one node only, the plan has {}",
                             input.launcher.name, counted(nodes, "node")),
                 "use --nodes 1, or another launcher with --launcher NAME"};
  if (const Status groups = check_groups(slots, most); !groups) return groups.error();
  return counts;
}

}  // namespace hpclaunch
