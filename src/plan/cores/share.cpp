#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "plan/cores/cores.h"

namespace hpclaunch {

namespace {

int smallest(const std::vector<CoreSet>& shares) {
  return std::ranges::min(shares, {}, &CoreSet::count).count();
}

// What a cut in front of each core costs: the caches that it goes through.
std::vector<int> cut_costs(const Topology& node, const std::vector<int>& cores) {
  std::vector<int> costs(cores.size(), 0);
  for (std::size_t i = 1; i < cores.size(); ++i)
    costs[i] = static_cast<int>(std::ranges::count_if(node.caches, [&](const Cache& cache) {
      return cache.pus.intersects(node.cores[cores[i - 1]].pus) &&
             cache.pus.intersects(node.cores[cores[i]].pus);
    }));
  return costs;
}

// Largest remainder (Hamilton 1792): runs of cores that differ by one at most. Which runs are the longer
// ones is free: those that make the cuts go through the fewest caches, else the first ones.
void cut_evenly(const Topology& node, const CoreSet& all, int ranks, std::vector<CoreSet>& out) {
  const std::vector<int> cores = all.to_vector();
  const int size = static_cast<int>(cores.size()) / ranks;
  const int longer = static_cast<int>(cores.size()) % ranks;
  const std::vector<int> costs = cut_costs(node, cores);
  // least[r][e]: cost of the cuts in front of runs r.. where e of the runs before are longer.
  std::vector<std::vector<int>> least(ranks + 1, std::vector<int>(longer + 1, 0));
  const auto reachable = [&](int r, int e) { return e <= longer && longer - e <= ranks - r; };
  const auto is_longer = [&](int r, int e) {  // of equals the first ones
    const std::vector<int>& next = least[r + 1];
    return reachable(r + 1, e + 1) && (!reachable(r + 1, e) || next[e + 1] <= next[e]);
  };
  for (int r = ranks - 1; r >= 0; --r)
    for (int e = std::min(r, longer); e >= 0; --e)
      least[r][e] = least[r + 1][is_longer(r, e) ? e + 1 : e] + (r > 0 ? costs[r * size + e] : 0);
  int extra = 0;
  for (int r = 0; r < ranks; ++r) {
    const int begin = r * size + extra;
    extra += is_longer(r, extra) ? 1 : 0;
    out.push_back(slice(cores, begin, (r + 1) * size + extra));
  }
}

// A package, a NUMA node or a cache with the smaller ones inside it. Domains nest by containment alone,
// so NUMA nodes above packages work as well as the usual order.
class Domain {
 public:
  // `sets` are larger first, so that each part is as large as it can be. Cores outside of all are one part.
  Domain(const CoreSet& all, const std::vector<CoreSet>& sets) : cores(all) {
    CoreSet rest = cores;
    for (const CoreSet& set : sets) {
      if (set.count() == cores.count() || !rest.contains(set)) continue;
      rest -= set;
      parts.emplace_back(set, sets);
    }
    if (!parts.empty() && !rest.empty()) parts.emplace_back(rest, std::vector<CoreSet>{});
    std::ranges::sort(parts, {}, [](const Domain& part) { return part.cores.first(); });
    given_.emplace_back(parts.size(), 0);
  }

  // How large the smallest share can be.
  int smallest_of(int ranks) {
    const int count = cores.count();
    if (ranks > count) return 0;
    if (ranks == 1 || parts.empty()) return count / ranks;
    const int assigned = worst(ranks);
    return few(ranks) ? std::max(assigned, smallest(runs_of_parts(ranks))) : assigned;
  }

  // A rank keeps to one part where that leaves it `enough` cores; 0: parts that would stay idle go to ranks whole.
  void take(const Topology& node, int ranks, int enough, std::vector<CoreSet>& out) {
    if (ranks == 0) return;
    if (ranks == 1) return out.push_back(innermost(enough).cores);
    if (parts.empty()) return cut_evenly(node, cores, ranks, out);
    const int assigned = worst(ranks);
    if (few(ranks) && (enough == 0 || assigned < enough)) {
      const std::vector<CoreSet> runs = runs_of_parts(ranks);
      if (smallest(runs) >= assigned) {  // as good for the poorest rank, and no part stays idle
        out.insert(out.end(), runs.begin(), runs.end());
        return;
      }
    }
    const std::vector<int> given = given_[ranks];
    for (std::size_t p = 0; p < parts.size(); ++p) parts[p].take(node, given[p], enough, out);
  }

