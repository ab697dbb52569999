#include "support/json_position.h"

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
