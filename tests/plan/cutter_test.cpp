// Quotas cut into shares: what was worked out before is what would be worked out now.
#include "plan/cutter.h"

#include <algorithm>

#include "plan/crowds.h"
#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

// As many in all as fit with `width` cores each, in any mixture.
std::vector<int> some_ranks(std::size_t crowds, int room, test::Random& random) {
  std::vector<int> ranks(crowds, 0);
  for (int left = random.in(1, room); left > 0; --left)
    ++ranks[static_cast<std::size_t>(random.in(0, static_cast<int>(crowds) - 1))];
  return ranks;
}

}  // namespace

TEST_CASE("a cutter that has cut before cuts as a fresh one", "[match][law]") {
  std::size_t shares_seen = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Topology node = test::random_node(seed);
    const std::vector<UsableCore> cores = usable_cores(node);
    const std::vector<Crowd> crowds = crowds_of(node, cores, test::units_of(node));
    test::Random random(seed);
    const int width = random.chance(50) ? 0 : random.in(1, 3);
    const int room = static_cast<int>(cores.size()) / std::max(1, width);
    if (room == 0) continue;
    INFO("seed " << seed << ", " << cores.size() << " cores, width " << width);
    Cutter used(node, cores, width);
    for (int round = 0; round < 8; ++round) {
      const std::vector<int> ranks = some_ranks(crowds.size(), room, random);
      const Quotas quotas = quotas_for(crowds, ranks, width);
      const std::vector<std::vector<Share>> ours = used.shares(quotas, crowds.size());
      CHECK(ours == Cutter(node, cores, width).shares(quotas, crowds.size()));
      std::vector<int> sizes;
      CoreSet taken;
      for (std::size_t c = 0; c < crowds.size(); ++c) {
        CHECK(static_cast<int>(ours[c].size()) == ranks[c]);
        for (const Share& share : ours[c]) {
          sizes.push_back(static_cast<int>(share.size()));
          for (const int core : share) {
            CHECK_FALSE(taken.has(core));
            taken.add(core);
          }
        }
      }
      std::vector<int> said = used.sizes(quotas);
      std::sort(said.begin(), said.end());
      std::sort(sizes.begin(), sizes.end());
      CHECK(said == sizes);
      shares_seen += sizes.size();
    }
  }
  CHECK(shares_seen > 5000);
}
