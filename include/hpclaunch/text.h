#pragma once
// Small text functions that the standard library lacks. All pure.
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {

/// Pieces between separators; "a,,b" has three pieces, "" has one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Without blanks, tabs, carriage returns and newlines at both ends.
std::string_view trim(std::string_view text);

/// Decimal digits only, no sign, no blanks; nullopt for anything else or above `max`.
std::optional<long> parse_natural(std::string_view text, long max = 2'147'483'647L);

/// ASCII, whatever the locale.
constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string to_lower(std::string_view text);

/// Input as a message shows it: at most `most` bytes, "..." for the rest, '?' for other than printable ASCII.
std::string shown(std::string_view text, std::size_t most = 100);

/// [A-Za-z_][A-Za-z0-9_]*: what shells take for the name of a variable.
bool is_identifier(std::string_view name);

/// Nothing but letters and digits of ASCII and the characters of `more`; also of an empty text.
bool consists_of(std::string_view text, std::string_view more);

/// The candidate nearest to `word` in edit distance (insert, delete, replace, swap of neighbours,
/// letter case ignored), if it is near enough to be a misspelling: at most a third of the length of
/// `word`, at least 1 and at most 3. Ties go to the earlier candidate. nullopt if none is near.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);
std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string_view> candidates);

/// Versions part by part: "2025.3" < "2025.10", "1.2" == "1.2.0", "1.2" < "1.2rc", "v1" == "1". Below, equal to or above 0
/// as `left` is older, equal or newer; nullopt when one of them does not begin with a number.
std::optional<int> compare_versions(std::string_view left, std::string_view right);

/// FNV-1a of 32 bits: equal texts give equal numbers, different ones nearly always different ones.
std::uint32_t fnv1a(std::string_view text);

/// "1 rank", "2 ranks": `noun` takes an s unless `count` is 1.
std::string counted(long count, std::string_view noun);
template <std::unsigned_integral Count>
std::string counted(Count count, std::string_view noun) {
  return counted(static_cast<long>(count), noun);
}

/// "3", "0-3,8" of ascending numbers; of more than `most` pieces the first ones, then "... (99 in all)".
std::string ranges(const std::vector<int>& numbers, int most = 2'147'483'647);

/// "2 packages, 104 cores": the counts above zero.
std::string counts(std::initializer_list<std::pair<std::size_t, std::string_view>> items);

/// The texts of a list with `between` between them.
template <class List>
std::string joined(const List& list, std::string_view between) {
  std::string text;
  bool first = true;
  for (const auto& one : list) {
    text.append(std::exchange(first, false) ? "" : between).append(one);
  }
  return text;
}

/// `text` with its characters replaced as the table says.
std::string replaced(std::string_view text,
                     std::initializer_list<std::pair<char, std::string_view>> table);

/// "file:12:3", as far as it is known.
std::string place_text(const std::optional<SourceRef>& where);

/// "1,536"
std::string with_separators(long number);

/// A size in powers of two: "512 B", "32 KiB", "1.5 MiB", "503.5 GiB" (at most one decimal).
std::string human_bytes(unsigned long long bytes);

}  // namespace hpclaunch
