// Random grants on every recorded and documented machine: what each rank gets of them, as far as the shim.
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>

#include "hpclaunch/probe.h"
#include "plan/devices/node_ranks.h"
#include "plan/jobs.h"
#include "shim/task.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

struct Machine {
  std::string name;
  Topology node;
};

std::vector<Machine> machines() {
  std::set<std::string> files;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(HPCLAUNCH_SOURCE_DIR "/tests/machines"))
    if (const std::string path = file.path().string();
        path.ends_with(".xml") || path.ends_with(".json"))
      files.insert(path);
  std::vector<Machine> all;
  for (const std::string& file : files) {
    Result<Topology> node = read_topology(file);
    REQUIRE(node);
    all.push_back({std::filesystem::path(file).filename().string(), *std::move(node)});
  }
  CHECK(all.size() >= 40);
  return all;
}

/// Cores of one package and one NUMA node.
using Cells = std::map<std::pair<int, int>, CoreSet>;

Cells cells_of(const Topology& node) {
  Cells cells;
  for (int c = 0; c < static_cast<int>(node.cores.size()); ++c) {
    const Core& core = node.cores[static_cast<std::size_t>(c)];
    if (core.pus.intersects(node.allowed)) cells[{core.package, core.numa}].add(c);
  }
  return cells;
}

// Single hardware threads, whole cores, or a range of numbers, as masks and control groups have them.
CpuSet random_cpus(const Topology& node, test::Random& random) {
  const std::vector<int> pus = node.all_pus().to_vector();
  const int last = static_cast<int>(pus.size()) - 1;
  const int kind = random.in(0, 2);
  const int share = random.in(10, 95);
  CpuSet some;
  some.add(pus[static_cast<std::size_t>(random.in(0, last))]);
  if (kind == 0)
    for (const int pu : pus)
      if (random.chance(share)) some.add(pu);
  if (kind == 1)
    for (const Core& core : node.cores)
      if (random.chance(share)) some |= core.pus;
  if (kind == 2)
    for (int at = random.in (0, last), end = random.in(at, last); at <= end; ++at)
      some.add(pus[static_cast<std::size_t>(at)]);
  return some;
}

// The largest smallest share where every rank stays inside a cell; 0: there is no such way.
int best_inside(const Cells& cells, int ranks) {
  const auto fits = [&](int width) {
    return std::accumulate(cells.begin(), cells.end(), 0, [&](int sum, const auto& cell) {
             return sum + cell.second.count() / width;
           }) >= ranks;
  };
  int width = 0;
  while (fits(width + 1)) ++width;
  return width;
}

void check_known(const Topology& node, const std::vector<RankPlan>& ranks) {
  const Cells cells = cells_of(node);
  CoreSet used;
  int fewest = CpuSet::kCapacity;
  bool crosses = false;
  for (const RankPlan& rank : ranks) {
    const CoreSet cores = cores_of(node, rank.cpus);
    CHECK(node.allowed.contains(rank.cpus));
    CHECK_FALSE(cores.intersects(used));
    used |= cores;
    fewest = std::min(fewest, cores.count());
    crosses = crosses || std::none_of(cells.begin(), cells.end(), [&](const auto& cell) {
                return cell.second.contains(cores);
              });
  }
  const auto count = static_cast<int>(ranks.size());
  const int inside = best_inside(cells, count);
  CHECK(fewest >= std::max(1, inside));
  if (count >= static_cast<int>(cells.size())) CHECK((!crosses || fewest > inside));
  // What is idle would leave a rank with fewer cores than every other one has; no more, with fewer ranks than cells.
  const int useless = count >= static_cast<int>(cells.size()) ? fewest - 1 : fewest;
  for (const auto& [place, cores] : cells) {
    const CoreSet idle = cores - used;
    CHECK((idle.empty() || (idle == cores && cores.count() <= useless)));
  }
}

// As many cores as so many hardware threads need, all threads of each: what a batch system grants.
CpuSet grant(const Topology& node, int cores, test::Random& random) {
  std::vector<CpuSet> left;
  for (const Core& core : node.cores) left.push_back(core.pus);
  CpuSet granted;
  for (; cores > 0; --cores) {
    const auto at = left.begin() + random.in(0, static_cast<int>(left.size()) - 1);
    granted |= *at;
    left.erase(at);
  }
  return granted;
}

