#include "plan/quotas.h"

#include <algorithm>
#include <cstddef>

#include "plan/divide.h"
#include "plan/reach.h"

namespace hpclaunch {

namespace {

// The sets that quotas draw from. They nest or are apart, so that demands can be met exactly when in no
// set they ask for more than it has (Hall's condition for a laminar family).
struct Family {
  std::vector<CoreSet> sets;
  std::vector<int> sizes;
  std::vector<std::vector<std::size_t>> around;  // of each set: itself and those that hold it
  std::vector<std::vector<std::size_t>> within;  // [crowd][distance]

  explicit Family(const std::vector<Crowd>& crowds) {
    for (const Crowd& crowd : crowds)
      for (const CoreSet& set : crowd.within)
        if (std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(set);
    for (const CoreSet& set : sets) {
      sizes.push_back(set.count());
      around.emplace_back();
      for (std::size_t s = 0; s < sets.size(); ++s)
        if (sets[s].contains(set)) around.back().push_back(s);
    }
    for (const Crowd& crowd : crowds) {
      within.emplace_back();
      for (const CoreSet& set : crowd.within)
        within.back().push_back(
            static_cast<std::size_t>(std::find(sets.begin(), sets.end(), set) - sets.begin()));
    }
  }

  // How much more can be asked of set `s`.
  int room(std::size_t s, const std::vector<int>& used) const {
    int least = sizes[s];
    for (const std::size_t a : around[s]) least = std::min(least, sizes[a] - used[a]);
    return least;
  }

  // Adds to what is counted of set `s`, and with it of those that hold it.
  void use(std::size_t s, int more, std::vector<int>& counts) const {
    for (const std::size_t a : around[s]) counts[a] += more;
  }
};

// The family for any numbers of ranks: always the same one, unless cores are divided by these numbers.
class Families {
 public:
  explicit Families(const std::vector<Crowd>& crowds)
      : crowds_(crowds), nested_(nest(crowds)), family_(crowds) {}

  const Family& of(const std::vector<int>& ranks) {
    if (!nested_) family_ = Family(divided(crowds_, ranks));
    return family_;
  }

 private:
  const std::vector<Crowd>& crowds_;
  bool nested_;
  Family family_;
};

struct Draw {
  std::size_t crowd = 0;
  int distance = 0;
  std::size_t set = 0;
  int ranks = 0;
  int cores = 0;
};

struct Drawn {
  std::vector<Draw> list;
  long far = 0;
};

// Near ones first: whoever can be near is, since a place near by is also a place anywhere around.
Drawn draw(const Family& family, std::vector<int> ranks, int width) {
  Drawn drawn;
  std::vector<int> used(family.sets.size(), 0);
  for (int far = kNear; far < kDistances; ++far)
    for (std::size_t c = 0; c < ranks.size(); ++c) {
      if (ranks[c] == 0) continue;
      const std::size_t set = family.within[c][static_cast<std::size_t>(far)];
      const int take = std::min(ranks[c], family.room(set, used) / width);
      if (take == 0) continue;
      family.use(set, take * width, used);
      ranks[c] -= take;
      drawn.list.push_back({c, far, set, take, take * width});
      drawn.far += static_cast<long>(take) * far;
    }
  return drawn;
}

// The set whose cores are shared by the most ranks for each of them is shared first, evenly; what is
// around it shares what is left.
class Sharing {
 public:
  Sharing(const Family& family, Drawn& drawn)
      : family_(family),
        drawn_(drawn),
        open_(drawn.list.size(), true),
        used_(family.sets.size(), 0),
        open_ranks_(family.sets.size(), 0) {
    for (const Draw& quota : drawn.list) family.use(quota.set, quota.ranks, open_ranks_);
  }

  void share_all() {
    for (;;) {
      const std::size_t set = tightest();
      if (set == family_.sets.size()) return;
      share(set);
    }
  }

 private:
  bool inside(std::size_t quota, std::size_t set) const {
    const std::vector<std::size_t>& around = family_.around[drawn_.list[quota].set];
    return std::find(around.begin(), around.end(), set) != around.end();
  }

  std::size_t tightest() const {
    std::size_t best = family_.sets.size();
    long best_cores = 0;
    long best_ranks = 0;
    for (std::size_t s = 0; s < family_.sets.size(); ++s) {
      const long ranks = open_ranks_[s];
      if (ranks == 0) continue;
      const long cores = family_.sizes[s] - used_[s];
      const long difference = cores * best_ranks - best_cores * ranks;
      const bool first = best == family_.sets.size();
      if (first || difference < 0 || (difference == 0 && family_.sizes[s] > family_.sizes[best])) {
        best = s;
        best_cores = cores;
        best_ranks = ranks;
      }
    }
    return best;
  }

