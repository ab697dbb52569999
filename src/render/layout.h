#pragma once
// The position of everything in a picture. One function both measures and draws each thing: without a scene,
// a pen only measures.
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "render/regions.h"
#include "render/scene.h"

namespace hpclaunch::render {

struct Size {
  int w = 0, h = 0;
};

/// Where to draw; `box` is what encloses it.
struct Pen {
  Scene* scene = nullptr;
  int x = 0, y = 0;
  int box = -1;

  Pen at(int dx, int dy) const { return {scene, x + dx, y + dy, box}; }
  /// Inside the box that is put next.
  Pen inside() const { return {scene, x, y, static_cast<int>(scene->boxes.size())}; }
};

/// The owner of some PUs; neighbours with equal looks share a bar.
struct Look {
  Paint paint = Paint::plain;
  std::vector<int> ranks;  ///< local, ascending
  std::string service;
  std::vector<int> far;  ///< those of them that are far from what they use, ascending

  int tone() const { return ranks.empty() ? 0 : ranks.front(); }
  bool operator==(const Look&) const = default;
};

/// Equal boxes in rows that differ by one box at most.
struct Rows {
  int per_row = 1, rows = 0;
};
Rows rows_of(int count, int each, int gap, int width);

class Layout {
 public:
  Layout(const Subject& subject, const Metrics& metrics);
  Scene draw();

 private:
  // layout.cpp: the node and its regions
  Size machine(const Pen& pen);
  Size block(int at, int width, const Pen& pen);
  Size contents(int at, int width, const Pen& pen);
  Size inner(const std::vector<int>& list, int width, const Pen& pen);
  Size columns_of(const std::vector<int>& list, int columns, int room, const Pen& pen);
  Size caption(const std::string& text, const Pen& pen) const;
  std::vector<std::vector<std::string>> names(const Region& one) const;
  std::vector<std::string> head_lines(const Region& one, int width) const;
  Box& put(const Pen& pen, What what, Size size) const;
  void write(Box& box, int y, const std::vector<std::string>& texts, int font, bool strong,
             bool alarm = false) const;
  void lead(Scene& scene) const;

  // layout_cores.cpp
  Size cores(const std::vector<int>& list, int width, const Pen& pen);
  void draw_core(const Pen& pen, int at);
  void draw_bar(const Pen& pen, const Look& look, int width);
  int pu_columns() const;
  Size core_size() const;
  Look look_of(const CpuSet& pus) const;
  std::string core_text(int at) const;
  std::string pu_words(int pu, const Look& look) const;
  std::vector<std::string> labels(const Look& look) const;
  std::string ranks_tip(const Look& look) const;
  bool terminal() const { return m_.pu_w == 0; }

  // layout_devices.cpp
  template <class Draw>
  Size shelf(const std::vector<int>& list, int least, int most, int width, const Pen& pen,
             Draw draw) const;
  Size devices(const std::vector<int>& list, int width, const Pen& pen);
  Size nics(const std::vector<int>& list, int width, const Pen& pen) const;
  Size memory(const std::vector<int>& list, int width, const Pen& pen) const;
  Size device(int at, int width, const Pen& pen);
  void device_lines(const Device& one, Box& box) const;
  void unit(const Pen& pen, const Device& one, int part, Size size);
  static Look users_of(const std::vector<Use>& uses, const std::function<bool(const Use&)>& is);
  Size nic(int at, int width, const Pen& pen) const;

  const Subject& subject_;
  const Topology& node_;
  const Metrics& m_;
  Regions regions_;
  std::vector<Look> looks_;  ///< of each core
  int most_pus_ = 1;
  bool nic_states_ = false;  ///< a NIC has more than a name
  std::map<std::pair<int, int>, Size> sizes_;
  std::map<int, int> starts_;  ///< the box of each rank's first bar
  struct End {
    const Use* use;
    int box;  ///< of the unit
  };
  std::vector<End> ends_;
};

}  // namespace hpclaunch::render
