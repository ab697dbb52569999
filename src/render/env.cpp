// Environment changes in the formats that are no shell, and the table of all formats.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "hpclaunch/render.h"
#include "shell.h"
#include "text.h"

namespace hpclaunch {

namespace render {

namespace {

bool fits_single_quotes(std::string_view value) {
  return value.find_first_of("'\\\r") == std::string_view::npos;
}

}  // namespace

// What python-dotenv and docker compose (compose-go, dotenv/parser.go) read alike (docs/plan.md):
// NAME='literal', or NAME="with \\ \" \n \r escapes" where single quotes cannot do it. Both expand
// ${...} somewhere, compose also $NAME in double quotes, and neither agrees how to escape that.
Status check_dotenv(const EnvChange& change) {
  if (Status fine = check_change("dotenv", change); !fine) return fine;
  if (!change.value)
    return not_representable("dotenv", change, "the format cannot remove a variable");
  if (change.name.compare(0, 6, "export") == 0)
    return not_representable("dotenv", change, "readers treat export as a keyword");
  const std::string& value = *change.value;
  if (!is_utf8(value)) return not_representable("dotenv", change, "the value is not UTF-8");
  if (value.find("${") != std::string::npos)
    return not_representable("dotenv", change, "readers expand the ${ in its value");
  if (fits_single_quotes(value)) return Done{};
  if (value.find('$') != std::string::npos)
    return not_representable(
        "dotenv", change,
        "the value has $ together with a quote, a backslash or a carriage return");
  if (value.back() == '\\' || value.back() == '"')
    return not_representable("dotenv", change, "the value ends in a backslash or a double quote");
  return Done{};
}

std::string dotenv_line(const EnvChange& change) {
  const std::string& value = *change.value;
  if (fits_single_quotes(value)) return fmt::format("{}='{}'\n", change.name, value);
  std::string quoted;
  for (const char c : value) {
    switch (c) {
      case '\\':
      case '"':
        quoted += {'\\', c};
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      default:
        quoted += c;
    }
  }
  return fmt::format("{}=\"{}\"\n", change.name, quoted);
}

Status check_lmod(const EnvChange& change) { return check_change("lmod", change); }

namespace {

std::string lua_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t size = utf8_unit(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (text[0] == '"' || text[0] == '\\')
      out += {'\\', text[0]};
    else if (text[0] == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7F || size == 0)
      out += fmt::format("\\{:03d}", byte);
    else
      out += text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out + "\"";
}

}  // namespace

std::string lmod_line(const EnvChange& change) {
  if (!change.value) return fmt::format("unsetenv({})\n", lua_string(change.name));
  return fmt::format("setenv({}, {})\n", lua_string(change.name), lua_string(*change.value));
}

Result<std::string> json_document(const std::vector<EnvChange>& changes) {
  nlohmann::ordered_json set = nlohmann::ordered_json::object();
  std::vector<std::string> unset;
  for (const EnvChange& change : changes) {
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

namespace {

struct Format {
  EnvFormat format;
  std::string_view name;
  std::string_view comment;  // what begins one
  Status (*check)(const EnvChange&);
  std::string (*line)(const EnvChange&);
};

constexpr std::array<Format, 6> kFormats = {{
    {EnvFormat::sh, "sh", "# ", check_sh, sh_line},
    {EnvFormat::csh, "csh", "# ", check_csh, csh_line},
    {EnvFormat::fish, "fish", "# ", check_fish, fish_line},
    {EnvFormat::dotenv, "dotenv", "# ", check_dotenv, dotenv_line},
    {EnvFormat::json, "json", "", nullptr, nullptr},
    {EnvFormat::lmod, "lmod", "-- ", check_lmod, lmod_line},
}};

}  // namespace

}  // namespace render

std::optional<EnvFormat> env_format_from(std::string_view name) {
  for (const render::Format& row : render::kFormats)
    if (row.name == name) return row.format;
  return std::nullopt;
}

Result<std::string> render_env(EnvFormat format, const std::vector<EnvChange>& changes,
                               bool comments) {
  const render::Format& row = render::kFormats[static_cast<std::size_t>(format)];
  if (row.line == nullptr) return render::json_document(changes);
  std::string text;
  for (const EnvChange& change : changes) {
    if (const Status fine = row.check(change); !fine) return fine.error();
    const std::string comment = comments ? render::comment_text(change.comment) : "";
    // A Lua comment that begins with [[ would run on over lines; "-- " keeps the bracket away.
    if (!comment.empty()) text += fmt::format("{}{}\n", row.comment, comment);
    text += row.line(change);
  }
  return text;
}

}  // namespace hpclaunch
