#include "plan/devices/node_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/nics.h"
#include "plan/devices/visibility.h"
#include "plan/environment/environment.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

constexpr const char* kShowRanks = "hpclaunch plan --picture shows them";

std::string far_text(const NodeRanks& placed, const char* where) {
  return fmt::format("{} of {}{} {} device", placed.far, counted(placed.ranks.size(), "rank"),
                     where,
                     placed.far == 1 ? "is not on the cores nearest to its"
                                     : "are not on the cores nearest to their");
}

int count_far(const Topology& node, const Slots& slots, const NodeRanks& placed) {
  int far = 0;
  for (std::size_t r = 0; r < placed.assigned.size(); ++r)
    if (const int unit = placed.assigned[r]; unit >= 0)
      far += distance(node, slots.list[unit].pus, placed.ranks[r].cpus) == kNear ? 0 : 1;
  return far;
}

// True when a mask of the batch system or the user leaves devices that the rule is not for, and the cores near them
// suffice.
bool closer_without_rule(const PlanInput& input, const Slots& slots,
                         const std::vector<RankPlan>& bound) {
  if (slots.given.empty()) return false;
  const NodeRanks by_rule{bound, match_bound(input.node, slots, bound)};
  if (count_far(input.node, slots, by_rule) == 0) return false;
  const Result<NodeRanks> near = match_slots(input.node, slots, {static_cast<int>(bound.size())});
  return near && count_far(input.node, slots, *near) == 0;
}

// The last rule that holds and fits. What was typed about cores is stronger than any rule.
void bind_by_rule(const PlanInput& input, Facts facts, const Slots& slots, int ranks,
                  NodeRanks& result) {
  set_ranks_per_node(ranks, facts);
  const std::vector<Binding>& rules = input.profile->bindings;
  for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
    if (!holds(rule->when, facts)) continue;
    std::optional<std::vector<RankPlan>> bound = apply_binding(*rule, input.node, ranks);
    const bool fits = bound && std::ranges::all_of(*bound, [&](const RankPlan& rank) {
                        return input.node.allowed.contains(rank.cpus);
                      });
    if (fits && (!result.rules.empty() || !closer_without_rule(input, slots, *bound))) {
      result.rules.push_back({&*rule, met(rule->when, facts), std::move(*bound)});
    } else if (fits) {
      result.remarks.push_back(
          fmt::format("profile rule {} does not match the devices of {}", rule->id, slots.given));
    } else if (result.rules.empty()) {
      result.remarks.push_back(fmt::format("profile rule {} does not fit {} on this node", rule->id,
                                           counted(ranks, "rank")));
    }
  }
  if (result.rules.empty()) return;
  result.ranks = result.rules.front().ranks;
  result.assigned = match_bound(input.node, slots, result.ranks);
}

// A rule gives a rank the cores near one device, so none is for ranks of several: these have the cores near each of
// theirs. Of the rule for a rank on each device the choice of hardware threads holds.
Topology threads_by_rule(const PlanInput& input, Facts facts, const Slots& slots,
                         NodeRanks& result) {
  set_ranks_per_node(std::ssize(single_slots(slots)), facts);
  const std::vector<Binding>& rules = input.profile->bindings;
  for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
    if (!holds(rule->when, facts)) continue;
    result.remarks.push_back(fmt::format("profile rule {} is for one device per rank", rule->id));
    return rule->siblings ? input.node : first_threads(input.node, 1);
  }
  return input.node;
}

