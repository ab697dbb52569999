// Cores, their PUs, and the bars over them.
#include <fmt/format.h>

#include <algorithm>

#include "render/layout.h"

namespace hpclaunch::render {

Look Layout::look_of(const CpuSet& pus) const {
  Look look;
  const std::size_t ranks = subject_.ranks == nullptr ? 0 : subject_.ranks->ranks.size();
  for (std::size_t r = 0; r < ranks; ++r)
    if (subject_.ranks->ranks[r].cpus.intersects(pus)) look.ranks.insert(static_cast<int>(r));
  for (const PictureMarks::Service& service : subject_.marks.services)
    if (service.pus.intersects(pus))
      look.service += (look.service.empty() ? "" : ", ") + printable(service.name);
  look.far = ranks_where(subject_.uses, [&](const Use& use) {
    return !use.far.empty() && look.ranks.contains(use.rank);
  });
  if (!look.ranks.empty())
    look.paint = look.of_ranks();
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
  std::vector<std::string> plain = {rank_set(look.ranks), list};
  if (!look.service.empty()) plain.insert(plain.begin(), plain.front() + " + " + look.service);
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

/// The description of each rank, for as many as fit into a tooltip.
std::string Layout::ranks_tip(const Look& look) const {
  constexpr std::size_t kMost = 8;
  if (look.ranks.size() > kMost) return "ranks " + number_set(look.ranks);
  std::string tip;
  for (const int rank : look.ranks) tip += (tip.empty() ? "" : "; ") + rank_words(subject_, rank);
  return tip;
}

/// A PU in its core.
Scene Layout::cell(int pu) const {
  CpuSet one;
  one.add(pu);
  Box box{What::pu, 0, 0, m_.pu_w, m_.pu_h, pu, fmt::format("CPU {}", pu), look_of(one)};
  box.look.far.clear();  // the bar marks it
  if (!box.look.ranks.empty()) box.tip += ", " + rank_set(box.look.ranks);
  if (subject_.marks.reserved.has(pu)) box.tip += ", reserved for the system";
  if (!box.look.service.empty()) box.tip += ", service " + box.look.service;
  if (!node_.allowed.has(pu)) box.tip += ", not allowed";
  box.texts.push_back(
      {m_.pu_w / 2, m_.pu_h - 4, m_.small, true, false, false, fmt::format("{}", pu)});
  return {box.w, box.h, {box}};
}

/// A core. On a terminal one cell: its rank, or its first CPU without ranks.
Scene Layout::core(const Core& one, int at) const {
  Box box{What::core, 0, 0, core_w_, core_h_, at, "CPUs " + one.pus.to_list(), look_of(one.pus)};
  if (terminal()) {
    const std::vector<std::string> texts = labels(box.look);
    std::string text = texts.back();
    if (box.look.paint == Paint::plain)
      text = subject_.ranks == nullptr ? fmt::format("{}", one.pus.first()) : ".";
    else if (!box.look.ranks.empty())
      text = fitting(texts, core_w_, m_.small, true, m_);
    const int x = core_w_ - static_cast<int>(text.size());
    box.texts.push_back({x, 0, m_.small, false, true, false, text});
    return {core_w_, core_h_, {box}};
  }
  std::vector<Scene> cells;
  for (const int pu : one.pus.to_vector()) cells.push_back(cell(pu));
  Scene all{core_w_, core_h_, {box}};
  all.add(1, 1, in_rows(std::move(cells), pu_columns_, m_.pu_w, 0));
  return all;
}

Scene Layout::bar(const Look& look, int width) const {
  const std::vector<std::string> texts = labels(look);
  Box box{What::bar, 0, 0, width, m_.bar_h - 2, -1, texts.front(), look};
  if (!look.ranks.empty()) box.tip = ranks_tip(look);
  if (look.paint == Paint::service) box.tip = "service " + look.service;
  box.texts.push_back({width / 2, m_.bar_h - 6, m_.small, true, true, false,
                       fitting(texts, width - 2, m_.small, true, m_)});
  return {box.w, box.h, {box}};
}

Scene Layout::cores(const std::vector<int>& list, int width) const {
  Scene all;
  if (list.empty()) return all;
  const int count = static_cast<int>(list.size());
  const int step = core_w_ + m_.core_gap;
  const int per_row = rows_of(count, core_w_, m_.core_gap, width).per_row;
  const auto core = [&](int i) -> const Scene& {
    return cores_[static_cast<std::size_t>(list[static_cast<std::size_t>(i)])];
  };
  const auto look = [&](int i) -> const Look& { return core(i).boxes.front().look; };
  int y = 0;
  for (int first = 0; first < count; first += per_row) {
    const int end = std::min(count, first + per_row);
    int bar_h = 0;
    for (int i = first, next = first; m_.bar_h > 0 && i < end; i = next) {
      while (next < end && look(next) == look(i)) ++next;
      if (look(i).paint == Paint::plain) continue;
      bar_h = m_.bar_h;
      all.add((i - first) * step, y, bar(look(i), (next - i) * step - m_.core_gap));
    }
    for (int i = first; i < end; ++i) all.add((i - first) * step, y + bar_h, core(i));
    y = all.h + m_.row_gap;
  }
  return all;
}

}  // namespace hpclaunch::render
