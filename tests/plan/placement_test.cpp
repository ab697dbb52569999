// Which cores ranks get on machines that exist: nobody has fewer than need be.
#include <algorithm>
#include <filesystem>
#include <map>

#include "hpclaunch/probe.h"
#include "hpclaunch/profile.h"
#include "plan/cores/cores.h"
#include "plan/jobs.h"
#include "plan/shapes.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

using Cores = std::vector<int>;

Plan plan_on(const Topology& node, int ranks) {
  PlanInput in = test::job_on(node, 1);
  asked(in).ranks_per_node = ranks;
  const Result<Plan> plan = make_plan(in);
  REQUIRE(plan);
  return *plan;
}

Cores cores_of(const Topology& node, int ranks) {
  Cores cores;
  const Plan plan = plan_on(node, ranks);
  for (const RankPlan& rank : plan.placement.classes[0].ranks) cores.push_back(rank.cores);
  return cores;
}

Cores cores_of(const test::Shape& shape, int ranks) { return cores_of(test::build(shape), ranks); }

// An even number of cores for each.
Cores each(int ranks, int cores) { return Cores(static_cast<std::size_t>(ranks), cores); }

Topology without_devices(test::Shape shape) {
  shape.near.clear();
  return test::build(shape);
}

int usable(const Topology& node) {
  return static_cast<int>(
      std::count_if(node.cores.begin(), node.cores.end(),
                    [&](const Core& core) { return core.pus.intersects(node.allowed); }));
}

bool said(const Plan& plan, const std::string& id) {
  return std::any_of(plan.explanation.reports.begin(), plan.explanation.reports.end(),
                     [&](const Diagnostic& one) { return one.id == id; });
}

}  // namespace

TEST_CASE("equal cores where the machine has them", "[placement]") {
  CHECK(cores_of(test::kMi300a, 8) == each(8, 12));
  CHECK(cores_of(without_devices(test::kGenoa), 16) == each(16, 12));
  CHECK(cores_of(test::kGenoa, 16) == each(16, 12));
  CHECK(cores_of(test::kSierra, 4) == each(4, 11));
  CHECK(cores_of(test::kSummit, 6) == each(6, 7));
  CHECK(cores_of(test::kTrillium, 8) == each(8, 12));
  CHECK(cores_of(test::kTrillium, 16) == each(16, 6));
  CHECK(cores_of(test::kFir, 12) == each(12, 4));
}

TEST_CASE("shares differ by one core inside a NUMA node", "[placement]") {
  CHECK(cores_of(test::kMi300a, 5) == Cores{12, 12, 24, 24, 24});
  for (const int cores : cores_of(test::kPolaris, 12)) CHECK((cores == 2 || cores == 3));
  for (const int cores : cores_of(without_devices(test::kSierra), 8))
    CHECK((cores == 5 || cores == 6));
  for (const int cores : cores_of(test::kSierra, 8)) CHECK((cores == 5 || cores == 6));
}

TEST_CASE("fewer ranks than NUMA nodes get whole ones", "[placement]") {
  // Xeon Phi 7250 in SNC4 flat: quarters of 18, 18, 16 and 16 cores, memory nodes without CPUs.
  Topology knl = without_devices({"", 1, 4, 18, 2, {}, ""});
  knl.allowed -= *CpuSet::parse("52-53,70-71");
  CHECK(cores_of(knl, 3) == Cores{18, 18, 32});
  const Plan plan = plan_on(knl, 3);
  CHECK(said(plan, "uneven-shares"));
  CHECK(plan.placement.classes[0].ranks[2].cpus.to_list() == "36-51,54-69");
}

TEST_CASE("cuts fall on cache borders where no rank loses a core", "[placement]") {
  // 22 cores in L3 pairs, 4 ranks: 6, 6, 5, 5 cuts one pair, 6, 5, 6, 5 would cut two.
  const Plan plan = plan_on(without_devices({"", 1, 1, 22, 2, {}, ""}), 4);
  CHECK(plan.placement.classes[0].ranks[0].cpus.to_list() == "0-5");
  CHECK(plan.placement.classes[0].ranks[1].cpus.to_list() == "6-11");
  // 10 cores in L3 of 3 and the rest, 3 ranks: 3, 3, 4 and not 4, 3, 3.
  CHECK(cores_of(without_devices({"", 1, 1, 10, 3, {}, ""}), 3) == Cores{3, 3, 4});
}

