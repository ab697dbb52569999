#include "plan/cutter.h"

#include <algorithm>

namespace hpclaunch {

namespace {

// The first `count` cores of a set.
CoreSet first_of(const CoreSet& set, int count) {
  CoreSet first;
  for (const int core : set.to_vector()) {
    if (count-- <= 0) break;
    first.add(core);
  }
  return first;
}

// For each quota: true when none that is still to come draws from its cores.
std::vector<bool> which_are_last(const std::vector<const Quota*>& order) {
  std::vector<bool> last(order.size(), false);
  CoreSet later;
  for (std::size_t q = order.size(); q-- > 0;) {
    last[q] = !later.intersects(order[q]->from);
    later |= order[q]->from;
  }
  return last;
}

// Small sets first: the others have cores elsewhere, too.
std::vector<const Quota*> small_first(const Quotas& quotas) {
  std::vector<std::pair<int, const Quota*>> sized;
  sized.reserve(quotas.list.size());
  for (const Quota& quota : quotas.list) sized.emplace_back(quota.from.count(), &quota);
  std::stable_sort(sized.begin(), sized.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Quota*> order;
  order.reserve(sized.size());
  for (const auto& [size, quota] : sized) order.push_back(quota);
  return order;
}

}  // namespace

Cutter::Cutter(const Topology& node, const std::vector<UsableCore>& cores, int width)
    : node_(node), cores_(cores), width_(width) {
  for (std::size_t c = 0; c < cores.size(); ++c) all_.add(static_cast<int>(c));
}

const Cutter::Cut& Cutter::cut(const CoreSet& from, int ranks) {
  std::vector<Cut>& alike = known_[{from.first(), from.last(), ranks}];
  const auto known =
      std::find_if(alike.begin(), alike.end(), [&](const Cut& one) { return one.from == from; });
  if (known != alike.end()) return *known;
  const std::vector<int> positions = from.to_vector();
  std::vector<UsableCore> mine;
  mine.reserve(positions.size());
  for (const int c : positions) mine.push_back(cores_[static_cast<std::size_t>(c)]);
  const Domain tree = domain_tree(node_, mine);
  Cut fresh{from, width_ > 0 ? exact_shares(tree, ranks, width_) : even_shares(tree, ranks), {}};
  for (Share& share : fresh.shares)
    for (int& c : share) {
      c = positions[static_cast<std::size_t>(c)];
      fresh.used.add(c);
    }
  alike.push_back(std::move(fresh));
  return alike.back();
}

template <class Take>
void Cutter::cut_all(const Quotas& quotas, Take take) {
  const std::vector<const Quota*> order = small_first(quotas);
  const std::vector<bool> last = which_are_last(order);
  CoreSet free = all_;
  for (std::size_t q = 0; q < order.size(); ++q) {
    const Quota& quota = *order[q];
    const CoreSet left = quota.from & free;
    const Cut& mine = cut(last[q] ? left : first_of(left, quota.cores), quota.ranks);
    free -= mine.used;
    take(quota, mine);
  }
}

std::vector<std::vector<Share>> Cutter::shares(const Quotas& quotas, std::size_t crowds) {
  std::vector<std::vector<Share>> shares(crowds);
  cut_all(quotas, [&](const Quota& quota, const Cut& cut) {
    std::vector<Share>& mine = shares[static_cast<std::size_t>(quota.crowd)];
    mine.insert(mine.end(), cut.shares.begin(), cut.shares.end());
  });
  return shares;
}

std::vector<int> Cutter::sizes(const Quotas& quotas) {
  std::vector<int> sizes;
  cut_all(quotas, [&](const Quota&, const Cut& cut) {
    for (const Share& share : cut.shares) sizes.push_back(static_cast<int>(share.size()));
  });
  return sizes;
}

}  // namespace hpclaunch
