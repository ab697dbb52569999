#pragma once
// Links between devices as arcs over a row of their numbers.
#include <string>
#include <vector>

#include "hpclaunch/topology.h"

namespace hpclaunch::render {

/// A device's place in the row.
struct LinkDot {
  int device = 0;  ///< Device::index
  int x = 0;
};

/// Half an ellipse above the row, from one dot to another.
struct LinkArc {
  int x1 = 0, x2 = 0;
  int rise = 0;         ///< its height
  int stroke = 1;       ///< 1 for the fewest lanes to 4 for the most; 2 where all are alike
  bool dashed = false;  ///< of another kind than the first one
  std::string words;    ///< "nvlink between devices 0 and 1, 18 lanes"
};

struct LinkDrawing {
  int w = 0, h = 0;  ///< 0: nothing to draw
  int row = 0;       ///< height of the dots' centres
  std::vector<LinkDot> dots;
  std::vector<LinkArc> arcs;
};

/// Devices that have links, at most `width` wide; where that is too narrow for their number, nothing: the
/// words say it all.
LinkDrawing draw_links(const Topology& node, int width);

}  // namespace hpclaunch::render
