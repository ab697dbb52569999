// Words and assignments for sh, csh and fish.
//
// Sources: POSIX.1-2017, XCU 2.2 "Quoting"; tcsh(1), "Lexical structure"; fish-language(1), "Quotes" and
// "Escaping characters". That real shells agree is tested, byte by byte (tests/render/shells.py).
#include "shell.h"

#include <fmt/format.h>

#include <algorithm>

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

/// A word of which some parts are in single quotes.
struct Quoted {
  std::string text;
  bool quoted = false;

  void quote(bool want) {
    if (quoted != want) text += '\'';
    quoted = want;
  }
  std::string word() {
    quote(false);
    return text.empty() ? "''" : text;
  }
};

bool has_empty_element(std::string_view list) {
  return list.empty() || list.front() == ':' || list.back() == ':' ||
         list.find("::") != std::string_view::npos;
}

}  // namespace

std::string quote_sh(std::string_view value) {
  if (is_plain(value)) return std::string(value);
  std::string out = "'";
  for (const char c : value) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

// csh replaces '!' inside quotes too, and a newline in quotes needs a backslash. What a backslash
// means inside quotes depends on a variable of the user's (backslash_quote), so quotes have none
// but the one before a newline; that one has quotes of its own, or a lead byte of a double-byte
// locale before it would swallow it.
std::string quote_csh(std::string_view value) {
  if (is_plain(value)) return std::string(value);
  Quoted out;
  for (const char c : value) {
    const bool apart = c == '\'' || c == '!' || c == '\\' || c == '\n';
    out.quote(!apart);
    if (c == '\n')
      out.text += "'\\\n'";
    else if (apart)
      out.text += {'\\', c};
    else
      out.text += c;
  }
  return out.word();
}

// Bytes above ASCII go by number: what fish reads as characters it writes again in the locale of
// the moment, and that may have changed on the line before.
std::string quote_fish(std::string_view value) {
  if (is_plain(value)) return std::string(value);
  Quoted out;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    const bool apart = byte < 0x20 || byte >= 0x7F;
    out.quote(!apart);
    if (c == '\n')
      out.text += "\\n";
    else if (c == '\t')
      out.text += "\\t";
    else if (apart)
      out.text += fmt::format("\\{}{:02x}", byte < 0x80 ? 'x' : 'X', byte);
    else if (c == '\'' || c == '\\')
      out.text += {'\\', c};
    else
      out.text += c;
  }
  return out.word();
}

namespace render {

std::string comment_text(std::string_view comment) {
  std::string line(comment);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  std::string out = printable(line);
  // A last backslash would join the next line to the comment in some readers.
  while (!out.empty() && (out.back() == '\\' || out.back() == ' ')) out.pop_back();
  return out;
}

std::string sh_line(const EnvChange& change) {
  if (!change.value) return fmt::format("unset {}\n", change.name);
  return fmt::format("export {}={}\n", change.name,
                     change.shell.empty() ? quote_sh(*change.value) : change.shell);
}

std::string csh_line(const EnvChange& change) {
  if (!change.value) return fmt::format("unsetenv {} ;\n", change.name);
  return fmt::format("setenv {} {} ;\n", change.name, quote_csh(*change.value));
}

std::string_view fish_refusal(const EnvChange& change) {
  const bool filled = change.name == "PATH" || change.name == "CDPATH";
  return filled && change.value && has_empty_element(*change.value)
             ? "fish replaces an empty element of this variable with a dot"
             : "";
}

std::string fish_line(const EnvChange& change) {
  if (!change.value) return fmt::format("set -eg {} ;\n", change.name);
  return fmt::format("set -gx {} {} ;\n", change.name, quote_fish(*change.value));
}

}  // namespace render

}  // namespace hpclaunch
