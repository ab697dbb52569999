// --devices-per-rank: which devices go together, and that cores near them are found wherever there are any.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

std::vector<int> devices_of(const RankPlan& rank) {
  std::vector<int> devices;
  for (const Slot& unit : rank.slots) devices.push_back(unit.device);
  return devices;
}

// "4,5,2: 0-23" for each rank.
std::vector<std::string> placed(const PlanInput& in) {
  const auto plan = make_plan(in);
  REQUIRE(plan);
  std::vector<std::string> ranks;
  for (const RankPlan& rank : plan->placement.classes[0].ranks)
    ranks.push_back(fmt::format("{}: {}", fmt::join(devices_of(rank), ","), rank.cpus.to_list()));
  return ranks;
}

bool said(const Plan& plan, const std::string& rule) {
  return std::any_of(plan.explanation.reports.begin(), plan.explanation.reports.end(),
                     [&](const Diagnostic& report) { return report.id == rule; });
}

using Seats = std::vector<std::string>;

// One package, four NUMA nodes of two caches of eight cores, a device near each cache: an MI250X blade.
PlanInput blade() {
  PlanInput in = test::job_on(test::even_machine(1, 4, 16), 1);
  const std::vector<int> cache = {6, 7, 2, 3, 0, 1, 4, 5};
  for (int d = 0; d < 8; ++d) {
    Device device;
    device.index = d;
    device.vendor = "amd";
    device.numa = cache[static_cast<std::size_t>(d)] / 2;
    const int first = cache[static_cast<std::size_t>(d)] * 8;
    device.pus = *CpuSet::parse(fmt::format("{}-{}", first, first + 7));
    in.node.devices.push_back(device);
  }
  for (int c = 0; c < 8; ++c)
    in.node.caches.push_back({3, 0, *CpuSet::parse(fmt::format("{}-{}", c * 8, c * 8 + 7))});
  return in;
}

}  // namespace

TEST_CASE("groups keep to NUMA nodes where the numbers allow it", "[plan][devices][groups]") {
  PlanInput in = blade();
  asked(in).devices_per_rank = 2;
  CHECK(placed(in) == Seats{"4,5: 0-15", "2,3: 16-31", "6,7: 32-47", "0,1: 48-63"});
  // The devices that are left over are those whose neighbours a group has taken.
  asked(in).devices_per_rank = 3;
  CHECK(placed(in) == Seats{"4,5,2: 0-31", "6,7,0: 32-63"});
  CHECK_FALSE(said(*make_plan(in), "far-from-device"));
  CHECK(said(*make_plan(in), "devices-left"));
  asked(in).devices_per_rank = 5;
  CHECK(placed(in) == Seats{"4,5,2,3,6: 0-63"});
}

TEST_CASE("groups that meet on a NUMA node divide its cores", "[plan][devices][groups]") {
  PlanInput in = test::job_on(test::even_machine(1, 3, 4), 1);
  test::add_devices({0, 0, 1, 1, 2, 2}, "nvidia", in.node);
  asked(in).devices_per_rank = 3;
  CHECK(placed(in) == Seats{"0,1,2: 0-5", "3,4,5: 6-11"});
  CHECK_FALSE(said(*make_plan(in), "far-from-device"));
  in.node.allowed = *CpuSet::parse("4-7");  // all that is near to both
  CHECK(placed(in) == Seats{"0,1,2: 4-5", "3,4,5: 6-7"});
  in.node.allowed = *CpuSet::parse("4,8-11");  // the only one of the first goes to it
  CHECK(placed(in) == Seats{"0,1,2: 4", "3,4,5: 8-11"});
}

TEST_CASE("near sets that overlap are divided evenly", "[plan][devices][groups]") {
  PlanInput in = test::job_on(test::even_machine(1, 1, 12), 1);
  test::add_devices({0, 0, 0}, "nvidia", in.node);
  in.node.devices[0].pus = *CpuSet::parse("0-5");
  in.node.devices[1].pus = *CpuSet::parse("3-8");
  in.node.devices[2].pus = *CpuSet::parse("6-11");
  CHECK(placed(in) == Seats{"0: 0-3", "1: 4-7", "2: 8-11"});
}

// Which devices get the ranks is decided by number: every other one of three are 0 and 1, although 0 and 2 would have
// six near cores each. Sets of single devices nest or are disjoint on real machines (hwloc's localities), where that
// costs nothing; here the plan says that a rank is far.
TEST_CASE("near sets that overlap: a rank that finds its cores taken is reported",
          "[plan][devices][groups]") {
  PlanInput in = test::job_on(test::even_machine(1, 1, 12), 1);
  test::add_devices({0, 0, 0}, "nvidia", in.node);
  in.node.devices[0].pus = *CpuSet::parse("0-5");
  in.node.devices[1].pus = *CpuSet::parse("3-8");
  in.node.devices[2].pus = *CpuSet::parse("6-11");
  asked(in).ranks_per_node = 2;
  CHECK(placed(in) == Seats{"0: 0-4", "1: 5-8"});
  CHECK_FALSE(said(*make_plan(in), "far-from-device"));
  asked(in).cores_per_rank = 6;
  CHECK(placed(in) == Seats{"0: 0-5", "1: 6-11"});
  CHECK(said(*make_plan(in), "far-from-device"));
}

