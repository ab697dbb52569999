#include <algorithm>

#include "render/scene.h"
#include "render/text.h"

namespace hpclaunch::render {

int svg_text_width(std::string_view text, int size, bool strong) {
  constexpr std::string_view kNarrow = "ijlfrtI.,:;'|!()[]/- ";
  constexpr std::string_view kWide = "MWmw@%&+#~<=>OQ";
  int hundredths = 0;
  while (!text.empty()) {
    const std::size_t unit = std::max<std::size_t>(utf8_unit(text), 1);
    const char c = text.front();
    if (unit > 1)
      hundredths += columns(text.substr(0, unit)) * 105;
    else if (kNarrow.find(c) != std::string_view::npos)
      hundredths += c == 't' || c == 'r' || c == 'f' || c == '(' || c == ')' ? 42 : 37;
    else if (kWide.find(c) != std::string_view::npos)
      hundredths += 100;
    else
      hundredths += c >= 'A' && c <= 'Z' ? 78 : 64;
    text.remove_prefix(unit);
  }
  if (strong) hundredths += hundredths * 9 / 100;
  constexpr int kHundred = 100;
  return (hundredths * size + kHundred - 1) / kHundred;
}

Metrics svg_metrics() {
  Metrics m;
  m.width = 1000;
  m.pad_x = m.pad_y = 10;
  m.head = 26;
  m.head_line = 16;
  m.head_base = 18;
  m.name_w = 140;
  m.gap_x = m.gap_y = 10;
  m.core_gap = 4;
  m.row_gap = 6;
  m.pu_w = 26;
  m.pu_h = 15;
  m.bar_h = 18;
  m.device_least = 128;
  m.device_most = 190;
  m.nic_least = 88;
  m.nic_most = 130;
  m.box_pad = 8;
  m.box_pad_y = 8;
  m.line_h = 14;
  m.line_base = 13;
  m.unit_w = 36;
  m.unit_h = 20;
  m.unit_gap = 4;
  m.unit_name_h = 14;
  m.unit_base = 6;
  m.font = 12;
  m.small = 10;
  m.measure = svg_text_width;
  m.dots = "…";
  return m;
}

}  // namespace hpclaunch::render
