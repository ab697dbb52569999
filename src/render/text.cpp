#include "text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "hpclaunch/text.h"

namespace hpclaunch::render {

namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// The code point of a well-formed unit.
unsigned long code_point(std::string_view unit) {
  if (unit.size() == 1) return byte_at(unit, 0);
  unsigned long code = byte_at(unit, 0) & (0xFFu >> (unit.size() + 1));
  for (std::size_t i = 1; i < unit.size(); ++i) code = code << 6 | (byte_at(unit, i) & 0x3F);
  return code;
}

struct Range {
  unsigned long first;
  unsigned long last;
};

template <std::size_t N>
bool in(const std::array<Range, N>& ranges, unsigned long code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& r) { return code >= r.first && code <= r.last; });
}

// Controls above ASCII, and characters that change the order or the place of what follows them.
constexpr std::array<Range, 6> kUnsafe = {{{0x80, 0x9F},
                                           {0x200E, 0x200F},
                                           {0x2028, 0x202E},
                                           {0x2066, 0x2069},
                                           {0xFEFF, 0xFEFF},
                                           {0xFFF9, 0xFFFB}}};
// Source: Unicode's EastAsianWidth.txt, the blocks that are wide as a whole.
constexpr std::array<Range, 8> kWide = {{{0x1100, 0x115F},
                                         {0x2E80, 0x303E},
                                         {0x3041, 0xA4CF},
                                         {0xAC00, 0xD7A3},
                                         {0xF900, 0xFAFF},
                                         {0xFF00, 0xFF60},
                                         {0x1F300, 0x1FAFF},
                                         {0x20000, 0x3FFFD}}};
constexpr std::array<Range, 5> kCombining = {
    {{0x300, 0x36F}, {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}}};

std::string byte_escape(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

int unit_columns(std::string_view unit) {
  if (unit.size() < 2) return 1;
  const unsigned long code = code_point(unit);
  return in(kCombining, code) ? 0 : in(kWide, code) ? 2 : 1;
}

std::string blanks(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), ' ');
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

bool is_shim(std::string_view word) { return word.substr(word.rfind('/') + 1) == "hpclaunch-shim"; }

std::string item_text(const std::string& item) { return item.empty() ? "''" : printable(item); }

std::string joined(const PerRank& value) {
  std::string text;
  for (std::size_t c = 0; c < value.items.size(); ++c) {
    if (c > 0) text += " | ";
    for (std::size_t r = 0; r < value.items[c].size(); ++r)
      text += (r > 0 ? " / " : "") + item_text(value.items[c][r]);
  }
  return text;
}

}  // namespace

std::size_t utf8_unit(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  const unsigned long code = code_point(text.substr(0, size));
  constexpr std::array<unsigned long, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[size] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return 0;
  return size;
}

bool is_utf8(std::string_view text) {
  while (utf8_unit(text) > 0) take_unit(text);
  return text.empty();
}

std::string_view take_unit(std::string_view& text) {
  const std::string_view unit = text.substr(0, std::max<std::size_t>(utf8_unit(text), 1));
  text.remove_prefix(unit.size());
  return unit;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view unit = take_unit(text);
    const unsigned lead = byte_at(unit, 0);
    const bool unsafe =
        unit.size() == 1 ? lead < 0x20 || lead >= 0x7F : in(kUnsafe, code_point(unit));
    if (lead == '\n')
      out += "\\n";
    else if (lead == '\t')
      out += "\\t";
    else if (lead == '\r')
      out += "\\r";
    else
      out += unsafe ? byte_escape(unit) : std::string(unit);
  }
  return out;
}

int columns(std::string_view text) {
  int width = 0;
  while (!text.empty()) width += unit_columns(take_unit(text));
  return width;
}

std::string pad_right(std::string_view text, int width) {
  return std::string(text) + blanks(width - columns(text));
}

std::string pad_left(std::string_view text, int width) {
  return blanks(width - columns(text)) + std::string(text);
}

std::string shorten(std::string_view text, int width, const Style& style) {
  if (columns(text) <= width) return std::string(text);
  // The note's own length depends on the number in it; one more round settles that.
  std::size_t kept = 0;
  std::string note;
  for (int round = 0; round < 2; ++round) {
    note = fmt::format("{}(+{} bytes)", dots(style), text.size() - kept);
    kept = prefix_bytes(text, width - columns(note), columns, false);
  }
  return fmt::format("{}{}(+{} bytes)", text.substr(0, kept), dots(style), text.size() - kept);
}