TEST_CASE("a device without usable CPUs comes last and is named", "[placement]") {
  Topology node = test::build({"", 2, 2, 4, 0, {0, 1, 2, 3}, "4-11"});
  Plan plan = plan_on(node, 2);
  CHECK(plan.placement.classes[0].ranks[0].device() == 0);
  CHECK(plan.placement.classes[0].ranks[1].device() == 3);
  CHECK_FALSE(said(plan, "device-without-cpus"));
  plan = plan_on(node, 3);
  CHECK(said(plan, "device-without-cpus"));
  // A recording made in a cgroup: hwloc has the NUMA nodes without CPUs, and the package's CPUs for devices.
  const Result<Topology> file =
      read_topology(HPCLAUNCH_SOURCE_DIR "/tests/machines/devices/epyc-a100-cgroup.xml");
  REQUIRE(file);
  plan = plan_on(*file, 2);
  std::vector<int> devices;
  for (const RankPlan& rank : plan.placement.classes[0].ranks) devices.push_back(rank.device());
  CHECK(devices == std::vector<int>{0, 3});
  for (int d = 0; d < 4; ++d) CHECK(file->devices[static_cast<std::size_t>(d)].numa == d);
}

TEST_CASE("ranks far from their devices share a NUMA node evenly with those near it",
          "[placement]") {
  // Least cores of a rank that are possible, by number of ranks.
  const std::map<std::string, std::map<int, int>> machines = {
      {"recorded/emulated-1x64-restricted.xml", {{6, 5}, {7, 4}, {9, 3}, {13, 2}}},
      {"recorded/emulated-2x52-job.xml", {{4, 6}, {13, 2}, {14, 1}, {16, 1}}},
      {"recorded/emulated-1x64-job.xml", {{9, 1}}},
      {"devices/xeon-2x8-k40.xml", {{14, 1}}}};
  for (const auto& [file, counts] : machines) {
    const Result<Topology> node = read_topology(HPCLAUNCH_SOURCE_DIR "/tests/machines/" + file);
    REQUIRE(node);
    for (const auto& [ranks, least] : counts) {
      INFO(file << ", " << ranks << " ranks");
      const Plan plan = plan_on(*node, ranks);
      std::map<int, Cores> on;  // by NUMA node
      for (const RankPlan& rank : plan.placement.classes[0].ranks)
        on[rank.numa].push_back(rank.cores);
      CHECK(on.count(-1) == 0);
      int poorest = usable(*node);
      for (const auto& [numa, cores] : on) {
        const auto [fewest, most] = std::minmax_element(cores.begin(), cores.end());
        CHECK(*most - *fewest <= 1);
        poorest = std::min(poorest, *fewest);
      }
      CHECK(poorest == least);
      CHECK_FALSE(said(plan, "uneven-shares"));
    }
  }
}

TEST_CASE("uneven shares name the poorest rank, and a number of cores that is accepted",
          "[placement]") {
  Topology knl = without_devices({"", 1, 4, 18, 2, {}, ""});
  knl.allowed -= *CpuSet::parse("52-53,70-71");
  const Plan plan = plan_on(knl, 3);
  const auto note = std::find_if(plan.explanation.reports.begin(), plan.explanation.reports.end(),
                                 [](const Diagnostic& one) { return one.id == "uneven-shares"; });
  REQUIRE(note != plan.explanation.reports.end());
  CHECK(note->message.starts_with("local rank 0 has 18 cores, fewer than an equal share of 68"));
  CHECK(note->fix == "--cpus-per-rank 22");
  PlanInput in = test::job_on(knl, 1);
  asked(in).ranks_per_node = 3;
  asked(in).cores_per_rank = 22;
  CHECK(make_plan(in));
}

TEST_CASE("near sets that nest are divided", "[placement]") {
  // Three devices of a blade for each rank: their L3s lie on two NUMA nodes.
  PlanInput in = test::job_on(test::build(test::kMi250x), 1);
  asked(in).devices_per_rank = 3;
  const Result<Plan> plan = make_plan(in);
  REQUIRE(plan);
  CpuSet taken;
  for (const RankPlan& rank : plan->placement.classes[0].ranks) {
    CHECK(rank.cores >= 14);
    CHECK_FALSE(rank.cpus.intersects(taken));
    taken |= rank.cpus;
  }
}

