// Several units for one rank.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "plan/fold.h"
#include "plan/links.h"
#include "plan/units.h"

namespace hpclaunch {

namespace {

using Cluster = std::vector<Unit>;

int package_of(const Topology& node, const CpuSet& pus) {
  for (std::size_t p = 0; p < node.packages.size(); ++p)
    if (!pus.empty() && node.packages[p].pus.contains(pus)) return static_cast<int>(p);
  return -1;
}

// Takes groups of `size` from the front of each cluster, linked ones together; what is too few stays.
void take_groups(const Topology& node, std::size_t size, std::vector<Cluster>& clusters,
                 std::vector<Unit>& groups) {
  for (Cluster& cluster : clusters) {
    cluster = linked_groups(node, std::move(cluster), size);
    std::size_t at = 0;
    for (; at + size <= cluster.size(); at += size) {
      Unit group = cluster[at];
      for (std::size_t i = at + 1; i < at + size; ++i) {
        if (group.pus.empty() || cluster[i].pus.empty())
          group.pus = CpuSet{};  // nothing is near to all of them, as far as is known
        else
          group.pus |= cluster[i].pus;
        group.more.push_back(cluster[i]);
      }
      groups.push_back(std::move(group));
    }
    cluster.erase(cluster.begin(), cluster.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

// Neighbours for which `same` holds, in the order of their first.
template <class Same>
std::vector<Cluster> clustered(const std::vector<Unit>& units, Same same) {
  std::vector<Cluster> clusters;
  for (const Unit& unit : units) {
    const auto found = std::find_if(clusters.begin(), clusters.end(), [&](const Cluster& cluster) {
      return same(cluster.front(), unit);
    });
    if (found == clusters.end())
      clusters.push_back({unit});
    else
      found->push_back(unit);
  }
  return clusters;
}

std::vector<Unit> rest_of(const std::vector<Cluster>& clusters) {
  std::vector<Unit> rest;
  for (const Cluster& cluster : clusters) rest.insert(rest.end(), cluster.begin(), cluster.end());
  return rest;
}

}  // namespace

Status group_units(const Topology& node, int per_rank, Units& units) {
  const auto size = static_cast<std::size_t>(per_rank);
  if (units.list.size() < size)
    return Error{ErrorKind::usage,
                 fmt::format("--devices-per-rank {}: a node has {}", per_rank,
                             counted(units.count(), "device")),
                 fmt::format("use --devices-per-rank {} or fewer", units.count()), kCommandLine};
  const std::vector<Unit> order = units.list;
  std::vector<Unit> groups;
  std::vector<Cluster> clusters = clustered(order, [](const Unit& a, const Unit& b) {
    return a.device >= 0 && a.device == b.device && a.subdevice >= 0 && b.subdevice >= 0;
  });
  take_groups(node, size, clusters, groups);
  clusters =
      clustered(rest_of(clusters), [](const Unit& a, const Unit& b) { return a.pus == b.pus; });
  take_groups(node, size, clusters, groups);
  clusters = clustered(rest_of(clusters), [&](const Unit& a, const Unit& b) {
    return package_of(node, a.pus) == package_of(node, b.pus);
  });
  take_groups(node, size, clusters, groups);
  clusters = {rest_of(clusters)};
  take_groups(node, size, clusters, groups);
  units.left = clusters.front();
  const auto place = [&](const Unit& group) {
    return std::find_if(order.begin(), order.end(),
                        [&](const Unit& unit) { return unit.unit == group.unit; }) -
           order.begin();
  };
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Unit& a, const Unit& b) { return place(a) < place(b); });
  units.list = std::move(groups);
  units.per_rank = per_rank;
  return Done{};
}

std::vector<const Unit*> single_units(const Units& units) {
  std::vector<const Unit*> singles;
  for (const Unit& unit : units.list) {
    singles.push_back(&unit);
    for (const Unit& more : unit.more) singles.push_back(&more);
  }
  for (const Unit& unit : units.left) singles.push_back(&unit);
  return singles;
}

void report_left(const Units& units, std::vector<PlanReport>& reports) {
  if (units.left.empty()) return;
  std::vector<std::string> names;
  for (const Unit& unit : units.left)
    names.push_back(unit.subdevice >= 0
                        ? fmt::format("{}.{}", unit.device, unit.subdevice)
                        : std::to_string(unit.device >= 0 ? unit.device : unit.unit));
  reports.push_back({"devices-left", "note",
                     fmt::format("device {} of each node {} left over: {} at {} per rank",
                                 fmt::join(names, ", "), names.size() == 1 ? "is" : "are",
                                 counted(units.total, "device"), units.per_rank),
                     "choose a --devices-per-rank that divides them"});
}

}  // namespace hpclaunch
