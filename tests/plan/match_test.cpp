// Laws of matching ranks, cores, devices and interfaces, over thousands of machines.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "hpclaunch/profile.h"
#include "plan/cores/cores.h"
#include "plan/devices/nics.h"
#include "plan/devices/node_ranks.h"
#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

int usable(const Topology& node) {
  return static_cast<int>(
      std::count_if(node.cores.begin(), node.cores.end(),
                    [&](const Core& core) { return core.pus.intersects(node.allowed); }));
}

const CpuSet& near_of(const Slots& units, const NodeRanks& matched, std::size_t rank) {
  return units.list[static_cast<std::size_t>(matched.assigned[rank])].pus;
}

long sum_of_distances(const Topology& node, const Slots& units, const NodeRanks& matched) {
  long sum = 0;
  for (std::size_t r = 0; r < matched.ranks.size(); ++r)
    sum += distance(node, near_of(units, matched, r), matched.ranks[r].cpus);
  return sum;
}

int worst_off(const NodeRanks& matched) {
  int least = std::numeric_limits<int>::max();
  for (const RankPlan& rank : matched.ranks) least = std::min(least, rank.cores);
  return least;
}

std::vector<int> ranks_on(const Slots& units, const std::vector<int>& assigned) {
  std::vector<int> on(units.list.size(), 0);
  for (const int unit : assigned) ++on[static_cast<std::size_t>(unit)];
  return on;
}

// Every way to give cores to ranks whose units are settled, one core after the other: the least sum of
// distances, and the most cores for the worst-off that goes with it.
class EveryWay {
 public:
  EveryWay(const Topology& node, const std::vector<CpuSet>& near) {
    for (const CpuSet& one : near) {
      far_.emplace_back();
      for (const Core& core : node.cores)
        if (core.pus.intersects(node.allowed)) far_.back().push_back(distance(node, one, core.pus));
    }
    farthest_.assign(near.size(), 0);
    count_.assign(near.size(), 0);
  }

  std::pair<long, int> best() {
    give(0);
    return {best_far_, best_cores_};
  }

 private:
  void give(std::size_t core) {
    if (core == far_.front().size()) {
      const int least = *std::min_element(count_.begin(), count_.end());
      long sum = 0;
      for (const int far : farthest_) sum += far;
      if (least == 0 || sum > best_far_ || (sum == best_far_ && least <= best_cores_)) return;
      best_far_ = sum;
      best_cores_ = least;
      return;
    }
    give(core + 1);
    for (std::size_t r = 0; r < far_.size(); ++r) {
      const int before = farthest_[r];
      farthest_[r] = std::max(before, far_[r][core]);
      ++count_[r];
      give(core + 1);
      --count_[r];
      farthest_[r] = before;
    }
  }

  std::vector<std::vector<int>> far_;  // [rank][core]
  std::vector<int> farthest_;
  std::vector<int> count_;
  long best_far_ = std::numeric_limits<long>::max();
  int best_cores_ = 0;
};

// The best over every even number of ranks for each unit.
std::pair<long, int> best_of_all(const Topology& node, const Slots& units, int ranks) {
  const int count = units.count();
  std::pair<long, int> best{std::numeric_limits<long>::max(), 0};
  std::set<std::vector<std::string>> tried;
  for (int extra = 0; extra < 1 << count; ++extra) {
    if (__builtin_popcount(static_cast<unsigned>(extra)) != ranks % count) continue;
    std::vector<CpuSet> near;
    std::vector<std::string> names;
    for (int u = 0; u < count; ++u)
      for (int i = ranks / count + (extra >> u & 1); i > 0; --i) {
        near.push_back(units.list[static_cast<std::size_t>(u)].pus);
        names.push_back(near.back().to_list());
      }
    std::sort(names.begin(), names.end());
    if (!tried.insert(names).second) continue;
    const auto [far, cores] = EveryWay(node, near).best();
    if (std::pair(far, -cores) < std::pair(best.first, -best.second)) best = {far, cores};
  }
  return best;
}

}  // namespace

