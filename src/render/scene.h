#pragma once
// A picture as boxes and texts at whole numbers, before it is drawn.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "render/subject.h"

namespace hpclaunch::render {

enum class What {
  node,   ///< all of one node
  group,  ///< a package, a NUMA node, a cache, or several of them with the same PUs
  bar,    ///< over neighbouring cores of one owner
  core,
  pu,
  device,
  unit,  ///< a device as a rank gets it: the whole, or one of its parts
  nic,
  memory,  ///< a NUMA node without CPUs
};

enum class Paint {
  plain,
  rank,      ///< in the colour of the first of Look::ranks
  shared,    ///< by several ranks
  closed,    ///< not allowed
  reserved,  ///< kept for the system
  service,
};

/// Who has some PUs or a device; neighbours with equal looks share a bar.
struct Look {
  Paint paint = Paint::plain;
  std::set<int> ranks = {};  ///< local
  std::string service = {};
  std::set<int> far = {};  ///< those of them that are far from what they use

  Paint of_ranks() const {
    return ranks.empty() ? Paint::plain : ranks.size() == 1 ? Paint::rank : Paint::shared;
  }
  /// Of the colour.
  std::size_t tone() const { return static_cast<std::size_t>(ranks.empty() ? 0 : *ranks.begin()); }
  bool operator==(const Look&) const = default;
};

struct Text {
  int x = 0, y = 0;  ///< left (or centre) and baseline; on a terminal the cell
  int size = 0;      ///< of the font
  bool middle = false;
  bool strong = false;
  bool alarm = false;
  std::string text;
};

struct Box {
  What what = What::node;
  int x = 0, y = 0, w = 0, h = 0;  ///< two boxes lie apart, or the later one in the other
  int number = -1;                 ///< os_index of a PU, index of a device, place of a core or NIC
  std::string tip = {};            ///< all facts, in words
  Look look = {};
  std::vector<Text> texts = {};
  std::vector<const Use*> far_uses = {};  ///< of a unit

  bool far() const { return !look.far.empty(); }
};

/// From a rank's cores to a device that is far from them.
struct Lead {
  int x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  std::string tip;
};

/// A picture or a part of one, from (0, 0) on.
struct Scene {
  int w = 0, h = 0;
  std::vector<Box> boxes = {};
  std::vector<Text> texts = {};
  std::vector<Lead> leads = {};

  void add(int x, int y, Scene part);
  /// Nothing where `part` has no height.
  void below(Scene part, int gap);
};

/// Widths of texts and sizes of boxes; as they stand here, in the columns and lines of a terminal.
struct Metrics {
  int width = 0;                  ///< a picture is wider only if one box alone is
  int pad_x = 2, pad_y = 1;       ///< inside a frame: left and right, and at its end
  int head = 1, head_line = 1;    ///< a frame's name: its first line, each further one
  int head_base = 0;              ///< of that first line
  int name_w = 20;                ///< what has a number is as wide as this, if there is room
  int gap_x = 1, gap_y = 0;       ///< between boxes
  int core_gap = 1, row_gap = 0;  ///< between cores, between rows of them
  int pu_w = 0, pu_h = 0;         ///< 0: PUs have no boxes, as on a terminal
  int core_w = 0;                 ///< where PUs have no boxes
  int bar_h = 0;                  ///< 0: no bars; the core has the label
  int device_least = 30, device_most = 44;    ///< widths
  int nic_least = 22, nic_most = 36;          ///< widths
  int box_pad = 0, box_pad_y = 0;             ///< inside devices and the like
  int line_h = 1, line_base = 0;              ///< a line of text in those
  int unit_w = 13, unit_h = 1, unit_gap = 0;  ///< the least width
  int unit_name_h = 0;                        ///< more height for the name of a part
  int unit_base = 0;                          ///< of the text, from below
  int font = 0, small = 0;
  int (*measure)(std::string_view text, int size, bool strong) = nullptr;
  std::string_view dots;
};

/// Of a picture for a screen, in pixels.
Metrics svg_metrics();

/// A bound of the width in pixels: no common sans-serif font is wider than DejaVu Sans, whose widths
/// these are, rounded up by classes of letters.
int svg_text_width(std::string_view text, int size, bool strong);

/// The machine and what lies over it: a box for the node, and everything in it.
Scene lay_out(const Subject& subject, const Metrics& metrics);

/// The first of `texts` that fits into `room`, else the last one cut.
std::string fitting(const std::vector<std::string>& texts, int room, int size, bool strong,
                    const Metrics& metrics);

}  // namespace hpclaunch::render
