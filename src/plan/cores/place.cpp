#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/text.h"
#include "plan/cores/describe.h"
#include "plan/cores/share.h"

namespace hpclaunch {

namespace {

Error too_many(const PlaceRequest& want, int cores, const Topology& node) {
  const int width = std::max(1, want.cores_per_rank);
  std::string have = counted(cores, "core") + " allowed";
  if (node.allowed.count() > cores)
    have += fmt::format(" ({})", counted(node.allowed.count(), "hardware thread"));
  std::string message =
      width == 1
          ? fmt::format("{} per node, but the node has {}", counted(want.ranks, "rank"), have)
          : fmt::format("{} per node with {} each need {}, but the node has {}",
                        counted(want.ranks, "rank"), counted(width, "core"),
                        counted(static_cast<long>(want.ranks) * width, "core"), have);
  const std::string hint =
      want.ranks <= cores
          ? fmt::format("use --cpus-per-rank {} or fewer", cores / want.ranks)
          : fmt::format("use {} per node{}, or let ranks share cores with --oversubscribe",
                        counted(cores / width, "rank"), cores / width > 1 ? " or fewer" : "");
  return Error{ErrorKind::usage, std::move(message), hint};
}

}  // namespace

void describe_cpus(const Topology& node, RankPlan& rank) {
  std::set<int> packages;
  std::set<int> numa;
  rank.cores = 0;
  for (const Core& core : node.cores) {
    if (!core.pus.intersects(rank.cpus)) continue;
    ++rank.cores;
    packages.insert(core.package);
    numa.insert(core.numa);
  }
  rank.package = packages.size() == 1 ? *packages.begin() : -1;
  rank.numa = numa.size() == 1 ? *numa.begin() : -1;
}

RankPlan rank_on(const Topology& node, const std::vector<UsableCore>& cores, const Share& share) {
  RankPlan rank;
  for (const int c : share) rank.cpus |= cores[c].pus;
  describe_cpus(node, rank);
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

Result<Placed> place(const Topology& node, const PlaceRequest& want) {
  const std::vector<UsableCore> cores = usable_cores(node);
  const int have = static_cast<int>(cores.size());
  const long need = static_cast<long>(want.ranks) * std::max(1, want.cores_per_rank);
  const bool shared = want.ranks > have && want.oversubscribe && want.cores_per_rank <= 1;
  if (need > have && !shared) return too_many(want, have, node);

  std::vector<Share> shares;
  if (shared) {
    shares = shared_cores(have, want.ranks);
  } else {
    CoreList list{node, cores, std::vector<int>(cores.size())};
    std::iota(list.positions.begin(), list.positions.end(), 0);
    shares = want.cores_per_rank > 0 ? exact_shares(list, want.ranks, want.cores_per_rank)
                                     : even_shares(list, want.ranks);
  }

  Placed placed;
  for (const Share& share : shares) placed.ranks.push_back(rank_on(node, cores, share));
  if (shared) deal_threads(placed.ranks);
  placed.remarks = remarks_on(node, cores, placed.ranks, shared);
  return placed;
}

}  // namespace hpclaunch
