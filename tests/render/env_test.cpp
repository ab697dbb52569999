#include <nlohmann/json.hpp>
#include <random>

#include "hpclaunch/render.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

std::string text(EnvFormat format, const std::vector<EnvChange>& changes, bool comments = false) {
  return *render_env(format, changes, comments);
}

std::string refusal(EnvFormat format, const EnvChange& change) {
  const auto got = render_env(format, {change}, false);
  if (got) return "";
  CHECK(got.error().kind == ErrorKind::unsupported);
  CHECK_FALSE(got.error().hint.empty());
  return got.error().message;
}

const std::vector<EnvChange> kChanges = {
    {"A", "x", "why A"}, {"B", "it's", ""}, {"C", std::nullopt, "two\nlines"}};

/// The launcher of docs/reference/plan.md, read by rules of its own: NAME='...' or NAME="..." with \\ \" \n
/// \r.
std::map<std::string, std::string> read_dotenv(const std::string& file) {
  std::map<std::string, std::string> out;
  std::size_t at = 0;
  while (at < file.size()) {
    const std::size_t equals = file.find('=', at);
    const char quote = file.at(equals + 1);
    REQUIRE((quote == '\'' || quote == '"'));
    std::string value;
    std::size_t i = equals + 2;
    for (; file.at(i) != quote; ++i) {
      if (quote == '"' && file[i] == '\\') {
        const char next = file.at(++i);
        value += next == 'n' ? '\n' : next == 'r' ? '\r' : next;
      } else {
        value += file[i];
      }
    }
    out[file.substr(at, equals - at)] = value;
    REQUIRE(file.at(i + 1) == '\n');
    at = i + 2;
  }
  return out;
}

}  // namespace

TEST_CASE("formats by name", "[render][env]") {
  CHECK(env_format_from("sh") == EnvFormat::sh);
  CHECK(env_format_from("lmod") == EnvFormat::lmod);
  CHECK(env_format_from("bash") == std::nullopt);
  CHECK(env_format_from("") == std::nullopt);
}

TEST_CASE("what each format prints", "[render][env]") {
  CHECK(text(EnvFormat::sh, kChanges, true) ==
        "# why A\nexport A=x\nexport B='it'\\''s'\n# two lines\nunset C\n");
  CHECK(text(EnvFormat::csh, kChanges) == "setenv A x ;\nsetenv B 'it'\\''s' ;\nunsetenv C ;\n");
  CHECK(text(EnvFormat::fish, kChanges) == "set -gx A x ;\nset -gx B 'it\\'s' ;\nset -eg C ;\n");
  CHECK(text(EnvFormat::lmod, kChanges, true) ==
        "-- why A\nsetenv(\"A\", \"x\")\nsetenv(\"B\", \"it's\")\n-- two lines\nunsetenv(\"C\")\n");
  CHECK(text(EnvFormat::dotenv, {kChanges[0], kChanges[1]}, true) ==
        "# why A\nA='x'\nB=\"it's\"\n");
  CHECK(text(EnvFormat::json, kChanges, true) ==
        "{\n  \"schema\": 1,\n  \"set\": {\n    \"A\": \"x\",\n    \"B\": \"it's\"\n  },\n"
        "  \"unset\": [\n    \"C\"\n  ]\n}\n");
  for (const EnvFormat format :
       {EnvFormat::sh, EnvFormat::csh, EnvFormat::fish, EnvFormat::dotenv, EnvFormat::lmod})
    CHECK(text(format, {}, true).empty());
}

TEST_CASE("values that a shell makes", "[render][env]") {
  EnvChange made{"A", "x", ""};
  made.late = {{"a'b "}, {"$USER", true}, {"_}"}};
  CHECK(text(EnvFormat::sh, {made}) == "export A=\"a'b ${USER}_}\"\n");
  CHECK(text(EnvFormat::csh, {made}) == "setenv A 'a'\\''b '\"$USER\"'_}' ;\n");
  CHECK(text(EnvFormat::fish, {made}) == "set -gx A 'a\\'b '\"$USER\"'_}' ;\n");
  EnvChange yields = made;
  yields.yields = true;
  CHECK(text(EnvFormat::sh, {yields}) == "export A=\"${A-a'b ${USER}_\\}}\"\n");
  CHECK(text(EnvFormat::csh, {yields}).starts_with("if ( ! $?A ) setenv A "));
  CHECK(text(EnvFormat::fish, {yields}).starts_with("set -q A; or set -gx A "));
  EnvChange plain{"A", "$x`\"\\ }", ""};
  plain.yields = true;
  CHECK(text(EnvFormat::sh, {plain}) == "export A=\"${A-\\$x\\`\\\"\\\\ \\}}\"\n");
  CHECK(text(EnvFormat::json, {plain}) == text(EnvFormat::json, {{"A", plain.value, ""}}));
  for (const EnvFormat format : {EnvFormat::dotenv, EnvFormat::json, EnvFormat::lmod})
    CHECK(
        refusal(format, made).ends_with("cannot represent A: its value is known only in the job"));
  EnvChange fixed = made;
  fixed.fix = "--user NAME";
  CHECK(render_env(EnvFormat::json, {fixed}, false).error().hint == "--user NAME, or --format sh");
}

