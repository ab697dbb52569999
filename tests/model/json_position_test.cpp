#include "support/json_position.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "hpclaunch/json_reader.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

std::string at(std::string_view text, std::string_view pointer) {
  const TextPosition position = position_of_pointer(text, pointer);
  return std::to_string(position.line) + ":" + std::to_string(position.column);
}

}  // namespace

TEST_CASE("offsets become lines and columns", "[json]") {
  CHECK(position_of("ab\ncd", 0).column == 1);
  CHECK(position_of("ab\ncd", 2).column == 3);
  CHECK(position_of("ab\ncd", 3).line == 2);
  CHECK(position_of("ab\ncd", 99).column == 3);
}

TEST_CASE("pointers lead to keys and elements", "[json]") {
  const std::string_view text =
      "// a { comment\n{\n  \"a\": [1, {\"x\": \"}],\"}, [2, 3]],\n  /* b: */ \"c/d\": {\"e~\": "
      "-1.5e3,\n"
      "  \"f\": null}}";
  CHECK(at(text, "") == "2:1");
  CHECK(at(text, "/a") == "3:3");
  CHECK(at(text, "/a/0") == "3:9");
  CHECK(at(text, "/a/1") == "3:12");
  CHECK(at(text, "/a/1/x") == "3:13");
  CHECK(at(text, "/a/2/1") == "3:30");
  CHECK(at(text, "/c~1d/e~0") == "4:20");
  CHECK(at(text, "/c~1d/f") == "5:3");
}

TEST_CASE("a pointer that leads nowhere stops at what is there", "[json]") {
  CHECK(at("{\"a\": [1, 2]}", "/a/2") == "1:2");
  CHECK(at("{\"a\": [1, 2]}", "/a/x") == "1:2");
  CHECK(at("{\"a\": 7}", "/a/b/c") == "1:2");
  CHECK(at("[]", "/0") == "1:1");
  CHECK(at("", "/a") == "1:1");
}

TEST_CASE("text that is not JSON gives some place, never a fault", "[json][law]") {
  test::Random random(5);
  const std::string_view letters = "{}[],:\"\\/*ab0 \n~";
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (int n = random.in(0, 30); n > 0; --n) {
      text += letters[static_cast<std::size_t>(random.in(0, static_cast<int>(letters.size()) - 1))];
    }
    REQUIRE(position_of_pointer(text, "/a/0/b").line >= 1);
  }
}

TEST_CASE("the reader takes what the JSON library takes, and finds the same in it", "[json][law]") {
  using json_reader::Json;
  const std::string_view parts[] = {"{",
                                    "}",
                                    "[",
                                    "]",
                                    ",",
                                    ":",
                                    " ",
                                    "\n",
                                    "// x\n",
                                    "/* x */",
                                    "\"a\"",
                                    "\"b\"",
                                    "\"\"",
                                    "\"\\n\"",
                                    "\"\\u00e9\"",
                                    "\"\xC3\xA9\"",
                                    "\"\xC3\"",
                                    "\"\x7F\"",
                                    "\"\t\"",
                                    "\"\\q\"",
                                    "\"\\\"\"",
                                    "0",
                                    "-0",
                                    "-7",
                                    "01",
                                    "1.5e3",
                                    "1e999",
                                    "1.",
                                    "-",
                                    "99999999999999999999",
                                    "true",
                                    "null",
                                    "tru",
                                    "\"",
                                    "\xEF\xBB\xBF",
                                    "/"};
  const auto same = [](const auto& self, const Json& ours,
                       const nlohmann::ordered_json& theirs) -> bool {
    if (theirs.is_object() || theirs.is_array()) {
      if (ours.items.size() != theirs.size()) return false;
      std::size_t i = 0;
      for (const auto& [key, value] : theirs.items()) {
        if (theirs.is_object() && ours.items[i].key != key) return false;
        if (!self(self, ours.items[i++], value)) return false;
      }
      return true;
    }
    if (theirs.is_string()) return ours.kind == Json::Kind::string && ours.text == theirs;
    if (theirs.is_number_integer() && ours.kind == Json::Kind::integer) return ours.whole == theirs;
    if (theirs.is_number()) return ours.kind == Json::Kind::number;
    if (theirs.is_boolean()) return ours.kind == Json::Kind::boolean && ours.truth == theirs;
    return ours.kind == Json::Kind::null;
  };
  test::Random random(11);
  int whole = 0;
  const auto check = [&](const std::string& text) {
    INFO(text);
    const auto theirs = nlohmann::ordered_json::parse(text, nullptr, false, true);
    json_reader::Context context(text, "file");
    const bool repeated = context.count() > 0 && context.root();
    REQUIRE(static_cast<bool>(context.root()) == !theirs.is_discarded());
    if (!context.root()) REQUIRE(context.take().front().message.starts_with("broken JSON: "));
    if (!context.root() || repeated) return;
    ++whole;
    REQUIRE(same(same, *context.root(), theirs));
  };
  const auto any = [&] {
    return std::string(parts[random.in(0, static_cast<int>(std::size(parts)) - 1)]);
  };
  for (int i = 0; i < 10000; ++i) {
    std::string text = any();
    for (int n = random.in(0, 3); n > 0; --n) text += any();
    check(text);
    check("[" + text + "]");
    check("{\"k\": [1, " + text + "], \"l\": " + any() + "} " + any());
  }
  CHECK(whole > 500);
}
