#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/text.h"
#include "plan/domains.h"
#include "plan/share.h"

namespace hpclaunch {

namespace {

template <class Member>
int common(const Topology& node, const std::vector<UsableCore>& cores, const Share& share,
           Member member) {
  std::set<int> seen;
  for (const int c : share)
    seen.insert(node.cores[static_cast<std::size_t>(cores[static_cast<std::size_t>(c)].position)].*
                member);
  return seen.size() == 1 ? *seen.begin() : -1;
}

std::vector<std::string> remarks_on(const Topology& node, const std::vector<UsableCore>& cores,
                                    const std::vector<Share>& shares,
                                    const std::vector<RankPlan>& ranks) {
  std::vector<std::string> remarks;
  std::set<int> numa_in_use;
  for (const UsableCore& core : cores)
    numa_in_use.insert(node.cores[static_cast<std::size_t>(core.position)].numa);
  const auto spanning =
      std::count_if(ranks.begin(), ranks.end(), [](const RankPlan& r) { return r.numa < 0; });
  if (numa_in_use.size() > 1 && spanning > 0)
    remarks.push_back(fmt::format("{} of {} cover more than one of the {} NUMA nodes", spanning,
                                  counted(static_cast<long>(ranks.size()), "rank"),
                                  numa_in_use.size()));
  std::set<int> used;
  for (const Share& share : shares) used.insert(share.begin(), share.end());
  CpuSet idle;
  int idle_cores = 0;
  for (std::size_t c = 0; c < cores.size(); ++c)
    if (!used.contains(static_cast<int>(c))) {
      idle |= cores[c].pus;
      ++idle_cores;
    }
  if (idle_cores > 0)
    remarks.push_back(
        fmt::format("{} left idle (CPUs {})", counted(idle_cores, "core"), idle.to_list()));
  return remarks;
}

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

Result<Placed> place(const Topology& node, const PlaceRequest& want) {
  const std::vector<UsableCore> cores = usable_cores(node);
  const int have = static_cast<int>(cores.size());
  const long need = static_cast<long>(want.ranks) * std::max(1, want.cores_per_rank);
  const bool crowded = want.ranks > have && want.oversubscribe && want.cores_per_rank <= 1;
  if (need > have && !crowded) return too_many(want, have, node);

  std::vector<Share> shares;
  if (crowded) {
    shares = shared_cores(have, want.ranks);
  } else {
    const Domain tree = domain_tree(node, cores);
    shares = want.cores_per_rank > 0 ? exact_shares(tree, want.ranks, want.cores_per_rank)
                                     : even_shares(tree, want.ranks);
  }

  Placed placed;
  for (const Share& share : shares) {
    RankPlan rank;
    for (const int c : share) rank.cpus |= cores[static_cast<std::size_t>(c)].pus;
    rank.cores = static_cast<int>(share.size());
    rank.package = common(node, cores, share, &Core::package);
    rank.numa = common(node, cores, share, &Core::numa);
    placed.ranks.push_back(rank);
  }
  if (crowded)
    placed.remarks.push_back(
        fmt::format("{} share {}", counted(want.ranks, "rank"), counted(have, "core")));
  for (std::string& remark : remarks_on(node, cores, shares, placed.ranks))
    placed.remarks.push_back(std::move(remark));
  return placed;
}

}  // namespace hpclaunch
