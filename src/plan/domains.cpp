#include "plan/domains.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace hpclaunch {

std::vector<UsableCore> usable_cores(const Topology& node) {
  std::vector<UsableCore> cores;
  for (std::size_t i = 0; i < node.cores.size(); ++i) {
    CpuSet pus = node.cores[i].pus & node.allowed;
    if (!pus.empty()) cores.push_back({pus, static_cast<int>(i)});
  }
  return cores;
}

namespace {

using Group = std::vector<int>;  // ascending core positions

bool within(const Group& part, const Group& whole) {
  return part.size() < whole.size() &&
         std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

bool disjoint(const Group& a, const Group& b) {
  Group common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common.empty();
}

// `groups` is ordered largest first, so the first that fits is a maximal one.
Domain build(Group cores, const std::vector<Group>& groups) {
  Domain domain{std::move(cores), {}, false};
  std::vector<Group> parts;
  for (const Group& group : groups) {
    if (!within(group, domain.cores)) continue;
    const bool apart = std::all_of(parts.begin(), parts.end(),
                                   [&](const Group& part) { return disjoint(part, group); });
    if (apart) parts.push_back(group);
  }
  if (parts.empty()) return domain;
  Group rest = domain.cores;
  for (const Group& part : parts) {
    Group left;
    std::set_difference(rest.begin(), rest.end(), part.begin(), part.end(),
                        std::back_inserter(left));
    rest = std::move(left);
  }
  const Group uncovered = rest;
  if (!rest.empty()) parts.push_back(std::move(rest));
  std::sort(parts.begin(), parts.end());
  for (Group& part : parts) {
    const bool is_rest = part == uncovered;
    domain.children.push_back(build(std::move(part), groups));
    domain.children.back().rest = is_rest;
  }
  return domain;
}

}  // namespace

Domain domain_tree(const Topology& node, const std::vector<UsableCore>& cores) {
  std::set<Group> distinct;
  const auto add = [&](const CpuSet& pus) {
    Group group;
    for (std::size_t i = 0; i < cores.size(); ++i)
      if (cores[i].pus.intersects(pus)) group.push_back(static_cast<int>(i));
    if (!group.empty()) distinct.insert(std::move(group));
  };
  for (const Package& package : node.packages) add(package.pus);
  for (const NumaNode& numa : node.numa_nodes) add(numa.pus);
  for (const Cache& cache : node.caches) add(cache.pus);

  std::vector<Group> groups(distinct.begin(), distinct.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.size() > b.size(); });
  Group all(cores.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return build(std::move(all), groups);
}

}  // namespace hpclaunch