std::vector<std::string> fill(const std::vector<std::string>& pieces, int width,
                              std::string_view glue) {
  std::vector<std::string> lines = {""};
  for (const std::string& piece : pieces) {
    const bool first = lines.back().empty();
    if (!first && columns(lines.back()) + columns(glue) + columns(piece) > width)
      lines.push_back(piece);
    else
      lines.back() += (first ? "" : std::string(glue)) + piece;
  }
  return lines;
}

std::vector<std::string> wrap(std::string_view text, int width, char separator) {
  std::vector<std::string> pieces;
  for (const std::string_view piece : split(text, separator)) pieces.emplace_back(piece);
  const bool blank = separator == ' ';
  for (std::size_t i = 0; !blank && i + 1 < pieces.size(); ++i) pieces[i] += separator;
  return fill(pieces, width, blank ? " " : "");
}

std::size_t prefix_bytes(std::string_view text, int width, const Measure& measure, bool some) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t kept = text.size() - rest.size();
    take_unit(rest);
    if ((kept > 0 || !some) && measure(text.substr(0, text.size() - rest.size())) > width)
      return kept;
  }
  return text.size();
}

std::vector<std::string> flow(std::string_view text, int width, const Measure& measure) {
  std::vector<std::string> lines;
  while (measure(text) > width && prefix_bytes(text, width, measure) < text.size()) {
    const std::size_t room = prefix_bytes(text, width, measure);
    const std::size_t blank = text.substr(0, room + 1).find_last_of(' ');
    const std::size_t comma = text.substr(0, room).find_last_of(',');
    const bool at_blank = blank != std::string_view::npos && blank > 0;
    const bool at_comma = comma != std::string_view::npos && comma > 0;
    std::size_t end = room;
    if (at_blank && (blank > room / 3 || !at_comma))
      end = blank;
    else if (at_comma)
      end = comma + 1;
    lines.emplace_back(trim(text.substr(0, end)));
    text = text.substr(end);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  for (std::string& line : lines) std::replace(line.begin(), line.end(), kGlue, ' ');
  return lines;
}

std::string hanging(std::string_view lead, const std::vector<std::string>& lines, int indent) {
  std::string text(lead);
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i == 0 ? "" : blanks(indent)) + lines[i] + "\n";
  return text;
}

std::string where_text(const SourceRef& where) {
  std::string text = printable(place_text(where));
  if (where.line == 0 && !where.pointer.empty())
    text += (text.empty() ? "" : " ") + printable(where.pointer);
  return text;
}

std::string tinted(std::string_view text, Tone tone, const Style& style) {
  if (!style.color || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", tone == Tone::strong ? 1 : 2, text);
}

std::vector<std::string> tinted(std::vector<std::string> lines, Tone tone, const Style& style) {
  for (std::string& line : lines) line = tinted(line, tone, style);
  return lines;
}

std::vector<std::vector<std::string>> argument_groups(const std::vector<std::string>& argv) {
  std::vector<std::vector<std::string>> groups;
  bool takes_value = false;  // the word before may be an option that waits for its value
  bool after_value = false;  // ... and this group has its value already
  for (const std::string& word : argv) {
    const bool begins = groups.empty() || is_option(word) || is_shim(word) || after_value ||
                        is_shim(groups.back().back());
    if (begins) {
      groups.emplace_back();
      after_value = false;
    } else {
      after_value = takes_value;
    }
    takes_value = begins && is_option(word) && word != "--" && word.find('=') == std::string::npos;
    groups.back().push_back(word);
  }
  return groups;
}

std::string shown_word(const std::string& word) {
  const std::string before = word.substr(0, word.size() - std::min(word.size(), kHidden.size()));
  const bool plain = word.ends_with(kHidden) && (before.empty() || quote_sh(before) == before);
  return plain ? word : quote_sh(word);
}

std::string quoted_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shown_word(word);
  return line;
}

std::string shown_value(std::string_view name, const Decision& decision) {
  return is_hidden(name, decision) ? std::string(kHidden) : value_text(decision.value);
}

}  // namespace hpclaunch::render

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

std::string value_text(const Value& value) {
  if (std::holds_alternative<Unset>(value)) return "(unset)";
  if (const auto* text = std::get_if<std::string>(&value)) return item_text(*text);
  if (const auto* items = std::get_if<PerRank>(&value)) return joined(*items);
  return fmt::format("<{}>", to_string(std::get<RankFact>(value)));
}

}  // namespace hpclaunch