// What the shim binds this rank to on a node with these CPUs; empty: it does not.
CpuSet bound(const Plan& plan, int rank, const CpuSet& granted) {
  const std::string& text = plan.environment.wire;
  const auto wire = std::make_unique<shim::Plan>();
  REQUIRE(shim::read_plan({text.data(), static_cast<int>(text.size())}, *wire).what == nullptr);
  shim::Place place;
  place.rank = rank;
  REQUIRE(shim::locate(*wire, place));
  std::vector<char> arena(shim::kArenaBytes);
  const auto task = std::make_unique<shim::Task>();
  task->arena = arena.data();
  task->arena_size = shim::kArenaBytes;
  REQUIRE(shim::read_task(*wire, place, *task).what == nullptr);
  shim::Mask found;
  for (const int cpu : granted.to_vector()) found.add(cpu);
  int many = 0;
  CpuSet cpus;
  if (task->binding == shim::Binding::part && !shim::choose_part(found, *task, many)) return cpus;
  for (int cpu = 0; cpu < CpuSet::kCapacity; ++cpu)
    if (task->mask.has(cpu)) cpus.add(cpu);
  return cpus;
}

// On each node with what it was granted: shares of whole cores that differ by one core at most, and use them all.
void check_counted(const Plan& plan, const Topology& node, const std::vector<CpuSet>& granted) {
  int first = 0;
  std::size_t host = 0;
  for (const NodeRun& run : plan.placement.layout)
    for (int n = 0; n < run.nodes; ++n, ++host) {
      const std::vector<RankPlan>& ranks = plan.placement.of(run).ranks;
      CoreSet used;
      int fewest = CpuSet::kCapacity;
      int most = 0;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const CpuSet cpus = bound(plan, first + static_cast<int>(r), granted[host]);
        const CoreSet cores = cores_of(node, cpus);
        CHECK(granted[host].contains(cpus));
        CHECK(cores.count() == ranks[r].cores);
        CHECK_FALSE(cores.intersects(used));
        used |= cores;
        for (const int core : cores.to_vector())
          CHECK(cpus.contains(node.cores[static_cast<std::size_t>(core)].pus));
        fewest = std::min(fewest, cores.count());
        most = std::max(most, cores.count());
      }
      first += static_cast<int>(ranks.size());
      if (!ranks.front().cpus.empty()) continue;  // by name: NUMA nodes count more than that
      CHECK(used == cores_of(node, granted[host]));
      CHECK(most - fewest <= 1);
    }
}

}  // namespace

TEST_CASE("any granted CPUs of any machine: no core twice, no NUMA node crossed in vain, none idle",
          "[grants][law]") {
  test::Random random(21);
  for (Machine& machine : machines())
    for (int round = 0; round < 12; ++round) {
      machine.node.allowed = random_cpus(machine.node, random);
      const int cores = cores_of(machine.node, machine.node.allowed).count();
      const int ranks = random.in(1, random.chance(70) ? std::min(cores, 9) : cores);
      INFO(machine.name << ", CPUs " << machine.node.allowed.to_list() << ", " << ranks
                        << " ranks");
      const Result<NodeRanks> placed = match_slots(machine.node, Slots{}, {ranks});
      REQUIRE(placed);
      check_known(machine.node, placed->ranks);
    }
}

TEST_CASE("any numbers of CPUs on any nodes: every rank finds its share of what is granted there",
          "[grants][law]") {
  test::Random random(22);
  int named = 0;
  int refused = 0;
  for (const Machine& machine : machines()) {
    int threads = 1;
    for (const Core& core : machine.node.cores) threads = std::max(threads, core.pus.count());
    const int all = machine.node.all_pus().count();
    for (int round = 0; round < 6; ++round) {
      PlanInput in = test::job_on(machine.node, random.in(2, 4));
      in.part_of_node = true;
      in.cores_known = random.chance(40);
      in.whole_node = machine.node.all_pus();
      std::vector<CpuSet> granted;
      for (std::size_t host = 0; host < in.hosts.size(); ++host) {
        in.granted.push_back(random.chance(20)               ? all
                             : host > 0 && random.chance(50) ? in.granted[0]
                                                             : random.in(1, all));
        const int cores = granted_cores(machine.node, in.granted.back());
        granted.push_back(in.granted.back() == all ? in.whole_node
                          : host > 0 && random.chance(50) && in.granted[0] == in.granted[host]
                              ? granted[0]
                              : grant(machine.node, cores, random));
      }
      if (in.cores_known) in.node.allowed = granted.front();
      asked(in).ranks = random.in(static_cast<int>(in.hosts.size()), 16);
      asked(in).devices_per_rank = 0;
      INFO(machine.name << ", round " << round << ", " << *in.request->ranks << " ranks");
      const Result<Plan> plan = make_plan(in);
      if (!plan) {
        ++refused;
        CHECK_FALSE(plan.error().hint.empty());
        continue;
      }
      REQUIRE(plan->placement.bind_via == BindVia::shim);
      check_counted(*plan, machine.node, granted);
      for (const NodeClass& one : plan->placement.classes)
        named += one.ranks.front().part_first >= 0 && !one.ranks.front().cpus.empty() ? 1 : 0;
    }
  }
  CHECK(named > 20);
  CHECK(refused < 150);
}
