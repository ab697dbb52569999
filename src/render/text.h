#pragma once
// Text for people: what is safe to print, how wide it is, how it is cut and wrapped.
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/render.h"
#include "hpclaunch/secret.h"

namespace hpclaunch::render {

/// Bytes of the UTF-8 character that `text` begins with, 1..4; 0 when it begins with none (also for
/// overlong forms, surrogates and what lies above U+10FFFF, which no strict reader accepts).
std::size_t utf8_unit(std::string_view text);

bool is_utf8(std::string_view text);

/// Takes the first character off `text`, which is not empty: one byte where that is not UTF-8.
std::string_view take_unit(std::string_view& text);

/// Columns on a terminal of a text that `printable` has seen: 2 for East Asian wide characters and
/// pictographs, 0 for combining marks, 1 for others.
int columns(std::string_view text);

/// Blanks after (or before) the text up to `width` columns.
std::string pad_right(std::string_view text, int width);
std::string pad_left(std::string_view text, int width);

inline std::string_view dots(const Style& style) { return style.unicode ? "…" : "..."; }

/// At most `width` columns; what is cut is announced with its size: "abc...(+52 bytes)".
std::string shorten(std::string_view text, int width, const Style& style);

/// Lines of at most `width` columns, broken after `separator` (kept at the line's end unless it is
/// a blank); a piece that is wider than a line gets a line. Never empty.
std::vector<std::string> wrap(std::string_view text, int width, char separator);

/// The width of a text.
using Measure = std::function<int(std::string_view)>;

/// A blank at which `flow` breaks no line.
inline constexpr char kGlue = '\x1f';

/// Bytes of the longest prefix of at most `width`; with `some`, of at least one character.
std::size_t prefix_bytes(std::string_view text, int width, const Measure& measure = columns,
                         bool some = true);

/// Lines of at most `width`, broken at blanks, else after commas, else anywhere. Never empty.
std::vector<std::string> flow(std::string_view text, int width, const Measure& measure = columns);

/// Lines below each other: the first one behind `lead`, the others behind `indent` blanks.
std::string hanging(std::string_view lead, const std::vector<std::string>& lines, int indent);

/// "file:12:3", "file /json/pointer", "<command line>"; "" when nothing is known.
std::string where_text(const SourceRef& where);

enum class Tone { strong, faint };

/// `text` between the escape sequences of a tone; unchanged when the style has no colour.
std::string tinted(std::string_view text, Tone tone, const Style& style);
std::vector<std::string> tinted(std::vector<std::string> lines, Tone tone, const Style& style);

/// Words of a command line that are read together: a launcher, each option with its value, a program.
std::vector<std::vector<std::string>> argument_groups(const std::vector<std::string>& argv);

/// The word for sh; one that ends with "<hidden>" is no word to type, and stays as it is.
std::string shown_word(const std::string& word);

/// Each shown_word, with blanks between them.
std::string quoted_words(const std::vector<std::string>& words);

/// value_text, or "<hidden>".
std::string shown_value(std::string_view name, const Decision& decision);

}  // namespace hpclaunch::render