// Where some rank has fewer cores than an equal share of those near its device, divided by all ranks that run there.
void report_small_share(const PlanInput& input, const Slots& slots, NodeRanks& result) {
  const int usable = cores_of(input.node, input.node.allowed).count();
  std::set<int> judged;  // slots: what follows is the same for all ranks of one
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const int unit = result.assigned[r];
    if (judged.contains(unit)) continue;
    const bool anywhere = unit < 0 || slots.list[unit].pus.empty();
    const CpuSet near =
        (anywhere ? input.node.all_pus() : slots.list[unit].pus) & input.node.allowed;
    const auto there = [&](const RankPlan& rank) { return rank.cpus.intersects(near); };
    if (!there(result.ranks[r])) continue;
    judged.insert(unit);
    const auto sharing = static_cast<int>(std::ranges::count_if(result.ranks, there));
    const int cores = cores_of(input.node, near).count();
    const int share = cores / sharing;
    const auto poorest = std::ranges::min_element(
        result.ranks, {}, [&](const RankPlan& rank) { return there(rank) ? rank.cores : usable; });
    const int possible = std::min(share, usable / static_cast<int>(result.ranks.size()));
    if (poorest->cores >= share) continue;
    result.reports.push_back(
        {"uneven-shares", Severity::note,
         fmt::format("local rank {} has {}, fewer than an equal share of {} ({}): ranks stay in "
                     "NUMA nodes and near their devices",
                     poorest - result.ranks.begin(), counted(poorest->cores, "core"),
                     counted(cores, "core"), share),
         possible > poorest->cores ? fmt::format("--cpus-per-rank {}", possible)
                                   : std::string(kShowRanks)});
    return;
  }
}

// Half of the cores or more idle, where no number of cores was typed.
void report_idle(const Topology& node, const Slots& slots, NodeRanks& placed) {
  const CoreSet all = cores_of(node, node.allowed);
  const int usable = all.count();
  const int idle = (all - cores_of(node, cpus_of(placed.ranks))).count();
  const int ranks = static_cast<int>(placed.ranks.size());
  if (2 * idle < usable || usable < 2 * ranks) return;
  const std::string why =
      !slots.list.empty() || placed.rules.empty()
          ? fmt::format("{} the cores near {} device{}", ranks == 1 ? "the rank has" : "ranks have",
                        ranks == 1 ? "its" : "their", ranks == 1 ? "" : "s")
          : fmt::format("profile rule {} is for ranks with devices", placed.rules.front().rule->id);
  placed.reports.push_back(
      {"idle-cores", Severity::note,
       fmt::format("{} of {} are idle: {}", idle, counted(usable, "core"), why),
       fmt::format("--cpus-per-rank {}", usable / ranks)});
}

// By a rule of the profile, else by locality. Errors: as match_slots().
Result<NodeRanks> assign_cores(const PlanInput& input, const Facts& facts, const Slots& slots,
                               int ranks, int most) {
  NodeRanks result;
  if (input.request->agent) {
    RankPlan& rank = result.ranks.emplace_back();
    rank.cpus = input.node.allowed;
    describe_cpus(input.node, rank);
    result.assigned = {slots.list.empty() ? -1 : 0};
    return result;
  }
  const bool typed = input.request->cores_per_rank.has_value();
  const bool by_profile = input.profile != nullptr && !typed;
  Topology node = input.node;
  if (by_profile && slots.per_rank > 1)
    node = threads_by_rule(input, facts, slots, result);
  else if (by_profile)
    bind_by_rule(input, facts, slots, ranks, result);
  Result<bool> listed = bind_by_list(input, slots, ranks, most, result);
  if (!listed) return listed.error();
  if (*listed || !result.rules.empty()) return result;
  Result<NodeRanks> matched =
      match_slots(node, slots,
                  {ranks, input.request->cores_per_rank.value_or(0), input.request->oversubscribe,
                   input.profile == nullptr || input.profile->bindings.empty(),
                   input.request->gpu_view == "all" || input.request->gpu_view == "launcher" ||
                       slots.instances()});
  if (!matched) return matched;
  matched->remarks.insert(matched->remarks.begin(), result.remarks.begin(), result.remarks.end());
  matched->reports = std::move(result.reports);
  if (!typed) report_small_share(input, slots, *matched);
  return matched;
}

// Ranks of a launch that leaves the rest to others: as many as would use all devices, as far as there are cores.
int ranks_beside(const PlanInput& input, const Slots& slots, int ranks) {
  const Request& typed = *input.request;
  const int cores = cores_of(input.node, input.node.allowed).count();
  if (!typed.free || typed.cores_per_rank || slots.filled > 0 || !own_list(input).empty())
    return ranks;
  return std::max(ranks, std::min(slots.count(), cores));
}

