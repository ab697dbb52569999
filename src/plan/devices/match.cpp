#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/node_ranks.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

using Index = std::size_t;

// Linked neighbours of a ring, and their lanes.
std::pair<int, long> measure(const Topology& node, const Slots& slots,
                             const std::vector<int>& order) {
  std::pair<int, long> ring;
  const std::size_t pairs = order.size() > 2 ? order.size() : order.size() - 1;
  for (std::size_t i = 0; i < pairs; ++i) {
    const int lanes = lanes_between(node, slots.list[order[i]].slots,
                                    slots.list[order[(i + 1) % order.size()]].slots);
    ring.first += lanes > 0 ? 1 : 0;
    ring.second += lanes;
  }
  return ring;
}

// A greedy ring (nearest neighbour) where it links more neighbours than the plain order, or by more lanes; slots with
// ranks before the others.
std::vector<std::vector<int>> link_neighbours(const Topology& node, const Slots& slots,
                                              const std::vector<LocalityGroup>& groups,
                                              std::vector<std::vector<int>> assigned) {
  if (node.links.empty()) return assigned;
  std::vector<std::vector<int>> linked = assigned;
  std::vector<int> plain;
  std::vector<int> ring;
  const auto lanes = [&](int unit) {
    return ring.empty()
               ? 0
               : lanes_between(node, slots.list[ring.back()].slots, slots.list[unit].slots);
  };
  for (Index g = 0; g < groups.size(); ++g) {
    std::vector<int> open = assigned[g];
    open.erase(std::unique(open.begin(), open.end()), open.end());
    const std::vector<int> order = open;
    for (const int unit : groups[g].slots)
      if (std::ranges::count(order, unit) == 0) open.push_back(unit);
    std::map<int, int> in_place_of;
    for (const int unit : order) {
      const auto best = std::ranges::max_element(open, {}, lanes);
      plain.push_back(unit);
      ring.push_back(in_place_of[unit] = *best);
      open.erase(best);
    }
    for (int& unit : linked[g]) unit = in_place_of[unit];
  }
  return measure(node, slots, ring) > measure(node, slots, plain) ? linked : assigned;
}

// Where the locality of slots is unknown, all cores are near; without usable CPUs at the unit, none is.
std::vector<LocalityGroup> locality_groups(const Topology& node, const Slots& slots) {
  std::vector<LocalityGroup> groups;
  const CpuSet all = node.all_pus();
  for (int u = 0; u < slots.count(); ++u) {
    const SlotGroup& unit = slots.list[u];
    LocalityGroup group;
    CpuSet last = unit.pus.empty() ? all : unit.pus;
    for (int far = kNear; far < kDistances; ++far) {
      last |= far == kElsewhere ? all : around(node, unit.pus, far);
      const bool none = unit.lacks_cpus && unit.slots.size() == 1 && far < kSamePackage;
      group.within.push_back(none ? CoreSet{} : cores_of(node, last));
    }
    const auto same = std::ranges::find(groups, group.within, &LocalityGroup::within);
    (same == groups.end() ? groups.emplace_back(std::move(group)) : *same).slots.push_back(u);
  }
  return groups;
}

// The ranks of a group spread evenly over its slots, in order.
std::vector<int> spread(const std::vector<int>& slots, int ranks) {
  std::vector<int> assigned;
  for (Index i = 0; i < static_cast<Index>(ranks); ++i)
    assigned.push_back(slots[i * slots.size() / static_cast<Index>(ranks)]);
  return assigned;
}

