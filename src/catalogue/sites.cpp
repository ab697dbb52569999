// Profiles of sites and parts as rows: the text, what a start reads of it, and the signals that every start compares.
#include "sites.h"

#include <fmt/format.h>

#include "hpclaunch/profile.h"

namespace hpclaunch::catalogue {

namespace {

// A C++ literal of any bytes.
std::string literal(std::string_view bytes) {
  std::string out = "    \"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?')
      out.append("\\").append(1, c);
    else if (c == '\n')
      out += "\\n\"\n    \"";
    else if (byte < ' ' || byte > '~')
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

std::vector<Error> read_site(const std::string& file, const std::string& text, Sites& sites) {
  // "profiles/site/NAME.json"
  std::size_t begin = file.size();
  for (int steps = 0; steps < 3 && begin != file.npos && begin > 0; ++steps)
    begin = file.rfind('/', begin - 1);
  const std::string place = begin == file.npos || begin == 0 ? file : file.substr(begin + 1);
  ParsedProfile parsed = parse_profile(text, "builtin:" + place);
  for (Error& problem : parsed.problems) problem.where->file = file;
  const Profile& profile = parsed.profile;
  std::string signals;
  for (const auto& [env, like, proves] : profile.detect)
    signals += fmt::format("    {{{}, {}, {}}},\n", literal(env), literal(like), proves);
  const std::size_t number = sites.size();
  std::string texts =
      fmt::format("constexpr char kText{0}[] =\n{1};\nconstexpr char kParsed{0}[] =\n{2};\n",
                  number, literal(text), literal(pack_profile(profile)));
  if (!signals.empty())
    texts += fmt::format("constexpr BuiltinSignal kSignals{}[] = {{\n{}}};\n", number, signals);
  const std::string row = fmt::format(
      "    {{\"{0}\", \"builtin:{1}\", {{kText{2}, sizeof kText{2} - 1}}, {{kParsed{2}, sizeof "
      "kParsed{2} - 1}}, {3}}},\n",
      profile.name, place, number, signals.empty() ? "{}" : fmt::format("kSignals{}", number));
  if (!sites.emplace(profile.name, std::pair(texts, row)).second)
    parsed.problems.push_back(
        {ErrorKind::invalid, "two profiles are called " + profile.name, "", SourceRef{file, 1}});
  return std::move(parsed.problems);
}

std::string emit_sites(const Sites& sites) {
  std::string texts;
  std::string rows;
  for (const auto& [name, site] : sites) {
    texts += site.first;
    rows += site.second;
  }
  return fmt::format(
      "// Written by hpclaunch-catalogue from profiles/site/ and profiles/part/; edit those "
      "files.\n"
      "#include \"hpclaunch/profile.h\"\n\n"
      "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
      "namespace hpclaunch {{\n"
      "namespace {{\n\n"
      "{}\nconstexpr BuiltinProfile kProfiles[] = {{\n{}}};\n\n"
      "}}  // namespace\n\n"
      "std::span<const BuiltinProfile> builtin_profiles() {{ return kProfiles; }}\n\n"
      "}}  // namespace hpclaunch\n",
      texts, rows);
}

}  // namespace hpclaunch::catalogue
