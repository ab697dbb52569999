#include "plan/links.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hpclaunch {

namespace {

constexpr int kOneDevice = 1 << 16;  // parts of one device: more than lanes can be
constexpr std::size_t kExact = 12;   // units for which every order is looked at

int lanes_of(const Topology& node, int a, int b) {
  if (a == b) return a < 0 ? 0 : kOneDevice;
  int lanes = 0;
  for (const Link& link : node.links)
    if ((link.from == a && link.to == b) || (link.from == b && link.to == a)) lanes += link.lanes;
  return lanes;
}

// Linked pairs count for more than any number of lanes.
long worth_of(int lanes) { return lanes == 0 ? 0 : (1L << 32) + lanes; }

using Table = std::vector<std::vector<long>>;

template <class At>
Table worths(const Topology& node, std::size_t count, At at) {
  Table table(count, std::vector<long>(count, 0));
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b)
      if (a != b) table[a][b] = worth_of(lanes_between(node, at(a), at(b)));
  return table;
}

long ring_worth(const Table& table, const std::vector<std::size_t>& order) {
  long sum = 0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) sum += table[order[i]][order[i + 1]];
  if (order.size() > 2) sum += table[order.back()][order.front()];
  return sum;
}

// Every order of the units that keeps stretches together, by what was used and which unit came last
// (Held and Karp). Units are numbered over all stretches here.
class Rings {
 public:
  Rings(const Table& table, std::vector<std::size_t> stretch_of, std::vector<int> used)
      : table_(table),
        stretch_of_(std::move(stretch_of)),
        used_(std::move(used)),
        masks_(used_.size(), 0) {
    for (std::size_t u = 0; u < stretch_of_.size(); ++u) masks_[stretch_of_[u]] |= 1u << u;
  }

  std::vector<std::size_t> best() {
    // Where one stretch is used as a whole, a ring may begin anywhere.
    const bool whole = used_.size() == 1 && used_[0] == static_cast<int>(stretch_of_.size());
    const std::size_t firsts = whole ? 1 : stretch_of_.size();
    for (std::size_t first = 0; first < firsts && stretch_of_[first] == 0; ++first) from(first);
    return best_order_;
  }

 private:
  struct Step {
    long worth = -1;  // -1: not reached
    std::size_t before = 0;
  };

  bool may_follow(std::uint32_t done, std::size_t last, std::size_t next) const {
    if ((done >> next & 1) != 0) return false;
    const std::size_t mine = stretch_of_[last];
    const bool full = __builtin_popcount(done & masks_[mine]) == used_[mine];
    return stretch_of_[next] == mine + (full ? 1 : 0);
  }

  void from(std::size_t first) {
    const std::size_t count = stretch_of_.size();
    std::vector<std::vector<Step>> steps(std::size_t{1} << count, std::vector<Step>(count));
    steps[std::size_t{1} << first][first] = {0, first};
    int total = 0;
    for (const int used : used_) total += used;
    for (std::uint32_t done = 1; done < steps.size(); ++done)
      for (std::size_t last = 0; last < count; ++last) {
        const Step step = steps[done][last];
        if (step.worth < 0) continue;
        if (__builtin_popcount(done) == total) {
          finish(steps, done, last, first);
          continue;
        }
        for (std::size_t next = 0; next < count; ++next) {
          if (!may_follow(done, last, next)) continue;
          Step& there = steps[done | 1u << next][next];
          const long worth = step.worth + table_[last][next];
          if (worth > there.worth) there = {worth, last};
        }
      }
  }

  void finish(const std::vector<std::vector<Step>>& steps, std::uint32_t done, std::size_t last,
              std::size_t first) {
    const long close = __builtin_popcount(done) > 2 ? table_[last][first] : 0;
    if (steps[done][last].worth + close <= best_worth_) return;
    best_worth_ = steps[done][last].worth + close;
    best_order_.clear();
    for (std::uint32_t left = done; left != 0;) {
      best_order_.push_back(last);
      const std::size_t before = steps[left][last].before;
      left &= ~(1u << last);
      last = before;
    }
    std::reverse(best_order_.begin(), best_order_.end());
  }

  const Table& table_;
  std::vector<std::size_t> stretch_of_;
  std::vector<int> used_;
  std::vector<std::uint32_t> masks_;  // the units of each stretch
  long best_worth_ = -1;
  std::vector<std::size_t> best_order_;
};