// Moves ranks one by one from the group with the fewest cores for each to the one with the most, as
// long as that helps and slots stay even.
void even_out(const Slots& all, const std::vector<LocalityGroup>& groups, std::vector<int>& ranks) {
  const int each = std::accumulate(ranks.begin(), ranks.end(), 0) / all.count();
  const auto near = [&](Index g) {
    const SlotGroup& first = all.list[groups[g].slots.front()];
    return first.lacks_cpus || first.apart ? 0L
                                           : static_cast<long>(groups[g].within[kNear].count());
  };
  const auto least = [&](Index g) { return static_cast<int>(groups[g].slots.size()) * each; };
  const auto most = [&](Index g) { return least(g) + static_cast<int>(groups[g].slots.size()); };
  for (;;) {
    Index from = groups.size();
    Index to = groups.size();
    for (Index g = 0; g < groups.size(); ++g) {
      if (ranks[g] > least(g) &&
          (from == groups.size() || near(g) * ranks[from] < near(from) * ranks[g]))
        from = g;
      if (ranks[g] < most(g) &&
          (to == groups.size() || near(g) * (ranks[to] + 1) > near(to) * (ranks[g] + 1)))
        to = g;
    }
    if (from == groups.size() || to == groups.size()) return;
    if (near(to) * ranks[from] <= near(from) * (ranks[to] + 1)) return;
    --ranks[from];
    ++ranks[to];
  }
}

// Which unit each rank of each group gets: in block order where nothing is gained by another.
std::vector<std::vector<int>> assign_groups(const Topology& node, const Slots& slots,
                                            const std::vector<LocalityGroup>& groups, int ranks,
                                            bool settled) {
  std::vector<Index> group_of(slots.list.size(), 0);
  for (Index g = 0; g < groups.size(); ++g)
    for (const int unit : groups[g].slots) group_of[unit] = g;
  std::vector<std::vector<int>> assigned(groups.size());
  for (const int unit : assign_slots(slots, ranks)) assigned[group_of[unit]].push_back(unit);
  std::vector<int> counts;
  counts.reserve(assigned.size());
  for (const std::vector<int>& one : assigned) counts.push_back(static_cast<int>(one.size()));
  if (!settled) even_out(slots, groups, counts);
  for (Index g = 0; g < groups.size(); ++g)
    if (counts[g] != static_cast<int>(assigned[g].size()))
      assigned[g] = spread(groups[g].slots, counts[g]);
  // Where the driver keeps its own order, device LOCAL_RANK is right in that order only.
  if (slots.compact || (slots.vendor->keeps_order() && slots.view == "all")) return assigned;
  return link_neighbours(node, slots, groups, std::move(assigned));
}

struct RankSeat {
  CoreSet share;
  int unit = -1;
};

// More ranks than cores: those of one group share the nearest cores there are.
std::vector<RankSeat> share_seats(const std::vector<LocalityGroup>& groups,
                                  const std::vector<std::vector<int>>& assigned) {
  std::vector<RankSeat> seats;
  for (Index g = 0; g < groups.size(); ++g) {
    const auto nearest =
        std::ranges::find_if(groups[g].within, [](const CoreSet& set) { return !set.empty(); });
    const std::vector<int> cores = nearest->to_vector();
    const Index ranks = assigned[g].size();
    for (Index i = 0; i < ranks; ++i) {
      const Index core = cores.size() >= ranks ? i : i * cores.size() / ranks;
      seats.push_back({slice(cores, core, core + 1), assigned[g][i]});
    }
  }
  return seats;
}

std::vector<RankSeat> own_seats(const Topology& node, const std::vector<LocalityGroup>& groups,
                                const std::vector<std::vector<int>>& assigned, int width) {
  std::vector<int> ranks;
  ranks.reserve(assigned.size());
  for (const std::vector<int>& one : assigned) ranks.push_back(static_cast<int>(one.size()));
  std::vector<Index> next(groups.size(), 0);
  std::vector<RankSeat> seats;
  // Without slots exact shares may lie anywhere.
  const bool anywhere = groups.front().slots.empty();
  for (const Block& block :
       allocate_cores(groups, cores_by_numa(node), ranks, anywhere ? 0 : width)) {
    const auto g = static_cast<Index>(block.group);
    for (const CoreSet& share : width > 0 ? exact_shares(node, block.from, block.ranks, width)
                                          : even_shares(node, block.from, block.ranks))
      seats.push_back({share, assigned[g][next[g]++]});
  }
  return seats;
}

