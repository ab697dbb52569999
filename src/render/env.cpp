// Environment changes in every format, and the script of a launch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "hpclaunch/render.h"
#include "hpclaunch/rows.h"
#include "hpclaunch/text.h"
#include "text.h"

namespace hpclaunch {

using namespace render;

// ---- words for sh, csh and fish ---------------------------------------------------------------------
//
// Sources: POSIX.1-2017, XCU 2.2 "Quoting"; tcsh(1), "Lexical structure"; fish-language(1), "Quotes" and
// "Escaping characters". That real shells agree is tested, byte by byte (tests/render/shells.py).

namespace {

/// Bytes that are ordinary in every shell anywhere in a word, except '=' and '~' in front.
bool is_plain(std::string_view text) {
  return !text.empty() && text[0] != '=' && consists_of(text, "_./:=,+-@");
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

namespace {

bool fits_single_quotes(std::string_view value) {
  return value.find_first_of("'\\\r") == std::string_view::npos;
}

// What python-dotenv and docker compose (compose-go, dotenv/parser.go) read alike (docs/reference/plan.md):
// NAME='literal', or NAME="with \\ \" \n \r escapes" where single quotes cannot do it. Both expand
// ${...} somewhere, compose also $NAME in double quotes, and neither agrees how to escape that.
std::string_view dotenv_refusal(const EnvChange& change) {
  if (!change.value) return "the format cannot remove a variable";
  if (change.name.rfind("export", 0) == 0) return "readers treat export as a keyword";
  const std::string& value = *change.value;
  if (!is_utf8(value)) return "the value is not UTF-8";
  if (value.find("${") != std::string::npos) return "readers expand the ${ in its value";
  if (fits_single_quotes(value)) return "";
  if (value.find('$') != std::string::npos)
    return "the value has $ together with a quote, a backslash or a carriage return";
  if (value.back() == '\\' || value.back() == '"')
    return "the value ends in a backslash or a double quote";
  return "";
}

std::string quote_dotenv(std::string_view value) {
  if (fits_single_quotes(value)) return fmt::format("'{}'", value);
  return fmt::format(
      "\"{}\"", replaced(value, {{'\\', "\\\\"}, {'"', "\\\""}, {'\n', "\\n"}, {'\r', "\\r"}}));
}

std::string quote_lua(std::string_view value) {
  const std::string text = replaced(value, {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}});
  std::string out = "\"";
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view unit = take_unit(rest);
    const auto byte = static_cast<unsigned char>(unit[0]);
    const bool plain = unit.size() > 1 || (byte >= 0x20 && byte < 0x7F);
    out += plain ? std::string(unit) : fmt::format("\\{:03d}", byte);
  }
  return out + "\"";
}

std::string_view fish_refusal(const EnvChange& change) {
  if (!change.value || (change.name != "PATH" && change.name != "CDPATH")) return "";
  const std::vector<std::string_view> elements = split(*change.value, ':');
  return std::find(elements.begin(), elements.end(), "") == elements.end()
             ? ""
             : "fish replaces an empty element of this variable with a dot";
}

// "$HOME/lib": a name that a letter follows is in braces. `inside`: as the word of "${NAME-word}".
std::string late_sh(const std::vector<LatePart>& parts, bool inside) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i].text;
    const bool follows = i + 1 < parts.size() && consists_of(parts[i + 1].text.substr(0, 1), "_");
    if (parts[i].late && part[1] != '{' && follows)
      text += "${" + part.substr(1) + "}";
    else if (parts[i].late)
      text += part;
    else
      text += replaced(
          part,
          {{'\\', "\\\\"}, {'"', "\\\""}, {'$', "\\$"}, {'`', "\\`"}, {'}', inside ? "\\}" : "}"}});
  }
  return text;
}

struct Format {
  EnvFormat format;
  std::string_view name;
  std::string_view comment;  ///< the start of one
  const char* set;           ///< {0}: the name, {1}: the quoted value
  const char* unset;         ///< {0}: the name
  const char* keep;          ///< before `set`: only where {0} is not set; null: no shell
  std::string (*quote)(std::string_view);  ///< null: a document of its own
  std::string_view reserved;               ///< words: names that it does not let a script set
  std::string_view (*refusal)(
      const EnvChange&);  ///< why it cannot be represented, or ""; null: never
};

