// hpclaunch-embed: turns profiles/site/ and profiles/part/ into a table of texts on the building
// machine. What the texts mean is checked by the tests and by `hpclaunch profile validate`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

struct Embedded {
  std::string name, folder, text, detect;
};

/// One literal per line of the file, so that no literal is long and a change is easy to see.
std::string literal(const std::string& text) {
  std::string out = "    \"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n\"\n    \"";
    } else if (c == '"' || c == '\\' || c == '?') {  // "??" would begin a trigraph
      out += '\\';
      out += c;
    } else if (byte < ' ' || byte > '~') {
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// The last two parts of a path: "site" and "NAME.json".
std::pair<std::string, std::string> ends_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  const std::size_t before = slash == 0 ? std::string::npos : path.rfind('/', slash - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return {path.substr(begin, slash - begin), path.substr(slash + 1)};
}

/// What is wrong with the file, "" when nothing is.
std::string read(const std::string& path, Embedded& profile) {
  std::ifstream in(path, std::ios::binary);
  profile.text.assign(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad()) return "cannot read the file";
  const auto json = nlohmann::json::parse(profile.text, nullptr, false, true);
  if (!json.is_object()) return "is not a JSON object; try: hpclaunch profile validate";
  std::string file;
  std::tie(profile.folder, file) = ends_of(path);
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string()) return "has no \"name\"";
  profile.name = name->get<std::string>();
  if (file != profile.name + ".json")
    return fmt::format("has the name \"{}\": call the file {}.json, or change the name",
                       profile.name, profile.name);
  const auto part = json.find("part");
  const bool is_part = part != json.end() && *part == true;
  if (is_part != (profile.folder == "part"))
    return "belongs in profiles/part with \"part\": true, else in profiles/site";
  const auto detect = json.find("detect");
  profile.detect = detect == json.end()
                       ? "[]"
                       : detect->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return "";
}

std::string emit(const std::vector<Embedded>& profiles) {
  std::string texts;
  std::string rows;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const Embedded& one = profiles[i];
    texts += fmt::format("constexpr char kText{}[] =\n{};\nconstexpr char kDetect{}[] =\n{};\n", i,
                         literal(one.text), i, literal(one.detect));
    rows += fmt::format(
        "    {{\"{0}\", \"builtin:profiles/{1}/{0}.json\", {{kText{2}, {3}}}, {{kDetect{2}, "
        "{4}}}}},\n",
        one.name, one.folder, i, one.text.size(), one.detect.size());
  }
  return fmt::format(
      "// Written by hpclaunch-embed from profiles/site/ and profiles/part/; edit those files.\n"
      "#include <array>\n\n"
      "#include \"hpclaunch/profile.h\"\n\n"
      "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
      "namespace hpclaunch {{\n"
      "namespace {{\n\n"
      "{}\n"
      "constexpr std::array<BuiltinProfile, {}> kProfiles = {{{{\n{}}}}};\n\n"
      "}}  // namespace\n\n"
      "std::span<const BuiltinProfile> builtin_profiles() {{ return kProfiles; }}\n\n"
      "}}  // namespace hpclaunch\n",
      texts, profiles.size(), rows);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: hpclaunch-embed OUTPUT [FILE...]\n");
    return 2;
  }
  const std::string output = argv[1];
  const std::vector<std::string> files(argv + 2, argv + argc);
  std::vector<Embedded> profiles;
  bool good = true;
  for (const std::string& file : files) {
    Embedded profile;
    const std::string wrong = read(file, profile);
    if (!wrong.empty()) {
      fmt::print(stderr, "{}: error: {}\n", file, wrong);
      good = false;
    }
    profiles.push_back(std::move(profile));
  }
  std::sort(profiles.begin(), profiles.end(),
            [](const Embedded& a, const Embedded& b) { return a.name < b.name; });
  for (std::size_t i = 1; good && i < profiles.size(); ++i) {
    if (profiles[i].name != profiles[i - 1].name) continue;
    fmt::print(stderr, "{}.json: error: profiles/site and profiles/part both have it\n",
               profiles[i].name);
    good = false;
  }
  if (!good) return 1;
  std::ofstream out(output, std::ios::binary | std::ios::trunc);
  out << emit(profiles) << std::flush;
  if (out.good()) return 0;
  fmt::print(stderr, "{}: cannot write the file\n", output);
  std::remove(output.c_str());
  return 2;
}