TEST_CASE("a comment cannot end itself", "[render][env]") {
  const EnvChange change{"A", "x", "a\r\nexport B=1\\"};
  CHECK(text(EnvFormat::sh, {change}, true) == "# a  export B=1\nexport A=x\n");
}

TEST_CASE("the last change of a name holds in json", "[render][env]") {
  const auto got = nlohmann::json::parse(
      text(EnvFormat::json,
           {{"A", "1", ""}, {"A", std::nullopt, ""}, {"B", std::nullopt, ""}, {"B", "2", ""}}));
  CHECK(got["set"] == nlohmann::json{{"B", "2"}});
  CHECK(got["unset"] == nlohmann::json{"A"});
}

TEST_CASE("what a format cannot represent is named", "[render][env]") {
  for (const EnvFormat format :
       {EnvFormat::sh, EnvFormat::csh, EnvFormat::fish, EnvFormat::dotenv, EnvFormat::lmod}) {
    for (const std::string name : {"", "1A", "A B", "A-B", "A.B", "\xc3\xa9", "A\n"})
      CHECK(refusal(format, {name, "x", ""}).find("a name must be letters") != std::string::npos);
    CHECK(
        refusal(format, {"ZERO", std::string("a\0b", 3), ""}).find("ZERO: the value has a zero") !=
        std::string::npos);
  }
  CHECK(refusal(EnvFormat::sh, {"UID", "1", ""}) ==
        "sh cannot represent UID: the shell reserves this name");
  CHECK(refusal(EnvFormat::fish, {"PWD", "1", ""}) ==
        "fish cannot represent PWD: the shell reserves this name");
  CHECK(refusal(EnvFormat::fish, {"PATH", "/a::/b", ""}).find("PATH") != std::string::npos);
  CHECK(refusal(EnvFormat::fish, {"PATH", "/a:/b", ""}).empty());
  CHECK(refusal(EnvFormat::fish, {"MANPATH", ":", ""}).empty());
  CHECK(refusal(EnvFormat::json, {"BAD", "\xff", ""}) ==
        "json cannot represent BAD: the value is not UTF-8");
  CHECK(refusal(EnvFormat::json, {"A B", "x", ""}).empty());
}

TEST_CASE("dotenv refuses what its readers disagree about", "[render][env]") {
  for (const std::string value :
       {"${A}", "a${", "it's $5", "\\$", "$\r", "it's\\", "\\", "'\"", "\xff"})
    CHECK_FALSE(refusal(EnvFormat::dotenv, {"A", value, ""}).empty());
  CHECK_FALSE(refusal(EnvFormat::dotenv, {"A", std::nullopt, ""}).empty());
  CHECK_FALSE(refusal(EnvFormat::dotenv, {"exported", "x", ""}).empty());
  CHECK(refusal(EnvFormat::dotenv, {"EXPORT", "x", ""}).empty());
}

TEST_CASE("dotenv values come back", "[render][env]") {
  std::mt19937 dice(7);  // NOLINT(cert-msc51-cpp): the same values every time
  const std::string pool = "ab'\"\\\n\r\t$ #=";
  std::vector<EnvChange> changes;
  for (int i = 0; i < 3000; ++i) {
    std::string value;
    for (std::size_t n = dice() % 8; n > 0; --n) value += pool[dice() % pool.size()];
    const EnvChange change{"V" + std::to_string(i), value, ""};
    if (render_env(EnvFormat::dotenv, {change}, false)) changes.push_back(change);
  }
  CHECK(changes.size() > 1000);
  const auto got = read_dotenv(text(EnvFormat::dotenv, changes));
  for (const EnvChange& change : changes) CHECK(got.at(change.name) == *change.value);
}

TEST_CASE("json values come back", "[render][env]") {
  std::vector<EnvChange> changes;
  for (int c = 1; c < 128; ++c)
    changes.push_back({"V" + std::to_string(c), std::string(3, static_cast<char>(c)), ""});
  changes.push_back({"E", "caf\xc3\xa9 \xf0\x9f\x9a\x80", ""});
  const auto got = nlohmann::json::parse(text(EnvFormat::json, changes));
  CHECK(got["schema"] == 1);
  for (const EnvChange& change : changes)
    CHECK(got["set"][change.name].get<std::string>() == *change.value);
}
