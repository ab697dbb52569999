// Differences of ranks and nodes: collected, sorted, condensed, and where they are.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compare.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

void sort_once(std::vector<int>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

namespace check {

Difference different(std::string kind, std::string planned, std::string found, std::string cause,
                     std::string fix, Severity severity) {
  return {{std::move(kind), severity, std::move(cause), std::move(fix)},
          std::move(planned),
          std::move(found)};
}

void Differences::add(const Difference& one, int node, int rank) {
  Key key{one.what.id, one.what.severity, one.planned, one.found, one.what.message, one.what.fix};
  Difference& same = found_.try_emplace(std::move(key), one).first->second;
  if (rank >= 0) same.ranks.push_back(rank);
  same.nodes.push_back(node);
  ++added_;
}

std::vector<Difference> Differences::finish() && {
  std::vector<Difference> all;
  all.reserve(found_.size());
  for (auto& [key, difference] : found_) {
    sort_once(difference.ranks);
    sort_once(difference.nodes);
    all.push_back(std::move(difference));
  }
  const auto key = [](const Difference& one) {
    const auto first = [](const std::vector<int>& numbers) {
      return numbers.empty() ? -1 : numbers.front();
    };
    return std::tuple(std::string_view(one.what.id), first(one.nodes), first(one.ranks));
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return all;
}

std::optional<RankPlace> place_of(const Plan& plan, int rank, bool one_per_node) {
  int node = 0;
  int left = rank;
  for (const NodeRun& run : plan.layout) {
    const auto& ranks = plan.classes[static_cast<std::size_t>(run.node_class)].ranks;
    const int size = one_per_node ? 1 : static_cast<int>(ranks.size());
    if (left < run.nodes * size)
      return RankPlace{rank, node + left / size, run.node_class, left % size, size};
    left -= run.nodes * size;
    node += run.nodes;
  }
  return std::nullopt;
}

std::vector<RankPlace> seats_of(const Plan& plan, bool one_per_node) {
  std::vector<RankPlace> seats;
  seats.reserve(static_cast<std::size_t>(plan.world_size()));
  int node = 0;
  for (const NodeRun& run : plan.layout) {
    const auto& ranks = plan.classes[static_cast<std::size_t>(run.node_class)].ranks;
    const int size = one_per_node ? 1 : static_cast<int>(ranks.size());
    for (int n = 0; n < run.nodes; ++n, ++node)
      for (int local = 0; local < size; ++local)
        seats.push_back({static_cast<int>(seats.size()), node, run.node_class, local, size});
  }
  return seats;
}

}  // namespace check

namespace {

// "3", "8-15", "0,2,4-7"; longer ones end in "..." and their number.
std::string ranges(const std::vector<int>& numbers) {
  constexpr int kMostPieces = 6;
  std::string text;
  int pieces = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (++pieces > kMostPieces) return fmt::format("{},... ({} in all)", text, numbers.size());
    if (!text.empty()) text += ',';
    text += fmt::format("{}", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last;
  }
  return text;
}

std::string host_names(const Plan& plan, const std::vector<int>& nodes) {
  constexpr std::size_t kMost = 8;
  if (nodes.size() == plan.hosts.size() && nodes.size() > 2)
    return fmt::format("all {} nodes", with_separators(static_cast<long>(nodes.size())));
  std::string text;
  for (std::size_t i = 0; i < nodes.size() && i < kMost; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", plan.hosts[static_cast<std::size_t>(nodes[i])]);
  if (nodes.size() > kMost)
    text += fmt::format(", ... ({} nodes)", with_separators(static_cast<long>(nodes.size())));
  return text;
}

struct Cover {
  std::set<int> locals;
  bool whole_nodes = true;  // every rank of each of the nodes
};

Cover cover_of(const std::vector<RankPlace>& seats, const Difference& difference) {
  Cover cover;
  long needed = 0;
  int node = -1;
  for (const int rank : difference.ranks) {
    const RankPlace& seat = seats[static_cast<std::size_t>(rank)];
    cover.locals.insert(seat.local);
    if (seat.node != node) needed += seat.local_size;
    node = seat.node;
  }
  cover.whole_nodes = needed == static_cast<long>(difference.ranks.size());
  return cover;
}

}  // namespace

std::string where_text(const Plan& plan, const Difference& difference) {
  const std::vector<int>& ranks = difference.ranks;
  if (ranks.empty())
    return difference.nodes.empty() ? "the launcher" : host_names(plan, difference.nodes);
  const std::string on = " on " + host_names(plan, difference.nodes);
  const std::string noun = ranks.size() == 1 ? "rank " : "ranks ";
  if (static_cast<int>(ranks.size()) == plan.world_size() && ranks.size() > 1)
    return fmt::format("all {} ranks", with_separators(static_cast<long>(ranks.size())));
  if (difference.nodes.size() == 1) return noun + ranges(ranks) + on;
  const Cover cover = cover_of(check::seats_of(plan), difference);
  if (cover.whole_nodes) return "all ranks" + on;
  if (cover.locals.size() == 1) return fmt::format("local rank {}{}", *cover.locals.begin(), on);
  return noun + ranges(ranks) + on;
}

std::vector<Difference> condense(const std::vector<Difference>& differences, std::size_t most) {
  std::vector<Difference> out;
  const auto append = [](std::vector<int>& to, const std::vector<int>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (auto first = differences.begin(); first != differences.end();) {
    const auto end = std::find_if(first, differences.end(),
                                  [&](const auto& one) { return one.what.id != first->what.id; });
    if (static_cast<std::size_t>(end - first) <= most) {
      out.insert(out.end(), first, end);
      first = end;
      continue;
    }
    Difference& one = out.emplace_back(*first);
    std::set<std::string> planned;
    std::set<std::string> found;
    for (; first != end; ++first) {
      planned.insert(first->planned);
      found.insert(first->found);
      append(one.ranks, first->ranks);
      append(one.nodes, first->nodes);
    }
    sort_once(one.ranks);
    sort_once(one.nodes);
    const auto count_others = [](std::string& text, std::size_t values) {
      if (values > 1) text += fmt::format(" (and {} others)", values - 1);
    };
    count_others(one.planned, planned.size());
    count_others(one.found, found.size());
  }
  return out;
}

}  // namespace hpclaunch
