// HPCLAUNCH_PLAN as the shim reads it: a rank, then any fields behind a right checksum, "3:rank=R:layout=0*2:class=4".
#include <algorithm>

#include "fuzz/expect.h"
#include "shim/run_rank.h"

using namespace hpclaunch;
using fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int kMostRank = 1 << 30;
  constexpr long long kFollowing = 100;
  shim::Text fields(reinterpret_cast<const char*>(data), static_cast<int>(size));
  int rank = 0;
  if (!shim::take_number(fields, rank) || rank > kMostRank) return 0;
  const std::string wire = test::wire_of({fields.at, static_cast<std::size_t>(fields.size)});
  const test::Exact exact(wire);
  const auto plan = std::make_unique<shim::Plan>();
  if (shim::read_plan(exact.text(), *plan).what != nullptr) return 0;

  shim::Place last{rank};
  const long long ranks = shim::world_size(*plan);
  expect(shim::locate(*plan, last) == (rank < ranks), "a rank of the plan has a place");
  if (rank >= ranks) return 0;
  const test::RankResult here = test::run_rank(wire, rank, {"R=0", "PATH=/bin"});
  expect(here.place.node == last.node && here.place.local == last.local, "the same place again");
  for (int next = rank + 1; next < std::min(ranks, rank + kFollowing); ++next) {
    shim::Place place{next};
    expect(shim::locate(*plan, place), "a rank of the plan has a place");
    const bool same = place.node == last.node && place.local == last.local + 1;
    const bool new_node = place.node == last.node + 1 && place.local == 0;
    expect(new_node ? last.local + 1 == last.local_size : same, "a rank is behind the last one");
    last = place;
  }
  return 0;
}