// Cores that no rank has, to ranks with all cores near their device (placement.md, "Fewer ranks than devices").
void give_idle_cores(const Topology& node, const Slots& slots, std::vector<RankSeat>& seats) {
  CoreSet used;
  for (const RankSeat& seat : seats) used |= seat.share;
  std::vector<CoreSet> idle = cores_by_numa(node);
  for (CoreSet& cores : idle) cores -= used;
  const int last = seats.size() < idle.size() ? kElsewhere : kSameNuma;
  const auto owns_near = [&](const RankSeat& seat) {
    return pus_of(node, seat.share).contains(slots.list[seat.unit].pus & node.allowed);
  };
  for (int far = kNear; far <= last; ++far)
    for (CoreSet& share : idle) {
      std::vector<RankSeat*> nearest;
      for (RankSeat& seat : seats)
        if (owns_near(seat) &&
            distance(node, slots.list[seat.unit].pus, pus_of(node, share)) <= far)
          nearest.push_back(&seat);
      if (nearest.empty() || share.empty()) continue;
      if (far > kSameNuma)
        nearest = {*std::ranges::min_element(
            nearest, {}, [](const RankSeat* seat) { return seat->share.count(); })};
      const std::vector<int> cores = share.to_vector();
      for (Index i = 0; i < nearest.size(); ++i)
        nearest[i]->share |= slice(cores, i * cores.size() / nearest.size(),
                                   (i + 1) * cores.size() / nearest.size());
      share = CoreSet{};
    }
}

// More ranks than cores: ranks on one core get hardware threads of their own, as far as it has them.
void deal_threads(std::vector<RankPlan>& ranks) {
  std::map<int, std::vector<RankPlan*>> on;  // by the first hardware thread of the core
  for (RankPlan& rank : ranks) on[rank.cpus.first()].push_back(&rank);
  for (const auto& [first, members] : on) {
    const std::vector<int> threads = members.front()->cpus.to_vector();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t from = i * threads.size() / members.size();
      const std::size_t to = std::max(from + 1, (i + 1) * threads.size() / members.size());
      members[i]->cpus = CpuSet{};
      for (std::size_t t = from; t < to; ++t) members[i]->cpus.add(threads[t]);
    }
  }
}

// That ranks share cores, cover several NUMA nodes, or leave cores idle.
std::vector<std::string> remarks_on(const Topology& node, const std::vector<RankPlan>& ranks,
                                    bool shared) {
  std::vector<std::string> remarks;
  const std::string all = counted(ranks.size(), "rank");
  if (shared)
    remarks.push_back(fmt::format("{} share {}", all, counted(node.cores.size(), "core")));
  const auto numa = cores_by_numa(node).size();
  const CoreSet idle = cores_of(node, node.allowed) - cores_of(node, cpus_of(ranks));
  const auto spanning =
      std::ranges::count_if(ranks, [](const RankPlan& rank) { return rank.numa < 0; });
  if (numa > 1 && spanning > 0)
    remarks.push_back(fmt::format("{} of {} {} more than one of the {} NUMA nodes", spanning, all,
                                  spanning == 1 ? "covers" : "cover", numa));
  if (!idle.empty())
    remarks.push_back(fmt::format("{} left idle (CPUs {})", counted(idle.count(), "core"),
                                  pus_of(node, idle).to_list()));
  return remarks;
}

// Something to type that has room for the ranks: narrower ranks, or fewer, which then have the devices of the others.
std::string with_room(const PlaceRequest& want, const Slots& slots, int cores) {
  const int width = std::max(1, want.cores_per_rank);
  const int most = std::max(1, cores / width);
  std::string fewer = fmt::format("--ranks-per-node {}{}", most, most > 1 ? " or fewer" : "");
  if (width == 1) return fmt::format("use {}, or share cores with --oversubscribe", fewer);
  if (width > cores && want.ranks > cores)
    return fmt::format("use {} with --cpus-per-rank {} or fewer", fewer, cores);
  if (width <= cores && !want.one_device && slots.per_rank == 1 && slots.filled == 0 &&
      slots.total >= 2 * most)
    fewer = fmt::format("--ranks-per-node {} with --devices-per-rank {}", most, slots.total / most);
  if (want.ranks > cores) return "use " + fewer;
  return fmt::format("use --cpus-per-rank {} or fewer{}", cores / want.ranks,
                     width <= cores ? ", or " + fewer : "");
}

