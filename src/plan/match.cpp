#include "plan/match.h"

#include <algorithm>
#include <map>

#include "plan/crowds.h"
#include "plan/cutter.h"
#include "plan/describe.h"
#include "plan/links.h"
#include "plan/quotas.h"
#include "plan/reach.h"
#include "plan/share.h"
#include "plan/transport.h"

namespace hpclaunch {

namespace {

std::vector<std::size_t> crowd_of_units(const std::vector<Crowd>& crowds, int units) {
  std::vector<std::size_t> crowd_of(static_cast<std::size_t>(units), 0);
  for (std::size_t c = 0; c < crowds.size(); ++c)
    for (const int unit : crowds[c].units) crowd_of[static_cast<std::size_t>(unit)] = c;
  return crowd_of;
}

// The unit of each rank of each crowd, near ones first: as block order has it where the numbers are its
// own, else spread evenly over the crowd's units.
std::vector<std::vector<int>> deal_crowds(const Units& units, const std::vector<Crowd>& crowds,
                                          const std::vector<int>& block,
                                          const std::vector<int>& ranks) {
  const std::vector<std::size_t> crowd_of = crowd_of_units(crowds, units.count());
  std::vector<std::vector<int>> dealt(crowds.size());
  for (const int unit : block) dealt[crowd_of[static_cast<std::size_t>(unit)]].push_back(unit);
  for (std::size_t c = 0; c < crowds.size(); ++c) {
    const auto want = static_cast<std::size_t>(ranks[c]);
    if (dealt[c].size() == want) continue;
    dealt[c].clear();
    for (std::size_t i = 0; i < want; ++i)
      dealt[c].push_back(crowds[c].units[i * crowds[c].units.size() / want]);
  }
  return dealt;
}

// The same numbers with linked devices side by side.
void put_linked_together(const Topology& node, const Units& units, const std::vector<Crowd>& crowds,
                         std::vector<std::vector<int>>& dealt) {
  std::vector<Stretch> stretches;
  std::vector<std::vector<int>> start;
  std::vector<std::size_t> at;
  for (std::size_t c = 0; c < crowds.size(); ++c) {
    if (dealt[c].empty()) continue;
    std::vector<int> used = dealt[c];
    used.erase(std::unique(used.begin(), used.end()), used.end());
    stretches.push_back({crowds[c].units, static_cast<int>(used.size())});
    start.push_back(std::move(used));
    at.push_back(c);
  }
  const std::vector<std::vector<int>> linked = linked_order(node, units, stretches, start);
  for (std::size_t s = 0; s < at.size(); ++s) {
    if (linked[s] == start[s]) continue;
    std::vector<int>& mine = dealt[at[s]];
    for (std::size_t i = 0; i < mine.size(); ++i)
      mine[i] = linked[s][i * linked[s].size() / mine.size()];
  }
}

struct Seat {
  Share share;
  int unit = -1;
};

std::vector<Seat> seat_all(std::vector<std::vector<Share>> shares,
                           const std::vector<std::vector<int>>& dealt) {
  std::vector<Seat> seats;
  for (std::size_t c = 0; c < dealt.size(); ++c)
    for (std::size_t i = 0; i < shares[c].size(); ++i)
      seats.push_back({std::move(shares[c][i]), dealt[c][i]});
  return seats;
}

// More ranks than cores: those of one crowd share the nearest cores there are.
std::vector<Seat> crowd_all(const std::vector<Crowd>& crowds,
                            const std::vector<std::vector<int>>& dealt) {
  std::vector<Seat> seats;
  for (std::size_t c = 0; c < crowds.size(); ++c) {
    const auto some = std::find_if(crowds[c].within.begin(), crowds[c].within.end(),
                                   [](const CoreSet& set) { return !set.empty(); });
    const std::vector<int> cores = some->to_vector();
    const std::size_t ranks = dealt[c].size();
    for (std::size_t i = 0; i < ranks; ++i) {
      const std::size_t core = cores.size() >= ranks ? i : i * cores.size() / ranks;
      seats.push_back({{cores[core]}, dealt[c][i]});
    }
  }
  return seats;
}

struct Deal {
  std::vector<Crowd> crowds;
  std::vector<int> ranks;               // of each crowd
  std::vector<std::vector<int>> dealt;  // the unit of each of them
};

// Who gets which unit.
Deal deal_out(const Topology& node, const std::vector<UsableCore>& cores, const Units& units,
              const PlaceRequest& want, bool crowded, Cutter& cutter) {
  Deal deal{crowds_of(node, cores, units), {}, {}};
  const std::vector<std::size_t> crowd_of = crowd_of_units(deal.crowds, units.count());
  const std::vector<int> block = deal_units(units, want.ranks);
  deal.ranks.assign(deal.crowds.size(), 0);
  for (const int unit : block) ++deal.ranks[crowd_of[static_cast<std::size_t>(unit)]];
  const bool settled = crowded || units.filled > 0 || (units.compact && want.ranks < units.count());
  if (!settled)
    deal.ranks = best_split(deal.crowds, std::move(deal.ranks), want.cores_per_rank,
                            [&](const Quotas& quotas) { return cutter.sizes(quotas); });
  deal.dealt = deal_crowds(units, deal.crowds, block, deal.ranks);
  // Where the driver keeps its own order, device LOCAL_RANK is right in that order only.
  const bool fixed = units.compact || (units.vendor->keeps_order() && units.view == "all");
  if (!fixed) put_linked_together(node, units, deal.crowds, deal.dealt);
  return deal;
}

}  // namespace

std::optional<Matched> match_units(const Topology& node, const Units& units,
                                   const PlaceRequest& want) {
  if (units.list.empty()) return std::nullopt;
  const std::vector<UsableCore> cores = usable_cores(node);
  const long have = static_cast<long>(cores.size());
  const bool crowded = want.ranks > have && want.oversubscribe && want.cores_per_rank <= 1;
  if (!crowded && static_cast<long>(want.ranks) * std::max(1, want.cores_per_rank) > have)
    return std::nullopt;
  Cutter cutter(node, cores, want.cores_per_rank);
  const Deal deal = deal_out(node, cores, units, want, crowded, cutter);
  std::vector<Seat> seats =
      crowded ? crowd_all(deal.crowds, deal.dealt)
              : seat_all(cutter.shares(quotas_for(deal.crowds, deal.ranks, want.cores_per_rank),
                                       deal.crowds.size()),
                         deal.dealt);
  std::stable_sort(seats.begin(), seats.end(),
                   [](const Seat& a, const Seat& b) { return a.share.front() < b.share.front(); });
  Matched matched;
  for (const Seat& seat : seats) {
    matched.ranks.push_back(rank_on(node, cores, seat.share));
    matched.dealt.push_back(seat.unit);
  }
  matched.remarks = remarks_on(node, cores, matched.ranks, crowded);
  return matched;
}

namespace {

long sum_of_distances(const Topology& node, const Units& units, const std::vector<RankPlan>& ranks,
                      const std::vector<int>& dealt) {
  long sum = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    sum += distance(node, units.list[static_cast<std::size_t>(dealt[r])].pus, ranks[r].cpus);
  return sum;
}

bool is_even(const Units& units, const std::vector<int>& dealt) {
  std::vector<int> on(units.list.size(), 0);
  for (const int unit : dealt) ++on[static_cast<std::size_t>(unit)];
  const auto [least, most] = std::minmax_element(on.begin(), on.end());
  return *most - *least <= 1;
}

}  // namespace

std::vector<int> match_bound(const Topology& node, const Units& units,
                             const std::vector<RankPlan>& ranks) {
  const auto count = static_cast<int>(ranks.size());
  std::vector<int> near = deal_units_near(units, ranks);
  if (units.list.empty() || (units.compact && count < units.count())) return near;
  // Units near the same cores on one side, ranks that are alike far from all of those on the other.
  const std::vector<std::vector<int>> groups = units_by_place(units);
  std::map<std::vector<int>, std::vector<int>> alike;
  for (int r = 0; r < count; ++r) {
    std::vector<int> costs;
    costs.reserve(groups.size());
    for (const std::vector<int>& group : groups)
      costs.push_back(distance(node, units.list[static_cast<std::size_t>(group.front())].pus,
                               ranks[static_cast<std::size_t>(r)].cpus));
    alike[costs].push_back(r);
  }
  Transport problem;
  for (const auto& [costs, members] : alike) {
    problem.costs.push_back(costs);
    problem.supply.push_back(static_cast<int>(members.size()));
  }
  for (const std::vector<int>& group : groups) {
    const int units_here = static_cast<int>(group.size());
    problem.least.push_back(units_here * (count / units.count()));
    problem.most.push_back(units_here * (count / units.count() + 1));
  }
  const std::vector<std::vector<int>> moved = solve(problem);
  std::vector<std::vector<int>> members(groups.size());
  std::size_t kind = 0;
  for (const auto& [costs, all] : alike) {
    auto next = all.begin();
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (int i = 0; i < moved[kind][g]; ++i) members[g].push_back(*next++);
    ++kind;
  }
  std::vector<int> dealt(ranks.size(), 0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::sort(members[g].begin(), members[g].end());
    for (std::size_t i = 0; i < members[g].size(); ++i)
      dealt[static_cast<std::size_t>(members[g][i])] =
          groups[g][i * groups[g].size() / members[g].size()];
  }
  const bool as_good = is_even(units, near) && sum_of_distances(node, units, ranks, near) <=
                                                   sum_of_distances(node, units, ranks, dealt);
  return as_good ? near : dealt;
}

}  // namespace hpclaunch