  CoreSet cores;
  std::vector<Domain> parts;  // none, or a partition of `cores` by first core

 private:
  // The largest part of the largest part ..., as long as it is large enough.
  const Domain& innermost(int enough) const {
    if (parts.empty() || enough == 0) return *this;
    const Domain& largest =
        *std::ranges::max_element(parts, {}, [](const Domain& part) { return part.cores.count(); });
    return largest.cores.count() < enough ? *this : largest.innermost(enough);
  }

  bool few(int ranks) const { return ranks < static_cast<int>(parts.size()); }

  // Ranks go to parts one by one, each where the poorest rank is best off then. No other way leaves it
  // better, since what a part offers never rises with its ranks.
  int worst(int ranks) {
    while (std::ssize(worst_) < ranks) {
      std::vector<int> given = given_.back();
      std::size_t chosen = 0;
      int offer = -1;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        const int next = parts[p].smallest_of(given[p] + 1);
        if (next > offer || (next == offer && given[p] < given[chosen])) {
          chosen = p;
          offer = next;
        }
      }
      ++given[chosen];
      given_.push_back(std::move(given));
      worst_.push_back(worst_.empty() ? offer : std::min(worst_.back(), offer));
    }
    return worst_[ranks - 1];
  }

  // Fewer ranks than parts: runs of whole neighbouring parts (linear partition). The smallest is as large as it
  // can be, then the squares of the sizes have the least sum.
  std::vector<CoreSet> runs_of_parts(std::size_t ranks) const {
    struct Runs {
      std::pair<long, long> score{-1, 0};  // smallest run, sum of squares below zero
      std::size_t last = 0;                // where the last run begins
    };
    const std::size_t n = parts.size();
    std::vector<long> before(n + 1, 0);
    for (std::size_t p = 0; p < n; ++p) before[p + 1] = before[p] + parts[p].cores.count();
    std::vector best(ranks + 1, std::vector<Runs>(n + 1));
    best[0][0].score = {before[n], 0};
    for (std::size_t r = 1; r <= ranks; ++r)
      for (std::size_t end = r; end <= n; ++end)
        for (std::size_t begin = r - 1; begin < end;
             ++begin) {  // of equals the last run is longest
          const auto [least, squares] = best[r - 1][begin].score;
          const long size = before[end] - before[begin];
          const std::pair score{std::min(least, size), squares - size * size};
          if (least >= 0 && score > best[r][end].score) best[r][end] = {score, begin};
        }
    std::vector<CoreSet> shares(ranks);
    for (std::size_t r = ranks, end = n; r > 0; end = best[r--][end].last)
      for (std::size_t p = best[r][end].last; p < end; ++p) shares[r - 1] |= parts[p].cores;
    return shares;
  }

