#pragma once
// The size and the contents of everything in a picture: each part is a scene of its own, put into the one around it.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "render/regions.h"
#include "render/scene.h"

namespace hpclaunch::render {

/// Equal boxes in rows that differ by one box at most.
struct Rows {
  int per_row = 1, rows = 0;
};
Rows rows_of(int count, int each, int gap, int width);

/// Parts side by side, `step` from one to the next, and the rows below each other.
Scene in_rows(std::vector<Scene> parts, int columns, int step, int gap);

class Layout {
 public:
  Layout(const Subject& subject, const Metrics& metrics);
  Scene draw();

 private:
  // layout.cpp: the node and its regions
  Scene machine();
  const Scene& block(int at, int width);
  Scene contents(const Region& one, int width);
  Scene inner(const std::vector<int>& list, int width);
  Scene titled(const char* title, Scene things) const;
  Scene things(const std::vector<int>& devices, const std::vector<int>& nics, int width) const;
  std::vector<std::vector<std::string>> names(const Region& one) const;
  std::vector<std::string> head_lines(const Region& one, int width) const;
  void write(Box& box, int y, const std::vector<std::string>& texts, int font, bool strong,
             bool alarm = false) const;
  void lead(Scene& scene) const;

  // layout_cores.cpp
  Scene cores(const std::vector<int>& list, int width) const;
  Scene core(const Core& one, int at) const;
  Scene cell(int pu) const;
  Scene bar(const Look& look, int width) const;
  Look look_of(const CpuSet& pus) const;
  std::vector<std::string> labels(const Look& look) const;
  std::string ranks_tip(const Look& look) const;
  bool terminal() const { return m_.pu_w == 0; }

  // layout_devices.cpp
  template <class Draw>
  Scene shelf(const std::vector<int>& list, int least, int most, int width, Draw draw) const;
  Scene memory(const std::vector<int>& list) const;
  Scene device(const Device& one, int width) const;
  void device_lines(const Device& one, Box& box) const;
  Scene unit(const Device& one, int part, int width, int height) const;
  Scene nic(int at, int width) const;

  const Subject& subject_;
  const Topology& node_;
  const Metrics& m_;
  Regions regions_;
  int pu_columns_ = 1, core_w_ = 0, core_h_ = 1;
  bool nic_states_ = false;                      ///< a NIC has more than a name
  std::vector<Scene> cores_;                     ///< in the order of the Topology
  std::map<std::pair<int, int>, Scene> blocks_;  ///< by region and width
};

}  // namespace hpclaunch::render