// Errors: as match_slots().
Result<NodeRanks> place_ranks(const PlanInput& input, const Facts& facts, const Slots& all,
                              int ranks, int most) {
  Slots slots = all;
  if (slots.filled > 0) slots.list.resize(static_cast<std::size_t>(slots.used_by(ranks)));
  const int all_ranks = ranks_beside(input, slots, ranks);
  Result<NodeRanks> placed =
      assign_cores(input, facts, slots, all_ranks, std::max(most, all_ranks));
  if (!placed) return placed;
  NodeRanks& result = *placed;
  result.ranks.resize(static_cast<std::size_t>(ranks));
  result.assigned.resize(static_cast<std::size_t>(ranks), -1);
  for (FittingRule& rule : result.rules) rule.ranks.resize(static_cast<std::size_t>(ranks));
  // A site's rule for a rank on each device may keep cores free; what a grant or a mask took away may be another job's.
  const bool whole = slots.shortage.by.empty();
  const bool asked = !result.rules.empty() && !slots.hidden && ranks >= slots.total;
  if (!input.request->cores_per_rank && whole && !asked && !input.request->agent &&
      !input.request->free)
    report_idle(input.node, slots, result);
  give_devices(input.node, slots, result);
  result.far = count_far(input.node, slots, result);
  if (result.far > 0) result.remarks.push_back(far_text(result, ""));
  return placed;
}

Result<LaidOut> lay_out_once(const PlanInput& input, const std::vector<int>& ranks_on,
                             const Slots& slots, const Facts& facts) {
  LaidOut laid;
  std::vector<NodeClass>& classes = laid.placement.classes;
  std::vector<NodeRun>& layout = laid.placement.layout;
  const int nodes = static_cast<int>(ranks_on.size());
  const bool by_amount = knows_amounts(input, nodes);
  const bool count_through = input.request->bind_via.value_or(BindVia::shim) == BindVia::shim &&
                             can_count_through(input, nodes);
  const bool nameless = nameless_cores(input, nodes) && !input.granted_assumed;
  const int most = nameless ? 0 : std::ranges::max(ranks_on);
  if (nameless) {
    const Result<bool> none =
        refuse_list(input, "the job has part of each node, and which CPUs these are is not known",
                    Severity::note, "omit --cpu-bind", laid.reports);
    if (!none) return none.error();
  }
  std::optional<PlanInput> whole;  // for nodes of which the job has all
  using Key = std::tuple<int, int, int>;
  std::map<Key, int> class_of;
  std::vector<int> cores_of_class;
  const std::pair<const Key, int>* last = nullptr;
  for (std::size_t n = 0; n < ranks_on.size(); ++n) {
    const int granted = input.part_of_node && n < input.granted.size() ? input.granted[n] : 0;
    const int grant = n < input.grant_of.size() ? input.grant_of[n] : 0;
    const Key key(ranks_on[n], granted, grant);
    if (last != nullptr && last->first == key) {
      ++layout.back().nodes;
      laid.placement.cores += cores_of_class[static_cast<std::size_t>(last->second)];
      continue;
    }
    const auto [at, fresh] = class_of.emplace(key, static_cast<int>(classes.size()));
    last = &*at;
    if (fresh) {
      const bool part = by_amount && !is_whole(input, n);
      if (by_amount && !part && !whole) {
        whole = input;
        whole->node.allowed = whole_node(input);
      }
      // The first node's cores are known; a node that was granted as many may have the same ones.
      const bool like_first = part && (count_through || input.granted_assumed) &&
                              input.cores_known && granted == input.granted.front();
      const PlanInput own = grant > 0 ? with_grant(input, grant) : PlanInput();
      const PlanInput& node = grant > 0 ? own : part || !whole ? input : *whole;
      Result<NodeRanks> placed =
          part && !like_first
              ? share_part(input, slots, input.hosts[n], granted, ranks_on[n], count_through)
              : place_ranks(node, facts, slots.of(grant), ranks_on[n], most);
      if (!placed) return placed.error();
      const int cores = like_first ? cores_of(input.node, input.node.allowed).count()
                                   : granted_cores(input.node, granted);
      // Beside other launches which of the granted cores are free is known by name alone.
      if (like_first && count_through && input.taken_by.empty()) number_parts(cores, *placed);
      const bool told = granted > 0 && !input.granted_assumed;
      classes.push_back(NodeClass{placed->ranks, told ? granted : 0, told ? cores : 0, grant});
      cores_of_class.push_back(part ? cores : cores_of(node.node, node.node.allowed).count());
      laid.nodes.push_back(std::move(*placed));
      if (part && count_through) laid.placement.counted = *core_runs(input.node);
    }
    layout.push_back(NodeRun{at->second, 1});
    laid.placement.cores += cores_of_class[static_cast<std::size_t>(at->second)];
  }
  return laid;
}

