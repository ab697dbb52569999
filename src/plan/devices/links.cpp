#include "plan/devices/links.h"

#include <algorithm>

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

struct Ring {
  int linked = 0;  // neighbours
  long lanes = 0;
  auto operator<=>(const Ring&) const =
      default;  // NOLINT(modernize-use-nullptr): false, clang-tidy 14
};

Ring measure(const Topology& node, const Units& units, const std::vector<int>& order) {
  Ring ring;
  const std::size_t pairs = order.size() > 2 ? order.size() : order.size() - 1;
  for (std::size_t i = 0; i < pairs; ++i) {
    const int lanes =
        lanes_between(node, units.list[order[i]], units.list[order[(i + 1) % order.size()]]);
    ring.linked += lanes > 0 ? 1 : 0;
    ring.lanes += lanes;
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

void link_neighbours(const Topology& node, const Units& units, std::vector<Stretch>& stretches) {
  if (node.links.empty() || stretches.empty()) return;
  std::vector<Stretch> linked = stretches;
  std::vector<int> plain;
  std::vector<int> ring;
  for (Stretch& stretch : linked) {
    plain.insert(plain.end(), stretch.order.begin(), stretch.order.end());
    std::vector<int> open = stretch.order;  // what ranks get goes before the others
    for (const int unit : stretch.units)
      if (std::find(open.begin(), open.end(), unit) == open.end()) open.push_back(unit);
    for (int& next : stretch.order) {
      auto best = open.begin();
      const auto lanes = [&](int unit) {
        return ring.empty() ? 0 : lanes_between(node, units.list[ring.back()], units.list[unit]);
      };
      for (auto at = open.begin(); at != open.end(); ++at)
        if (lanes(*at) > lanes(*best)) best = at;
      next = *best;
      open.erase(best);
      ring.push_back(next);
    }
  }
  if (measure(node, units, ring) > measure(node, units, plain)) stretches = std::move(linked);
}

std::vector<Unit> linked_groups(const Topology& node, std::vector<Unit> units, std::size_t size) {
  std::vector<Unit> result;
  while (units.size() >= size && !units.empty()) {
    const std::size_t first = result.size();
    while (result.size() < first + size) {
      auto best = units.begin();
      int most = 0;
      for (auto at = units.begin(); at != units.end(); ++at) {
        int lanes = 0;
        for (std::size_t i = first; i < result.size(); ++i)
          lanes += lanes_between(node, result[i], *at);
        if (lanes <= most) continue;
        most = lanes;
        best = at;
      }
      result.push_back(std::move(*best));
      units.erase(best);
    }
  }
  result.insert(result.end(), units.begin(), units.end());
  return result;
}

}  // namespace hpclaunch
