// Words for sh, csh and fish.
//
// Sources: POSIX.1-2017, XCU 2.2 "Quoting"; tcsh(1), "Lexical structure"; fish-language(1), "Quotes" and
// "Escaping characters". That real shells agree is tested, byte by byte (tests/render/shells.py).
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"
#include "text.h"

namespace hpclaunch {

namespace {

/// Bytes that are ordinary in every shell anywhere in a word, except '=' and '~' in front.
bool is_plain(std::string_view text) {
  const auto ordinary = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./:=,+-@").find(c) != std::string_view::npos;
  };
  return !text.empty() && text[0] != '=' && std::all_of(text.begin(), text.end(), ordinary);
}

/// How a byte is written, and whether outside the quotes.
struct Piece {
  std::string text;
  bool outside = false;
};

/// A word of which some parts are in single quotes.
template <class Write>
std::string quoted_word(std::string_view value, Write write) {
  std::string text;
  bool quoted = false;
  for (const char c : value) {
    const Piece piece = write(c);
    if (quoted == piece.outside) text += '\'';
    quoted = !piece.outside;
    text += piece.text;
  }
  if (quoted) text += '\'';
  return text.empty() ? "''" : text;
}

}  // namespace

std::string quote_sh(std::string_view value) {
  if (is_plain(value)) return std::string(value);
  return "'" + replaced(value, {{'\'', "'\\''"}}) + "'";
}

// csh replaces '!' inside quotes too, and a newline in quotes needs a backslash. What a backslash
// means inside quotes depends on a variable of the user's (backslash_quote), so quotes have none
// but the one before a newline; that one is quoted apart, or a lead byte of a double-byte
// locale before it would swallow it.
std::string quote_csh(std::string_view value) {
  if (is_plain(value)) return std::string(value);
  return quoted_word(value, [](char c) -> Piece {
    if (c == '\n') return {"'\\\n'", true};
    if (c == '\'' || c == '!' || c == '\\') return {{'\\', c}, true};
    return {{c}, false};
  });
}

// Bytes above ASCII go by number: what fish reads as characters it writes again in the locale of
// the moment, and that may have changed on the line before.
std::string quote_fish(std::string_view value) {
  if (is_plain(value)) return std::string(value);
  return quoted_word(value, [](char c) -> Piece {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') return {"\\n", true};
    if (c == '\t') return {"\\t", true};
    if (byte < 0x20 || byte >= 0x7F)
      return {fmt::format("\\{}{:02x}", byte < 0x80 ? 'x' : 'X', byte), true};
    if (c == '\'' || c == '\\') return {{'\\', c}, false};
    return {{c}, false};
  });
}

}  // namespace hpclaunch