Error too_many(const PlaceRequest& want, const Slots& slots, int cores, const Topology& node) {
  const int width = std::max(1, want.cores_per_rank);
  std::string need = counted(want.ranks, "rank") + " per node";
  if (width > 1)
    need += fmt::format(" with {} each need {}", counted(width, "core"),
                        counted(static_cast<long>(want.ranks) * width, "core"));
  std::string have = fmt::format("the node has {} available", counted(cores, "core"));
  if (node.allowed.count() > cores)
    have += fmt::format(" ({})", counted(node.allowed.count(), "hardware thread"));
  return Error{ErrorKind::usage, fmt::format("{}, {}", need, have), with_room(want, slots, cores)};
}

}  // namespace

Result<NodeRanks> match_slots(const Topology& whole, const Slots& slots, const PlaceRequest& want) {
  const Topology node = usable_part(whole);
  const auto have = std::ssize(node.cores);
  const bool shared = want.ranks > have && want.oversubscribe && want.cores_per_rank <= 1;
  if (!shared && static_cast<long>(want.ranks) * std::max(1, want.cores_per_rank) > have)
    return too_many(want, slots, static_cast<int>(have), node);
  std::vector<LocalityGroup> groups = locality_groups(node, slots);
  std::vector<std::vector<int>> assigned{std::vector<int>(static_cast<Index>(want.ranks), -1)};
  if (groups.empty())
    groups.push_back({{}, std::vector<CoreSet>(kDistances, cores_of(node, node.allowed))});
  else
    assigned =
        assign_groups(node, slots, groups, want.ranks,
                      shared || slots.filled > 0 || (slots.compact && want.ranks < slots.count()));
  std::vector<RankSeat> seats = shared ? share_seats(groups, assigned)
                                       : own_seats(node, groups, assigned, want.cores_per_rank);
  if (want.use_idle && !shared && want.cores_per_rank == 0 &&
      want.ranks * slots.per_rank < slots.total)
    give_idle_cores(node, slots, seats);
  std::ranges::stable_sort(seats, {}, [](const RankSeat& seat) { return seat.share.first(); });
  NodeRanks matched;
  for (const RankSeat& seat : seats) {
    RankPlan& rank = matched.ranks.emplace_back();
    rank.cpus = pus_of(node, seat.share);
    describe_cpus(node, rank);
    matched.assigned.push_back(seat.unit);
  }
  if (shared) deal_threads(matched.ranks);
  matched.remarks = remarks_on(node, matched.ranks, shared);
  return matched;
}

std::vector<int> match_bound(const Topology& node, const Slots& slots,
                             const std::vector<RankPlan>& ranks) {
  std::vector<int> assigned = assign_slots_near(slots, ranks);
  const auto count = static_cast<int>(ranks.size());
  if (slots.list.empty() || (slots.compact && count < slots.count())) return assigned;
  std::vector<int> on(slots.list.size(), 0);
  for (const int unit : assigned) ++on[unit];
  if (const auto [fewest, most] = std::ranges::minmax(on); most - fewest > 1)
    assigned = assign_slots(slots, count);
  std::vector<std::vector<int>> far(ranks.size());  // [rank][unit]
  for (Index r = 0; r < ranks.size(); ++r)
    for (const SlotGroup& unit : slots.list)
      far[r].push_back(distance(node, unit.pus, ranks[r].cpus));
  on.assign(slots.list.size(), 0);
  for (const int unit : assigned) ++on[unit];
  const auto cost = [&](Index r, int unit) { return far[r][unit]; };
  for (bool better = true; better;) {
    better = false;
    for (Index r = 0; r < ranks.size(); ++r) {
      for (int unit = 0; unit < slots.count(); ++unit) {  // an emptier unit that is nearer
        int& mine = assigned[r];
        if (cost(r, unit) >= cost(r, mine) || on[unit] >= on[mine]) continue;
        --on[mine];
        ++on[unit];
        mine = unit;
        better = true;
      }
      for (Index other = r + 1; other < ranks.size(); ++other) {
        if (cost(r, assigned[other]) + cost(other, assigned[r]) >=
            cost(r, assigned[r]) + cost(other, assigned[other]))
          continue;
        std::swap(assigned[r], assigned[other]);
        better = true;
      }
    }
  }
  return assigned;
}

}  // namespace hpclaunch
