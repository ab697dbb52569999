#include "plan/crowds.h"

#include <algorithm>

#include "plan/reach.h"

namespace hpclaunch {

namespace {

// The cores near each unit as sets that nest or are apart: where those of a probe do not, the NUMA node,
// package or machine around them stands for them.
class Places {
 public:
  Places(const Topology& node, const std::vector<UsableCore>& cores, const Units& units)
      : node_(node), cores_(cores) {
    std::vector<CpuSet> near;  // each once
    std::vector<std::vector<int>> members;
    for (int u = 0; u < units.count(); ++u) {
      const CpuSet& pus = units.list[static_cast<std::size_t>(u)].pus;
      const auto at = std::find(near.begin(), near.end(), pus) - near.begin();
      if (at == static_cast<std::ptrdiff_t>(near.size())) {
        near.push_back(pus);
        members.emplace_back();
      }
      members[static_cast<std::size_t>(at)].push_back(u);
    }
    const bool nested = nest(near);
    for (std::size_t n = 0; n < near.size(); ++n) add(std::move(members[n]), near[n], nested);
    for (Crowd& crowd : crowds_) std::sort(crowd.units.begin(), crowd.units.end());
  }

  std::vector<Crowd> crowds() && { return std::move(crowds_); }

 private:
  bool nest(const std::vector<CpuSet>& near) const {
    std::vector<CpuSet> all = near;
    for (const NumaNode& numa : node_.numa_nodes) all.push_back(numa.pus);
    for (const Package& package : node_.packages) all.push_back(package.pus);
    for (const CpuSet& a : near)
      for (const CpuSet& b : all)
        if (a.intersects(b) && !a.contains(b) && !b.contains(a)) return false;
    return true;
  }

  CoreSet cores_of(const CpuSet& pus) const {
    CoreSet set;
    for (std::size_t c = 0; c < cores_.size(); ++c)
      if (pus.intersects(cores_[c].pus)) set.add(static_cast<int>(c));
    return set;
  }

  void add(std::vector<int> units, CpuSet near, bool nested) {
    const CpuSet numa = numa_around(node_, near);
    const CpuSet package = package_around(node_, near);
    const CpuSet all = node_.all_pus();
    if (!nested && !near.empty()) near = !numa.empty() ? numa : !package.empty() ? package : all;
    Crowd crowd{std::move(units), {}};
    CpuSet last = near.empty() ? all : near;
    for (const CpuSet& wider : {last, numa, package, all}) {
      last |= wider;
      crowd.within.push_back(cores_of(last));
    }
    const auto same = std::find_if(crowds_.begin(), crowds_.end(), [&](const Crowd& other) {
      return other.within == crowd.within;
    });
    if (same == crowds_.end())
      crowds_.push_back(std::move(crowd));
    else
      same->units.insert(same->units.end(), crowd.units.begin(), crowd.units.end());
  }

  const Topology& node_;
  const std::vector<UsableCore>& cores_;
  std::vector<Crowd> crowds_;
};

}  // namespace

std::vector<Crowd> crowds_of(const Topology& node, const std::vector<UsableCore>& cores,
                             const Units& units) {
  return Places(node, cores, units).crowds();
}

}  // namespace hpclaunch