std::vector<std::size_t> nearest_first(const Table& table,
                                       const std::vector<std::size_t>& stretch_of,
                                       const std::vector<int>& used) {
  std::vector<std::size_t> order;
  std::vector<bool> taken(stretch_of.size(), false);
  for (std::size_t s = 0; s < used.size(); ++s)
    for (int i = 0; i < used[s]; ++i) {
      std::size_t chosen = stretch_of.size();
      for (std::size_t u = 0; u < stretch_of.size(); ++u) {
        if (taken[u] || stretch_of[u] != s) continue;
        if (chosen == stretch_of.size() ||
            (!order.empty() && table[order.back()][u] > table[order.back()][chosen]))
          chosen = u;
      }
      taken[chosen] = true;
      order.push_back(chosen);
    }
  return order;
}

// Ways to cut units into groups, the first unit that is left always in the next group; the best is kept.
class Groupings {
 public:
  Groupings(const Table& table, std::size_t size) : table_(table), size_(size) {}

  std::vector<std::vector<std::size_t>> best() {
    std::vector<std::size_t> all(table_.size());
    for (std::size_t u = 0; u < all.size(); ++u) all[u] = u;
    cut(all, all.size() % size_, 0);
    return best_;
  }

 private:
  void cut(const std::vector<std::size_t>& left, std::size_t spare, long worth) {
    if (left.size() < size_) {
      if (worth <= best_worth_) return;
      best_worth_ = worth;
      best_ = now_;
      return;
    }
    std::vector<std::size_t> group{left.front()};
    choose(left, 1, group, spare, worth);
    if (spare > 0) cut({left.begin() + 1, left.end()}, spare - 1, worth);
  }

  void choose(const std::vector<std::size_t>& left, std::size_t at, std::vector<std::size_t>& group,
              std::size_t spare, long worth) {
    if (group.size() == size_) {
      std::vector<std::size_t> rest;
      std::set_difference(left.begin(), left.end(), group.begin(), group.end(),
                          std::back_inserter(rest));
      now_.push_back(group);
      cut(rest, spare, worth);
      now_.pop_back();
      return;
    }
    for (std::size_t i = at; i < left.size(); ++i) {
      long more = 0;
      for (const std::size_t member : group) more += table_[member][left[i]];
      group.push_back(left[i]);
      choose(left, i + 1, group, spare, worth + more);
      group.pop_back();
    }
  }

  const Table& table_;
  std::size_t size_;
  std::vector<std::vector<std::size_t>> now_;
  std::vector<std::vector<std::size_t>> best_;
  long best_worth_ = -1;
};

}  // namespace

int lanes_between(const Topology& node, const Unit& a, const Unit& b) {
  int lanes = lanes_of(node, a.device, b.device);
  for (const Unit& more : b.more) lanes += lanes_of(node, a.device, more.device);
  for (const Unit& more : a.more) lanes += lanes_between(node, more, b);
  return lanes;
}

std::vector<std::vector<int>> linked_order(const Topology& node, const Units& units,
                                           const std::vector<Stretch>& stretches,
                                           const std::vector<std::vector<int>>& start) {
  std::vector<int> all;
  std::vector<std::size_t> stretch_of;
  std::vector<int> used;
  for (std::size_t s = 0; s < stretches.size(); ++s) {
    used.push_back(stretches[s].used);
    for (const int unit : stretches[s].units) {
      all.push_back(unit);
      stretch_of.push_back(s);
    }
  }
  if (node.links.empty() || all.size() < 2) return start;
  const Table table = worths(node, all.size(), [&](std::size_t u) -> const Unit& {
    return units.list[static_cast<std::size_t>(all[u])];
  });
  std::vector<std::size_t> before;
  for (const std::vector<int>& stretch : start)
    for (const int unit : stretch)
      before.push_back(
          static_cast<std::size_t>(std::find(all.begin(), all.end(), unit) - all.begin()));
  const std::vector<std::size_t> order = all.size() <= kExact
                                             ? Rings(table, stretch_of, used).best()
                                             : nearest_first(table, stretch_of, used);
  if (ring_worth(table, order) <= ring_worth(table, before)) return start;
  std::vector<std::vector<int>> result(stretches.size());
  for (const std::size_t u : order) result[stretch_of[u]].push_back(all[u]);
  return result;
}

std::vector<Unit> linked_groups(const Topology& node, std::vector<Unit> units, std::size_t size) {
  if (node.links.empty() || units.size() <= size || units.size() > kExact) return units;
  const Table table =
      worths(node, units.size(), [&](std::size_t u) -> const Unit& { return units[u]; });
  std::vector<Unit> ordered;
  std::vector<bool> taken(units.size(), false);
  for (const std::vector<std::size_t>& group : Groupings(table, size).best())
    for (const std::size_t u : group) {
      ordered.push_back(units[u]);
      taken[u] = true;
    }
  for (std::size_t u = 0; u < units.size(); ++u)
    if (!taken[u]) ordered.push_back(units[u]);
  return ordered;
}

}  // namespace hpclaunch
