#include "plan/cores/share.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

namespace hpclaunch {

namespace {

// A package, a NUMA node or a cache with the smaller ones inside it. Domains nest by containment alone,
// so NUMA nodes above packages work as well as the usual order.
struct Domain {
  Share cores;
  std::vector<Domain> parts;  // none, or a partition of `cores` by first core
};

int count(const Share& share) { return static_cast<int>(share.size()); }

int smallest(const std::vector<Share>& shares) {
  return count(std::ranges::min(shares, {}, count));
}

// `sets` are larger first, so that each part is as large as it can be. Cores outside of all are one part.
Domain tree(Share cores, const std::vector<Share>& sets) {
  Domain domain{std::move(cores), {}};
  Share rest = domain.cores;
  for (const Share& set : sets) {
    const bool inside = set.size() < domain.cores.size() &&
                        std::includes(rest.begin(), rest.end(), set.begin(), set.end());
    if (!inside) continue;
    Share left;
    std::set_difference(rest.begin(), rest.end(), set.begin(), set.end(), std::back_inserter(left));
    rest = std::move(left);
    domain.parts.push_back(tree(set, sets));
  }
  if (domain.parts.empty()) return domain;
  if (!rest.empty()) domain.parts.push_back({std::move(rest), {}});
  std::ranges::sort(domain.parts, {}, &Domain::cores);
  return domain;
}

Domain tree_of(const CoreList& list, bool caches) {
  std::vector<Share> sets;
  const auto add = [&](const CpuSet& pus) {
    Share set;
    for (const int c : list.positions)
      if (list.cores[c].pus.intersects(pus)) set.push_back(c);
    if (!set.empty() && std::ranges::count(sets, set) == 0) sets.push_back(std::move(set));
  };
  for (const Package& package : list.node.packages) add(package.pus);
  for (const NumaNode& numa : list.node.numa_nodes) add(numa.pus);
  for (const Cache& cache : list.node.caches)
    if (caches) add(cache.pus);
  std::ranges::stable_sort(sets, std::ranges::greater(), count);
  return tree(list.positions, sets);
}

// What a cut in front of each core costs: the caches that it goes through.
std::vector<int> cut_costs(const CoreList& list, const Share& cores) {
  std::vector<int> costs(cores.size(), 0);
  for (std::size_t i = 1; i < cores.size(); ++i) {
    const CpuSet& left = list.cores[cores[i - 1]].pus;
    const CpuSet& right = list.cores[cores[i]].pus;
    for (const Cache& cache : list.node.caches)
      costs[i] += cache.pus.intersects(left) && cache.pus.intersects(right) ? 1 : 0;
  }
  return costs;
}

// Largest remainder (Hamilton 1792): runs of cores that differ by one at most. Which runs are the longer
// ones is free: those that make the cuts go through the fewest caches, else the first ones.
void cut_evenly(const CoreList& list, const Share& cores, int ranks, std::vector<Share>& out) {
  const int size = count(cores) / ranks;
  const int longer = count(cores) % ranks;
  const std::vector<int> costs = cut_costs(list, cores);
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
    const auto begin = cores.begin() + r * size + extra;
    extra += is_longer(r, extra) ? 1 : 0;
    out.emplace_back(begin, cores.begin() + (r + 1) * size + extra);
  }
}

// Fewer ranks than parts: runs of whole neighbouring parts (linear partition). The smallest is as large as it
// can be, then the squares of the sizes have the least sum.
std::vector<Share> runs_of_parts(const std::vector<Domain>& parts, int ranks) {
  const std::size_t n = parts.size();
  std::vector<long> before(n + 1, 0);
  for (std::size_t p = 0; p < n; ++p) before[p + 1] = before[p] + count(parts[p].cores);
  using Score = std::pair<long, long>;  // smallest run, sum of squares below zero
  std::vector<std::vector<Score>> best(ranks + 1, std::vector<Score>(n + 1, {-1, 0}));
  auto from =
      std::vector<std::vector<std::size_t>>(best.size(), std::vector<std::size_t>(n + 1, 0));
  best[0][0] = {before[n], 0};
  for (std::size_t r = 1; r < best.size(); ++r)
    for (std::size_t end = r; end <= n; ++end)
      for (std::size_t begin = r - 1; begin < end; ++begin) {  // of equals the last run is longest
        if (best[r - 1][begin].first < 0) continue;
        const long size = before[end] - before[begin];
        const Score score{std::min(best[r - 1][begin].first, size),
                          best[r - 1][begin].second - size * size};
        if (score > best[r][end]) {
          best[r][end] = score;
          from[r][end] = begin;
        }
      }
  std::vector<Share> shares;
  for (std::size_t r = best.size() - 1, end = n; r > 0; end = from[r][end], --r) {
    Share share;
    for (std::size_t p = from[r][end]; p < end; ++p)
      share.insert(share.end(), parts[p].cores.begin(), parts[p].cores.end());
    std::ranges::sort(share);
    shares.insert(shares.begin(), std::move(share));
  }
  return shares;
}

// How large the smallest share of a domain can be, by number of ranks, and how many ranks each part gets.
class Offers {
 public:
  explicit Offers(const Domain& domain)
      : domain_(domain), given_(1, std::vector<int>(domain.parts.size(), 0)) {
    for (const Domain& part : domain.parts) parts_.emplace_back(part);
  }

