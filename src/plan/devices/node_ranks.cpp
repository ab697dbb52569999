#include "plan/devices/node_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/text.h"
#include "plan/cores/binding.h"
#include "plan/cores/locality.h"
#include "plan/cores/share.h"
#include "plan/devices/masks.h"
#include "plan/devices/match.h"
#include "plan/devices/nics.h"

namespace hpclaunch {

namespace {

int count_far(const Topology& node, const Units& units, const std::vector<int>& assigned,
              const std::vector<RankPlan>& ranks) {
  int far = 0;
  for (std::size_t r = 0; r < assigned.size(); ++r) {
    if (assigned[r] < 0) continue;
    if (distance(node, units.list[assigned[r]].pus, ranks[r].cpus) != kNear) ++far;
  }
  return far;
}

// True when a mask of the batch system or the user leaves devices that the rule is not for, and the cores near them
// suffice.
bool closer_without_rule(const PlanInput& input, const Units& units,
                         const std::vector<RankPlan>& bound) {
  if (units.given.empty()) return false;
  if (count_far(input.node, units, match_bound(input.node, units, bound), bound) == 0) return false;
  const Result<Matched> near = match_units(input.node, units, {static_cast<int>(bound.size())});
  return near && count_far(input.node, units, near->assigned, near->ranks) == 0;
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
    if (const Device* device = find_device(input.node, single.device))
      single.pus = near_device(input.node, *device);  // a group's first unit has those of all
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
bool by_rule(const PlanInput& input, Facts facts, const Units& units, int ranks,
             NodeRanks& result) {
  if (input.profile == nullptr || input.request.cores_per_rank) return false;
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
    if (result.rule != nullptr) {  // a weaker one that would have done, too
      if (fits) result.overridden.push_back({&*rule, met(rule->when, facts), std::move(*bound)});
    } else if (!fits) {
      result.remarks.push_back(fmt::format("profile rule {} does not fit {} on this node", rule->id,
                                           counted(bound_ranks, "rank")));
    } else if (closer_without_rule(input, units, *bound)) {
      result.remarks.push_back(
          fmt::format("profile rule {} does not match the devices of {}", rule->id, units.given));
    } else {
      result.ranks = std::move(*bound);
      result.rule = &*rule;
      result.condition = met(rule->when, facts);
    }
  }
  return result.rule != nullptr;
}

// Where some rank has fewer cores than an equal share of those that are near the same devices.
void report_small_share(const PlanInput& input, const Units& units,
                        const std::vector<int>& assigned, NodeRanks& result) {
  std::map<std::string, std::vector<std::size_t>> groups;  // ranks by what is near their devices
  for (std::size_t r = 0; r < assigned.size(); ++r)
    groups[assigned[r] < 0 ? "" : units.list[assigned[r]].pus.to_list()].push_back(r);
  for (const auto& [list, members] : groups) {
    const CpuSet near = list.empty() ? input.node.all_pus() : *CpuSet::parse(list);
    const int cores = count_cores(input.node, near & input.node.allowed);
    const int share = cores / static_cast<int>(members.size());
    for (const std::size_t r : members) {
      if (result.ranks[r].cores >= share) continue;
      result.reports.push_back(
          {"uneven-shares", Severity::note,
           fmt::format("local rank {} has {}, fewer than an equal share of {} ({}): ranks stay in "
                       "NUMA nodes and near their devices",
                       r, counted(result.ranks[r].cores, "core"), counted(cores, "core"), share),
           fmt::format("--cpus-per-rank {}", share)});
      return;
    }
  }
}

// Half of the cores or more idle, where no number of cores was typed.
void report_idle(const PlanInput& input, const NodeRanks& placed,
                 std::vector<Diagnostic>& reports) {
  CpuSet used;
  for (const RankPlan& rank : placed.ranks) used |= rank.cpus;
  int usable = 0;
  int idle = 0;
  for (const Core& core : input.node.cores) {
    if (!core.pus.intersects(input.node.allowed)) continue;
    ++usable;
    idle += core.pus.intersects(used) ? 0 : 1;
  }
  const int ranks = static_cast<int>(placed.ranks.size());
  if (2 * idle < usable || usable < 2 * ranks) return;
  reports.push_back(
      {"idle-cores", Severity::note,
       fmt::format("{} of {} are idle: {} the cores near {} device{}", idle,
                   counted(usable, "core"), ranks == 1 ? "the rank has" : "ranks have",
                   ranks == 1 ? "its" : "their", ranks == 1 ? "" : "s"),
       fmt::format("--cpus-per-rank {}", usable / ranks)});
}

}  // namespace

void give_units(const Units& units, const std::vector<int>& assigned,
                std::vector<RankPlan>& ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (assigned[r] < 0) continue;
    const Unit& unit = units.list[assigned[r]];
    ranks[r].unit = unit.unit;
    ranks[r].device = unit.device;
    ranks[r].subdevice = unit.subdevice;
    for (const Unit& more : unit.more)
      ranks[r].more_units.push_back({more.unit, more.device, more.subdevice});
  }
}

Result<NodeRanks> place_ranks(const PlanInput& input, const Facts& facts, const Units& all,
                              int ranks) {
  const Units units = units_for(all, ranks);
  NodeRanks result;
  std::vector<int> assigned;
  if (by_rule(input, facts, units, ranks, result)) {
    assigned = units.per_rank == 1 ? match_bound(input.node, units, result.ranks)
                                   : assign_units(units, ranks);
  } else {
    Result<Matched> matched =
        match_units(input.node, units,
                    {ranks, input.request.cores_per_rank.value_or(0), input.request.oversubscribe,
                     input.profile == nullptr || input.profile->bindings.empty()});
    if (!matched) return matched.error();
    result.ranks = std::move(matched->ranks);
    assigned = std::move(matched->assigned);
    result.remarks.insert(result.remarks.end(), matched->remarks.begin(), matched->remarks.end());
  }
  if (result.rule == nullptr && !input.request.cores_per_rank)
    report_small_share(input, units, assigned, result);
  // A site's rule may keep cores free; what a grant or a mask took away may be another job's.
  const bool whole = units.shortage.by.empty();
  const bool asked = result.rule != nullptr && ranks * units.per_rank >= units.total;
  if (!input.request.cores_per_rank && !units.list.empty() && whole && !asked)
    report_idle(input, result, result.reports);
  give_units(units, assigned, result.ranks);
  give_nics(input.node, result.ranks);
  result.far = count_far(input.node, units, assigned, result.ranks);
  if (result.far > 0)
    result.remarks.push_back(fmt::format("{} of {} are not on the cores nearest to their device",
                                         result.far, counted(ranks, "rank")));
  return result;
}

}  // namespace hpclaunch