namespace {

// Issue 10: "Every plan has a minimum per rank that is at least what a plain equal share within the locality group
// gives, or a diagnostic that says why not." The group: ranks whose devices are near the same hardware threads; all
// ranks without a device. Its equal share: usable cores there divided by the ranks that run there, rounded down.
void check_poorest(const Topology& node, int ranks) {
  const Plan plan = plan_on(node, ranks);
  std::map<std::string, std::vector<const RankPlan*>> groups;
  for (const RankPlan& rank : plan.placement.classes[0].ranks) {
    const bool has = rank.device() >= 0;
    const CpuSet near =
        has ? node.near(node.devices[static_cast<std::size_t>(rank.device())]) : CpuSet{};
    groups[near.to_list()].push_back(&rank);
  }
  for (const auto& [list, members] : groups) {
    const CpuSet near = (list.empty() ? node.all_pus() : *CpuSet::parse(list)) & node.allowed;
    const auto cores = std::count_if(node.cores.begin(), node.cores.end(),
                                     [&](const Core& core) { return core.pus.intersects(near); });
    const auto& all = plan.placement.classes[0].ranks;
    const auto there = std::count_if(
        all.begin(), all.end(), [&](const RankPlan& rank) { return rank.cpus.intersects(near); });
    for (const RankPlan* rank : members)
      if (there > 0 && rank->cores < cores / there)
        CHECK((said(plan, "uneven-shares") || said(plan, "far-from-device")));
  }
}

// Whether the device's NUMA node has CPUs.
bool has_cpus(const Topology& node, const Device& device) {
  return std::none_of(node.numa_nodes.begin(), node.numa_nodes.end(), [&](const NumaNode& numa) {
    return numa.os_index == device.numa && numa.pus.empty();
  });
}

}  // namespace

namespace {

// Every number of ranks up to 24, then doubled, and one rank per core.
std::vector<int> rank_counts(const Topology& node) {
  const int cores = usable(node);
  std::vector<int> counts;
  for (int ranks = 1; ranks < cores; ranks = ranks < 24 ? ranks + 1 : 2 * ranks)
    counts.push_back(ranks);
  counts.push_back(cores);
  return counts;
}

void check_all_counts(const Topology& node) {
  for (const int ranks : rank_counts(node)) {
    INFO(ranks << " ranks");
    check_poorest(node, ranks);
  }
}

}  // namespace

TEST_CASE("recorded and documented machines: an equal share of the locality group, or the reason",
          "[placement][law]") {
  int machines = 0;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(HPCLAUNCH_SOURCE_DIR "/tests/machines")) {
    const std::string name = file.path().filename().string();
    if (!name.ends_with(".xml") && !name.ends_with(".json")) continue;
    const Result<Topology> node = read_topology(file.path().string());
    REQUIRE(node);
    INFO(name);
    check_all_counts(*node);
    ++machines;
  }
  CHECK(machines > 35);
  for (const test::Shape& shape :
       {test::kMi250x, test::kPvc, test::kMi300a, test::kPolaris, test::kA100x8, test::kSummit,
        test::kSierra, test::kT4, test::kTrillium, test::kFir, test::kGenoa, test::kGh200,
        test::kOneSided, test::kOneCore}) {
    INFO(shape.name);
    check_all_counts(test::build(shape));
  }
}

TEST_CASE("nodes of the profiles: an equal share of the locality group, or the reason",
          "[placement][law]") {
  int nodes = 0;
  for (const BuiltinProfile& one : builtin_profiles())
    for (const NodeModel& model : parse_profile(one.text, std::string(one.file)).profile.nodes) {
      INFO(one.name << ", " << model.name);
      check_all_counts(model.topology);
      ++nodes;
    }
  CHECK(nodes > 15);
}

TEST_CASE("made-up machines: an equal share of the locality group, or the reason",
          "[placement][law]") {
  test::Random random(3);
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Topology node = seed % 2 == 0 ? test::random_node(seed) : test::random_topology(seed);
    for (Device& device : node.devices) device.subdevices = 0;
    INFO("seed " << seed);
    check_poorest(node, random.in(1, std::min(usable(node), 16)));
  }
}

TEST_CASE("fewer ranks than devices share all cores, the nearest first", "[placement]") {
  for (const test::Shape& shape :
       {test::kMi250x, test::kPvc, test::kMi300a, test::kPolaris, test::kA100x8, test::kSummit,
        test::kT4, test::kTrillium, test::kGenoa, test::kGh200, test::kOneSided}) {
    const Topology node = test::build(shape);
    for (int ranks = 1; ranks < static_cast<int>(shape.near.size()); ++ranks) {
      INFO(shape.name << " with " << ranks << " ranks");
      const Plan plan = plan_on(node, ranks);
      CpuSet taken;
      for (const RankPlan& rank : plan.placement.classes[0].ranks) {
        CHECK_FALSE(rank.cpus.intersects(taken));
        taken |= rank.cpus;
        const CpuSet near = node.near(node.devices[static_cast<std::size_t>(rank.device())]);
        CHECK(rank.cpus.intersects(near));
      }
      if (std::string(shape.name) == test::kOneSided.name && ranks > 1) {
        CHECK(said(plan, "idle-cores"));  // no device is near package 0
        continue;
      }
      CHECK(taken == node.allowed);
      CHECK_FALSE(said(plan, "idle-cores"));
    }
  }
  CHECK(cores_of(test::kMi250x, 1) == Cores{56});
  CHECK(cores_of(test::kMi250x, 2) == Cores{28, 28});
  CHECK(cores_of(test::kPolaris, 3) == Cores{16, 8, 8});
  CHECK(cores_of(test::kOneSided, 1) == Cores{64});
  CHECK(cores_of(test::kOneSided, 2) == Cores{16, 16});
}

