#include "plan/devices/node_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/masks.h"
#include "plan/devices/nics.h"
#include "plan/devices/visibility.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

int count_far(const Topology& node, const Units& units, const NodeRanks& placed) {
  int far = 0;
  for (std::size_t r = 0; r < placed.assigned.size(); ++r)
    if (const int unit = placed.assigned[r]; unit >= 0)
      far += distance(node, units.list[unit].pus, placed.ranks[r].cpus) == kNear ? 0 : 1;
  return far;
}

// True when a mask of the batch system or the user leaves devices that the rule is not for, and the cores near them
// suffice.
bool closer_without_rule(const PlanInput& input, const Units& units,
                         const std::vector<RankPlan>& bound) {
  if (units.given.empty()) return false;
  const NodeRanks by_rule{bound, match_bound(input.node, units, bound)};
  if (count_far(input.node, units, by_rule) == 0) return false;
  const Result<NodeRanks> near = match_units(input.node, units, {static_cast<int>(bound.size())});
  return near && count_far(input.node, units, *near) == 0;
}

// The cores that a rule gives to the ranks of a node. A rule gives one rank cores near one device: with
// --devices-per-rank, a rank has the cores of each of its devices.
std::optional<std::vector<RankPlan>> bind_ranks(const Binding& rule, const PlanInput& input,
                                                const Units& units, int ranks, const Facts& facts) {
  if (units.per_rank == 1) return apply_binding(rule, input.node, ranks, facts);
  Units singles = units;
  singles.list.clear();
  singles.per_rank = 1;
  for (const Unit* unit : single_units(units)) {
    Unit single = *unit;
    single.more.clear();
    if (const Device* device = input.node.find_device(single.device))
      single.pus = input.node.near(*device);  // a group's first unit has those of all
    singles.list.push_back(std::move(single));
  }
  const auto bound = apply_binding(rule, input.node, singles.count(), facts);
  if (!bound) return std::nullopt;
  const std::vector<int> single_of = match_bound(input.node, singles, *bound);
  std::vector<RankPlan> result;
  for (const int group : assign_units(units, ranks)) {
    RankPlan rank;
    for (std::size_t b = 0; b < bound->size(); ++b) {
      if (single_of[b] / units.per_rank != group) continue;
      rank.cpus |= (*bound)[b].cpus;
      rank.roles.insert((*bound)[b].roles.begin(), (*bound)[b].roles.end());
    }
    describe_cpus(input.node, rank);
    result.push_back(std::move(rank));
  }
  return result;
}

// The last rule that holds and fits. What was typed about cores is stronger than any rule.
void bind_by_rule(const PlanInput& input, Facts facts, const Units& units, int ranks,
                  NodeRanks& result) {
  if (input.profile == nullptr || input.request.cores_per_rank) return;
  const int bound_ranks =
      units.per_rank == 1 ? ranks : static_cast<int>(single_units(units).size());
  facts.job["ranks_per_node"] = std::to_string(bound_ranks);
  const std::vector<Binding>& rules = input.profile->bindings;
  for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
    if (!holds(rule->when, facts)) continue;
    std::optional<std::vector<RankPlan>> bound = bind_ranks(*rule, input, units, ranks, facts);
    const bool fits = bound && std::ranges::all_of(*bound, [&](const RankPlan& rank) {
                        return input.node.allowed.contains(rank.cpus);
                      });
    if (!fits) {
      if (result.rules.empty())
        result.remarks.push_back(fmt::format("profile rule {} does not fit {} on this node",
                                             rule->id, counted(bound_ranks, "rank")));
    } else if (result.rules.empty() && closer_without_rule(input, units, *bound)) {
      result.remarks.push_back(
          fmt::format("profile rule {} does not match the devices of {}", rule->id, units.given));
    } else {
      result.rules.push_back({&*rule, met(rule->when, facts), std::move(*bound)});
    }
  }
  if (result.rules.empty()) return;
  result.ranks = result.rules.front().ranks;
  result.assigned = units.per_rank == 1 ? match_bound(input.node, units, result.ranks)
                                        : assign_units(units, ranks);
}

// Where some rank has fewer cores than an equal share of those that are near the same devices.
void report_small_share(const PlanInput& input, const Units& units, NodeRanks& result) {
  std::map<std::string, std::vector<std::size_t>> groups;  // ranks by what is near their devices
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const int unit = result.assigned[r];
    groups[unit < 0 ? "" : units.list[unit].pus.to_list()].push_back(r);
  }
  for (const auto& [list, members] : groups) {
    const CpuSet near = list.empty() ? input.node.all_pus() : *CpuSet::parse(list);
    const int cores = cores_of(input.node, near & input.node.allowed).count();
    const int share = cores / static_cast<int>(members.size());
    const auto small =
        std::ranges::find_if(members, [&](std::size_t r) { return result.ranks[r].cores < share; });
    if (small == members.end()) continue;
    result.reports.push_back(
        {"uneven-shares", Severity::note,
         fmt::format("local rank {} has {}, fewer than an equal share of {} ({}): ranks stay in "
                     "NUMA nodes and near their devices",
                     *small, counted(result.ranks[*small].cores, "core"), counted(cores, "core"),
                     share),
         fmt::format("--cpus-per-rank {}", share)});
    return;
  }
}

