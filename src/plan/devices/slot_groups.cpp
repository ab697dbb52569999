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

using Cluster = std::vector<Slot>;

int lanes_of(const Topology& node, int a, int b) {
  constexpr int kOneDevice = 1 << 16;  // more than lanes can be
  if (a == b) return a < 0 ? 0 : kOneDevice;
  int lanes = 0;
  for (const Link& link : node.links)
    if ((link.from == a && link.to == b) || (link.from == b && link.to == a)) lanes += link.lanes;
  return lanes;
}

// The piece that a group with room for `need` more takes next: one that fits, else a smaller one, else a
// part of a larger one; of several the one with the most links to the group, then the first.
std::size_t next_piece(const Topology& node, const Cluster& group, std::size_t need,
                       const std::vector<Cluster>& pieces) {
  const auto rank = [&](std::size_t p) {
    const std::size_t size = pieces[p].size();
    return std::pair(size == need  ? 0
                     : size < need ? 1
                                   : 2,
                     -lanes_between(node, group, pieces[p]));
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
    groups.push_back(group_of(node, group));
  }
  for (const Cluster& piece : pieces) over.insert(over.end(), piece.begin(), piece.end());
  return over;
}

// Which slots belong to no rank because --devices-per-rank does not divide their number.
void report_left(Slots& slots) {
  if (slots.left.empty()) return;
  std::vector<std::string> names;
  for (const Slot& slot : slots.left)
    names.push_back(slot.part >= 0 ? fmt::format("{}.{}", slot.device, slot.part)
                                   : std::to_string(slot.device >= 0 ? slot.device : slot.unit));
  slots.reports.insert(
      slots.reports.begin(),
      Diagnostic{"devices-left", Severity::note,
                 fmt::format("device {} of each node {} unused: {} at {} per rank",
                             fmt::join(names, ", "), names.size() == 1 ? "is" : "are",
                             counted(slots.total, "device"), slots.per_rank),
                 "choose a --devices-per-rank that divides their number"});
}

}  // namespace

SlotGroup group_of(const Topology& node, const Cluster& members) {
  SlotGroup group{members, members.front().pus};
  const Device* device = node.find_device(members.front().device);
  group.lacks_cpus = device != nullptr && lacks_cpus(node, *device);
  for (std::size_t i = 1; i < members.size(); ++i) {
    const CpuSet& first = members.front().pus;
    const CpuSet& other = members[i].pus;
    for (const int far : {kSameNuma, kSamePackage})
      group.apart = group.apart || around(node, first, far) != around(node, other, far);
    if (group.pus.empty() || other.empty())
      group.pus = CpuSet{};  // nothing is near to all of them, as far as is known
    else
      group.pus |= other;
  }
  return group;
}

int lanes_between(const Topology& node, const Cluster& a, const Cluster& b) {
  int lanes = 0;
  for (const Slot& one : a)
    for (const Slot& other : b) lanes += lanes_of(node, one.device, other.device);
  return lanes;
}

Status group_slots(const Topology& node, int per_rank, Slots& slots) {
  const auto size = static_cast<std::size_t>(per_rank);
  if (slots.list.size() < size)
    return request_error(
        fmt::format("--devices-per-rank {}: {}", per_rank, slots.available()),
        slots.shortage.fix_for(
            per_rank, slots.list.empty()
                          ? "omit --devices-per-rank"
                          : fmt::format("use --devices-per-rank {} or fewer", slots.count())));
  const Cluster order = single_slots(slots);
  std::vector<SlotGroup> groups;
  Cluster rest = order;
  const auto with_room = [&](auto same, auto piece_of) {
    Cluster left;
    for (const Cluster& cluster : clustered(rest, same))
      std::ranges::copy(take_groups(node, size, clustered(cluster, piece_of), groups),
                        std::back_inserter(left));
    rest = std::move(left);
  };
  const auto one_device = [](const Slot& a, const Slot& b) {
    return a.device >= 0 && a.device == b.device && a.part >= 0 && b.part >= 0;
  };
  const auto same = [&](int far) {  // below kNear every slot is alone
    return [&node, far](const Slot& a, const Slot& b) {
      const CpuSet place = around(node, a.pus, far);
      const bool unknown = far == kSameNuma && place.empty();  // such slots are apart
      return far >= kNear && !unknown && place == around(node, b.pus, far);
    };
  };
  with_room(one_device, same(kNear - 1));
  for (int far = kNear; far < kDistances; ++far) with_room(same(far), same(far - 1));
  slots.left = std::move(rest);
  std::ranges::stable_sort(groups, {}, [&](const SlotGroup& group) {
    return std::ranges::find(order, group.first()) - order.begin();
  });
  slots.list = std::move(groups);
  slots.per_rank = per_rank;
  report_left(slots);
  return Done{};
}

std::vector<Slot> single_slots(const Slots& slots) {
  Cluster singles;
  for (const SlotGroup& group : slots.list)
    std::ranges::copy(group.slots, std::back_inserter(singles));
  std::ranges::copy(slots.left, std::back_inserter(singles));
  return singles;
}

}  // namespace hpclaunch
