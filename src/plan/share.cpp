#include "plan/share.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <utility>

namespace hpclaunch {

namespace {

int cores_in(const Domain& domain) { return static_cast<int>(domain.cores.size()); }

// What a domain can do for its ranks, worked out from the leaves up.
struct Offer {
  const Domain* domain = nullptr;
  std::vector<Offer> children;
  std::vector<int>
      best;  // best[n]: cores of the worst-off of n ranks, for 1 <= n <= most; best[0] unused
};

// Ranks handed to children one by one, each to the child where it and its neighbours there are best
// off. No other hand-out of the same number leaves the worst-off better: a child's offer never rises
// with the number of its ranks.
class Dealer {
 public:
  explicit Dealer(const std::vector<Offer>& children)
      : children_(children), given_(children.size(), 0) {}

  void add_one() {
    std::size_t chosen = children_.size();
    for (std::size_t c = 0; c < children_.size(); ++c) {
      const int offer = next_offer(c);
      if (offer == 0) continue;
      const bool better = chosen == children_.size() || offer > next_offer(chosen) ||
                          (offer == next_offer(chosen) && given_[c] < given_[chosen]);
      if (better) chosen = c;
    }
    const int offer = next_offer(chosen);
    worst_ = worst_ == 0 ? offer : std::min(worst_, offer);
    ++given_[chosen];
  }

  int worst() const { return worst_; }
  const std::vector<int>& given() const { return given_; }

 private:
  int next_offer(std::size_t c) const {
    const auto n = static_cast<std::size_t>(given_[c]) + 1;
    return n < children_[c].best.size() ? children_[c].best[n] : 0;
  }