TEST_CASE("no other cores are better for the devices that ranks have, by every way there is",
          "[match][law]") {
  int tried = 0;
  int compared = 0;
  int others = 0;  // machines where other devices would have been better
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const Topology node = test::small_node(seed);
    REQUIRE(check_topology(node));
    const Slots units = test::units_of(node);
    const int cores = usable(node);
    if (cores > 7) continue;  // too many ways
    test::Random random(seed);
    const int ranks = random.in(1, std::min(cores > 5 ? 3 : 4, cores));
    INFO("seed " << seed << ", " << ranks << " ranks, " << units.count() << " units, " << cores
                 << " cores");
    const auto matched = match_slots(node, units, {ranks});
    REQUIRE(matched);
    std::vector<CpuSet> near;  // as the units were assigned
    for (const int unit : matched->assigned)
      near.push_back(units.list[static_cast<std::size_t>(unit)].pus);
    const auto [far, worst] = EveryWay(node, near).best();
    CHECK(sum_of_distances(node, units, *matched) == far);
    ++tried;
    others += best_of_all(node, units, ranks).first < far ? 1 : 0;
    // A rank gets a part of one NUMA node or whole ones, which may cost a core where devices are near
    // more than one.
    const bool one_numa =
        std::all_of(units.list.begin(), units.list.end(), [&](const SlotGroup& unit) {
          return !unit.pus.empty() && !around(node, unit.pus, kSameNuma).empty();
        });
    if (!one_numa || far > 0) continue;
    CHECK(worst_off(*matched) == worst);
    ++compared;
  }
  CHECK(tried > 1500);
  CHECK(compared > 200);
  // Which devices get ranks is decided by number (evenly, in order) before cores are: a search over them, with a solver
  // for each, finds something nearer on one of these machines.
  CHECK(others <= 1);
}

namespace {

void check_even(const Slots& units, const std::vector<int>& assigned) {
  const std::vector<int> on = ranks_on(units, assigned);
  const auto [least, most] = std::minmax_element(on.begin(), on.end());
  CHECK(*most - *least <= 1);
}

const CpuSet& pus_of(const Topology& node, int numa) {
  static const CpuSet kNone;
  for (const NumaNode& one : node.numa_nodes)
    if (one.os_index == numa) return one.pus;
  return kNone;
}

// Written apart from the program: 0 on a NUMA node of `home`, 1 on a package of it, 2 else.
int nic_distance(const Topology& node, const CpuSet& home, const Nic& nic) {
  const CpuSet& near = pus_of(node, nic.numa);
  if (near.empty() || home.empty()) return 2;
  if (near.intersects(home)) return 0;
  for (const Package& package : node.packages)
    if (package.pus.contains(near) && package.pus.intersects(home)) return 1;
  return 2;
}

// Written apart from the program: how many of its bridges an interface shares with a device.
int in_common(const Device& device, const Nic& nic) {
  int count = 0;
  for (const std::string& bridge : device.bridges) {
    const auto at = static_cast<std::size_t>(count);
    if (at == nic.bridges.size() || nic.bridges[at] != bridge) break;
    ++count;
  }
  return count;
}

// No interface is nearer than the rank's, and none is used more than need be.
int check_nics(const Topology& node, const Slots& units, NodeRanks matched) {
  int with = 0;
  const auto ranks = static_cast<int>(matched.ranks.size());
  for (std::size_t r = 0; r < matched.ranks.size(); ++r)
    matched.ranks[r].slots = {
        {-1, units.list[static_cast<std::size_t>(matched.assigned[r])].first().device, -1}};
  give_nics(node, matched.ranks);
  const std::vector<int> usable_nics = job_nics(node);
  std::map<std::vector<int>, std::map<int, int>> used;  // by the nearest ones
  for (std::size_t r = 0; r < matched.ranks.size(); ++r) {
    const RankPlan& rank = matched.ranks[r];
    if (usable_nics.empty()) {
      CHECK(rank.nic == -1);
      continue;
    }
    REQUIRE(rank.nic >= 0);
    CHECK(node.nics[static_cast<std::size_t>(rank.nic)].state != "down");
    const CpuSet& near = near_of(units, matched, r);
    const CpuSet& home = near.empty() ? rank.cpus : near;
    std::vector<int> nearest;
    std::pair<int, int> least{3, 0};
    for (const int n : usable_nics) {
      const Nic& nic = node.nics[static_cast<std::size_t>(n)];
      std::pair<int, int> far{nic_distance(node, home, nic), 0};
      for (const Device& device : node.devices) {
        if (device.index != rank.device()) continue;
        far.second = -in_common(device, nic);
        const bool bare = nic.numa >= 0 && pus_of(node, nic.numa).empty();
        if (bare && device.numa == nic.numa) far.first = -1;  // where CPUs say nothing
      }
      if (far < least) nearest.clear();
      least = std::min(least, far);
      if (far == least) nearest.push_back(n);
    }
    CHECK(std::find(nearest.begin(), nearest.end(), rank.nic) != nearest.end());
    ++used[nearest][rank.nic];
    ++with;
  }
  if (used.size() != 1) return with;  // several kinds of ranks may have interfaces in common
  const auto& [nearest, counts] = *used.begin();
  const int fair =
      (ranks + static_cast<int>(nearest.size()) - 1) / static_cast<int>(nearest.size());
  for (const auto& [nic, count] : counts) CHECK(count <= fair);
  return with;
}

}  // namespace

