#include "plan/nics.h"

#include <algorithm>
#include <map>

#include "plan/reach.h"

namespace hpclaunch {

namespace {

CpuSet pus_of_numa(const Topology& node, int numa) {
  for (const NumaNode& one : node.numa_nodes)
    if (one.os_index == numa) return one.pus;
  return {};
}

// Where a rank's traffic comes from.
CpuSet home_of(const Topology& node, const RankPlan& rank) {
  std::vector<int> indices{rank.device};
  for (const UnitRef& more : rank.more_units) indices.push_back(more.device);
  CpuSet home;
  for (const Device& device : node.devices)
    if (std::find(indices.begin(), indices.end(), device.index) != indices.end())
      home |= device.pus.empty() ? pus_of_numa(node, device.numa) : device.pus;
  return home.empty() ? rank.cpus : home;
}

// A rank that spans NUMA nodes is at home in each of them.
int distance_to(const Topology& node, const CpuSet& home, const Nic& nic) {
  const CpuSet near = pus_of_numa(node, nic.numa);
  if (near.empty() || home.empty()) return kElsewhere;
  if (near.intersects(home)) return kNear;
  return package_around(node, near).intersects(home) ? kSamePackage : kElsewhere;
}

std::vector<int> nearest_to(const Topology& node, const CpuSet& home,
                            const std::vector<int>& nics) {
  std::vector<int> nearest;
  int least = kDistances;
  for (const int n : nics) {
    const int far = distance_to(node, home, node.nics[static_cast<std::size_t>(n)]);
    if (far < least) nearest.clear();
    least = std::min(least, far);
    if (far == least) nearest.push_back(n);
  }
  return nearest;
}

// Neighbours share an interface; where some are in use already, the least used ones get the next rank.
void spread(const std::vector<std::size_t>& members, const std::vector<int>& nics,
            std::vector<int>& used, std::vector<RankPlan>& ranks) {
  const auto use_of = [&](std::size_t n) -> int& {
    return used[static_cast<std::size_t>(nics[n])];
  };
  std::vector<std::size_t> each(nics.size(), 0);
  const bool fresh = std::all_of(nics.begin(), nics.end(),
                                 [&](int n) { return used[static_cast<std::size_t>(n)] == 0; });
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::size_t next = i * nics.size() / members.size();
    for (std::size_t n = 0; !fresh && n < nics.size(); ++n)
      if (use_of(n) < use_of(next)) next = n;
    ++each[next];
    ++use_of(next);
  }
  auto member = members.begin();
  for (std::size_t n = 0; n < nics.size(); ++n)
    for (std::size_t i = 0; i < each[n]; ++i) ranks[*member++].nic = nics[n];
}

}  // namespace

std::vector<int> job_nics(const Topology& node) {
  const auto is_fabric = [](const Nic& nic) { return !nic.kind.empty() && nic.kind != "ethernet"; };
  const auto is_up = [](const Nic& nic) { return nic.state != "down"; };
  const bool fabric = std::any_of(node.nics.begin(), node.nics.end(),
                                  [&](const Nic& nic) { return is_up(nic) && is_fabric(nic); });
  int fastest = 0;
  std::vector<int> nics;
  for (std::size_t n = 0; n < node.nics.size(); ++n) {
    if (!is_up(node.nics[n]) || (fabric && !is_fabric(node.nics[n]))) continue;
    nics.push_back(static_cast<int>(n));
    fastest = std::max(fastest, node.nics[n].speed_mbps);
  }
  nics.erase(std::remove_if(nics.begin(), nics.end(),
                            [&](int n) {
                              const int speed = node.nics[static_cast<std::size_t>(n)].speed_mbps;
                              return speed != 0 && speed < fastest;
                            }),
             nics.end());
  std::stable_sort(nics.begin(), nics.end(), [&](int a, int b) {
    return node.nics[static_cast<std::size_t>(a)].pci < node.nics[static_cast<std::size_t>(b)].pci;
  });
  return nics;
}

void give_nics(const Topology& node, std::vector<RankPlan>& ranks) {
  const std::vector<int> nics = job_nics(node);
  if (nics.empty()) return;
  std::map<std::vector<int>, std::vector<std::size_t>> alike;  // by the nearest ones
  for (std::size_t r = 0; r < ranks.size(); ++r)
    alike[nearest_to(node, home_of(node, ranks[r]), nics)].push_back(r);
  std::vector<int> used(node.nics.size(), 0);
  // Those with the least choice first.
  std::vector<std::pair<std::vector<int>, std::vector<std::size_t>>> kinds(alike.begin(),
                                                                           alike.end());
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.first.size() < b.first.size(); });
  for (auto& [nearest, members] : kinds) {
    std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return ranks[a].device < ranks[b].device;
    });
    spread(members, nearest, used, ranks);
  }
}

}  // namespace hpclaunch
