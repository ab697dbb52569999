// Cores, their PUs, and the bars over them.
#include <fmt/format.h>

#include <algorithm>

#include "render/layout.h"
#include "render/text.h"

namespace hpclaunch::render {

int Layout::pu_columns() const {
  constexpr int kOne = 2, kTwo = 8, kMost = 32;
  if (most_pus_ <= kOne) return 1;
  if (most_pus_ <= kTwo) return 2;
  int columns = 3;
  while (columns * columns < most_pus_ && columns < kMost) ++columns;
  return columns;
}

Size Layout::core_size() const {
  if (terminal()) return {m_.core_w, 1};
  const int columns = pu_columns();
  return {columns * m_.pu_w + 2, (most_pus_ + columns - 1) / columns * m_.pu_h + 2};
}

Look Layout::look_of(const CpuSet& pus) const {
  Look look;
  for (const int pu : pus.to_vector()) {
    const std::vector<int>& owners = subject_.owners[static_cast<std::size_t>(pu)];
    look.ranks.insert(look.ranks.end(), owners.begin(), owners.end());
  }
  std::sort(look.ranks.begin(), look.ranks.end());
  look.ranks.erase(std::unique(look.ranks.begin(), look.ranks.end()), look.ranks.end());
  for (const PictureMarks::Service& service : subject_.marks.services)
    if (service.pus.intersects(pus))
      look.service += (look.service.empty() ? "" : ", ") + printable(service.name);
  look.far = users_of(subject_.uses, [&](const Use& use) {
               return std::binary_search(look.ranks.begin(), look.ranks.end(), use.rank);
             }).far;
  if (look.ranks.size() == 1)
    look.paint = Paint::rank;
  else if (!look.ranks.empty())
    look.paint = Paint::shared;
  else if (subject_.marks.reserved.contains(pus))
    look.paint = Paint::reserved;
  else if (!node_.allowed.intersects(pus))
    look.paint = Paint::closed;
  else if (!look.service.empty())
    look.paint = Paint::service;
  return look;
}

/// Labels of a bar or a core, the longest first.
std::vector<std::string> Layout::labels(const Look& look) const {
  if (look.paint == Paint::closed) return {"not allowed", "off", "x"};
  if (look.paint == Paint::reserved) return {"system", "sys", "s"};
  if (look.paint == Paint::service) return {look.service, "svc", "v"};
  if (look.ranks.empty()) return {""};
  const std::string list = number_set(look.ranks);
  const std::string named = rank_set(look.ranks);
  const std::vector<std::string> plain =
      look.service.empty() ? std::vector<std::string>{named, list}
                           : std::vector<std::string>{named + " + " + look.service, named, list};
  std::vector<std::string> all;
  if (!look.far.empty()) {
    const std::string mark = look.far == look.ranks ? " FAR" : ", FAR: " + number_set(look.far);
    for (const std::string& text : plain) all.push_back(text + mark);
    all.push_back(list + "!");
  }
  all.insert(all.end(), plain.begin(), plain.end());
  if (look.ranks.size() > 1) all.push_back(fmt::format("{}*", look.ranks.size()));
  all.emplace_back("*");
  return all;
}

std::string Layout::pu_words(int pu, const Look& look) const {
  std::string text = fmt::format("CPU {}", pu);
  if (!look.ranks.empty()) text += ", " + rank_set(look.ranks);
  if (subject_.marks.reserved.has(pu)) text += ", reserved for the system";
  if (!look.service.empty()) text += ", service " + look.service;
  if (!node_.allowed.has(pu)) text += ", not allowed";
  return text;
}

/// The description of each rank, for as many as fit into a tooltip.
std::string Layout::ranks_tip(const Look& look) const {
  constexpr std::size_t kMost = 8;
  if (look.ranks.size() > kMost) return "ranks " + number_set(look.ranks);
  std::string tip;
  for (const int rank : look.ranks) tip += (tip.empty() ? "" : "; ") + rank_words(subject_, rank);
  return tip;
}

/// The one cell of a core on a terminal: its rank, or its first CPU without ranks.
std::string Layout::core_text(int at) const {
  const Look& look = looks_[static_cast<std::size_t>(at)];
  const CpuSet& pus = node_.cores[static_cast<std::size_t>(at)].pus;
  if (look.paint == Paint::plain)
    return subject_.ranks == nullptr ? fmt::format("{}", pus.first()) : ".";
  const std::vector<std::string> texts = labels(look);
  return look.ranks.empty() ? texts.back() : fitting(texts, m_.core_w, m_.small, true, m_);
}

void Layout::draw_core(const Pen& pen, int at) {
  const Size size = core_size();
  const Look& look = looks_[static_cast<std::size_t>(at)];
  const CpuSet& pus = node_.cores[static_cast<std::size_t>(at)].pus;
  const Pen inside = pen.inside();
  Box& box = put(pen, What::core, size);
  box.number = at;
  box.tip = "CPUs " + pus.to_list();
  if (terminal()) {
    box.paint = look.paint;
    box.tone = look.tone();
    box.far = !look.far.empty();
    const std::string text = core_text(at);
    box.texts.push_back({pen.x + size.w - static_cast<int>(text.size()), pen.y, m_.small, false,
                         true, false, text, size.w});
    return;
  }
  const int columns = pu_columns();
  int i = 0;
  for (const int pu : pus.to_vector()) {
    CpuSet one;
    one.add(pu);
    const Look own = look_of(one);
    Box& cell = put(inside.at(1 + i % columns * m_.pu_w, 1 + i / columns * m_.pu_h), What::pu,
                    {m_.pu_w, m_.pu_h});
    cell.paint = own.paint;
    cell.tone = own.tone();
    cell.number = pu;
    cell.tip = pu_words(pu, own);
    cell.texts.push_back({cell.x + m_.pu_w / 2, cell.y + m_.pu_h - 4, m_.small, true, false, false,
                          fmt::format("{}", pu), m_.pu_w});
    ++i;
  }
}

void Layout::draw_bar(const Pen& pen, const Look& look, int width) {
  if (look.paint == Paint::plain) return;
  const std::vector<std::string> texts = labels(look);
  Box& bar = put(pen, What::bar, {width, m_.bar_h - 2});
  bar.paint = look.paint;
  bar.tone = look.tone();
  bar.far = !look.far.empty();
  for (const int rank : look.ranks)
    starts_.try_emplace(rank, static_cast<int>(pen.scene->boxes.size()) - 1);
  bar.tip = look.ranks.empty() ? texts.front() : ranks_tip(look);
  if (look.paint == Paint::service) bar.tip = "service " + look.service;
  bar.texts.push_back({bar.x + width / 2, bar.y + m_.bar_h - 6, m_.small, true, true, false,
                       fitting(texts, width - 2, m_.small, true, m_), width});
}

Size Layout::cores(const std::vector<int>& list, int width, const Pen& pen) {
  const Size each = core_size();
  const int count = static_cast<int>(list.size());
  const Rows rows = rows_of(count, each.w, m_.core_gap, width);
  const int step = each.w + m_.core_gap;
  const auto core = [&](int i) { return list[static_cast<std::size_t>(i)]; };
  const auto look = [&](int i) -> const Look& { return looks_[static_cast<std::size_t>(core(i))]; };
  int y = 0;
  for (int first = 0; first < count; first += rows.per_row) {
    const int end = std::min(count, first + rows.per_row);
    int bar_h = 0;
    for (int i = first; i < end; ++i)
      if (look(i).paint != Paint::plain) bar_h = m_.bar_h;
    for (int i = first; pen.scene != nullptr && bar_h > 0 && i < end;) {
      int next = i + 1;
      while (next < end && look(next) == look(i)) ++next;
      draw_bar(pen.at((i - first) * step, y), look(i), (next - i) * step - m_.core_gap);
      i = next;
    }
    y += bar_h;
    for (int i = first; pen.scene != nullptr && i < end; ++i)
      draw_core(pen.at((i - first) * step, y), core(i));
    y += each.h + m_.row_gap;
  }
  return {rows.per_row * step - m_.core_gap, y - m_.row_gap};
}

}  // namespace hpclaunch::render
