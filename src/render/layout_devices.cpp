// Devices with their parts, network interfaces, and memory without CPUs.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "render/layout.h"

namespace hpclaunch::render {

/// Boxes in rows, all as wide as the row allows, from `least` to `most`, and as high as the highest;
/// `draw(position, width)` makes one.
template <class Draw>
Scene Layout::shelf(const std::vector<int>& list, int least, int most, int width, Draw draw) const {
  if (list.empty()) return {};
  const int per_row = rows_of(static_cast<int>(list.size()), least, m_.gap_x, width).per_row;
  const int each = std::clamp((width - (per_row - 1) * m_.gap_x) / per_row, least, most);
  std::vector<Scene> things;
  things.reserve(list.size());
  for (const int at : list) things.push_back(draw(at, each));
  const int highest = std::ranges::max_element(things, {}, &Scene::h)->h;
  for (Scene& one : things) one.h = highest;
  return in_rows(std::move(things), per_row, each + m_.gap_x, m_.gap_y);
}

Scene Layout::things(const std::vector<int>& devices, const std::vector<int>& nics,
                     int width) const {
  Scene all = shelf(devices, m_.device_least, m_.device_most, width, [&](int at, int each) {
    return device(node_.devices[static_cast<std::size_t>(at)], each);
  });
  all.below(shelf(nics, m_.nic_least, m_.nic_most, width,
                  [&](int at, int each) { return nic(at, each); }),
            m_.gap_y);
  return all;
}

/// A line of text, `y` below the upper edge: the first of `texts` that fits.
void Layout::write(Box& box, int y, const std::vector<std::string>& texts, int font, bool strong,
                   bool alarm) const {
  const int room = box.w - 2 * m_.box_pad;
  box.texts.push_back(
      {m_.box_pad, y, font, false, strong, alarm, fitting(texts, room, font, strong, m_)});
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

Scene Layout::device(const Device& one, int width) const {
  const int named = parts_of(one);
  const int inner = width - 2 * m_.box_pad;
  const Rows rows = rows_of(std::max(1, named), m_.unit_w, m_.core_gap, inner);
  const int unit_w = (inner - (rows.per_row - 1) * m_.core_gap) / rows.per_row;
  const int unit_h = m_.unit_h + (named > 0 ? m_.unit_name_h : 0);
  constexpr int kLines = 3;
  const int lines = terminal() ? (named > 0 ? 1 : 0) : kLines;
  const int head = lines * m_.line_h + m_.box_pad_y;
  const int h = head + rows.rows * (unit_h + m_.unit_gap) - m_.unit_gap + m_.box_pad_y;
  Box box{What::device, 0, 0, width, h, one.index, device_words(one)};
  device_lines(one, box);
  std::vector<Scene> units;
  for (int part = 0; part < std::max(1, named); ++part)
    units.push_back(unit(one, named == 0 ? -1 : part, unit_w, unit_h));
  Scene all{width, h, {box}};
  all.add(m_.box_pad, head,
          in_rows(std::move(units), rows.per_row, unit_w + m_.core_gap, m_.unit_gap));
  return all;
}

Scene Layout::unit(const Device& one, int part, int width, int height) const {
  const std::string name = (part < 0 ? "device " : "") + unit_name(one.index, part);
  Box box{What::unit, 0, 0, width, height, part, name};
  for (const Use& use : subject_.uses) {
    if (use.place != one.index || (use.part >= 0 && part >= 0 && use.part != part)) continue;
    box.look.ranks.insert(use.rank);
    if (use.far.empty()) continue;
    box.look.far.insert(use.rank);
    if (use.part >= 0 || part <= 0) box.far_uses.push_back(&use);  // of a whole: at the first part
  }
  box.look.paint = box.look.of_ranks();
  if (part >= 0) box.tip = fmt::format("part {} of device {}", part, one.index);
  if (part >= 0 && static_cast<std::size_t>(part) < one.instances.size())
    box.tip += ", " + printable(one.instances[static_cast<std::size_t>(part)]);
  std::vector<std::string> texts = {subject_.ranks == nullptr ? "" : "-"};
  if (!box.look.ranks.empty()) {
    texts = labels(box.look);
    box.tip += ": " + ranks_tip(box.look);
  }
  const auto text = [&](int y, const std::string& what, bool strong) {
    if (!what.empty())
      box.texts.push_back(
          {terminal() ? 0 : width / 2, y, m_.small, !terminal(), strong, false, what});
  };
  if (terminal()) {
    std::vector<std::string> all;
    const std::string model = printable(one.model.empty() ? one.vendor : one.model);
    const std::string memory = one.memory_bytes > 0 ? human_bytes(one.memory_bytes) + ", " : "";
    for (const std::string& ranks : texts) {
      const std::string own = ranks.empty() ? name : fmt::format("{}: {}", name, ranks);
      if (part < 0) all.push_back(fmt::format("{}, {}{}", own, memory, model));
      all.push_back(own);
    }
    text(0, fitting(all, width, m_.small, true, m_), true);
  } else {
    if (part >= 0) text(m_.line_base, name, false);
    text(height - m_.unit_base, fitting(texts, width - 2, m_.small, true, m_), true);
  }
  return {width, height, {box}};
}

Scene Layout::nic(int at, int width) const {
  const int lines = terminal() ? 1 : 1 + (nic_states_ ? 1 : 0) + (subject_.nics.empty() ? 0 : 1);
  const Nic& one = node_.nics[static_cast<std::size_t>(at)];
  Box box{What::nic, 0, 0, width, lines * m_.line_h + m_.box_pad_y, at, nic_words(one)};
  const std::string name = printable(one.name.empty() ? one.fabric : one.name);
  std::string state = one.speed_mbps > 0 ? speed_text(one.speed_mbps) : printable(one.kind);
  if (one.state == "down") state = state.empty() ? "DOWN" : "DOWN, " + state;
  box.look.ranks = ranks_where(subject_.nics, [&](const Use& use) { return use.place == at; });
  box.look.far = ranks_where(subject_.nics,
                             [&](const Use& use) { return use.place == at && !use.far.empty(); });
  const std::vector<std::string> ranks = labels(box.look);
  if (!box.look.ranks.empty()) box.tip += "; nearest to ranks " + number_set(box.look.ranks);
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
  } else {
    int y = m_.line_base;
    write(box, y, {nic_name(one), name}, m_.small, true);
    if (!state.empty()) write(box, y += m_.line_h, {state}, m_.small, false, one.state == "down");
    if (!box.look.ranks.empty()) write(box, y + m_.line_h, ranks, m_.small, true, box.far());
  }
  return {box.w, box.h, {box}};
}

Scene Layout::memory(const std::vector<int>& list) const {
  const auto numa = [&](int at) -> const NumaNode& {
    return node_.numa_nodes[static_cast<std::size_t>(at)];
  };
  int w = 0;
  for (const int at : list)
    w = std::max(w, m_.measure(numa_text(numa(at)), m_.small, false) + 2 * m_.box_pad);
  return shelf(list, w, w, m_.width, [&](int at, int) -> Scene {
    const std::string text = numa_text(numa(at));
    const int h = m_.line_h + m_.box_pad_y;
    Box box{What::memory, 0, 0, w, h, numa(at).os_index, text + ", memory without CPUs"};
    write(box, m_.line_base, {text}, m_.small, false);
    return {w, h, {box}};
  });
}

}  // namespace hpclaunch::render
