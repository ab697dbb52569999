#include "render/regions.h"

#include <algorithm>
#include <array>

namespace hpclaunch::render {

namespace {

/// A package, a NUMA node or a cache.
struct Member {
  const CpuSet* pus;
  std::vector<int> Region::*list;
  int place;
  bool large;
};

std::vector<Member> members_of(const Topology& topology) {
  constexpr int kLarge = 3;
  std::vector<Member> members;
  const auto add = [&](const auto& parts, std::vector<int> Region::*list, auto large) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!parts[i].pus.empty())
        members.push_back({&parts[i].pus, list, static_cast<int>(i), large(parts[i])});
  };
  const auto always = [](const auto&) { return true; };
  add(topology.packages, &Region::packages, always);
  add(topology.numa_nodes, &Region::numa_nodes, always);
  add(topology.caches, &Region::caches, [](const Cache& cache) { return cache.level >= kLarge; });
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return a.pus->count() > b.pus->count();
  });
  return members;
}

/// The smallest region so far with each PU, and the parent of each region.
struct Homes {
  std::array<int, CpuSet::kCapacity> of{};
  std::vector<int> parents = {-1};

  int at(int pu) const { return of[static_cast<std::size_t>(pu)]; }
};

void add(const Member& member, Regions& regions, Homes& homes) {
  int at = homes.at(member.pus->first());
  if (regions.all[static_cast<std::size_t>(at)].pus != *member.pus) {
    homes.parents.push_back(at);
    at = static_cast<int>(regions.all.size());
    regions.all.emplace_back();
    regions.all.back().pus = *member.pus;
    for (const int pu : member.pus->to_vector()) homes.of[static_cast<std::size_t>(pu)] = at;
  }
  Region& region = regions.all[static_cast<std::size_t>(at)];
  (region.*member.list).push_back(member.place);
  region.has_neighbours = region.has_neighbours || member.large;
}

/// Cores into the smallest regions; regions into the ones around them, in the order of their cores.
void settle_cores(const Topology& topology, Regions& regions, const Homes& homes) {
  std::vector<bool> seen(regions.all.size(), false);
  seen[0] = true;
  for (std::size_t i = 0; i < topology.cores.size(); ++i) {
    int at = homes.at(topology.cores[i].pus.first());
    regions.all[static_cast<std::size_t>(at)].cores.push_back(static_cast<int>(i));
    while (!seen[static_cast<std::size_t>(at)]) {
      seen[static_cast<std::size_t>(at)] = true;
      const int around = homes.parents[static_cast<std::size_t>(at)];
      regions.all[static_cast<std::size_t>(around)].inner.push_back(at);
      at = around;
    }
  }
}

/// The smallest region with neighbours that contains `pus`.
int home_of(const CpuSet& pus, const Regions& regions, const Homes& homes) {
  int at = homes.at(pus.first());
  while (at > 0) {
    const Region& region = regions.all[static_cast<std::size_t>(at)];
    if (region.has_neighbours && region.pus.contains(pus)) break;
    at = homes.parents[static_cast<std::size_t>(at)];
  }
  return at;
}

}  // namespace

Regions regions_of(const Topology& topology) {
  Regions regions;
  Homes homes;
  regions.all.emplace_back();
  regions.all[0].pus = topology.all_pus();
  for (const Member& member : members_of(topology)) add(member, regions, homes);
  settle_cores(topology, regions, homes);
  for (std::size_t i = 0; i < topology.numa_nodes.size(); ++i)
    if (topology.numa_nodes[i].pus.empty()) regions.memory.push_back(static_cast<int>(i));
  const auto place = [&](const auto& things, std::vector<int> Region::*list,
                         std::vector<int>& lost) {
    for (std::size_t i = 0; i < things.size(); ++i) {
      const CpuSet near = topology.near(things[i]);
      const int home = near.empty() ? -1 : home_of(near, regions, homes);
      (home < 0 ? lost : regions.all[static_cast<std::size_t>(home)].*list)
          .push_back(static_cast<int>(i));
    }
  };
  place(topology.devices, &Region::devices, regions.unplaced_devices);
  place(topology.nics, &Region::nics, regions.unplaced_nics);
  return regions;
}

}  // namespace hpclaunch::render
