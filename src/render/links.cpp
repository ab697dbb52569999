// Links between devices as arcs over a row of their numbers.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/text.h"
#include "render/scene.h"
#include "render/text.h"

namespace hpclaunch::render {

LinkDrawing draw_links(const Topology& node, int width) {
  constexpr int kLeast = 24, kMost = 56, kRadius = 11, kHigh = 90;
  std::map<int, int> at;  // device -> x
  int least = node.links.empty() ? 1 : node.links.front().lanes;
  int most = least;
  for (const Link& link : node.links) {
    at[link.from] = at[link.to] = 0;
    least = std::min(least, link.lanes);
    most = std::max(most, link.lanes);
  }
  const int count = static_cast<int>(at.size());
  if (count < 2 || count * kLeast > width) return {};
  const int step = std::min(kMost, width / count);
  LinkDrawing drawing;
  drawing.row = kRadius + 4;
  drawing.w = step * count;
  int x = step / 2;
  for (auto& [device, place] : at) {
    place = x;
    drawing.dots.push_back({device, x});
    x += step;
  }
  for (const Link& link : node.links) {
    LinkArc arc;
    arc.x1 = at[link.from];
    arc.x2 = at[link.to];
    arc.rise = std::max(kHigh / 6, kHigh * (arc.x2 - arc.x1) / (step * (count - 1)));
    constexpr int kWidest = 3;
    arc.stroke = least == most ? 2 : 1 + kWidest * (link.lanes - least) / (most - least);
    arc.dashed = link.kind != node.links.front().kind;
    arc.words = fmt::format("{} between devices {} and {}, {}", printable(link.kind), link.from,
                            link.to, counted(link.lanes, "lane"));
    drawing.row = std::max(drawing.row, arc.rise + 4);
    drawing.arcs.push_back(std::move(arc));
  }
  drawing.h = drawing.row + kRadius + 2;
  return drawing;
}

}  // namespace hpclaunch::render