  int smallest_of(int ranks) {
    const int cores = count(domain_.cores);
    if (ranks > cores) return 0;
    if (ranks == 1 || domain_.parts.empty()) return cores / ranks;
    const int assigned = worst(ranks);
    return few(ranks) ? std::max(assigned, smallest(runs_of_parts(domain_.parts, ranks)))
                      : assigned;
  }

  void take(const CoreList& list, int ranks, std::vector<Share>& out) {
    if (ranks == 0) return;
    if (ranks == 1) return out.push_back(domain_.cores);
    if (domain_.parts.empty()) return cut_evenly(list, domain_.cores, ranks, out);
    const int assigned = worst(ranks);
    if (few(ranks)) {
      std::vector<Share> runs = runs_of_parts(domain_.parts, ranks);
      if (smallest(runs) >= assigned) {  // as good for the poorest rank, and no part stays idle
        std::move(runs.begin(), runs.end(), std::back_inserter(out));
        return;
      }
    }
    const std::vector<int> given = given_[ranks];
    for (std::size_t p = 0; p < parts_.size(); ++p) parts_[p].take(list, given[p], out);
  }

 private:
  bool few(int ranks) const { return ranks < static_cast<int>(domain_.parts.size()); }

  // Ranks go to parts one by one, each where the poorest rank is best off then. No other way leaves it
  // better, since what a part offers never rises with its ranks.
  int worst(int ranks) {
    while (count_ < ranks) {
      std::vector<int> given = given_.back();
      std::size_t chosen = 0;
      int offer = -1;
      for (std::size_t p = 0; p < parts_.size(); ++p) {
        const int next = parts_[p].smallest_of(given[p] + 1);
        if (next > offer || (next == offer && given[p] < given[chosen])) {
          chosen = p;
          offer = next;
        }
      }
      ++given[chosen];
      ++count_;
      given_.push_back(std::move(given));
      worst_.push_back(worst_.empty() ? offer : std::min(worst_.back(), offer));
    }
    return worst_[ranks - 1];
  }

  const Domain& domain_;
  std::vector<Offers> parts_;
  std::vector<std::vector<int>> given_;  // by number of ranks
  std::vector<int> worst_;
  int count_ = 0;
};

// In turn inside the parts as long as these have room; the others get what the parts leave.
Share pack(const CoreList& list, const Domain& domain, int ranks, int width,
           std::vector<Share>& out) {
  Share unused;
  if (domain.parts.empty()) {
    if (ranks == 0) return domain.cores;
    std::vector<Share> even;
    cut_evenly(list, domain.cores, ranks, even);
    for (Share& share : even) {
      unused.insert(unused.end(), share.begin() + width, share.end());
      share.resize(width);
      out.push_back(std::move(share));
    }
    return unused;
  }
  std::vector<int> given(domain.parts.size(), 0);
  int left = ranks;
  for (bool placed = true; placed && left > 0;) {
    placed = false;
    for (std::size_t p = 0; p < given.size() && left > 0; ++p) {
      if ((given[p] + 1) * width > count(domain.parts[p].cores)) continue;
      ++given[p];
      --left;
      placed = true;
    }
  }
  for (std::size_t p = 0; p < given.size(); ++p) {
    const Share rest = pack(list, domain.parts[p], given[p], width, out);
    unused.insert(unused.end(), rest.begin(), rest.end());
  }
  std::ranges::sort(unused);
  auto at = unused.begin();
  for (; left > 0; --left, at += width) out.emplace_back(at, at + width);
  unused.erase(unused.begin(), at);
  return unused;
}

int caches_cut(const CoreList& list, const std::vector<Share>& shares) {
  int cut = 0;
  for (const Share& share : shares)
    for (const Cache& cache : list.node.caches) {
      const auto inside = std::count_if(share.begin(), share.end(), [&](int c) {
        return list.cores[c].pus.intersects(cache.pus);
      });
      cut += inside > 0 && inside < count(share) ? 1 : 0;
    }
  return cut;
}

}  // namespace

std::vector<UsableCore> usable_cores(const Topology& node) {
  std::vector<UsableCore> cores;
  for (std::size_t i = 0; i < node.cores.size(); ++i) {
    CpuSet pus = node.cores[i].pus & node.allowed;
    if (!pus.empty()) cores.push_back({pus, static_cast<int>(i)});
  }
  return cores;
}

std::vector<Share> even_shares(const CoreList& list, int ranks) {
  const Domain domain = tree_of(list, false);
  std::vector<Share> shares;
  Offers(domain).take(list, ranks, shares);
  std::ranges::sort(shares);
  return shares;
}

std::vector<Share> exact_shares(const CoreList& list, int ranks, int width) {
  std::vector<Share> even = even_shares(list, ranks);
  const bool wide = smallest(even) >= width;
  for (Share& share : even)
    if (wide) share.resize(width);
  if (wide && caches_cut(list, even) == 0) return even;
  std::vector<Share> packed;
  pack(list, tree_of(list, true), ranks, width, packed);
  std::ranges::sort(packed);
  return wide && caches_cut(list, even) <= caches_cut(list, packed) ? even : packed;
}

}  // namespace hpclaunch
