// HPCLAUNCH_PLAN as the shim reads it: a rank, then any fields behind a right checksum, "3:rank=R:layout=0*2:class=4".
#include "fuzz/expect.h"
#include "shim/run_rank.h"

using namespace hpclaunch;
using fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int kMostRank = 1 << 30;
  shim::Text fields(reinterpret_cast<const char*>(data), static_cast<int>(size));
  int rank = 0;
  if (!shim::take_number(fields, rank) || rank > kMostRank) return 0;
  const std::string wire = test::wire_of({fields.at, static_cast<std::size_t>(fields.size)});
  const test::Exact exact(wire);
  const auto plan = std::make_unique<shim::Plan>();
  if (shim::read_plan(exact.text(), *plan).what != nullptr) return 0;

  const test::RankResult here = test::run_rank(wire, rank, {"R=0", "PATH=/bin"});
  const test::RankResult next = test::run_rank(wire, rank + 1, {"R=0", "PATH=/bin"});
  expect(here.beyond == (rank >= shim::world_size(*plan)), "a rank of the plan has a place");
  if (here.beyond) return expect(next.beyond, "no rank follows one beyond the plan"), 0;
  expect(here.place.local >= 0 && here.place.local < here.place.local_size, "a place on the node");
  if (next.beyond) return 0;
  const bool same = next.place.node == here.place.node && next.place.local == here.place.local + 1;
  const bool new_node = next.place.node == here.place.node + 1 && next.place.local == 0 &&
                        here.place.local + 1 == here.place.local_size;
  expect(same || new_node, "the next rank is behind this one");
  return 0;
}