TEST_CASE("laws of the match over thousands of machines", "[match][law]") {
  test::Random random(11);
  long far = 0;
  int with_nics = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Topology node = test::random_node(seed);
    REQUIRE(check_topology(node));
    const Slots units = test::units_of(node);
    const int cores = usable(node);
    PlaceRequest want;
    want.ranks = random.chance(40) ? std::min(cores, units.count() * random.in(1, 3))
                                   : random.in(1, std::min(cores, 20));
    if (random.chance(25)) want.cores_per_rank = random.in(1, cores / want.ranks);
    INFO("seed " << seed << ", " << want.ranks << " ranks of " << want.cores_per_rank << " cores, "
                 << units.count() << " units, " << cores << " cores");
    const auto matched = match_slots(node, units, want);
    REQUIRE(matched);
    REQUIRE(static_cast<int>(matched->ranks.size()) == want.ranks);
    check_even(units, matched->assigned);
    CpuSet taken;
    for (const RankPlan& rank : matched->ranks) {
      CHECK(rank.cores >= 1);
      if (want.cores_per_rank > 0) CHECK(rank.cores == want.cores_per_rank);
      CHECK(node.allowed.contains(rank.cpus));  // nothing reserved
      CHECK_FALSE(rank.cpus.intersects(taken));
      taken |= rank.cpus;
    }
    far += sum_of_distances(node, units, *matched);
    with_nics += check_nics(node, units, *matched);
    if (seed % 10 != 0) continue;
    const auto again = match_slots(node, units, want);
    CHECK(again->ranks == matched->ranks);
    CHECK(again->assigned == matched->assigned);
  }
  CHECK(with_nics > 1000);
  CHECK(far > 0);  // machines where somebody has to be far are among them
}

TEST_CASE("ranks that are bound get the nearest devices, evenly", "[match][law]") {
  int mended = 0;
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    const Topology node = test::small_node(seed);
    const Slots units = test::units_of(node);
    test::Random random(seed);
    std::vector<RankPlan> ranks(static_cast<std::size_t>(random.in(1, 5)));
    for (RankPlan& rank : ranks)
      rank.cpus = node.cores[static_cast<std::size_t>(
                                 random.in(0, static_cast<int>(node.cores.size()) - 1))]
                      .pus;
    const auto far = [&](const std::vector<int>& assigned) {
      long sum = 0;
      for (std::size_t r = 0; r < ranks.size(); ++r)
        sum += distance(node, units.list[static_cast<std::size_t>(assigned[r])].pus, ranks[r].cpus);
      return sum;
    };
    const std::vector<int> ours = match_bound(node, units, ranks);
    INFO("seed " << seed);
    check_even(units, ours);
    long best = std::numeric_limits<long>::max();
    std::vector<int> assigned(ranks.size(), 0);
    for (bool more = true; more;) {  // every way
      const std::vector<int> on = ranks_on(units, assigned);
      const auto [least, most] = std::minmax_element(on.begin(), on.end());
      if (*most - *least <= 1) best = std::min(best, far(assigned));
      std::size_t digit = 0;
      while (digit < assigned.size() && ++assigned[digit] == units.count()) assigned[digit++] = 0;
      more = digit < assigned.size();
    }
    CHECK(far(ours) == best);
    mended += far(assign_slots_near(units, ranks)) > best ? 1 : 0;
  }
  CHECK(mended > 20);
}

