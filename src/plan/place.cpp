#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/text.h"
#include "plan/domains.h"

namespace hpclaunch {

namespace {

using Share = std::vector<int>;  // positions of the usable cores that one rank gets, ascending

int cores_in(const Domain& domain) { return static_cast<int>(domain.cores.size()); }

// Ranks per child, one by one to the child where the next rank's share is largest (the method of
// D'Hondt). It makes the smallest share of all as large as whole cores inside children allow, and
// leaves a child without ranks when using it would give somebody less. `most` caps each child.
std::vector<int> deal(const std::vector<Domain>& children, int ranks, const std::vector<int>& most) {
  std::vector<int> given(children.size(), 0);
  for (int r = 0; r < ranks; ++r) {
    std::size_t best = children.size();
    for (std::size_t c = 0; c < children.size(); ++c) {
      if (given[c] >= most[c]) continue;
      if (best == children.size() || cores_in(children[c]) * (given[best] + 1) >
                                         cores_in(children[best]) * (given[c] + 1))
        best = c;
    }
    if (best == children.size()) break;
    ++given[best];
  }
  return given;
}

int smallest_share(const std::vector<Domain>& children, const std::vector<int>& given) {
  int smallest = 0;
  for (std::size_t c = 0; c < children.size(); ++c)
    if (given[c] > 0) {
      const int share = cores_in(children[c]) / given[c];
      smallest = smallest == 0 ? share : std::min(smallest, share);
    }
  return smallest;
}

// Fewer ranks than children: runs of whole neighbouring children, cut nearest to equal numbers of cores.
std::vector<Share> runs_of_children(const std::vector<Domain>& children, int ranks) {
  const int count = static_cast<int>(children.size());
  std::vector<int> before(children.size() + 1, 0);  // cores in the first i children
  for (std::size_t c = 0; c < children.size(); ++c) before[c + 1] = before[c] + cores_in(children[c]);
  std::vector<Share> shares;
  int begin = 0;
  for (int r = 0; r < ranks; ++r) {
    int end = begin + 1;
    const int last_end = count - (ranks - r - 1);
    const auto distance = [&](int cut) {
      return std::abs(before[static_cast<std::size_t>(cut)] * ranks - before.back() * (r + 1));
    };
    while (end < last_end && distance(end + 1) < distance(end)) ++end;
    if (r + 1 == ranks) end = count;
    Share share;
    for (int c = begin; c < end; ++c) {
      const std::vector<int>& cores = children[static_cast<std::size_t>(c)].cores;
      share.insert(share.end(), cores.begin(), cores.end());
    }
    std::sort(share.begin(), share.end());
    shares.push_back(std::move(share));
    begin = end;
  }
  return shares;
}

// Neighbouring cores, shares that differ by one at most, the larger ones first.
void split_evenly(const std::vector<int>& cores, int ranks, std::vector<Share>& out) {
  const int total = static_cast<int>(cores.size());
  auto at = cores.begin();
  for (int r = 0; r < ranks; ++r) {
    const int size = total / ranks + (r < total % ranks ? 1 : 0);
    out.emplace_back(at, at + size);
    at += size;
  }
}

// Every rank gets an even share of the cores of as small a domain as can be. ranks <= cores.
void share_out(const Domain& domain, int ranks, std::vector<Share>& out) {
  if (ranks == 0) return;
  if (ranks == 1) {
    out.push_back(domain.cores);
    return;
  }
  if (domain.children.empty()) return split_evenly(domain.cores, ranks, out);
  std::vector<int> most;
  for (const Domain& child : domain.children) most.push_back(cores_in(child));
  const std::vector<int> given = deal(domain.children, ranks, most);
  if (ranks < static_cast<int>(domain.children.size())) {
    std::vector<Share> runs = runs_of_children(domain.children, ranks);
    std::size_t smallest = runs.front().size();
    for (const Share& run : runs) smallest = std::min(smallest, run.size());
    if (static_cast<int>(smallest) >= smallest_share(domain.children, given)) {
      std::move(runs.begin(), runs.end(), std::back_inserter(out));
      return;
    }
  }
  for (std::size_t c = 0; c < given.size(); ++c) share_out(domain.children[c], given[c], out);
}

// Exactly `width` cores each, inside a child as long as children have room; the others from what the
// children have left over, which may span them. ranks * width <= cores. Returns the unused cores.
std::vector<int> pack(const Domain& domain, int ranks, int width, std::vector<Share>& out) {
  std::vector<int> unused;
  int left = ranks;
  if (domain.children.empty()) {
    unused = domain.cores;
  } else {
    std::vector<int> most;
    for (const Domain& child : domain.children) most.push_back(cores_in(child) / width);
    const std::vector<int> given = deal(domain.children, ranks, most);
    for (std::size_t c = 0; c < given.size(); ++c) {
      const std::vector<int> rest = pack(domain.children[c], given[c], width, out);
      unused.insert(unused.end(), rest.begin(), rest.end());
      left -= given[c];
    }
    std::sort(unused.begin(), unused.end());
  }
  auto at = unused.begin();
  for (; left > 0; --left, at += width) out.emplace_back(at, at + width);
  unused.erase(unused.begin(), at);
  return unused;
}

std::vector<Share> exact_shares(const Domain& tree, int ranks, int width) {
  std::vector<Share> shares;
  share_out(tree, ranks, shares);
  const bool roomy = std::all_of(shares.begin(), shares.end(), [&](const Share& share) {
    return static_cast<int>(share.size()) >= width;
  });
  if (roomy) {
    for (Share& share : shares) share.resize(static_cast<std::size_t>(width));
  } else {
    shares.clear();
    pack(tree, ranks, width, shares);
    std::sort(shares.begin(), shares.end());
  }
  return shares;
}

// More ranks than cores: blocks of neighbouring ranks share a core, block sizes differ by one at most.
std::vector<Share> crowd(int cores, int ranks) {
  std::vector<Share> shares;
  for (long r = 0; r < ranks; ++r) shares.push_back({static_cast<int>(r * cores / ranks)});
  return shares;
}

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
    remarks.push_back(fmt::format("{} of {} cover more than one of the {} NUMA nodes",
                                  spanning, counted(static_cast<long>(ranks.size()), "rank"),
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
    remarks.push_back(fmt::format("{} left idle (CPUs {})", counted(idle_cores, "core"), idle.to_list()));
  return remarks;
}

Error too_many(const PlaceRequest& want, int cores, const Topology& node) {
  const int width = std::max(1, want.cores_per_rank);
  std::string have = counted(cores, "core") + " allowed";
  if (node.allowed.count() > cores)
    have += fmt::format(" ({})", counted(node.allowed.count(), "hardware thread"));
  std::string message =
      width == 1 ? fmt::format("{} per node, but the node has {}", counted(want.ranks, "rank"), have)
                 : fmt::format("{} per node with {} each need {}, but the node has {}",
                               counted(want.ranks, "rank"), counted(width, "core"),
                               counted(static_cast<long>(want.ranks) * width, "core"), have);
  const std::string hint =
      want.ranks <= cores
          ? fmt::format("use --cpus-per-rank {} or fewer", cores / want.ranks)
          : fmt::format("use {} ranks per node or fewer, or let ranks share cores with --oversubscribe",
                        cores / width);
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
    shares = crowd(have, want.ranks);
  } else {
    const Domain tree = domain_tree(node, cores);
    if (want.cores_per_rank > 0) shares = exact_shares(tree, want.ranks, want.cores_per_rank);
    else share_out(tree, want.ranks, shares);
  }

  Placed placed;
  for (const Share& share : shares) {
    RankPlan rank;
    for (const int c : share) rank.cpus |= cores[static_cast<std::size_t>(c)].pus;
    rank.cores = static_cast<int>(share.size());
    rank.package = common(node, cores, share, &Core::package);
    rank.numa = common(node, cores, share, &Core::numa);
    placed.ranks.push_back(std::move(rank));
  }
  if (crowded)
    placed.remarks.push_back(fmt::format("{} share {}", counted(want.ranks, "rank"), counted(have, "core")));
  for (std::string& remark : remarks_on(node, cores, shares, placed.ranks))
    placed.remarks.push_back(std::move(remark));
  return placed;
}

}  // namespace hpclaunch
