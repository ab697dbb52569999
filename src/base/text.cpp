#include "hpclaunch/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace hpclaunch {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::uint32_t fnv1a(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::optional<long> parse_natural(std::string_view text, long max) {
  if (text.empty()) return std::nullopt;
  long value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const long digit = c - '0';
    if (digit > max || value > (max - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The length of a number without zeros in front, the number, and what follows it: parts of versions compare as these.
// A part without a number follows those with one.
using Part = std::tuple<std::size_t, std::string_view, std::string_view>;

Part part_of(std::string_view text) {
  if (!text.empty() && !is_digit(text[0])) return {std::string_view::npos, "", text};
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
  const std::string_view number = text.substr(0, text.find_first_not_of("0123456789"));
  return {number.size(), number, text.substr(number.size())};
}

// Modules call a version "v2.2.0" as well as "2.2.0".
std::vector<Part> parts_of(std::string_view version) {
  if (version.starts_with('v') || version.starts_with('V')) version.remove_prefix(1);
  if (version.empty() || !is_digit(version[0])) return {};
  std::vector<Part> parts;
  for (const std::string_view part : split(version, '.')) parts.push_back(part_of(part));
  while (parts.size() > 1 && parts.back() == Part()) parts.pop_back();
  return parts;
}

}  // namespace

std::optional<int> compare_versions(std::string_view left, std::string_view right) {
  const std::vector<Part> one = parts_of(left);
  const std::vector<Part> other = parts_of(right);
  if (one.empty() || other.empty()) return std::nullopt;
  if (one == other) return 0;
  return one < other ? -1 : 1;
}

std::string shown(std::string_view text, std::size_t most) {
  std::string out(text.substr(0, most));
  if (text.size() > most) out += "...";
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

bool consists_of(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    const char lower = to_lower(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  });
}

bool is_identifier(std::string_view name) {
  return !name.empty() && (name.front() < '0' || name.front() > '9') && consists_of(name, "_");
}

namespace {

// Optimal string alignment: insert, delete, replace, swap of two neighbours cost 1 each. From `limit` on it is not
// counted to the end: `limit` is the answer.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= limit) return limit;
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  std::size_t least = 0;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last = row;
    row[0] = i;
    const std::size_t least_before = least;
    least = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = to_lower(a[i - 1]) == to_lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && to_lower(a[i - 1]) == to_lower(b[j - 2]) &&
                           to_lower(a[i - 2]) == to_lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (least >= limit && least_before + 1 >= limit) return limit;  // a swap reaches back two rows
  }
  return row[b.size()];
}

}  // namespace

namespace {

std::optional<std::string> nearest_of(std::string_view word, const auto& candidates) {
  const std::size_t limit = std::clamp<std::size_t>(word.size() / 3, 1, 3);
  std::optional<std::string> best;
  std::size_t best_distance = limit + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate, best_distance);
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  return nearest_of(word, candidates);
}

std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string_view> candidates) {
  return nearest_of(word, candidates);
}

std::string counted(long count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string ranges(const std::vector<int>& numbers, int most) {
  std::string text;
  int pieces = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < numbers.size() && numbers[i + 1] == numbers[i] + 1) ++i;
    if (++pieces > most) return fmt::format("{},... ({} in all)", text, numbers.size());
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    if (i > first) text += fmt::format("-{}", numbers[i]);
  }
  return text;
}

std::string counts(std::initializer_list<std::pair<std::size_t, std::string_view>> items) {
  std::string text;
  for (const auto& [count, noun] : items)
    if (count > 0) text += (text.empty() ? "" : ", ") + counted(static_cast<long>(count), noun);
  return text;
}

std::string replaced(std::string_view text,
                     std::initializer_list<std::pair<char, std::string_view>> table) {
  std::string out;
  for (const char c : text) {
    const auto* row =
        std::find_if(table.begin(), table.end(), [&](const auto& one) { return one.first == c; });
    out += row == table.end() ? std::string_view(&c, 1) : row->second;
  }
  return out;
}

std::string place_text(const std::optional<SourceRef>& where) {
  if (!where) return "";
  std::string text = where->file;
  if (where->line > 0) text += fmt::format(":{}", where->line);
  if (where->line > 0 && where->column > 0) text += fmt::format(":{}", where->column);
  return text;
}

std::string with_separators(long number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string human_bytes(unsigned long long bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  std::string number = fmt::format("{:.1f}", value);
  if (number == "1024.0" && unit + 1 < std::size(kUnits)) {
    number = "1.0";
    ++unit;
  }
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}", number, kUnits[unit]);
}

}  // namespace hpclaunch
