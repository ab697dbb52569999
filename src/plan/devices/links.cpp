#include <algorithm>

#include "plan/devices/match.h"

namespace hpclaunch {

namespace {

constexpr int kOneDevice = 1 << 16;  // parts of one device: more than lanes can be

int lanes_of(const Topology& node, int a, int b) {
  if (a == b) return a < 0 ? 0 : kOneDevice;
  int lanes = 0;
  for (const Link& link : node.links)
    if ((link.from == a && link.to == b) || (link.from == b && link.to == a)) lanes += link.lanes;
  return lanes;
}

// Linked neighbours of a ring, and their lanes.
std::pair<int, long> measure(const Topology& node, const Units& units,
                             const std::vector<int>& order) {
  std::pair<int, long> ring;
  const std::size_t pairs = order.size() > 2 ? order.size() : order.size() - 1;
  for (std::size_t i = 0; i < pairs; ++i) {
    const int lanes =
        lanes_between(node, units.list[order[i]], units.list[order[(i + 1) % order.size()]]);
    ring.first += lanes > 0 ? 1 : 0;
    ring.second += lanes;
  }
  return ring;
}

}  // namespace

int lanes_between(const Topology& node, const Unit& a, const Unit& b) {
  int lanes = lanes_of(node, a.device, b.device);
  for (const Unit& one : a.more) lanes += lanes_between(node, one, b);
  for (const Unit& one : b.more) lanes += lanes_of(node, a.device, one.device);
  return lanes;
}

std::vector<Stretch> link_neighbours(const Topology& node, const Units& units,
                                     std::vector<Stretch> stretches) {
  if (node.links.empty()) return stretches;
  std::vector<Stretch> linked = stretches;
  std::vector<int> plain;
  std::vector<int> ring;
  const auto lanes = [&](int unit) {
    return ring.empty() ? 0 : lanes_between(node, units.list[ring.back()], units.list[unit]);
  };
  for (Stretch& stretch : linked) {
    plain.insert(plain.end(), stretch.order.begin(), stretch.order.end());
    std::vector<int> open = stretch.order;  // what ranks get goes before the others
    for (const int unit : stretch.units)
      if (std::ranges::count(open, unit) == 0) open.push_back(unit);
    for (int& next : stretch.order) {
      const auto best = std::ranges::max_element(open, {}, lanes);
      next = *best;
      open.erase(best);
      ring.push_back(next);
    }
  }
  return measure(node, units, ring) > measure(node, units, plain) ? linked : stretches;
}

}  // namespace hpclaunch
