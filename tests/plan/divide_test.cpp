// Cores that several sets claim: whatever the sets are, parts nest, and no way is more even.
#include "plan/divide.h"

#include <algorithm>

#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

CoreSet set(const std::string& list) { return list.empty() ? CoreSet{} : *CoreSet::parse(list); }

// Cores of each rank, ascending: a set's ranks share its cores evenly.
std::vector<int> cores_of_ranks(const std::vector<int>& have, const std::vector<int>& ranks) {
  std::vector<int> each;
  for (std::size_t s = 0; s < have.size(); ++s)
    for (int r = 0; r < ranks[s]; ++r)
      each.push_back(have[s] / ranks[s] + (r < have[s] % ranks[s] ? 1 : 0));
  std::sort(each.begin(), each.end());
  return each;
}

// Every way to give each core to one of the sets that claim it; the evenest.
std::vector<int> evenest(const std::vector<CoreSet>& sets, const std::vector<int>& ranks, int core,
                         std::vector<int>& have) {
  constexpr int kCores = 8;
  if (core == kCores) return cores_of_ranks(have, ranks);
  std::vector<int> best;
  bool claimed = false;
  for (std::size_t s = 0; s < sets.size(); ++s) {
    if (ranks[s] == 0 || !sets[s].has(core)) continue;
    claimed = true;
    ++have[s];
    best = std::max(best, evenest(sets, ranks, core + 1, have));
    --have[s];
  }
  return claimed ? best : evenest(sets, ranks, core + 1, have);
}

}  // namespace

TEST_CASE("sets that nest or are apart stay", "[match][divide]") {
  const std::vector<CoreSet> sets = {set("0-7"), set("0-3"), set("4-5"), set(""), set("0-3")};
  CHECK(divide(sets, {1, 2, 0, 1, 1}) == sets);
}

TEST_CASE("what two sets claim goes where it is needed", "[match][divide]") {
  const std::vector<CoreSet> sets = {set("0-5"), set("4-9"), set("0-15")};
  CHECK(divide(sets, {1, 1, 1}) == std::vector<CoreSet>{set("0-4"), set("5-9"), set("0-15")});
  CHECK(divide(sets, {1, 2, 1})[1] == set("4-9"));
  CHECK(divide(sets, {0, 1, 0})[0].empty());
  // The first has no core in common with the last, and yet the last one's many reach it.
  const std::vector<CoreSet> chain = {set("0-1"), set("1-3"), set("3-9")};
  CHECK(divide(chain, {2, 1, 1}) == std::vector<CoreSet>{set("0-1"), set("2-3"), set("4-9")});
}

TEST_CASE("no way to divide is more even", "[match][divide][law]") {
  test::Random random(23);
  int cut = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<CoreSet> sets;
    std::vector<int> ranks;
    for (int s = random.in(2, 4); s > 0; --s) {
      CoreSet one;
      const int first = random.in(0, 7);
      for (int core = first; core <= random.in(first, 7); ++core) one.add(core);
      for (int core = 0; core < 8; ++core)
        if (random.chance(15)) one.add(core);
      sets.push_back(one);
      ranks.push_back(random.in(0, 2));
    }
    const std::vector<CoreSet> parts = divide(sets, ranks);
    INFO("round " << round);
    bool all_divided = true;
    for (std::size_t a = 0; a < sets.size(); ++a) {
      CHECK(sets[a].contains(parts[a]));
      for (std::size_t b = 0; b < a; ++b) {
        CHECK_FALSE(cut_one_another(parts[a], parts[b]));
        all_divided = all_divided && !parts[a].intersects(parts[b]);
      }
    }
    if (parts == sets || !all_divided) continue;  // where sets nest, quotas share them
    ++cut;
    std::vector<int> have;
    for (const CoreSet& part : parts) have.push_back(part.count());
    std::vector<int> none(sets.size(), 0);
    const std::vector<int> best = evenest(sets, ranks, 0, none);
    if (!best.empty()) CHECK(cores_of_ranks(have, ranks) == best);
  }
  CHECK(cut > 150);
}
