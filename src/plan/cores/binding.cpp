#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"

namespace hpclaunch {

namespace {

// Positions of the cores of each group, groups in the order the rule wants them.
std::vector<std::vector<int>> groups_of(const Binding& rule, const Topology& node) {
  std::vector<std::vector<int>> groups;
  const auto add = [&](const CpuSet& domain) {
    const std::vector<int> cores = cores_of(node, domain).to_vector();
    if (!cores.empty() && std::ranges::count(groups, cores) == 0)
      groups.push_back(cores);  // memory beside memory has the same cores
  };
  if (rule.per == Binding::Per::node) add(node.all_pus());
  for (const Package& package : node.packages)
    if (rule.per == Binding::Per::package) add(package.pus);
  for (const NumaNode& numa : node.numa_nodes)
    if (rule.per == Binding::Per::numa) add(numa.pus);
  for (const Cache& cache : node.caches)
    if (rule.per == Binding::Per::l3 && cache.level == 3) add(cache.pus);
  if (rule.groups.empty()) return groups;
  std::vector<std::vector<int>> ordered;
  for (const int g : rule.groups) {
    if (g < 0 || g >= static_cast<int>(groups.size())) return {};
    ordered.push_back(groups[g]);
  }
  return ordered;
}

struct Span {
  int base = 0;
  int low = 0;
  int high = 0;
};

// Offsets from the group's first core. nullopt: the rule has no answer for this rank.
std::optional<Span> span_of(const Binding& rule, int group, int i, int per_group, int cores) {
  if (rule.split) {
    const int width = (cores - rule.first) / per_group;
    if (width < 1) return std::nullopt;
    return Span{rule.first + width * i, 0, width - 1};
  }
  if (!rule.at.empty()) {
    const std::size_t which = rule.at.size() == 1 ? 0 : static_cast<std::size_t>(group);
    if (which >= rule.at.size() || i >= static_cast<int>(rule.at[which].size()))
      return std::nullopt;
    return Span{rule.at[which][i], rule.low, rule.high};
  }
  return Span{std::max(rule.at_least, rule.first + rule.stride * i), rule.low, rule.high};
}

std::optional<RankPlan> bind_one(const Binding& rule, const Topology& node,
                                 const std::vector<int>& cores, const Span& span, int i) {
  const int last = static_cast<int>(cores.size()) - 1;
  const auto core = [&](int offset) -> const Core& { return node.cores[cores[offset]]; };
  if (span.base + span.low < 0 || span.base + span.high > last) return std::nullopt;
  RankPlan rank;
  for (int c = span.base + span.low; c <= span.base + span.high; ++c) {
    if (rule.siblings)
      rank.cpus |= core(c).pus;
    else
      rank.cpus.add(core(c).pus.first());
  }
  for (const Binding::Role& role : rule.roles) {
    const int at = role.from_base ? span.base + role.first : role.first + role.stride * i;
    if (at < 0 || at > last) return std::nullopt;
    rank.roles[role.name] = core(at).pus.first();
  }
  describe_cpus(node, rank);
  return rank;
}

// Each rank's share of every group: cores that do not divide go to one rank after the other, over all groups.
std::optional<std::vector<RankPlan>> bind_across(const Binding& rule, const Topology& node,
                                                 const std::vector<std::vector<int>>& groups,
                                                 int ranks) {
  std::vector<RankPlan> result(static_cast<std::size_t>(ranks));
  int turn = 0;  // the rank whose turn it is to get one core more
  for (const std::vector<int>& cores : groups) {
    const int count = static_cast<int>(cores.size()) - rule.first;
    if (count < ranks) return std::nullopt;
    const int more = count % ranks;
    int base = rule.first;
    for (int r = 0; r < ranks; ++r) {
      const int width = count / ranks + ((r - turn + ranks) % ranks < more ? 1 : 0);
      const auto part = bind_one(rule, node, cores, {base, 0, width - 1}, 0);
      if (!part) return std::nullopt;
      result[static_cast<std::size_t>(r)].cpus |= part->cpus;
      base += width;
    }
    turn = (turn + more) % ranks;
  }
  for (RankPlan& rank : result) describe_cpus(node, rank);
  return result;
}

}  // namespace

std::optional<std::vector<RankPlan>> apply_binding(const Binding& rule, const Topology& node,
                                                   int ranks) {
  const std::vector<std::vector<int>> groups = groups_of(rule, node);
  const int count = static_cast<int>(groups.size());
  if (rule.across) return count == 0 ? std::nullopt : bind_across(rule, node, groups, ranks);
  if (count == 0 || ranks % count != 0) return std::nullopt;
  const int per_group = ranks / count;
  std::vector<RankPlan> result;
  CpuSet taken;
  for (int r = 0; r < ranks; ++r) {
    const int group = rule.interleave ? r % count : r / per_group;
    const int i = rule.interleave ? r / count : r % per_group;
    const std::vector<int>& cores = groups[group];
    const auto span = span_of(rule, group, i, per_group, static_cast<int>(cores.size()));
    if (!span) return std::nullopt;
    std::optional<RankPlan> rank = bind_one(rule, node, cores, *span, i);
    if (!rank || rank->cpus.intersects(taken) || !node.all_pus().contains(rank->cpus))
      return std::nullopt;
    taken |= rank->cpus;
    result.push_back(std::move(*rank));
  }
  return result;
}

}  // namespace hpclaunch