TEST_CASE("links decide where NUMA nodes do not", "[plan][devices][groups]") {
  PlanInput in = test::job_on(test::even_machine(1, 4, 4), 1);
  test::add_devices({0, 0, 1, 1, 2, 2, 3, 3}, "nvidia", in.node);
  asked(in).devices_per_rank = 4;
  CHECK(placed(in) == Seats{"0,1,2,3: 0-7", "4,5,6,7: 8-15"});
  in.node.links = {{0, 6, "nvlink", 2}, {2, 4, "nvlink", 2}};
  CHECK(placed(in) == Seats{"0,1,6,7: 0-3,12-15", "2,3,4,5: 4-11"});
}

// ---- law ------------------------------------------------------------------------------------------

namespace {

// Cores near a rank's devices; all where the place of one of them is not known.
std::vector<bool> near_cores(const Topology& node, const RankPlan& rank) {
  CpuSet near;
  bool known = true;
  for (const int index : devices_of(rank)) {
    const Device& device = node.devices[static_cast<std::size_t>(index)];
    CpuSet pus = device.pus;
    for (const NumaNode& numa : node.numa_nodes)
      if (pus.empty() && numa.os_index == device.numa) pus = numa.pus;
    known = known && !pus.empty();
    near |= pus;
  }
  std::vector<bool> cores;
  for (const Core& core : node.cores)
    cores.push_back(core.pus.intersects(node.allowed) &&
                    (!known || near.contains(core.pus & node.allowed)));
  return cores;
}

// Every rank can have `width` cores near its devices, no core twice: augmenting paths (Kuhn).
bool enough(const std::vector<std::vector<bool>>& near, int width) {
  std::vector<int> holder(near.front().size(), -1);
  std::vector<bool> seen;
  const std::function<bool(int)> seat = [&](int rank) {
    for (std::size_t c = 0; c < holder.size(); ++c) {
      if (!near[static_cast<std::size_t>(rank)][c] || seen[c]) continue;
      seen[c] = true;
      if (holder[c] >= 0 && !seat(holder[c])) continue;
      holder[c] = rank;
      return true;
    }
    return false;
  };
  for (int rank = 0; rank < static_cast<int>(near.size()); ++rank)
    for (int i = 0; i < width; ++i) {
      seen.assign(holder.size(), false);
      if (!seat(rank)) return false;
    }
  return true;
}

// Near sets that heed no border: runs of neighbouring cores.
void draw_anew(Topology& node, test::Random& random) {
  const int last = static_cast<int>(node.cores.size()) - 1;
  for (Device& device : node.devices) {
    device.pus = CpuSet{};
    const int first = random.in(0, last);
    const int end = random.in(first, std::min(last, first + last / 2));
    for (int c = first; c <= end; ++c) device.pus |= node.cores[static_cast<std::size_t>(c)].pus;
  }
}

}  // namespace

TEST_CASE("ranks are near their devices wherever there are cores enough for it",
          "[plan][devices][groups][law]") {
  int planned = 0;
  int near_ones = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    test::Random random(seed);
    PlanInput in = test::job_on(test::random_node(seed), 1);
    if (random.chance(30)) draw_anew(in.node, random);
    asked(in).devices_per_rank = random.in(1, 4);
    if (random.chance(30)) asked(in).ranks_per_node = random.in(1, 3);
    if (random.chance(30)) asked(in).cores_per_rank = random.in(1, 3);
    const auto plan = make_plan(in);
    if (!plan) continue;
    ++planned;
    INFO("seed " << seed << ", " << *in.request->devices_per_rank << " devices, "
                 << plan->world_size() << " ranks");
    std::vector<std::vector<bool>> near;
    for (const RankPlan& rank : plan->placement.classes[0].ranks)
      near.push_back(near_cores(in.node, rank));
    if (!enough(near, in.request->cores_per_rank.value_or(1))) {
      // Or each rank has near cores only, or all near ones and more.
      bool all = true;
      for (std::size_t r = 0; r < near.size(); ++r) {
        bool only = true;
        bool every = true;
        for (std::size_t c = 0; c < in.node.cores.size(); ++c) {
          const CpuSet& pus = in.node.cores[c].pus;
          const bool mine = pus.intersects(plan->placement.classes[0].ranks[r].cpus);
          only = only && (near[r][c] || !mine);
          every = every && (!near[r][c] || mine || !pus.intersects(in.node.allowed));
        }
        all = all && (only || every);
      }
      CHECK((all || said(*plan, "far-from-device")));
      continue;
    }
    ++near_ones;
    CHECK_FALSE(said(*plan, "far-from-device"));
    int units = 0;
    for (const Device& device : in.node.devices) units += std::max(1, device.subdevices);
    const bool fewer = plan->world_size() * *in.request->devices_per_rank < units;
    for (std::size_t r = 0; r < near.size() && !fewer; ++r)
      for (std::size_t c = 0; c < in.node.cores.size(); ++c)
        if (in.node.cores[c].pus.intersects(plan->placement.classes[0].ranks[r].cpus))
          CHECK(near[r][c]);
  }
  CHECK(planned > 700);
  CHECK(near_ones > 500);
}
