#include "render/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "render/text.h"

namespace hpclaunch::render {

void Scene::add(int dx, int dy, Scene part) {
  const auto shift = [&](auto& one) {
    one.x += dx;
    one.y += dy;
  };
  w = std::max(w, dx + part.w);
  h = std::max(h, dy + part.h);
  for (Box& box : part.boxes) {
    shift(box);
    std::ranges::for_each(box.texts, shift);
    boxes.push_back(std::move(box));
  }
  for (Text& text : part.texts) {
    shift(text);
    texts.push_back(std::move(text));
  }
  for (const Lead& one : part.leads)
    leads.push_back({one.x1 + dx, one.y1 + dy, one.x2 + dx, one.y2 + dy, one.tip});
}

void Scene::below(Scene part, int gap) {
  if (part.h > 0) add(0, h == 0 ? 0 : h + gap, std::move(part));
}

Scene in_rows(std::vector<Scene> parts, int columns, int step, int gap) {
  Scene all;
  int column = 0;
  int y = 0;
  for (Scene& part : parts) {
    if (column == columns) {
      column = 0;
      y = all.h + gap;
    }
    all.add(step * column++, y, std::move(part));
  }
  return all;
}

Rows rows_of(int count, int each, int gap, int width) {
  const int most = std::clamp((width + gap) / (each + gap), 1, count);
  const int rows = (count + most - 1) / most;
  return {(count + rows - 1) / rows, rows};
}

Layout::Layout(const Subject& subject, const Metrics& metrics)
    : subject_(subject), node_(*subject.node), m_(metrics), regions_(regions_of(*subject.node)) {
  constexpr int kOne = 2, kTwo = 8, kMost = 32;
  int pus = 1;
  for (const Core& core : node_.cores) pus = std::max(pus, core.pus.count());
  if (pus > kOne) pu_columns_ = 2;
  while (pus > kTwo && pu_columns_ * pu_columns_ < pus && pu_columns_ < kMost) ++pu_columns_;
  core_w_ = terminal() ? m_.core_w : pu_columns_ * m_.pu_w + 2;
  if (!terminal()) core_h_ = (pus + pu_columns_ - 1) / pu_columns_ * m_.pu_h + 2;
  for (const Core& core : node_.cores)
    cores_.push_back(this->core(core, static_cast<int>(cores_.size())));
  for (const Nic& nic : node_.nics)
    nic_states_ = nic_states_ || nic.speed_mbps > 0 || !nic.kind.empty() || nic.state == "down";
}

Scene Layout::draw() {
  Scene all = machine();
  Scene scene{all.w, all.h, {{.what = What::node, .w = all.w, .h = all.h}}};
  scene.add(0, 0, std::move(all));
  lead(scene);
  return scene;
}

// ---- the names of regions --------------------------------------------------------------------------

/// "package 0", "NUMA node 0 503.5 GiB", "L3 105 MiB", and the package's model: each by itself, and then
/// as short as it goes without a number that is cut.
std::vector<std::vector<std::string>> Layout::names(const Region& one) const {
  std::vector<std::vector<std::string>> all;
  std::vector<std::vector<std::string>> models;
  for (const int at : one.packages) {
    const Package& package = node_.packages[static_cast<std::size_t>(at)];
    all.push_back({package_text(package)});
    if (!package.model.empty()) models.push_back({printable(package.model)});
  }
  for (const int at : one.numa_nodes) {
    const NumaNode& numa = node_.numa_nodes[static_cast<std::size_t>(at)];
    const std::string bare = fmt::format("NUMA {}", numa.os_index);
    all.push_back({numa_text(numa), with_size(bare, numa.memory_bytes), bare});
  }
  for (const int at : one.caches) {
    const Cache& cache = node_.caches[static_cast<std::size_t>(at)];
    all.push_back({cache_text(cache), fmt::format("L{}", cache.level)});
  }
  all.insert(all.end(), models.begin(), models.end());
  return all;
}

/// The names in lines of at most `width`; what is wider by itself is cut. The frame of a small cache goes
/// without a name rather than grow.
std::vector<std::string> Layout::head_lines(const Region& one, int width) const {
  const auto fits = [&](const std::string& text) {
    return m_.measure(text, m_.font, true) <= width;
  };
  std::vector<std::string> lines;
  const std::vector<std::vector<std::string>> all = names(one);
  if (!one.has_neighbours) {
    const auto name = std::ranges::find_if(all.front(), fits);
    if (name != all.front().end()) lines.push_back(*name);
    return lines;
  }
  for (const std::vector<std::string>& name : all) {
    const std::string longer = lines.empty() ? "" : lines.back() + ", " + name.front();
    if (!lines.empty() && fits(longer))
      lines.back() = longer;
    else
      lines.push_back(fitting(name, width, m_.font, true, m_));
  }
  return lines;
}

// ---- regions ---------------------------------------------------------------------------------------

/// The inner regions in as many columns as give the least height; rows that come out even are worth a
/// quarter of it.
Scene Layout::inner(const std::vector<int>& list, int width) {
  constexpr int kMostColumns = 16, kEven = 4, kUneven = 5;
  const int count = static_cast<int>(list.size());
  Scene best;
  long best_cost = 0;
  for (int columns = 1; columns <= std::min(count, kMostColumns); ++columns) {
    const int room = (width - (columns - 1) * m_.gap_x) / columns;
    std::vector<Scene> blocks;
    blocks.reserve(list.size());
    for (const int at : list) blocks.push_back(block(at, room));
    const int widest = std::ranges::max_element(blocks, {}, &Scene::w)->w;
    Scene scene = in_rows(std::move(blocks), columns, widest + m_.gap_x, m_.gap_y);
    const long cost = static_cast<long>(scene.h) * (count % columns == 0 ? kEven : kUneven);
    const bool better = scene.w <= width && (best.w > width || cost < best_cost);
    if (columns > 1 && !better) continue;
    best = std::move(scene);
    best_cost = cost;
  }
  return best;
}

/// Everything in a region, one below the other.
Scene Layout::contents(const Region& one, int width) {
  Scene all = cores(one.cores, width);
  all.below(inner(one.inner, width), m_.gap_y);
  all.below(things(one.devices, one.nics, width), m_.gap_y);
  return all;
}

/// A region in its frame.
const Scene& Layout::block(int at, int width) {
  const auto [known, fresh] = blocks_.try_emplace({at, width});
  Scene& out = known->second;
  if (!fresh) return out;
  const Region& one = regions_.all[static_cast<std::size_t>(at)];
  const int room = width - 2 * m_.pad_x;
  Scene within = contents(one, room);
  Box box{.what = What::group, .number = at};
  // The machine is as wide as its name; regions side by side are not widened.
  int name_w = one.has_neighbours ? m_.name_w : 0;
  for (const std::vector<std::string>& name : names(one)) {
    if (at == 0) name_w = std::max(name_w, m_.measure(name.front(), m_.font, true));
    box.tip += (box.tip.empty() ? "" : ", ") + name.front();
  }
  const int inner_w = std::max(within.w, std::min(room, name_w));
  const std::vector<std::string> lines = head_lines(one, inner_w);
  const int later = static_cast<int>(lines.size()) - 1;
  const int head = lines.empty() ? m_.pad_y : m_.head + later * m_.head_line;
  int y = m_.head_base;
  for (const std::string& line : lines) {
    box.texts.push_back({m_.pad_x, y, m_.font, false, box.texts.empty(), false, line});
    y += m_.head_line;
  }
  box.w = out.w = inner_w + 2 * m_.pad_x;
  box.h = out.h = head + within.h + m_.pad_y;
  out.boxes.push_back(std::move(box));
  out.add(m_.pad_x, head, std::move(within));
  return out;
}

/// A line of text over `things`, where there are any.
Scene Layout::titled(const char* title, Scene things) const {
  if (things.h == 0) return things;
  const std::string text = fitting({title}, m_.width, m_.small, true, m_);
  Scene all{m_.measure(text, m_.small, true), m_.line_h + m_.row_gap};
  all.texts.push_back({0, m_.line_base, m_.small, false, true, false, text});
  all.add(0, all.h, std::move(things));
  return all;
}

Scene Layout::machine() {
  const Region& root = regions_.all.front();
  Scene all;
  if (root.has_neighbours || !root.caches.empty()) {
    all = block(0, m_.width);
  } else {
    all = cores(root.cores, m_.width);
    all.below(inner(root.inner, m_.width), m_.gap_y);
    all.below(titled("equally near all CPUs", things(root.devices, root.nics, m_.width)), m_.gap_y);
  }
  all.below(titled("memory without CPUs", memory(regions_.memory)), m_.gap_y);
  all.below(titled("locality unknown",
                   things(regions_.unplaced_devices, regions_.unplaced_nics, m_.width)),
            m_.gap_y);
  return all;
}

/// From the edge of one box to that edge of the other which faces it.
void Layout::lead(Scene& scene) const {
  std::map<int, const Box*> bars;  // the first one of each rank
  for (const Box& box : scene.boxes)
    for (const int rank : box.look.ranks)
      if (box.what == What::bar) bars.try_emplace(rank, &box);
  for (const Box& unit : scene.boxes)
    for (const Use* use : unit.far_uses) {
      const auto start = bars.find(use->rank);
      if (start == bars.end()) continue;
      const Box& bar = *start->second;
      const bool down = bar.y < unit.y;
      scene.leads.push_back(
          {bar.x + bar.w / 2, down ? bar.y + bar.h : bar.y, unit.x + unit.w / 2,
           down ? unit.y : unit.y + unit.h,
           fmt::format("rank {} is far from device {}: {}", use->rank, use->place, use->far)});
    }
}

// ---- texts -----------------------------------------------------------------------------------------

std::string fitting(const std::vector<std::string>& texts, int room, int size, bool strong,
                    const Metrics& metrics) {
  for (const std::string& text : texts)
    if (metrics.measure(text, size, strong) <= room) return text;
  const auto dotted = [&](std::string_view text) {
    return fmt::format("{}{}", text, metrics.dots);
  };
  const auto width = [&](std::string_view text) {
    return metrics.measure(dotted(text), size, strong);
  };
  const std::string kept = texts.back().substr(0, prefix_bytes(texts.back(), room, width, false));
  return width(kept) <= room ? dotted(kept) : "";
}

Scene lay_out(const Subject& subject, const Metrics& metrics) {
  return Layout(subject, metrics).draw();
}

}  // namespace hpclaunch::render