constexpr std::array<Format, 6> kFormats = {{
    {EnvFormat::sh, "sh", "# ", "export {0}={1}\n", "unset {0}\n", "", quote_sh, "reserved by sh",
     nullptr},
    {EnvFormat::csh,
     "csh",
     "# ",
     "setenv {0} {1} ;\n",
     "unsetenv {0} ;\n",
     "if ( ! $?{0} ) ",
     quote_csh,
     {},
     nullptr},
    {EnvFormat::fish, "fish", "# ", "set -gx {0} {1} ;\n", "set -eg {0} ;\n", "set -q {0}; or ",
     quote_fish, "reserved by fish", fish_refusal},
    {EnvFormat::dotenv, "dotenv", "# ", "{0}={1}\n", "", nullptr, quote_dotenv, {}, dotenv_refusal},
    {EnvFormat::json, "json", "", "", "", nullptr, nullptr, {}, nullptr},
    {EnvFormat::lmod,
     "lmod",
     "-- ",
     "setenv(\"{0}\", {1})\n",
     "unsetenv(\"{0}\")\n",
     nullptr,
     quote_lua,
     {},
     nullptr},
}};

/// A comment on one line, with nothing in it that could end the comment.
std::string comment_text(std::string_view comment) {
  std::string out = printable(replaced(comment, {{'\n', " "}, {'\r', " "}, {'\t', " "}}));
  // A last backslash would join the next line to the comment in some readers.
  out.resize(out.find_last_not_of("\\ ") + 1);
  return out;
}

Error not_representable(std::string_view format, const EnvChange& change, std::string_view reason) {
  return Error{ErrorKind::unsupported,
               fmt::format("{} cannot represent {}: {}", format, printable(change.name), reason),
               !change.late.empty() && !change.fix.empty() ? change.fix + ", or --format sh"
               : format == "json" || !change.late.empty()  ? "use --format sh"
                                                           : "use --format json"};
}

/// Every format except json needs an identifier and no zero byte. Errors: `unsupported`.
Status check_change(const Format& row, const EnvChange& change) {
  const auto refused = [&](std::string_view reason) {
    return not_representable(row.name, change, reason);
  };
  if (!is_identifier(change.name)) return refused("a name must be letters, digits and underscores");
  if (change.value && change.value->find('\0') != std::string::npos)
    return refused("the value has a zero byte");
  if (has_word(words_named(row.reserved), change.name))
    return refused("the shell reserves this name");
  if (!change.late.empty() && row.keep == nullptr)
    return refused("its value is known only in the job");
  const std::string_view reason = row.refusal == nullptr ? "" : row.refusal(change);
  if (!reason.empty()) return refused(reason);
  return Done{};
}

/// The value as a word of the shell.
std::string value_word(const Format& row, const EnvChange& change) {
  const bool yields = change.yields && row.format == EnvFormat::sh;
  if (change.late.empty() && !yields) return row.quote(*change.value);
  std::vector<LatePart> parts = change.late;
  if (parts.empty() && !change.value->empty()) parts.push_back({*change.value});
  if (yields) return fmt::format("\"${{{}-{}}}\"", change.name, late_sh(parts, true));
  if (row.format == EnvFormat::sh) return "\"" + late_sh(parts, false) + "\"";
  std::string text;
  for (const LatePart& part : parts)
    text += part.late ? "\"" + part.text + "\"" : row.quote(part.text);
  return text;
}

/// Later changes of a name win, as in a shell that runs them in order.
Result<std::string> json_document(const std::vector<EnvChange>& changes) {
  nlohmann::ordered_json set = nlohmann::ordered_json::object();
  std::vector<std::string> unset;
  for (const EnvChange& change : changes) {
    if (change.prints == EnvChange::Prints::inherited) continue;
    if (!change.late.empty())
      return not_representable("json", change, "its value is known only in the job");
    if (!is_utf8(change.name)) return not_representable("json", change, "the name is not UTF-8");
    if (change.value && !is_utf8(*change.value))
      return not_representable("json", change, "the value is not UTF-8");
    set.erase(change.name);
    std::erase(unset, change.name);
    if (change.value)
      set[change.name] = *change.value;
    else
      unset.push_back(change.name);
  }
  nlohmann::ordered_json document;
  document["schema"] = 1;
  document["set"] = std::move(set);
  document["unset"] = unset;
  return document.dump(2) + "\n";
}