  std::vector<std::vector<int>> given_;  // ranks of each part, by number of ranks
  std::vector<int> worst_;               // smallest share then
};

Domain tree_of(const Topology& node, const CoreSet& cores, bool caches) {
  std::vector<CoreSet> sets;
  const auto add = [&](const auto& parts) {
    for (const auto& part : parts) {
      const CoreSet set = cores_of(node, part.pus) & cores;
      if (!set.empty() && std::ranges::count(sets, set) == 0) sets.push_back(set);
    }
  };
  add(node.packages);
  add(node.numa_nodes);
  if (caches) add(node.caches);
  std::ranges::stable_sort(sets, std::ranges::greater(), &CoreSet::count);
  return {cores, sets};
}

// Cores of one package and one NUMA node, by first core.
std::vector<CoreSet> innermost_places(const Topology& node, const CoreSet& cores) {
  std::vector<CoreSet> places;
  std::map<std::pair<int, int>, std::size_t> at;
  for (const int c : cores.to_vector()) {
    const auto [place, fresh] =
        at.emplace(std::pair(node.cores[c].package, node.cores[c].numa), places.size());
    if (fresh) places.emplace_back();
    places[place->second].add(c);
  }
  return places;
}

// Every rank inside a place: the smallest share is as large as can be, and each place that has as much gets a rank.
std::vector<CoreSet> shares_inside(const Topology& node, const std::vector<CoreSet>& places,
                                   int ranks) {
  const auto room = [&](int width) {
    int sum = 0;
    for (const CoreSet& place : places) sum += place.count() / width;
    return sum;
  };
  int least = 1;
  while (room(least + 1) >= ranks) ++least;
  std::vector<int> given;
  for (const CoreSet& place : places) given.push_back(place.count() >= least ? 1 : 0);
  for (int left = ranks - std::accumulate(given.begin(), given.end(), 0); left > 0; --left) {
    std::size_t most = 0;
    for (std::size_t p = 1; p < places.size(); ++p)
      if (places[p].count() / (given[p] + 1) > places[most].count() / (given[most] + 1)) most = p;
    ++given[most];
  }
  std::vector<CoreSet> shares;
  for (std::size_t p = 0; p < places.size(); ++p)
    if (given[p] > 0) cut_evenly(node, places[p], given[p], shares);
  return shares;
}

// Of two ways to share: cores of the poorest rank, ranks inside one place, cores that are used.
std::tuple<int, long, int> merit(const std::vector<CoreSet>& shares,
                                 const std::vector<CoreSet>& places) {
  const auto inside = [&](const CoreSet& share) {
    return std::ranges::any_of(places, [&](const CoreSet& one) { return one.contains(share); });
  };
  int used = 0;
  for (const CoreSet& share : shares) used += share.count();
  return {smallest(shares), std::ranges::count_if(shares, inside), used};
}

// In turn inside the parts as long as these have room; the others get what the parts leave. Returns what is unused.
CoreSet pack(const Topology& node, const Domain& domain, int ranks, int width,
             std::vector<CoreSet>& out) {
  CoreSet unused;
  if (domain.parts.empty()) {
    if (ranks == 0) return domain.cores;
    std::vector<CoreSet> even;
    cut_evenly(node, domain.cores, ranks, even);
    for (const CoreSet& share : even) {
      out.push_back(slice(share.to_vector(), 0, width));
      unused |= share - out.back();
    }
    return unused;
  }
  std::vector<int> given(domain.parts.size(), 0);
  int left = ranks;
  for (bool placed = true; placed && left > 0;) {
    placed = false;
    for (std::size_t p = 0; p < given.size() && left > 0; ++p) {
      if ((given[p] + 1) * width > domain.parts[p].cores.count()) continue;
      ++given[p];
      --left;
      placed = true;
    }
  }
  for (std::size_t p = 0; p < given.size(); ++p)
    unused |= pack(node, domain.parts[p], given[p], width, out);
  const std::vector<int> rest = unused.to_vector();
  for (int i = 0; i < left; ++i) {
    out.push_back(slice(rest, i * width, (i + 1) * width));
    unused -= out.back();
  }
  return unused;
}

long caches_cut(const Topology& node, const std::vector<CoreSet>& shares) {
  long cut = 0;
  for (const Cache& cache : node.caches) {
    const CoreSet around = cores_of(node, cache.pus);
    cut += std::ranges::count_if(shares, [&](const CoreSet& share) {
      return share.intersects(around) && !around.contains(share);
    });
  }
  return cut;
}

}  // namespace

CoreSet slice(const std::vector<int>& cores, std::size_t begin, std::size_t end) {
  CoreSet set;
  for (; begin < end; ++begin) set.add(cores[begin]);
  return set;
}

std::vector<CoreSet> even_shares(const Topology& node, const CoreSet& cores, int ranks) {
  std::vector<CoreSet> shares;
  Domain tree = tree_of(node, cores, false);
  const std::vector<CoreSet> places = innermost_places(node, cores);
  const bool enough_ranks = ranks >= std::ssize(places);
  tree.take(node, ranks, enough_ranks ? tree.smallest_of(ranks) : 0, shares);
  if (enough_ranks && places.size() > 1) {
    std::vector<CoreSet> flat = shares_inside(node, places, ranks);
    if (merit(flat, places) > merit(shares, places)) shares = std::move(flat);
  }
  std::ranges::sort(shares, {}, &CoreSet::first);
  return shares;
}

std::vector<CoreSet> exact_shares(const Topology& node, const CoreSet& cores, int ranks,
                                  int width) {
  std::vector<CoreSet> even = even_shares(node, cores, ranks);
  const bool wide = smallest(even) >= width;
  for (CoreSet& share : even)
    if (wide) share = slice(share.to_vector(), 0, width);
  if (wide && caches_cut(node, even) == 0) return even;
  std::vector<CoreSet> packed;
  pack(node, tree_of(node, cores, true), ranks, width, packed);
  std::ranges::sort(packed, {}, &CoreSet::first);
  return wide && caches_cut(node, even) <= caches_cut(node, packed) ? even : packed;
}

}  // namespace hpclaunch
