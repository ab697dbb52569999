// Plain tables and paragraphs.
#include <algorithm>

#include "hpclaunch/render.h"
#include "text.h"

namespace hpclaunch {

namespace {

constexpr int kGap = 2;
constexpr int kNarrowest = 10;

// As wide as the widest cell; then the widest columns give way until the line fits.
std::vector<int> widths_of(const std::vector<std::vector<std::string>>& rows, int room) {
  std::vector<int> widths(rows.front().size(), 0);
  for (const std::vector<std::string>& row : rows)
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], render::columns(render::printable(row[i])));
  room -= kGap * static_cast<int>(widths.size() - 1);
  int sum = 0;
  for (const int width : widths) sum += width;
  while (sum > room) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kNarrowest) break;
    --*widest;
    --sum;
  }
  return widths;
}

std::string without_end_blanks(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
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
      cells.push_back(render::wrap(render::printable(rows[r][i]), widths[i], ' '));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t h = 0; h < height; ++h) {
      std::string line;
      for (std::size_t i = 0; i < widths.size(); ++i) {
        const std::string piece = h < cells[i].size() ? cells[i][h] : "";
        line += (i == 0 ? "" : std::string(kGap, ' ')) + render::pad_right(piece, widths[i]);
      }
      line = without_end_blanks(std::move(line));
      text += (r == 0 ? render::tinted(line, render::Tone::strong, style) : line) + "\n";
    }
  }
  return text;
}

std::string paragraph(std::string_view lead, std::string_view text, const Style& style) {
  const int indent = render::columns(lead);
  const std::vector<std::string> lines =
      render::wrap(render::printable(text), std::max(style.width - indent, kNarrowest), ' ');
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += (i == 0 ? std::string(lead) : std::string(static_cast<std::size_t>(indent), ' ')) +
           lines[i] + "\n";
  return out;
}

}  // namespace hpclaunch