bool shares_cpus(const NodeClass& node) {
  CpuSet used;
  int parts_end = -1;
  return std::ranges::any_of(node.ranks, [&](const RankPlan& rank) {
    const bool shared =
        used.intersects(rank.cpus) || (rank.part_first >= 0 && rank.part_first <= parts_end);
    used |= rank.cpus;
    parts_end = std::max(parts_end, rank.part_last);
    return shared;
  });
}

// A container with some of the machine's devices and no cores of its own: its neighbours count the same cores, and begin
// with the same ones.
bool has_neighbours(const PlanInput& input) {
  const Request& typed = *input.request;
  const bool asked = typed.cores_per_rank || typed.bind_via || !own_list(input).empty();
  if (asked || input.job.scheduler != "none" || input.model != nullptr || !input.reachable ||
      input.reachable->empty() || input.node.allowed != input.node.all_pus())
    return false;
  return std::ranges::any_of(input.node.devices, [&](const Device& one) {
    return std::ranges::count(*input.reachable, one.index) == 0;
  });
}

// True where a rank had less of a NUMA node than all of it.
bool widen_to_numa(const Topology& node, std::vector<RankPlan>& ranks) {
  bool widened = false;
  for (RankPlan& rank : ranks) {
    const CpuSet before = rank.cpus;
    for (const NumaNode& numa : node.numa_nodes)
      if (numa.pus.intersects(before)) rank.cpus |= numa.pus & node.allowed;
    widened = widened || rank.cpus != before;
  }
  return widened;
}

void share_with_neighbours(const PlanInput& input, LaidOut& laid) {
  bool widened = false;
  for (NodeClass& one : laid.placement.classes) widened |= widen_to_numa(input.node, one.ranks);
  for (NodeRanks& one : laid.nodes) widen_to_numa(input.node, one.ranks);
  if (widened)
    laid.reports.push_back(
        {"shared-machine", Severity::note,
         fmt::format(
             "{} of {} devices can be opened here, and all cores are allowed, as for others "
             "on this machine: ranks are bound to NUMA nodes, not to cores",
             input.reachable->size(), input.node.devices.size()),
         "cores of its own for the container, or --cpus-per-rank"});
}

}  // namespace

void give_devices(const Topology& node, const Slots& slots, NodeRanks& placed) {
  for (std::size_t r = 0; r < placed.ranks.size(); ++r)
    if (placed.assigned[r] >= 0) placed.ranks[r].slots = slots.list[placed.assigned[r]].slots;
  give_nics(node, placed.ranks);
}

Result<LaidOut> lay_out(const PlanInput& input, const Counts& counts, Slots& slots, Facts& facts) {
  Result<LaidOut> laid = lay_out_once(input, counts.ranks_on, slots, facts);
  if (laid && follow_driver_order(input, laid->placement.classes, slots)) {
    facts.job["gpu_view"] = slots.view;
    laid = lay_out_once(input, counts.ranks_on, slots, facts);
  }
  if (!laid) return laid;
  if (has_neighbours(input)) share_with_neighbours(input, *laid);
  Placement& placement = laid->placement;
  if (!slots.list.empty()) placement.gpu_view = slots.view;
  placement.shared_cpus = std::ranges::any_of(placement.classes, shares_cpus);
  const NodeRanks& most = *std::ranges::max_element(laid->nodes, {}, &NodeRanks::far);
  if (most.far > 0)
    laid->reports.push_back(
        {"far-from-device", Severity::note, far_text(most, " on a node"), kShowRanks});
  for (const NodeRanks& one : laid->nodes)
    for (const Diagnostic& report : one.reports)
      if (std::ranges::count(laid->reports, report) == 0) laid->reports.push_back(report);
  return laid;
}

}  // namespace hpclaunch
