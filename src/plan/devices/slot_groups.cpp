// Several slots for one rank.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/slots.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

using Cluster = std::vector<SlotGroup>;

void add_group(const Topology& node, const Cluster& members, std::vector<SlotGroup>& groups) {
  SlotGroup group = members.front();
  for (std::size_t i = 1; i < members.size(); ++i) {
    const CpuSet& first = members.front().pus;
    const CpuSet& other = members[i].pus;
    for (const int far : {kSameNuma, kSamePackage})
      group.apart = group.apart || around(node, first, far) != around(node, other, far);
    if (group.pus.empty() || members[i].pus.empty())
      group.pus = CpuSet{};  // nothing is near to all of them, as far as is known
    else
      group.pus |= members[i].pus;
    group.more.push_back(members[i]);
  }
  groups.push_back(std::move(group));
}

int lanes_to(const Topology& node, const Cluster& group, const Cluster& piece) {
  int lanes = 0;
  for (const SlotGroup& a : group)
    for (const SlotGroup& b : piece) lanes += lanes_between(node, a, b);
  return lanes;
}

// The piece that a group with room for `need` more takes next: one that fits, else a smaller one, else a
// part of a larger one; of several the one with the most links to the group, then the first.
std::size_t next_piece(const Topology& node, const Cluster& group, std::size_t need,
                       const std::vector<Cluster>& pieces) {
  const auto rank = [&](std::size_t p) {
    const std::size_t size = pieces[p].size();
    return std::pair(size == need ? 0 : size < need ? 1 : 2, -lanes_to(node, group, pieces[p]));
  };
  std::size_t best = 0;
  for (std::size_t p = 1; p < pieces.size() && !group.empty(); ++p)
    if (rank(p) < rank(best)) best = p;
  return best;
}

// Groups of whole pieces, linked ones together, and across the borders of pieces where sizes differ, as few in each as
// can be. Where some slots are left over anyway, these are the rest of a piece that a group has a part of, so that
// groups do not meet in one. What is too few is returned.
Cluster take_groups(const Topology& node, std::size_t size, std::vector<Cluster> pieces,
                    std::vector<SlotGroup>& groups) {
  std::size_t left = 0;
  for (const Cluster& piece : pieces) left += piece.size();
  std::size_t spare = left % size;
  Cluster over;
  for (; left >= size + over.size(); left -= size) {
    Cluster group;
    while (group.size() < size) {
      const std::size_t p = next_piece(node, group, size - group.size(), pieces);
      Cluster& piece = pieces[p];
      const auto taken = static_cast<std::ptrdiff_t>(std::min(piece.size(), size - group.size()));
      group.insert(group.end(), piece.begin(), piece.begin() + taken);
      piece.erase(piece.begin(), piece.begin() + taken);
      if (piece.size() <= spare) {
        spare -= piece.size();
        over.insert(over.end(), piece.begin(), piece.end());
        pieces.erase(pieces.begin() + p);
      }
    }
    add_group(node, group, groups);
  }
  for (const Cluster& piece : pieces) over.insert(over.end(), piece.begin(), piece.end());
  return over;
}

// Which slots belong to no rank because --devices-per-rank does not divide their number.
void report_left(Slots& slots) {
  if (slots.left.empty()) return;
  std::vector<std::string> names;
  for (const SlotGroup& unit : slots.left)
    names.push_back(unit.subdevice >= 0
                        ? fmt::format("{}.{}", unit.device, unit.subdevice)
                        : std::to_string(unit.device >= 0 ? unit.device : unit.unit));
  slots.reports.insert(
      slots.reports.begin(),
      Diagnostic{"devices-left", Severity::note,
                 fmt::format("device {} of each node {} unused: {} at {} per rank",
                             fmt::join(names, ", "), names.size() == 1 ? "is" : "are",
                             counted(slots.total, "device"), slots.per_rank),
                 "choose a --devices-per-rank that divides their number"});
}

}  // namespace

Status group_slots(const Topology& node, int per_rank, Slots& slots) {
  const auto size = static_cast<std::size_t>(per_rank);
  if (slots.list.size() < size)
    return request_error(
        fmt::format("--devices-per-rank {}: {}", per_rank, slots.available()),
        slots.shortage.fix_for(
            per_rank, slots.list.empty()
                          ? "omit --devices-per-rank"
                          : fmt::format("use --devices-per-rank {} or fewer", slots.count())));
  const std::vector<SlotGroup> order = slots.list;
  std::vector<SlotGroup> groups;
  std::vector<SlotGroup> rest = order;
  const auto with_room = [&](auto same, auto piece_of) {
    std::vector<SlotGroup> left;
    for (const Cluster& cluster : clustered(rest, same))
      std::ranges::copy(take_groups(node, size, clustered(cluster, piece_of), groups),
                        std::back_inserter(left));
    rest = std::move(left);
  };
  const auto one_device = [](const SlotGroup& a, const SlotGroup& b) {
    return a.device >= 0 && a.device == b.device && a.subdevice >= 0 && b.subdevice >= 0;
  };
  const auto same = [&](int far) {  // below kNear every unit is alone
    return [&node, far](const SlotGroup& a, const SlotGroup& b) {
      const CpuSet place = around(node, a.pus, far);
      const bool unknown = far == kSameNuma && place.empty();  // such slots are apart
      return far >= kNear && !unknown && place == around(node, b.pus, far);
    };
  };
  with_room(one_device, same(kNear - 1));
  for (int far = kNear; far < kDistances; ++far) with_room(same(far), same(far - 1));
  slots.left = std::move(rest);
  std::ranges::stable_sort(groups, {}, [&](const SlotGroup& group) {
    return std::ranges::find(order, group.unit, &SlotGroup::unit) - order.begin();
  });
  slots.list = std::move(groups);
  slots.per_rank = per_rank;
  report_left(slots);
  return Done{};
}

std::vector<const SlotGroup*> single_slots(const Slots& slots) {
  std::vector<const SlotGroup*> singles;
  for (const SlotGroup& unit : slots.list) {
    singles.push_back(&unit);
    for (const SlotGroup& more : unit.more) singles.push_back(&more);
  }
  for (const SlotGroup& unit : slots.left) singles.push_back(&unit);
  return singles;
}

}  // namespace hpclaunch
