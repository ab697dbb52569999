// Words and assignments for sh, csh and fish.
//
// Sources: POSIX.1-2017, XCU 2.2 "Quoting"; tcsh(1), "Lexical structure"; fish-language(1),
// "Quotes" and "Escaping characters". That real shells agree is tested, byte by byte
// (tests/render/shells.py).
#include "shell.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "text.h"

namespace hpclaunch {

namespace {

/// Bytes that are ordinary in every shell anywhere in a word, except '=' and '~' in
/// front.
bool is_plain(std::string_view text) {
  const auto ordinary = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./:=,+-@").find(c) != std::string_view::npos;
  };
  return !text.empty() && text[0] != '=' && std::all_of(text.begin(), text.end(), ordinary);
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
  std::string out;
  bool quoted = false;
  const auto quotes = [&](bool want) {
    if (quoted != want) out += '\'';
    quoted = want;
  };
  for (const char c : value) {
    const bool apart = c == '\'' || c == '!' || c == '\\' || c == '\n';
    quotes(!apart);
    if (c == '\n')
      out += "'\\\n'";
    else if (apart)
      out += {'\\', c};
    else
      out += c;
  }
  quotes(false);
  return out.empty() ? "''" : out;
}

// Bytes above ASCII go by number: what fish reads as characters it writes again in the locale of
// the moment, and that may have changed on the line before.
std::string quote_fish(std::string_view value) {
  if (is_plain(value)) return std::string(value);
  std::string out;
  bool quoted = false;
  const auto quotes = [&](bool want) {
    if (quoted != want) out += '\'';
    quoted = want;
  };
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    const bool apart = byte < 0x20 || byte >= 0x7F;
    quotes(!apart);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (apart)
      out += fmt::format("\\{}{:02x}", byte < 0x80 ? 'x' : 'X', byte);
    else if (c == '\'' || c == '\\')
      out += {'\\', c};
    else
      out += c;
  }
  quotes(false);
  return out.empty() ? "''" : out;
}

namespace render {

namespace {

// Variables that a shell reserves: assigning them fails or does something else. bash 5.2 and dash
// 0.5.12 for sh, fish 3.6.
constexpr std::string_view kReservedBySh =
    "BASHOPTS BASHPID BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_COMMAND BASH_COMPAT BASH_LINENO "
    "BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME "
    "GROUPS HISTCMD LINENO OPTIND PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SHLVL SRANDOM UID _";
constexpr std::string_view kReservedByFish =
    "FISH_VERSION PWD SHLVL _ fish_kill_signal fish_killring fish_pid history hostname pipestatus "
    "status status_generation umask version";

bool has(std::string_view names, std::string_view name) {
  const auto words = split(names, ' ');
  return std::find(words.begin(), words.end(), name) != words.end();
}

bool has_empty_element(std::string_view list) {
  return list.empty() || list.front() == ':' || list.back() == ':' ||
         list.find("::") != std::string_view::npos;
}

}  // namespace

Error not_representable(std::string_view format, const EnvChange& change, std::string_view reason) {
  return Error{ErrorKind::unsupported,
               fmt::format("{} cannot represent {}: {}", format, printable(change.name), reason),
               format == "json" ? "use --format sh" : "use --format json"};
}

Status check_change(std::string_view format, const EnvChange& change) {
  if (!is_identifier(change.name))
    return not_representable(format, change, "a name must be letters, digits and underscores");
  if (change.value && change.value->find('\0') != std::string::npos)
    return not_representable(format, change, "the value has a zero byte");
  return Done{};
}

std::string comment_text(std::string_view comment) {
  std::string line(comment);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  std::string out = printable(line);
  // A last backslash would join the next line to the comment in some readers.
  while (!out.empty() && (out.back() == '\\' || out.back() == ' ')) out.pop_back();
  return out;
}

Status check_sh(const EnvChange& change) {
  if (Status fine = check_change("sh", change); !fine) return fine;
  if (has(kReservedBySh, change.name))
    return not_representable("sh", change, "the shell reserves this name");
  return Done{};
}

std::string sh_line(const EnvChange& change) {
  if (!change.value) return fmt::format("unset {}\n", change.name);
  return fmt::format("export {}={}\n", change.name, quote_sh(*change.value));
}

Status check_csh(const EnvChange& change) { return check_change("csh", change); }

std::string csh_line(const EnvChange& change) {
  if (!change.value) return fmt::format("unsetenv {} ;\n", change.name);
  return fmt::format("setenv {} {} ;\n", change.name, quote_csh(*change.value));
}

Status check_fish(const EnvChange& change) {
  if (Status fine = check_change("fish", change); !fine) return fine;
  if (has(kReservedByFish, change.name))
    return not_representable("fish", change, "the shell reserves this name");
  const bool filled = change.name == "PATH" || change.name == "CDPATH";
  if (filled && change.value && has_empty_element(*change.value))
    return not_representable("fish", change,
                             "fish replaces an empty element of this variable with a dot");
  return Done{};
}

std::string fish_line(const EnvChange& change) {
  if (!change.value) return fmt::format("set -eg {} ;\n", change.name);
  return fmt::format("set -gx {} {} ;\n", change.name, quote_fish(*change.value));
}

}  // namespace render

}  // namespace hpclaunch
