#include "render/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "render/text.h"

namespace hpclaunch::render {

Rows rows_of(int count, int each, int gap, int width) {
  if (count == 0) return {};
  const int most = std::clamp((width + gap) / (each + gap), 1, count);
  const int rows = (count + most - 1) / most;
  return {(count + rows - 1) / rows, rows};
}

Layout::Layout(const Subject& subject, const Metrics& metrics)
    : subject_(subject), node_(*subject.node), m_(metrics), regions_(regions_of(*subject.node)) {
  looks_.reserve(node_.cores.size());
  for (const Core& core : node_.cores) {
    most_pus_ = std::max(most_pus_, core.pus.count());
    looks_.push_back(look_of(core.pus));
  }
  for (const Nic& nic : node_.nics)
    nic_states_ = nic_states_ || nic.speed_mbps > 0 || !nic.kind.empty() || nic.state == "down";
}

Scene Layout::draw() {
  Scene scene;
  const Size size = machine({});
  put({&scene}, What::node, size);
  scene.w = size.w;
  scene.h = size.h;
  machine({&scene, 0, 0, 0});
  lead(scene);
  return scene;
}

Box& Layout::put(const Pen& pen, What what, Size size) const {
  pen.scene->boxes.push_back(
      {.what = what, .parent = pen.box, .x = pen.x, .y = pen.y, .w = size.w, .h = size.h});
  return pen.scene->boxes.back();
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
  const auto wide = [&](const std::string& text) { return m_.measure(text, m_.font, true); };
  std::vector<std::string> lines;
  if (!one.has_neighbours) {
    const Cache& cache = node_.caches[static_cast<std::size_t>(one.caches.front())];
    for (const std::string& text : {cache_text(cache), fmt::format("L{}", cache.level)})
      if (lines.empty() && wide(text) <= width) lines.push_back(text);
    return lines;
  }
  for (const std::vector<std::string>& name : names(one)) {
    const std::string longer = lines.empty() ? "" : lines.back() + ", " + name.front();
    if (!lines.empty() && wide(longer) <= width)
      lines.back() = longer;
    else
      lines.push_back(fitting(name, width, m_.font, true, m_));
  }
  return lines;
}

// ---- regions ---------------------------------------------------------------------------------------

/// The inner regions in as many columns as give the least height; rows that come out even are worth a
/// quarter of it.
Size Layout::inner(const std::vector<int>& list, int width, const Pen& pen) {
  constexpr int kMostColumns = 16, kEven = 4, kUneven = 5;
  const int count = static_cast<int>(list.size());
  const auto room = [&](int columns) { return (width - (columns - 1) * m_.gap_x) / columns; };
  Size best;
  int best_columns = 0;
  long best_cost = 0;
  for (int columns = 1; columns <= std::min(count, kMostColumns); ++columns) {
    const Size size = columns_of(list, columns, room(columns), {});
    const long cost = static_cast<long>(size.h) * (count % columns == 0 ? kEven : kUneven);
    const bool fits = size.w <= width;
    if (best_columns == 0 || (fits && (best.w > width || cost < best_cost))) {
      best = size;
      best_columns = columns;
      best_cost = cost;
    }
  }
  if (pen.scene != nullptr) columns_of(list, best_columns, room(best_columns), pen);
  return best;
}

Size Layout::columns_of(const std::vector<int>& list, int columns, int room, const Pen& pen) {
  Size all;
  int column_w = 0;
  for (const int at : list) column_w = std::max(column_w, block(at, room, {}).w);
  for (std::size_t first = 0; first < list.size(); first += static_cast<std::size_t>(columns)) {
    const std::size_t end = std::min(list.size(), first + static_cast<std::size_t>(columns));
    int h = 0;
    for (std::size_t i = first; i < end; ++i) {
      const int x = static_cast<int>(i - first) * (column_w + m_.gap_x);
      const Size size = block(list[i], room, pen.at(x, all.h));
      h = std::max(h, size.h);
      all.w = std::max(all.w, x + size.w);
    }
    all.h += h + m_.gap_y;
  }
  all.h -= m_.gap_y;
  return all;
}

/// Everything in a region, one below the other.
Size Layout::contents(int at, int width, const Pen& pen) {
  const Region& one = regions_.all[static_cast<std::size_t>(at)];
  Size all;
  const auto stack = [&](Size size) {
    if (size.h == 0) return;
    all.w = std::max(all.w, size.w);
    all.h += size.h + m_.gap_y;
  };
  if (!one.cores.empty()) stack(cores(one.cores, width, pen.at(0, all.h)));
  if (!one.inner.empty()) stack(inner(one.inner, width, pen.at(0, all.h)));
  stack(devices(one.devices, width, pen.at(0, all.h)));
  stack(nics(one.nics, width, pen.at(0, all.h)));
  all.h = std::max(0, all.h - m_.gap_y);
  return all;
}

/// A region in its frame.
Size Layout::block(int at, int width, const Pen& pen) {
  if (pen.scene == nullptr) {
    const auto known = sizes_.find({at, width});
    if (known != sizes_.end()) return known->second;
  }
  const Region& one = regions_.all[static_cast<std::size_t>(at)];
  const int room = width - 2 * m_.pad_x;
  const Size within = contents(at, room, {});
  // The machine is as wide as its name; regions side by side are not widened.
  int name_w = one.has_neighbours ? m_.name_w : 0;
  for (const std::vector<std::string>& name : names(one))
    if (at == 0) name_w = std::max(name_w, m_.measure(name.front(), m_.font, true));
  const int inner_w = std::max(within.w, std::min(room, name_w));
  const std::vector<std::string> lines = head_lines(one, inner_w);
  const int head =
      lines.empty() ? m_.pad_y : m_.head + static_cast<int>(lines.size() - 1) * m_.head_line;
  const Size size{inner_w + 2 * m_.pad_x, head + within.h + m_.pad_y};
  if (pen.scene == nullptr) return sizes_[{at, width}] = size;
  const Pen inside = pen.inside().at(m_.pad_x, head);
  Box& box = put(pen, What::group, size);
  box.number = at;
  for (const std::vector<std::string>& name : names(one))
    box.tip += (box.tip.empty() ? "" : ", ") + name.front();
  int y = pen.y + m_.head_base;
  for (const std::string& line : lines) {
    const bool first = &line == &lines.front();
    box.texts.push_back({inside.x, y, m_.font, false, first, false, line, inner_w});
    y += m_.head_line;
  }
  contents(at, room, inside);
  return size;
}

/// A line of text over what follows it.
Size Layout::caption(const std::string& text, const Pen& pen) const {
  const std::string shown = fitting({text}, m_.width, m_.small, true, m_);
  const int w = m_.measure(shown, m_.small, true);
  if (pen.scene != nullptr)
    pen.scene->texts.push_back(
        {pen.x, pen.y + m_.line_base, m_.small, false, true, false, shown, w});
  return {w, m_.line_h + m_.row_gap};
}

Size Layout::machine(const Pen& pen) {
  Size all;
  const auto stack = [&](Size size, int gap) {
    if (size.h == 0) return;
    all.w = std::max(all.w, size.w);
    all.h += size.h + gap;
  };
  const auto things = [&](const char* title, const std::vector<int>& devices_here,
                          const std::vector<int>& nics_here) {
    if (!devices_here.empty() || !nics_here.empty()) stack(caption(title, pen.at(0, all.h)), 0);
    stack(devices(devices_here, m_.width, pen.at(0, all.h)), m_.gap_y);
    stack(nics(nics_here, m_.width, pen.at(0, all.h)), m_.gap_y);
  };
  const Region& root = regions_.all.front();
  if (root.has_neighbours || !root.caches.empty()) {
    stack(block(0, m_.width, pen), m_.gap_y);
  } else {
    if (!root.cores.empty()) stack(cores(root.cores, m_.width, pen), m_.gap_y);
    if (!root.inner.empty()) stack(inner(root.inner, m_.width, pen.at(0, all.h)), m_.gap_y);
    things("equally near all CPUs", root.devices, root.nics);
  }
  if (!regions_.memory.empty()) stack(caption("memory without CPUs", pen.at(0, all.h)), 0);
  stack(memory(regions_.memory, m_.width, pen.at(0, all.h)), m_.gap_y);
  things("locality unknown", regions_.unplaced_devices, regions_.unplaced_nics);
  all.h -= m_.gap_y;
  return all;
}

/// From the edge of one box to that edge of the other which faces it.
void Layout::lead(Scene& scene) const {
  for (const End& end : ends_) {
    const auto start = starts_.find(end.use->rank);
    if (start == starts_.end()) continue;
    const Box& bar = scene.boxes[static_cast<std::size_t>(start->second)];
    const Box& unit = scene.boxes[static_cast<std::size_t>(end.box)];
    const bool down = bar.y < unit.y;
    scene.leads.push_back({bar.x + bar.w / 2, down ? bar.y + bar.h : bar.y, unit.x + unit.w / 2,
                           down ? unit.y : unit.y + unit.h,
                           fmt::format("rank {} is far from device {}: {}", end.use->rank,
                                       end.use->place, end.use->far)});
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