TEST_CASE("a device of unknown place leaves the others theirs", "[match]") {
  Topology node = test::small_node(1);
  node.cores.clear();
  node.packages.clear();
  node.numa_nodes.clear();
  for (int n = 0; n < 2; ++n) {
    NumaNode numa{n, 0, {}};
    for (int c = 0; c < 4; ++c) {
      Core core{-1, n, {}};
      core.pus.add(n * 4 + c);
      numa.pus |= core.pus;
      node.cores.push_back(core);
    }
    node.numa_nodes.push_back(numa);
  }
  node.numa_nodes.push_back({2, 1u << 30, {}});  // a device's memory
  node.allowed = node.all_pus();
  node.devices.assign(3, Device{});
  for (int d = 0; d < 3; ++d) {
    node.devices[static_cast<std::size_t>(d)].index = d;
    node.devices[static_cast<std::size_t>(d)].vendor = "nvidia";
  }
  node.devices[0].numa = 1;
  node.devices[1].numa = 1;
  node.devices[2].numa = 2;
  REQUIRE(check_topology(node));
  const Slots units = test::units_of(node);
  const auto matched = match_slots(node, units, {3});
  REQUIRE(matched);
  std::map<int, std::string> cpus;
  for (std::size_t r = 0; r < 3; ++r)
    cpus[units.list[static_cast<std::size_t>(matched->assigned[r])].first().device] =
        matched->ranks[r].cpus.to_list();
  CHECK(cpus == std::map<int, std::string>{{0, "4-5"}, {1, "6-7"}, {2, "0-3"}});
}

TEST_CASE("more ranks than cores share the cores near their devices", "[match][law]") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Topology node = test::small_node(seed);
    const Slots units = test::units_of(node);
    PlaceRequest want{usable(node) + 1 + static_cast<int>(seed % 5)};
    CHECK_FALSE(match_slots(node, units, want));
    want.oversubscribe = true;
    const auto matched = match_slots(node, units, want);
    REQUIRE(matched);
    check_even(units, matched->assigned);
    for (std::size_t r = 0; r < matched->ranks.size(); ++r) {
      CHECK(matched->ranks[r].cores == 1);
      const CpuSet near = near_of(units, *matched, r) & node.allowed;
      if (!near.empty()) CHECK(near.contains(matched->ranks[r].cpus));
    }
  }
}

namespace {

CpuSet moved(const CpuSet& pus) {
  CpuSet other;
  for (const int pu : pus.to_vector()) other.add(CpuSet::kCapacity - 1 - pu);
  return other;
}

// The same machine with every number of the operating system another one.
Topology renumbered(const Topology& node) {
  Topology other = node;
  const auto index = [](int os_index) { return os_index < 0 ? -1 : 3000 - os_index; };
  for (Package& package : other.packages)
    package = {index(package.os_index), package.model, moved(package.pus)};
  for (NumaNode& numa : other.numa_nodes)
    numa = {index(numa.os_index), numa.memory_bytes, moved(numa.pus)};
  for (Cache& cache : other.caches) cache.pus = moved(cache.pus);
  for (Core& core : other.cores) core = {index(core.package), index(core.numa), moved(core.pus)};
  for (Device& device : other.devices) {
    device.pus = moved(device.pus);
    device.numa = index(device.numa);
  }
  for (Nic& nic : other.nics) nic.numa = index(nic.numa);
  other.allowed = moved(node.allowed);
  return other;
}

}  // namespace

TEST_CASE("renumbering changes numbers only", "[match][law]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Topology node = test::random_node(seed);
    const Topology other = renumbered(node);
    REQUIRE(check_topology(other));
    const int ranks = 1 + static_cast<int>(seed % 17) % usable(node);
    INFO("seed " << seed << ", " << ranks << " ranks");
    auto a = match_slots(node, test::units_of(node), {ranks});
    auto b = match_slots(other, test::units_of(other), {ranks});
    REQUIRE(a);
    REQUIRE(b);
    CHECK(a->assigned == b->assigned);
    give_nics(node, a->ranks);
    give_nics(other, b->ranks);
    for (std::size_t r = 0; r < a->ranks.size(); ++r) {
      CHECK(moved(a->ranks[r].cpus) == b->ranks[r].cpus);
      CHECK(a->ranks[r].nic == b->ranks[r].nic);
    }
  }
}
