#include "plan/crowds.h"

#include <algorithm>

#include "plan/reach.h"

namespace hpclaunch {

namespace {

CoreSet cores_of(const std::vector<UsableCore>& cores, const CpuSet& pus) {
  CoreSet set;
  for (std::size_t c = 0; c < cores.size(); ++c)
    if (pus.intersects(cores[c].pus)) set.add(static_cast<int>(c));
  return set;
}

std::vector<CoreSet> within_of(const Topology& node, const std::vector<UsableCore>& cores,
                               const CpuSet& near) {
  const CpuSet all = node.all_pus();
  CpuSet last = near.empty() ? all : near;
  std::vector<CoreSet> within{cores_of(cores, last)};
  for (const CpuSet& wider : {numa_around(node, near), package_around(node, near), all}) {
    last |= wider;
    within.push_back(cores_of(cores, last));
  }
  return within;
}

}  // namespace

std::vector<Crowd> crowds_of(const Topology& node, const std::vector<UsableCore>& cores,
                             const Units& units) {
  std::vector<Crowd> crowds;
  std::vector<std::pair<CpuSet, std::size_t>> known;  // near PUs, and the crowd near to these
  for (int u = 0; u < units.count(); ++u) {
    const CpuSet& near = units.list[static_cast<std::size_t>(u)].pus;
    auto same = std::find_if(known.begin(), known.end(),
                             [&](const auto& one) { return one.first == near; });
    if (same == known.end()) {
      const std::vector<CoreSet> within = within_of(node, cores, near);
      const auto alike = std::find_if(crowds.begin(), crowds.end(),
                                      [&](const Crowd& crowd) { return crowd.within == within; });
      known.emplace_back(near, static_cast<std::size_t>(alike - crowds.begin()));
      same = known.end() - 1;
      if (alike == crowds.end()) crowds.push_back({{}, within});
    }
    crowds[same->second].units.push_back(u);
  }
  return crowds;
}

}  // namespace hpclaunch