// ---- the script ----------------------------------------------------------------------------------------

constexpr std::size_t kOneLine = 98;

using LateWords = std::map<std::string, std::vector<LatePart>>;

std::string command_words(const std::vector<std::string>& words, const LateWords& late) {
  std::string line;
  for (const std::string& word : words) {
    const auto made = late.find(word);
    line +=
        (line.empty() ? "" : " ") + (made == late.end() ? quote_sh(word) : late_word(made->second));
  }
  return line;
}

/// The command on one line where it fits, else one argument group per line.
std::string command_lines(const std::vector<std::string>& argv, const LateWords& late) {
  const std::string line = command_words(argv, late);
  if (line.size() <= kOneLine && line.find('\n') == std::string::npos) return line + "\n";
  std::string text;
  for (const std::vector<std::string>& group : argument_groups(argv))
    text += (text.empty() ? "" : " \\\n  ") + command_words(group, late);
  return text + "\n";
}

}  // namespace

std::string late_word(const std::vector<LatePart>& parts) {
  return "\"" + late_sh(parts, false) + "\"";
}

std::optional<EnvFormat> env_format_from(std::string_view name) {
  for (const Format& row : kFormats)
    if (row.name == name) return row.format;
  return std::nullopt;
}

Result<std::string> render_env(EnvFormat format, const std::vector<EnvChange>& changes,
                               bool comments) {
  const Format& row = kFormats[static_cast<std::size_t>(format)];
  if (row.quote == nullptr) return json_document(changes);
  std::string text;
  for (const EnvChange& change : changes) {
    if (const Status fine = check_change(row, change); !fine) return fine.error();
    if (change.prints == EnvChange::Prints::inherited) {
      text +=
          fmt::format("{}{} is inherited; its value is not printed\n", row.comment, change.name);
      continue;
    }
    const std::string comment = comments ? comment_text(change.comment) : "";
    // A Lua comment that begins with [[ would span lines; "-- " separates the bracket.
    if (!comment.empty()) text += fmt::format("{}{}\n", row.comment, comment);
    const std::string value =
        change.prints == EnvChange::Prints::reference
            ? fmt::format("\"${{{}:?export it first, its value is not printed}}\"", change.name)
        : change.value ? value_word(row, change)
                       : "";
    if (change.yields && change.value && row.keep != nullptr)
      text += fmt::format(fmt::runtime(row.keep), change.name);
    text += change.value ? fmt::format(fmt::runtime(row.set), change.name, value)
                         : fmt::format(fmt::runtime(row.unset), change.name);
  }
  return text;
}

Result<std::string> render_script(const std::vector<EnvChange>& changes,
                                  const std::vector<std::string>& argv, bool comments,
                                  const std::vector<std::string>& needs, std::string_view preamble,
                                  const LateWords& late) {
  if (argv.empty())
    return Error{ErrorKind::usage, "no program to run", "give the program after --"};
  for (const std::string& word : argv)
    if (word.find('\0') != std::string::npos)
      return Error{ErrorKind::unsupported,
                   fmt::format("an argument has a zero byte: {}", printable(word))};
  const Result<std::string> exports = render_env(EnvFormat::sh, changes, comments);
  if (!exports) return exports.error();
  std::string text =
      "#!/bin/sh\n"
      "# Generated by hpclaunch: does what `hpclaunch run` does, in any POSIX shell.\n";
  for (const std::string& need : needs) text += "# " + printable(need) + "\n";
  text += "\n";
  text += preamble;
  if (!changes.empty()) text += *exports + "\n";
  return text + "exec " + command_lines(argv, late);
}

}  // namespace hpclaunch
