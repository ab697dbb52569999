#include "plan/transport.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace hpclaunch {

namespace {

constexpr long kFar = std::numeric_limits<long>::max() / 4;

// Successive cheapest paths from what is left of the kinds to what is left of the groups, by Bellman and
// Ford, since the way back over a group costs less than nothing.
class Solver {
 public:
  explicit Solver(const Transport& problem)
      : problem_(problem),
        kinds_(problem.supply.size()),
        groups_(problem.most.size()),
        left_(problem.supply),
        moved_(kinds_, std::vector<int>(groups_, 0)),
        got_(groups_, 0) {}

  std::vector<std::vector<int>> run() {
    while (push()) {
    }
    return std::move(moved_);
  }

 private:
  // What a group must have is worth more than any distance.
  long price(std::size_t g) const {
    constexpr long kMust = 1 << 20;
    return got_[g] < problem_.least[g] ? -kMust : 0;
  }

  bool push() {
    kind_far_.assign(kinds_, kFar);
    group_far_.assign(groups_, kFar);
    to_kind_.assign(kinds_, groups_);
    to_group_.assign(groups_, kinds_);
    for (std::size_t k = 0; k < kinds_; ++k)
      if (left_[k] > 0) kind_far_[k] = 0;
    while (relax()) {
    }
    std::size_t end = groups_;
    for (std::size_t g = 0; g < groups_; ++g)
      if (got_[g] < problem_.most[g] && group_far_[g] < kFar &&
          (end == groups_ || group_far_[g] + price(g) < group_far_[end] + price(end)))
        end = g;
    if (end == groups_) return false;
    walk_back(end);
    return true;
  }

  bool relax() {
    bool changed = false;
    for (std::size_t k = 0; k < kinds_; ++k)
      for (std::size_t g = 0; g < groups_; ++g) {
        const long there = kind_far_[k] + problem_.costs[k][g];
        if (kind_far_[k] < kFar && there < group_far_[g]) {
          group_far_[g] = there;
          to_group_[g] = k;
          changed = true;
        }
        const long back = group_far_[g] - problem_.costs[k][g];
        if (moved_[k][g] > 0 && group_far_[g] < kFar && back < kind_far_[k]) {
          kind_far_[k] = back;
          to_kind_[k] = g;
          changed = true;
        }
      }
    return changed;
  }

  void walk_back(std::size_t end) {
    int amount =
        (got_[end] < problem_.least[end] ? problem_.least[end] : problem_.most[end]) - got_[end];
    std::size_t g = end;
    std::size_t k = to_group_[g];
    while (to_kind_[k] != groups_) {
      amount = std::min(amount, moved_[k][to_kind_[k]]);
      k = to_group_[to_kind_[k]];
    }
    amount = std::min(amount, left_[k]);
    left_[k] -= amount;
    got_[end] += amount;
    for (k = to_group_[g];; k = to_group_[g]) {
      moved_[k][g] += amount;
      if (to_kind_[k] == groups_) return;
      g = to_kind_[k];
      moved_[k][g] -= amount;
    }
  }

  const Transport& problem_;
  std::size_t kinds_;
  std::size_t groups_;
  std::vector<int> left_;
  std::vector<std::vector<int>> moved_;
  std::vector<int> got_;
  std::vector<long> kind_far_;
  std::vector<long> group_far_;
  std::vector<std::size_t> to_kind_;   // the group that a path comes from; groups_: it begins here
  std::vector<std::size_t> to_group_;  // the kind that a path comes from
};

}  // namespace

std::vector<std::vector<int>> solve(const Transport& problem) { return Solver(problem).run(); }

}  // namespace hpclaunch
