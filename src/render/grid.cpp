// Plain tables and paragraphs.
#include <algorithm>
#include <numeric>

#include "hpclaunch/render.h"
#include "text.h"

namespace hpclaunch {

using namespace render;

namespace {

constexpr int kGap = 2;
constexpr int kNarrowest = 10;

// As wide as the widest cell; then the widest columns give way until the line fits.
std::vector<int> widths_of(const std::vector<std::vector<std::string>>& rows, int room) {
  std::vector<int> widths(rows.front().size(), 0);
  for (const std::vector<std::string>& row : rows)
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], columns(printable(row[i])));
  room -= kGap * static_cast<int>(widths.size() - 1);
  for (int sum = std::accumulate(widths.begin(), widths.end(), 0); sum > room; --sum) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kNarrowest) break;
    --*widest;
  }
  return widths;
}

}  // namespace

std::string grid(const std::vector<std::vector<std::string>>& rows, const Style& style) {
  std::string text;
  if (rows.empty() || rows.front().empty()) return text;
  const std::vector<int> widths = widths_of(rows, style.width);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      cells.push_back(wrap(printable(rows[r][i]), widths[i], ' '));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t h = 0; h < height; ++h) {
      std::string line;
      for (std::size_t i = 0; i < widths.size(); ++i) {
        const std::string piece = h < cells[i].size() ? cells[i][h] : "";
        line += (i == 0 ? "" : std::string(kGap, ' ')) + pad_right(piece, widths[i]);
      }
      line.resize(line.find_last_not_of(' ') + 1);
      text += (r == 0 ? tinted(line, Tone::strong, style) : line) + "\n";
    }
  }
  return text;
}

std::string paragraph(std::string_view lead, std::string_view text, const Style& style) {
  const int indent = columns(lead);
  const int room = std::max(style.width - indent, kNarrowest);
  return hanging(lead, wrap(printable(text), room, ' '), indent);
}

}  // namespace hpclaunch
