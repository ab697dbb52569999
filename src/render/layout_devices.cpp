// Devices with their parts, network interfaces, and memory without CPUs.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "render/layout.h"
#include "render/text.h"

namespace hpclaunch::render {

/// Boxes of one size in rows; `draw(position, pen)` draws one.
template <class Draw>
Size Layout::shelf(std::size_t count, int width_of_box, int height, const Rows& rows,
                   const Pen& pen, Draw draw) const {
  for (int at = 0; pen.scene != nullptr && at < static_cast<int>(count); ++at)
    draw(static_cast<std::size_t>(at), pen.at(at % rows.per_row * (width_of_box + m_.gap_x),
                                              at / rows.per_row * (height + m_.gap_y)));
  return {rows.per_row * (width_of_box + m_.gap_x) - m_.gap_x,
          rows.rows * (height + m_.gap_y) - m_.gap_y};
}

/// The width of each box: as the row allows, from `least` to `most`.
int Layout::box_width(const Rows& rows, int least, int most, int width) const {
  return std::clamp((width - (rows.per_row - 1) * m_.gap_x) / rows.per_row, least, most);
}

Size Layout::devices(const std::vector<int>& list, int width, const Pen& pen) {
  if (list.empty()) return {};
  const Rows rows = rows_of(static_cast<int>(list.size()), m_.device_least, m_.gap_x, width);
  const int each = box_width(rows, m_.device_least, m_.device_most, width);
  int h = 0;
  for (const int at : list) h = std::max(h, device(at, each, {}).h);
  return shelf(list.size(), each, h, rows, pen,
               [&](std::size_t i, const Pen& at) { device(list[i], each, at); });
}

/// Name, model and address. A terminal has one line, and none for a device without parts.
void Layout::device_lines(const Device& one, Box& box) const {
  const int inner = box.w - 2 * m_.box_pad;
  int y = box.y + m_.line_base;
  const auto line = [&](const std::vector<std::string>& texts, bool strong) {
    const int font = strong ? m_.font : m_.small;
    box.texts.push_back({box.x + m_.box_pad, y, font, false, strong, false,
                         fitting(texts, inner, font, strong, m_), inner});
    y += m_.line_h;
  };
  const std::string name = fmt::format("device {}", one.index);
  const std::string sized =
      one.memory_bytes > 0 ? name + " " + human_bytes(one.memory_bytes) : name;
  std::string model = printable(one.model.empty() ? one.vendor : one.model);
  if (!one.partition.empty()) model += ", " + printable(one.partition);
  if (terminal()) {
    if (parts_of(one) > 0) line({sized + " " + model, sized, name}, false);
    return;
  }
  y += 2;
  line({sized, name}, true);
  line({model}, false);
  line({one.pci.empty() ? "PCI address unknown" : "PCI " + printable(one.pci), printable(one.pci)},
       false);
}

Size Layout::device(int at, int width, const Pen& pen) {
  const Device& one = node_.devices[static_cast<std::size_t>(at)];
  const int named = parts_of(one);
  const int parts = std::max(1, named);
  const int inner = width - 2 * m_.box_pad;
  const Rows rows = rows_of(parts, m_.unit_w, m_.core_gap, inner);
  const int unit_h = m_.unit_h + (named > 0 ? m_.unit_name_h : 0);
  constexpr int kLines = 3;
  const int lines = terminal() ? (named > 0 ? 1 : 0) : kLines;
  const int head = lines * m_.line_h + m_.box_pad_y;
  const Size size{width, head + rows.rows * (unit_h + m_.unit_gap) - m_.unit_gap + m_.box_pad_y};
  if (pen.scene == nullptr) return size;
  Pen inside = pen;
  inside.box = static_cast<int>(pen.scene->boxes.size());
  Box& box = put(pen, What::device, size);
  box.number = one.index;
  box.tip = device_words(one);
  device_lines(one, box);
  const int unit_w = (inner - (rows.per_row - 1) * m_.core_gap) / rows.per_row;
  for (int part = 0; part < parts; ++part)
    unit(inside.at(m_.box_pad + part % rows.per_row * (unit_w + m_.core_gap),
                   head + part / rows.per_row * (unit_h + m_.unit_gap)),
         one, named == 0 ? -1 : part, {unit_w, unit_h});
  return size;
}

/// The ranks that use this part of a device, or all of it.
Look Layout::users_of(const Device& one, int part) const {
  Look look;
  for (const DeviceUse& use : subject_.uses) {
    if (use.device != one.index) continue;
    if (use.subdevice >= 0 && part >= 0 && use.subdevice != part) continue;
    look.ranks.push_back(use.rank);
    if (!use.far.empty()) look.add_far(use.rank);
  }
  look.ranks.erase(std::unique(look.ranks.begin(), look.ranks.end()), look.ranks.end());
  if (!look.ranks.empty()) look.paint = look.ranks.size() == 1 ? Paint::rank : Paint::shared;
  return look;
}

void Layout::unit(const Pen& pen, const Device& one, int part, Size size) {
  const Look look = users_of(one, part);
  const std::string name =
      part < 0 ? fmt::format("device {}", one.index) : fmt::format("{}.{}", one.index, part);
  std::vector<std::string> texts = {"-"};
  if (!look.ranks.empty()) texts = labels(look);
  if (subject_.ranks == nullptr) texts = {""};
  Box& box = put(pen, What::unit, size);
  const auto text = [&](int y, const std::string& what, bool strong) {
    if (!what.empty())
      box.texts.push_back({terminal() ? pen.x : pen.x + size.w / 2, y, m_.small, !terminal(),
                           strong, false, what, size.w});
  };
  if (terminal()) {
    std::vector<std::string> all;
    const std::string model = printable(one.model.empty() ? one.vendor : one.model);
    for (const std::string& ranks : texts) {
      std::string own = ranks.empty() ? name : fmt::format("{}: {}", name, ranks);
      const std::string memory = one.memory_bytes > 0 ? human_bytes(one.memory_bytes) + ", " : "";
      if (part < 0) all.push_back(fmt::format("{}, {}{}", own, memory, model));
      all.push_back(std::move(own));
    }
    text(pen.y, fitting(all, size.w, m_.small, true, m_), true);
  } else {
    if (part >= 0) text(pen.y + m_.line_base, name, false);
    text(pen.y + size.h - m_.unit_base, fitting(texts, size.w - 2, m_.small, true, m_), true);
  }
  box.paint = look.paint;
  box.tone = look.ranks.empty() ? 0 : look.ranks.front();
  box.far = !look.far.empty();
  box.number = part;
  box.tip = part < 0 ? name : fmt::format("part {} of device {}", part, one.index);
  if (part >= 0 && static_cast<std::size_t>(part) < one.instances.size())
    box.tip += ", " + printable(one.instances[static_cast<std::size_t>(part)]);
  if (!look.ranks.empty()) box.tip += ": " + ranks_tip(look);
  for (const DeviceUse& use : subject_.uses)
    if (use.device == one.index && !use.far.empty() &&
        (part < 0 || use.subdevice == part || (use.subdevice < 0 && part == 0)))
      ends_.push_back({&use, static_cast<int>(pen.scene->boxes.size()) - 1});
}

Size Layout::nics(const std::vector<int>& list, int width, const Pen& pen) const {
  if (list.empty()) return {};
  const Rows rows = rows_of(static_cast<int>(list.size()), m_.nic_least, m_.gap_x, width);
  const int each = box_width(rows, m_.nic_least, m_.nic_most, width);
  const int lines = terminal() ? 1 : 1 + (nic_states_ ? 1 : 0) + (subject_.nics.empty() ? 0 : 1);
  const int h = lines * m_.line_h + m_.box_pad_y;
  return shelf(list.size(), each, h, rows, pen, [&](std::size_t i, const Pen& at) {
    nic(list[i], {each, h}, at);
  });
}

void Layout::nic(int at, Size size, const Pen& pen) const {
  const Nic& one = node_.nics[static_cast<std::size_t>(at)];
  Box& box = put(pen, What::nic, size);
  box.number = at;
  box.tip = nic_words(one);
  const int inner = size.w - 2 * m_.box_pad;
  const std::string name = printable(one.name.empty() ? one.fabric : one.name);
  std::string state = one.speed_mbps > 0 ? speed_text(one.speed_mbps) : printable(one.kind);
  if (one.state == "down") state = state.empty() ? "DOWN" : "DOWN, " + state;
  const auto line = [&](int row, const std::vector<std::string>& texts, bool strong, bool alarm) {
    box.texts.push_back({pen.x + m_.box_pad, pen.y + m_.line_base + row * m_.line_h, m_.small,
                         false, strong, alarm, fitting(texts, inner, m_.small, strong, m_), inner});
  };
  Look look;
  for (const NicUse& use : subject_.nics) {
    if (use.nic != at) continue;
    look.ranks.push_back(use.rank);
    if (!use.far.empty()) look.add_far(use.rank);
  }
  box.far = !look.far.empty();
  look.paint = look.ranks.empty() ? Paint::plain : Paint::shared;
  const std::vector<std::string> ranks = labels(look);
  if (!look.ranks.empty()) box.tip += "; nearest to ranks " + number_set(look.ranks);
  if (terminal()) {
    std::vector<std::string> texts;
    for (const std::string& who : ranks) {
      const std::string tail = who.empty() ? "" : fmt::format(": {}", who);
      const std::string all = nic_name(one);
      if (!state.empty()) texts.push_back(fmt::format("nic {}{}, {}", all, tail, state));
      for (const std::string& text : {all, name})
        texts.push_back(fmt::format("nic {}{}", text, tail));
    }
    line(0, texts, false, false);
    return;
  }
  line(0, {nic_name(one), name}, true, false);
  if (!state.empty()) line(1, {state}, false, one.state == "down");
  if (!look.ranks.empty()) line(state.empty() ? 1 : 2, ranks, true, !look.far.empty());
}

Size Layout::memory(const std::vector<int>& list, int width, const Pen& pen) const {
  if (list.empty()) return {};
  int w = 0;
  for (const int at : list) {
    const std::string text = numa_text(node_.numa_nodes[static_cast<std::size_t>(at)]);
    w = std::max(w, m_.measure(text, m_.small, false) + 2 * m_.box_pad);
  }
  const int h = m_.line_h + m_.box_pad_y;
  const Rows rows = rows_of(static_cast<int>(list.size()), w, m_.gap_x, width);
  return shelf(list.size(), w, h, rows, pen, [&](std::size_t i, const Pen& at) {
    const NumaNode& one = node_.numa_nodes[static_cast<std::size_t>(list[i])];
    Box& box = put(at, What::memory, {w, h});
    box.number = one.os_index;
    box.tip = numa_text(one) + ", memory without CPUs";
    box.texts.push_back({box.x + m_.box_pad, box.y + m_.line_base, m_.small, false, false, false,
                         numa_text(one), w - m_.box_pad});
  });
}

}  // namespace hpclaunch::render