TEST_CASE("ranks with cores of different speed are named", "[placement]") {
  Topology node = test::even_machine(1, 1, 8);
  for (int c = 0; c < 8; ++c) node.cores[static_cast<std::size_t>(c)].kind = c < 4 ? 1 : 0;
  CHECK(said(plan_on(node, 2), "uneven-kinds"));
  CHECK_FALSE(said(plan_on(node, 1), "uneven-kinds"));
  for (const Diagnostic& one : plan_on(node, 3).explanation.reports)
    if (one.id == "uneven-kinds") {
      CHECK(one.message ==
            "ranks have cores of different speed: local rank 0 has 3 fast cores, local rank 1 1 "
            "fast and 2 slow cores");
      CHECK(one.fix == "taskset -c 0-3 hpclaunch ..., which leaves the slow cores out");
    }
  node.allowed = *CpuSet::parse("0-3");
  CHECK_FALSE(said(plan_on(node, 2), "uneven-kinds"));
}

TEST_CASE("idle cores are named where half of the node is idle", "[placement]") {
  CHECK(said(plan_on(test::build(test::kOneSided), 4), "idle-cores"));
  CHECK_FALSE(said(plan_on(test::build(test::kTrillium), 4), "idle-cores"));
}

TEST_CASE("ranks on one core get hardware threads of their own", "[placement]") {
  Topology node;
  for (int c = 0; c < 2; ++c) {
    Core core{0, 0, {}};
    for (int t = 0; t < 8; ++t) core.pus.add(t * 2 + c);
    node.cores.push_back(core);
  }
  node.packages.push_back({0, "", node.all_pus()});
  node.numa_nodes.push_back({0, 0, node.all_pus()});
  node.allowed = node.all_pus();
  const auto lists = [&](int ranks, std::optional<int> threads) {
    PlanInput in = test::job_on(node, 1);
    asked(in).ranks_per_node = ranks;
    asked(in).oversubscribe = true;
    asked(in).threads_per_core = threads;
    const Result<Plan> plan = make_plan(in);
    REQUIRE(plan);
    std::vector<std::string> cpus;
    for (const RankPlan& rank : plan->placement.classes[0].ranks)
      cpus.push_back(rank.cpus.to_list());
    return cpus;
  };
  using Lists = std::vector<std::string>;
  CHECK(lists(4, {}) == Lists{"0,2,4,6", "8,10,12,14", "1,3,5,7", "9,11,13,15"});
  CHECK(lists(16, {}) == Lists{"0", "2", "4", "6", "8", "10", "12", "14", "1", "3", "5", "7", "9",
                               "11", "13", "15"});
  CHECK(lists(4, 1) == Lists{"0", "0", "1", "1"});
  CHECK(lists(4, 2) == Lists{"0", "2", "1", "3"});
  CHECK(lists(2, 1) == Lists{"0", "1"});
  CHECK(lists(1, 2) == Lists{"0-3"});
  CHECK(lists(32, {})[1] == "0");
}

TEST_CASE("on recordings of lstopo every rank has its own cores, near its device",
          "[placement][law]") {
  int with_devices = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(HPCLAUNCH_SOURCE_DIR "/tests/machines/recorded")) {
    const std::string name = file.path().filename().string();
    if (!name.ends_with(".xml")) continue;
    const Result<Topology> node = read_topology(file.path().string());
    REQUIRE(node);
    REQUIRE(check_topology(*node));
    CHECK((node->hostname.empty() && std::filesystem::file_size(file) < 65536));
    with_devices += node->devices.empty() ? 0 : 1;
    const auto with_cpus =
        std::count_if(node->devices.begin(), node->devices.end(),
                      [&](const Device& device) { return has_cpus(*node, device); });
    for (int ranks = 1; ranks <= std::min(usable(*node), 17); ++ranks) {
      INFO(name << ", " << ranks << " ranks");
      const Plan plan = plan_on(*node, ranks);
      CpuSet taken;
      for (const RankPlan& rank : plan.placement.classes[0].ranks) {
        CHECK(rank.cores >= 1);
        CHECK((node->allowed.contains(rank.cpus) && !rank.cpus.intersects(taken)));
        taken |= rank.cpus;
        if (rank.device() < 0) continue;
        const Device& device = node->devices[static_cast<std::size_t>(rank.device())];
        const CpuSet near = node->near(device) & node->allowed;
        CHECK((near.empty() || rank.cpus.intersects(near)));
        // A device whose NUMA node has no CPUs here is for ranks that find no other.
        CHECK((has_cpus(*node, device) || ranks > with_cpus));
      }
    }
  }
  CHECK(with_devices >= 2);
}
