#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/text.h"
#include "plan/cores/share.h"

namespace hpclaunch {

namespace {

// One core more of a rank: what lies in several packages or NUMA nodes has -1.
void add_core(const Core& core, RankPlan& rank) {
  const bool first = rank.cores++ == 0;
  rank.package = first || rank.package == core.package ? core.package : -1;
  rank.numa = first || rank.numa == core.numa ? core.numa : -1;
}

}  // namespace

void describe_cpus(const Topology& node, RankPlan& rank) {
  rank.cores = 0;
  rank.package = rank.numa = -1;
  for (const Core& core : node.cores)
    if (core.pus.intersects(rank.cpus)) add_core(core, rank);
}

RankPlan rank_on(const Topology& node, const std::vector<UsableCore>& cores, const Share& share) {
  RankPlan rank;
  for (const int c : share) {
    rank.cpus |= cores[c].pus;
    add_core(node.cores[cores[c].position], rank);
  }
  return rank;
}

void deal_threads(std::vector<RankPlan>& ranks) {
  std::map<int, std::vector<RankPlan*>> on;  // by the first hardware thread of the core
  for (RankPlan& rank : ranks) on[rank.cpus.first()].push_back(&rank);
  for (const auto& [first, members] : on) {
    const std::vector<int> threads = members.front()->cpus.to_vector();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t from = i * threads.size() / members.size();
      const std::size_t to = std::max(from + 1, (i + 1) * threads.size() / members.size());
      members[i]->cpus = CpuSet{};
      for (std::size_t t = from; t < to; ++t) members[i]->cpus.add(threads[t]);
    }
  }
}

std::vector<std::string> remarks_on(const Topology& node, const std::vector<UsableCore>& cores,
                                    const std::vector<RankPlan>& ranks, bool shared) {
  std::vector<std::string> remarks;
  const std::string all = counted(ranks.size(), "rank");
  if (shared) remarks.push_back(fmt::format("{} share {}", all, counted(cores.size(), "core")));
  std::set<int> numa;
  CpuSet used;
  CpuSet idle;
  int idle_cores = 0;
  for (const RankPlan& rank : ranks) used |= rank.cpus;
  for (const UsableCore& core : cores) {
    numa.insert(node.cores[core.position].numa);
    if (core.pus.intersects(used)) continue;
    idle |= core.pus;
    ++idle_cores;
  }
  const auto spanning =
      std::count_if(ranks.begin(), ranks.end(), [](const RankPlan& rank) { return rank.numa < 0; });
  if (numa.size() > 1 && spanning > 0)
    remarks.push_back(fmt::format("{} of {} cover more than one of the {} NUMA nodes", spanning,
                                  all, numa.size()));
  if (idle_cores > 0)
    remarks.push_back(
        fmt::format("{} left idle (CPUs {})", counted(idle_cores, "core"), idle.to_list()));
  return remarks;
}

}  // namespace hpclaunch