  void share(std::size_t set) {
    const int each = (family_.sizes[set] - used_[set]) / open_ranks_[set];
    std::vector<std::size_t> members;
    for (std::size_t q = 0; q < open_.size(); ++q)
      if (open_[q] && inside(q, set)) members.push_back(q);
    for (const std::size_t q : members) {
      Draw& quota = drawn_.list[q];
      quota.cores = each * quota.ranks;
      family_.use(quota.set, quota.cores, used_);
      family_.use(quota.set, -quota.ranks, open_ranks_);
      open_[q] = false;
    }
    // What does not divide, one core for a rank; inner sets first, so that fewer of them are torn.
    std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return family_.sizes[drawn_.list[a].set] < family_.sizes[drawn_.list[b].set];
    });
    for (const std::size_t q : members) {
      Draw& quota = drawn_.list[q];
      const int more = std::min(quota.ranks, family_.room(quota.set, used_));
      quota.cores += more;
      family_.use(quota.set, more, used_);
    }
  }

  const Family& family_;
  Drawn& drawn_;
  std::vector<bool> open_;
  std::vector<int> used_;
  std::vector<int> open_ranks_;  // of each set and what is in it: without cores so far
};

Drawn settle(const Family& family, const std::vector<int>& ranks, int width) {
  Drawn drawn = draw(family, ranks, std::max(1, width));
  if (width == 0) Sharing(family, drawn).share_all();
  return drawn;
}

Quotas as_quotas(const Family& family, const Drawn& drawn) {
  Quotas quotas;
  quotas.far = drawn.far;
  for (const Draw& one : drawn.list)
    quotas.list.push_back(
        {static_cast<int>(one.crowd), one.distance, family.sets[one.set], one.ranks, one.cores});
  return quotas;
}

// What a split is worth: less of the first; then more for the worst-off, more in all, and more from the
// worst-off up.
struct Worth {
  long far = 0;
  long used = 0;
  std::vector<int> cores;  // of each rank, ascending

  bool better_than(const Worth& other) const {
    if (far != other.far) return far < other.far;
    if (cores.front() != other.cores.front()) return cores.front() > other.cores.front();
    return used != other.used ? used > other.used : cores > other.cores;
  }
};

Worth worth(const Quotas& quotas, const CoresOf& cores_of) {
  Worth result{quotas.far, 0, cores_of(quotas)};
  std::sort(result.cores.begin(), result.cores.end());
  for (const int cores : result.cores) result.used += cores;
  return result;
}

}  // namespace

Quotas quotas_for(const std::vector<Crowd>& crowds, const std::vector<int>& ranks, int width) {
  Families families(crowds);
  const Family& family = families.of(ranks);
  return as_quotas(family, settle(family, ranks, width));
}

std::vector<int> best_split(const std::vector<Crowd>& crowds, std::vector<int> start, int width,
                            const CoresOf& cores_of) {
  long units = 0;
  long ranks = 0;
  for (std::size_t c = 0; c < crowds.size(); ++c) {
    units += static_cast<long>(crowds[c].units.size());
    ranks += start[c];
  }
  // Beyond this many kinds of places nobody waits for the best; such a machine is not known.
  // Where they cut one another each try divides them anew.
  constexpr std::size_t kMostCrowds = 32;
  constexpr std::size_t kMostCut = 8;
  const std::size_t most_tried = nest(crowds) ? kMostCrowds : kMostCut;
  if (ranks % units == 0 || crowds.size() < 2 || crowds.size() > most_tried) return start;
  Families families(crowds);
  const auto settled = [&](const std::vector<int>& split) {
    const Family& family = families.of(split);
    return as_quotas(family, settle(family, split, width));
  };
  const auto least = [&](std::size_t c) {
    return static_cast<long>(crowds[c].units.size()) * (ranks / units);
  };
  const auto most = [&](std::size_t c) {
    return static_cast<long>(crowds[c].units.size()) * (ranks / units + 1);
  };
  std::vector<int> best = std::move(start);
  Worth best_worth = worth(settled(best), cores_of);
  // The goals are concave in the numbers but for what borders of domains do to shares, so that a split is
  // best when moving one rank mends nothing.
  for (bool moved = true; moved;) {
    moved = false;
    const std::vector<int> base = best;
    for (std::size_t from = 0; from < crowds.size(); ++from)
      for (std::size_t to = 0; to < crowds.size(); ++to) {
        if (from == to || base[from] <= least(from) || base[to] >= most(to)) continue;
        std::vector<int> split = base;
        --split[from];
        ++split[to];
        const Quotas quotas = settled(split);
        if (quotas.far > best_worth.far) continue;
        Worth value = worth(quotas, cores_of);
        if (!value.better_than(best_worth)) continue;
        best = std::move(split);
        best_worth = std::move(value);
        moved = true;
      }
  }
  return best;
}

}  // namespace hpclaunch
