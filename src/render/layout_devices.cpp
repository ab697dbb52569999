// Devices with their parts, network interfaces, and memory without CPUs.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "render/layout.h"
#include "render/text.h"

namespace hpclaunch::render {

/// Boxes in rows, all as wide as the row allows, from `least` to `most`, and as high as the highest;
/// `draw(position, width, pen)` measures or draws one.
template <class Draw>
Size Layout::shelf(const std::vector<int>& list, int least, int most, int width, const Pen& pen,
                   Draw draw) const {
  if (list.empty()) return {};
  const Rows rows = rows_of(static_cast<int>(list.size()), least, m_.gap_x, width);
  const int each = std::clamp((width - (rows.per_row - 1) * m_.gap_x) / rows.per_row, least, most);
  int h = 0;
  for (const int at : list) h = std::max(h, draw(at, each, Pen{}).h);
  int i = 0;
  for (const int at : list) {
    if (pen.scene == nullptr) break;
    draw(at, each, pen.at(i % rows.per_row * (each + m_.gap_x), i / rows.per_row * (h + m_.gap_y)));
    ++i;
  }
  return {rows.per_row * (each + m_.gap_x) - m_.gap_x, rows.rows * (h + m_.gap_y) - m_.gap_y};
}

/// A line of text, `y` below the upper edge: the first of `texts` that fits.
void Layout::write(Box& box, int y, const std::vector<std::string>& texts, int font, bool strong,
                   bool alarm) const {
  const int room = box.w - 2 * m_.box_pad;
  box.texts.push_back({box.x + m_.box_pad, box.y + y, font, false, strong, alarm,
                       fitting(texts, room, font, strong, m_), room});
}

Size Layout::devices(const std::vector<int>& list, int width, const Pen& pen) {
  return shelf(list, m_.device_least, m_.device_most, width, pen,
               [&](int at, int each, const Pen& place) { return device(at, each, place); });
}

/// Name, model and address. A terminal has one line, and none for a device without parts.
void Layout::device_lines(const Device& one, Box& box) const {
  const std::string name = fmt::format("device {}", one.index);
  const std::string sized = with_size(name, one.memory_bytes);
  std::string model = printable(one.model.empty() ? one.vendor : one.model);
  if (!one.partition.empty()) model += ", " + printable(one.partition);
  if (terminal()) {
    if (parts_of(one) > 0)
      write(box, m_.line_base, {sized + " " + model, sized, name}, m_.small, false);
    return;
  }
  const std::string pci = printable(one.pci);
  const int y = m_.line_base + 2;
  write(box, y, {sized, name}, m_.font, true);
  write(box, y + m_.line_h, {model}, m_.small, false);
  write(box, y + 2 * m_.line_h, {pci.empty() ? "PCI address unknown" : "PCI " + pci, pci}, m_.small,
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
  const Pen inside = pen.inside();
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

/// The ranks of those uses for which `is` is true.
Look Layout::users_of(const std::vector<Use>& uses, const std::function<bool(const Use&)>& is) {
  Look look;
  const auto add = [](std::vector<int>& ranks, int rank) {
    if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
  };
  for (const Use& use : uses) {
    if (!is(use)) continue;
    add(look.ranks, use.rank);
    if (!use.far.empty()) add(look.far, use.rank);
  }
  if (!look.ranks.empty()) look.paint = look.ranks.size() == 1 ? Paint::rank : Paint::shared;
  return look;
}

void Layout::unit(const Pen& pen, const Device& one, int part, Size size) {
  const Look look = users_of(subject_.uses, [&](const Use& use) {
    return use.place == one.index && (use.part < 0 || part < 0 || use.part == part);
  });
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
  box.tone = look.tone();
  box.far = !look.far.empty();
  box.number = part;
  box.tip = part < 0 ? name : fmt::format("part {} of device {}", part, one.index);
  if (part >= 0 && static_cast<std::size_t>(part) < one.instances.size())
    box.tip += ", " + printable(one.instances[static_cast<std::size_t>(part)]);
  if (!look.ranks.empty()) box.tip += ": " + ranks_tip(look);
  for (const Use& use : subject_.uses)
    if (use.place == one.index && !use.far.empty() &&
        (part < 0 || use.part == part || (use.part < 0 && part == 0)))
      ends_.push_back({&use, static_cast<int>(pen.scene->boxes.size()) - 1});
}

Size Layout::nics(const std::vector<int>& list, int width, const Pen& pen) const {
  return shelf(list, m_.nic_least, m_.nic_most, width, pen,
               [&](int at, int each, const Pen& place) { return nic(at, each, place); });
}

Size Layout::nic(int at, int width, const Pen& pen) const {
  const int lines = terminal() ? 1 : 1 + (nic_states_ ? 1 : 0) + (subject_.nics.empty() ? 0 : 1);
  const Size size{width, lines * m_.line_h + m_.box_pad_y};
  if (pen.scene == nullptr) return size;
  const Nic& one = node_.nics[static_cast<std::size_t>(at)];
  Box& box = put(pen, What::nic, size);
  box.number = at;
  box.tip = nic_words(one);
  const std::string name = printable(one.name.empty() ? one.fabric : one.name);
  std::string state = one.speed_mbps > 0 ? speed_text(one.speed_mbps) : printable(one.kind);
  if (one.state == "down") state = state.empty() ? "DOWN" : "DOWN, " + state;
  const Look look = users_of(subject_.nics, [&](const Use& use) { return use.place == at; });
  box.far = !look.far.empty();
  const std::vector<std::string> ranks = labels(look);
  if (!look.ranks.empty()) box.tip += "; nearest to ranks " + number_set(look.ranks);
  if (terminal()) {
    std::vector<std::string> texts;
    for (const std::string& who : ranks) {
      const std::string tail = who.empty() ? "" : ": " + who;
      const std::string all = fmt::format("nic {}{}", nic_name(one), tail);
      if (!state.empty()) texts.push_back(fmt::format("{}, {}", all, state));
      texts.push_back(all);
      texts.push_back(fmt::format("nic {}{}", name, tail));
    }
    write(box, m_.line_base, texts, m_.small, false);
    return size;
  }
  int y = m_.line_base;
  write(box, y, {nic_name(one), name}, m_.small, true);
  if (!state.empty()) write(box, y += m_.line_h, {state}, m_.small, false, one.state == "down");
  if (!look.ranks.empty()) write(box, y + m_.line_h, ranks, m_.small, true, box.far);
  return size;
}

Size Layout::memory(const std::vector<int>& list, int width, const Pen& pen) const {
  int w = 0;
  const auto text = [&](int at) {
    return numa_text(node_.numa_nodes[static_cast<std::size_t>(at)]);
  };
  for (const int at : list) w = std::max(w, m_.measure(text(at), m_.small, false) + 2 * m_.box_pad);
  return shelf(list, w, w, width, pen, [&](int at, int, const Pen& place) {
    const Size size{w, m_.line_h + m_.box_pad_y};
    if (place.scene == nullptr) return size;
    Box& box = put(place, What::memory, size);
    box.number = node_.numa_nodes[static_cast<std::size_t>(at)].os_index;
    box.tip = text(at) + ", memory without CPUs";
    write(box, m_.line_base, {text(at)}, m_.small, false);
    return size;
  });
}

}  // namespace hpclaunch::render
