// Max-min fairness by progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2): every rank of every block
// gets one core more, in turn. A block that finds no free core gets one along an augmenting path from a
// block that can take another in its place. Demands that can be met form a polymatroid, so a block that cannot
// grow now never can.
#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "plan/cores/cores.h"

namespace hpclaunch {

namespace {

using Index = std::size_t;

class Filling {
 public:
  Filling(const std::vector<LocalityGroup>& groups, const std::vector<CoreSet>& numa_nodes)
      : groups_(groups), numa_nodes_(numa_nodes) {
    std::map<std::vector<int>, std::vector<int>> alike;
    CoreSet all;
    for (const LocalityGroup& group : groups) all |= group.within.back();
    for (const int core : all.to_vector()) {
      std::vector<int> distances;
      for (const LocalityGroup& group : groups) {
        int far = kNear;
        while (!group.within[far].has(core)) ++far;
        distances.push_back(far);
      }
      for (Index n = 0; n < numa_nodes_.size(); ++n)
        if (numa_nodes_[n].has(core)) distances.push_back(static_cast<int>(n));
      alike[distances].push_back(core);
    }
    cells_.assign(alike.begin(), alike.end());
    for (const Cell& cell : cells_) free_.push_back(static_cast<int>(cell.second.size()));
  }

  // With at least as many ranks as NUMA nodes, those far from their devices each stay inside one.
  void seat(std::vector<int> ranks, int width) {
    const bool inside = std::accumulate(ranks.begin(), ranks.end(), 0) >= std::ssize(numa_nodes_);
    for (int far = kNear; far < kDistances; ++far)
      for (Index g = 0; g < groups_.size(); ++g)
        while (ranks[g] > 0 && (far == kNear || !inside ? seat_one(g, far, kAny, width)
                                                        : seat_inside(g, far, width)))
          --ranks[g];
    for (Index g = 0; g < groups_.size(); ++g)  // wide ones, for which no NUMA node has room
      while (ranks[g] > 0 && seat_one(g, kElsewhere, kAny, width)) --ranks[g];
  }

  void fill() {
    std::vector<bool> open(seats_.size(), true);
    while (std::ranges::count(open, true) > 0)
      for (Index b = 0; b < seats_.size(); ++b)
        for (int rank = 0; rank < seats_[b].block.ranks && open[b]; ++rank) open[b] = augment(b);
  }

  // Neighbouring cores of each cell, to the blocks in the order in which these lie.
  std::vector<Block> blocks() {
    std::vector<double> middle;
    for (const Seat& seat : seats_) {
      const std::vector<int> cores = reach(seat).to_vector();
      middle.push_back(std::accumulate(cores.begin(), cores.end(), 0.0) /
                       static_cast<double>(cores.size()));
    }
    std::vector<Index> order(seats_.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::stable_sort(order, {}, [&](Index b) { return middle[b]; });
    for (Index c = 0; c < cells_.size(); ++c) {
      auto core = cells_[c].second.begin();
      for (const Index b : order)
        for (int i = given_[b][c]; i > 0; --i) seats_[b].block.from.add(*core++);
    }
    std::vector<Block> blocks;
    for (const Seat& seat : seats_) blocks.push_back(seat.block);
    std::ranges::stable_sort(blocks, {}, [](const Block& one) {
      return std::tuple(one.distance, one.group, one.from.first());
    });
    return blocks;
  }

 private:
  static constexpr int kAny = -1;
  struct Seat {
    Block block;
    int numa;  // position in numa_nodes_; kAny
  };

  CoreSet reach(const Seat& seat) const {
    const CoreSet& within = groups_[seat.block.group].within[seat.block.distance];
    return seat.numa == kAny ? within : within & numa_nodes_[seat.numa];
  }

  bool may_use(Index b, Index c) const {
    const auto& [block, numa] = seats_[b];
    const std::vector<int>& cell = cells_[c].first;
    return cell[block.group] <= block.distance && (numa == kAny || cell.back() == numa);
  }

  bool seat_one(Index g, int far, int numa, int width) {
    const auto found = std::ranges::find_if(seats_, [&](const Seat& seat) {
      return seat.block.group == static_cast<int>(g) && seat.block.distance == far &&
             seat.numa == numa;
    });
    const auto b = static_cast<Index>(found - seats_.begin());
    if (found == seats_.end()) {
      seats_.push_back({{static_cast<int>(g), far, 0, {}}, numa});
      given_.emplace_back(cells_.size(), 0);
    }
    if (grow(b, width)) {
      ++seats_[b].block.ranks;
      return true;
    }
    if (seats_[b].block.ranks == 0) {
      seats_.pop_back();
      given_.pop_back();
    }
    return false;
  }

  // On the NUMA node with the most cores for each of its ranks then.
  bool seat_inside(Index g, int far, int width) {
    std::vector<std::pair<double, int>> offers;
    for (int n = 0; n < std::ssize(numa_nodes_); ++n) {
      double ranks = 1;
      for (const Seat& seat : seats_) {
        const CoreSet cores = reach(seat);
        ranks += static_cast<double>(seat.block.ranks) * (cores & numa_nodes_[n]).count() /
                 cores.count();
      }
      const int cores = (groups_[g].within[far] & numa_nodes_[n]).count();
      if (cores > 0) offers.emplace_back(-cores / ranks, n);
    }
    std::ranges::sort(offers);
    return std::ranges::any_of(
        offers, [&](const auto& offer) { return seat_one(g, far, offer.second, width); });
  }

  bool grow(Index b, int cores) {
    const std::vector<int> free = free_;
    const std::vector<std::vector<int>> given = given_;
    for (int i = 0; i < cores; ++i) {
      if (augment(b)) continue;
      free_ = free;
      given_ = given;
      return false;
    }
    return true;
  }

  // One core more for a block; every other one keeps its number. Breadth first over blocks.
  bool augment(Index wanting) {
    struct Step {
      Index taker, cell;
    };
    std::map<Index, Step> way;  // from each block that was reached
    std::vector<Index> queue{wanting};
    for (Index next = 0; next < queue.size(); ++next) {
      Index to = queue[next];
      for (Index c = 0; c < cells_.size(); ++c) {
        if (!may_use(to, c)) continue;
        if (free_[c] > 0) {
          --free_[c];
          ++given_[to][c];
          for (; to != wanting; to = way.at(to).taker) {
            --given_[to][way.at(to).cell];
            ++given_[way.at(to).taker][way.at(to).cell];
          }
          return true;
        }
        for (Index b = 0; b < seats_.size(); ++b)
          if (b != wanting && given_[b][c] > 0 && way.try_emplace(b, Step{to, c}).second)
            queue.push_back(b);
      }
    }
    return false;
  }

  // Distances by group, then the NUMA node; cores.
  using Cell = std::pair<std::vector<int>, std::vector<int>>;
  const std::vector<LocalityGroup>& groups_;
  const std::vector<CoreSet>& numa_nodes_;
  std::vector<Cell> cells_;  // cores of one cell are on one NUMA node, equally far from every group
  std::vector<int> free_;    // cores of each cell that no block has
  std::vector<Seat> seats_;
  std::vector<std::vector<int>> given_;  // [seat][cell]
};

}  // namespace

std::vector<Block> allocate_cores(const std::vector<LocalityGroup>& groups,
                                  const std::vector<CoreSet>& numa_nodes, std::vector<int> ranks,
                                  int width) {
  Filling filling(groups, numa_nodes);
  filling.seat(std::move(ranks), std::max(1, width));
  if (width == 0) filling.fill();
  return filling.blocks();
}

}  // namespace hpclaunch