// Half of the cores or more idle, where no number of cores was typed.
void report_idle(const Topology& node, NodeRanks& placed) {
  CpuSet used;
  for (const RankPlan& rank : placed.ranks) used |= rank.cpus;
  const CoreSet all = cores_of(node, node.allowed);
  const int usable = all.count();
  const int idle = (all - cores_of(node, used)).count();
  const int ranks = static_cast<int>(placed.ranks.size());
  if (2 * idle < usable || usable < 2 * ranks) return;
  placed.reports.push_back(
      {"idle-cores", Severity::note,
       fmt::format("{} of {} are idle: {} the cores near {} device{}", idle,
                   counted(usable, "core"), ranks == 1 ? "the rank has" : "ranks have",
                   ranks == 1 ? "its" : "their", ranks == 1 ? "" : "s"),
       fmt::format("--cpus-per-rank {}", usable / ranks)});
}

// Errors: as match_units().
Result<NodeRanks> place_ranks(const PlanInput& input, const Facts& facts, const Units& all,
                              int ranks) {
  Units units = all;
  if (units.filled > 0) units.list.resize(static_cast<std::size_t>(units.used_by(ranks)));
  const bool typed = input.request.cores_per_rank.has_value();
  NodeRanks result;
  bind_by_rule(input, facts, units, ranks, result);
  if (result.rules.empty()) {
    Result<NodeRanks> matched =
        match_units(input.node, units,
                    {ranks, input.request.cores_per_rank.value_or(0), input.request.oversubscribe,
                     input.profile == nullptr || input.profile->bindings.empty()});
    if (!matched) return matched;
    matched->remarks.insert(matched->remarks.begin(), result.remarks.begin(), result.remarks.end());
    result = std::move(*matched);
    if (!typed) report_small_share(input, units, result);
  }
  // A site's rule may keep cores free; what a grant or a mask took away may be another job's.
  const bool whole = units.shortage.by.empty();
  const bool asked = !result.rules.empty() && ranks * units.per_rank >= units.total;
  if (!typed && !units.list.empty() && whole && !asked) report_idle(input.node, result);
  give_devices(input.node, units, result);
  result.far = count_far(input.node, units, result);
  if (result.far > 0)
    result.remarks.push_back(fmt::format("{} of {} are not on the cores nearest to their device",
                                         result.far, counted(ranks, "rank")));
  return result;
}

Result<LaidOut> lay_out_once(const PlanInput& input, const std::vector<int>& ranks_on,
                             const Units& units, const Facts& facts, Plan& plan) {
  LaidOut laid;
  plan.classes.clear();
  plan.layout.clear();
  const int nodes = static_cast<int>(ranks_on.size());
  const bool by_amount = knows_amounts(input, nodes);
  const bool count_through = input.request.bind_via.value_or(BindVia::shim) == BindVia::shim &&
                             can_count_through(input, nodes);
  std::map<std::pair<int, int>, int> class_of;
  const std::pair<const std::pair<int, int>, int>* last = nullptr;
  for (std::size_t n = 0; n < ranks_on.size(); ++n) {
    const int granted = input.part_of_node && n < input.granted.size() ? input.granted[n] : 0;
    const std::pair key(ranks_on[n], granted);
    if (last != nullptr && last->first == key) {
      ++plan.layout.back().nodes;
      continue;
    }
    const auto [at, fresh] = class_of.emplace(key, static_cast<int>(plan.classes.size()));
    last = &*at;
    if (fresh) {
      Result<NodeRanks> placed =
          by_amount ? share_part(input, units, input.hosts[n], granted, ranks_on[n], count_through)
                    : place_ranks(input, facts, units, ranks_on[n]);
      if (!placed) return placed.error();
      plan.classes.push_back(NodeClass{placed->ranks, granted});
      laid.push_back(std::move(*placed));
    }
    plan.layout.push_back(NodeRun{at->second, 1});
  }
  return laid;
}

}  // namespace

void give_devices(const Topology& node, const Units& units, NodeRanks& placed) {
  for (std::size_t r = 0; r < placed.ranks.size(); ++r) {
    if (placed.assigned[r] < 0) continue;
    const Unit& unit = units.list[placed.assigned[r]];
    RankPlan& rank = placed.ranks[r];
    rank.units.push_back({unit.unit, unit.device, unit.subdevice});
    for (const Unit& more : unit.more)
      rank.units.push_back({more.unit, more.device, more.subdevice});
  }
  give_nics(node, placed.ranks);
}

Result<LaidOut> lay_out(const PlanInput& input, const std::vector<int>& ranks_on, Units& units,
                        Facts& facts, Plan& plan) {
  Result<LaidOut> laid = lay_out_once(input, ranks_on, units, facts, plan);
  if (laid && follow_driver_order(input, plan.classes, units)) {
    facts.job["gpu_view"] = units.view;
    laid = lay_out_once(input, ranks_on, units, facts, plan);
  }
  if (!laid) return laid;
  const NodeRanks& most = *std::ranges::max_element(*laid, {}, &NodeRanks::far);
  if (most.far > 0)
    plan.reports.push_back({"far-from-device", Severity::note,
                            fmt::format("{} of {} on a node are not on the cores nearest to their "
                                        "device",
                                        most.far, counted(most.ranks.size(), "rank")),
                            "hpclaunch plan --picture shows them"});
  for (const NodeRanks& one : *laid)
    plan.reports.insert(plan.reports.end(), one.reports.begin(), one.reports.end());
  return laid;
}

}  // namespace hpclaunch