  const std::vector<Offer>& children_;
  std::vector<int> given_;
  int worst_ = 0;
};

// Fewer ranks than children: runs of whole neighbouring children, cut nearest to equal numbers of cores.
std::vector<Share> runs_of_children(const std::vector<Domain>& children, int ranks) {
  const int count = static_cast<int>(children.size());
  std::vector<int> before(children.size() + 1, 0);  // cores in the first i children
  for (std::size_t c = 0; c < children.size(); ++c)
    before[c + 1] = before[c] + cores_in(children[c]);
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

int smallest(const std::vector<Share>& shares) {
  std::size_t least = shares.front().size();
  for (const Share& share : shares) least = std::min(least, share.size());
  return static_cast<int>(least);
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

// A part of a domain and something outside of it.
bool straddles(const Share& share, const Domain& domain) {
  if (share.back() < domain.cores.front() || domain.cores.back() < share.front()) return false;
  Share inside;
  std::set_intersection(share.begin(), share.end(), domain.cores.begin(), domain.cores.end(),
                        std::back_inserter(inside));
  if (inside.empty() || inside.size() == domain.cores.size()) return false;
  if (inside.size() < share.size() && !domain.rest) return true;
  return std::any_of(domain.children.begin(), domain.children.end(),
                     [&](const Domain& child) { return straddles(share, child); });
}

int total(const std::vector<Share>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0, [](int sum, const Share& share) {
    return sum + static_cast<int>(share.size());
  });
}

// Domains of unequal sizes now and then divide evenly as a whole, borders and all.
std::vector<Share> plain_shares(const Domain& tree, int ranks) {
  std::vector<Share> shares;
  split_evenly(tree.cores, ranks, shares);
  const bool torn = std::any_of(shares.begin(), shares.end(),
                                [&](const Share& share) { return straddles(share, tree); });
  return torn ? std::vector<Share>{} : shares;
}

Offer offer_of(const Domain& domain, int ranks) {
  const int most = std::min(ranks, cores_in(domain));
  Offer offer{&domain, {}, std::vector<int>(static_cast<std::size_t>(most) + 1, 0)};
  for (const Domain& child : domain.children) offer.children.push_back(offer_of(child, ranks));
  Dealer dealer(offer.children);
  for (int n = 1; n <= most; ++n) {
    int& best = offer.best[static_cast<std::size_t>(n)];
    if (n == 1 || domain.children.empty()) best = cores_in(domain) / n;
    if (domain.children.empty()) continue;
    dealer.add_one();
    best = std::max(best, dealer.worst());
    if (n > 1 && n < static_cast<int>(domain.children.size()))
      best = std::max(best, smallest(runs_of_children(domain.children, n)));
    // An offer must not rise with the number of ranks.
    const int before = n == 1 ? best : offer.best[static_cast<std::size_t>(n) - 1];
    if (cores_in(domain) / n > best && best < before && !plain_shares(domain, n).empty())
      best = std::min(before, cores_in(domain) / n);
  }
  return offer;
}

std::vector<Share> taken(const Offer& offer, int ranks);

void take(const Offer& offer, int ranks, std::vector<Share>& out) {
  const Domain& domain = *offer.domain;
  if (ranks == 0) return;
  if (ranks == 1) {
    out.push_back(domain.cores);
    return;
  }
  if (domain.children.empty()) {
    split_evenly(domain.cores, ranks, out);
    return;
  }
  Dealer dealer(offer.children);
  for (int n = 0; n < ranks; ++n) dealer.add_one();
  if (ranks < static_cast<int>(domain.children.size())) {
    std::vector<Share> runs = runs_of_children(domain.children, ranks);
    if (smallest(runs) >= dealer.worst()) {  // the same for the worst-off, and no domain idle
      std::move(runs.begin(), runs.end(), std::back_inserter(out));
      return;
    }
  }
  for (std::size_t c = 0; c < offer.children.size(); ++c)
    for (Share& share : taken(offer.children[c], dealer.given()[c]))
      out.push_back(std::move(share));
}

std::vector<Share> taken(const Offer& offer, int ranks) {
  std::vector<Share> shares;
  take(offer, ranks, shares);
  const int cores = cores_in(*offer.domain);
  if (ranks == 0 || (total(shares) == cores && smallest(shares) == cores / ranks)) return shares;
  std::vector<Share> plain = plain_shares(*offer.domain, ranks);
  const bool better = !plain.empty() && std::pair(smallest(plain), total(plain)) >
                                            std::pair(smallest(shares), total(shares));
  return better ? plain : shares;
}

// Inside a child as long as children have room; the others from what the children have left over,
// which may span them. ranks * width <= cores. Returns the unused cores.
std::vector<int> pack(const Domain& domain, int ranks, int width, std::vector<Share>& out) {
  std::vector<int> unused;
  int left = ranks;
  if (domain.children.empty()) {
    unused = domain.cores;
  } else {
    std::vector<int> given(domain.children.size(), 0);
    for (bool placed = true; placed && left > 0;) {  // in turn, so that children fill evenly
      placed = false;
      for (std::size_t c = 0; c < given.size() && left > 0; ++c)
        if ((given[c] + 1) * width <= cores_in(domain.children[c])) {
          ++given[c];
          --left;
          placed = true;
        }
    }
    for (std::size_t c = 0; c < given.size(); ++c) {
      const std::vector<int> rest = pack(domain.children[c], given[c], width, out);
      unused.insert(unused.end(), rest.begin(), rest.end());
    }
    std::sort(unused.begin(), unused.end());
  }
  auto at = unused.begin();
  for (; left > 0; --left, at += width) out.emplace_back(at, at + width);
  unused.erase(unused.begin(), at);
  return unused;
}

}  // namespace

std::vector<Share> even_shares(const Domain& tree, int ranks) {
  std::vector<Share> shares = taken(offer_of(tree, ranks), ranks);
  std::sort(shares.begin(), shares.end());
  return shares;
}

std::vector<Share> exact_shares(const Domain& tree, int ranks, int width) {
  std::vector<Share> shares = even_shares(tree, ranks);
  if (smallest(shares) >= width) {
    for (Share& share : shares) share.resize(static_cast<std::size_t>(width));
    return shares;
  }
  shares.clear();
  pack(tree, ranks, width, shares);
  std::sort(shares.begin(), shares.end());
  return shares;
}

std::vector<Share> shared_cores(int cores, int ranks) {
  std::vector<Share> shares;
  for (long r = 0; r < ranks; ++r) shares.push_back({static_cast<int>(r * cores / ranks)});
  return shares;
}

}  // namespace hpclaunch
