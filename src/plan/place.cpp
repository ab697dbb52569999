#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/text.h"
#include "plan/describe.h"
#include "plan/domains.h"
#include "plan/share.h"

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
  for (const Share& share : shares) placed.ranks.push_back(rank_on(node, cores, share));
  placed.remarks = remarks_on(node, cores, placed.ranks, crowded);
  return placed;
}

}  // namespace hpclaunch
