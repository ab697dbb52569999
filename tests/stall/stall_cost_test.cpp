// What the stacks of a large job cost, in allocations: nearly ten times as many for ten times the ranks.
#include "stall/ranks.h"
#include "support/allocations.h"

using namespace hpclaunch;
using namespace hpclaunch::stacks;
using test::gloo;
using test::Made;

namespace {

template <class Work>
long cost(const test::Make& make, int ranks, Work work) {
  const Snapshot snapshot = test::snapshot_of(make, ranks);
  const long before = test::allocations();
  work(snapshot);
  return test::allocations() - before;
}

}  // namespace

TEST_CASE("tree and verdict of ten times the ranks cost ten times as much", "[stall]") {
  const auto alike = [](int, int) { return std::vector<Made>{gloo()}; };
  const auto different = [](int rank, int) {
    return std::vector<Made>{gloo("all_reduce", 40 + rank)};
  };
  // Each waits for the next one.
  const auto chain = [](int rank, int) {
    return std::vector<Made>{
        test::plain(23, fmt::format("tcp 10.0.0.1:{} 10.0.0.1:{}", rank + 1, rank))};
  };
  for (const test::Make& make : std::vector<test::Make>{alike, different, chain}) {
    const auto tree = [](const Snapshot& snapshot) { CHECK(!tree_text(snapshot).empty()); };
    const auto verdict = [](const Snapshot& snapshot) {
      CHECK(!text(judge(snapshot, snapshot)).empty());
    };
    CHECK(cost(make, 2000, tree) < 11 * cost(make, 200, tree));
    CHECK(cost(make, 2000, verdict) < 11 * cost(make, 200, verdict));
  }
  // Not a frame is copied, and those at one place share its nodes.
  CHECK(cost(alike, 2000, [](const Snapshot& snapshot) { tree_text(snapshot); }) < 2000 * 4);
}
