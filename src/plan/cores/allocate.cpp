// Max-min fairness by progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2): every block of ranks
// grows by one core per rank, in turn. A block that finds no free core gets one along an augmenting path from a
// block that can take another in its place. Demands that can be met form a polymatroid, so a block that cannot
// grow now never can.
#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "plan/cores/cores.h"

namespace hpclaunch {

namespace {

using Index = std::size_t;

class Filling {
 public:
  explicit Filling(const std::vector<LocalityGroup>& groups) : groups_(groups) {
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
      alike[distances].push_back(core);
    }
    cells_.assign(alike.begin(), alike.end());
    for (const Cell& cell : cells_) free_.push_back(static_cast<int>(cell.second.size()));
  }

  void seat(std::vector<int> ranks, int width) {
    for (int far = kNear; far < kDistances; ++far)
      for (Index g = 0; g < groups_.size(); ++g) {
        if (ranks[g] == 0) continue;
        blocks_.push_back({static_cast<int>(g), far, 0, {}});
        given_.emplace_back(cells_.size(), 0);
        while (ranks[g] > 0 && grow(blocks_.size() - 1, width)) {
          --ranks[g];
          ++blocks_.back().ranks;
        }
        if (blocks_.back().ranks > 0) continue;
        blocks_.pop_back();
        given_.pop_back();
      }
  }

  void fill() {
    std::vector<bool> open(blocks_.size(), true);
    while (std::ranges::count(open, true) > 0)
      for (Index b = 0; b < blocks_.size(); ++b) open[b] = open[b] && grow(b, blocks_[b].ranks);
    for (bool grown = true; grown;) {  // what is less than a core for each
      grown = false;
      for (Index b = 0; b < blocks_.size(); ++b) grown = grow(b, 1) || grown;
    }
  }

  // Neighbouring cores of each cell, to the blocks in the order in which these lie.
  std::vector<Block> blocks() {
    std::vector<double> middle;
    for (const Block& block : blocks_) {
      const std::vector<int> cores = groups_[block.group].within[block.distance].to_vector();
      middle.push_back(std::accumulate(cores.begin(), cores.end(), 0.0) /
                       static_cast<double>(cores.size()));
    }
    std::vector<Index> order(blocks_.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::stable_sort(order, {}, [&](Index b) { return middle[b]; });
    for (Index c = 0; c < cells_.size(); ++c) {
      auto core = cells_[c].second.begin();
      for (const Index b : order)
        for (int i = given_[b][c]; i > 0; --i) blocks_[b].from.add(*core++);
    }
    return blocks_;
  }

 private:
  bool may_use(Index b, Index c) const {
    return cells_[c].first[blocks_[b].group] <= blocks_[b].distance;
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
        for (Index b = 0; b < blocks_.size(); ++b)
          if (b != wanting && given_[b][c] > 0 && way.try_emplace(b, Step{to, c}).second)
            queue.push_back(b);
      }
    }
    return false;
  }

  using Cell = std::pair<std::vector<int>, std::vector<int>>;  // distances by group, cores
  const std::vector<LocalityGroup>& groups_;
  std::vector<Cell> cells_;  // cores of one cell are equally far from every group
  std::vector<int> free_;    // cores of each cell that no block has
  std::vector<Block> blocks_;
  std::vector<std::vector<int>> given_;  // [block][cell]
};

}  // namespace

std::vector<Block> allocate_cores(const std::vector<LocalityGroup>& groups, std::vector<int> ranks,
                                  int width) {
  Filling filling(groups);
  filling.seat(std::move(ranks), std::max(1, width));
  if (width == 0) filling.fill();
  return filling.blocks();
}

}  // namespace hpclaunch
