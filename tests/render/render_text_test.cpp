#include "hpclaunch/render.h"
#include "render/text.h"
#include "support/catch.h"

using namespace hpclaunch;
using namespace hpclaunch::render;

TEST_CASE("UTF-8 units", "[render][text]") {
  CHECK(utf8_unit("a") == 1);
  CHECK(utf8_unit("\xc3\xa9x") == 2);
  CHECK(utf8_unit("\xe2\x82\xac") == 3);
  CHECK(utf8_unit("\xf0\x9f\x9a\x80") == 4);
  for (const std::string_view bad :
       {"", "\x80", "\xc3", "\xc3x", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xe2\x82"}) {
    CHECK(utf8_unit(bad) == 0);
  }
  CHECK(is_utf8("caf\xc3\xa9"));
  CHECK_FALSE(is_utf8("caf\xe9"));
}

TEST_CASE("printable text is one line of characters", "[render][text]") {
  CHECK(printable("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(printable("\x1b[31m\x7f") == "\\x1b[31m\\x7f");
  CHECK(printable("caf\xc3\xa9 \xff") == "caf\xc3\xa9 \\xff");
  CHECK(printable("\xc2\x9b!") == "\\xc2\\x9b!");           // CSI as one character
  CHECK(printable("\xe2\x80\xae|") == "\\xe2\\x80\\xae|");  // right-to-left override
  CHECK(printable("C:\\dir") == "C:\\dir");
}

TEST_CASE("columns", "[render][text]") {
  CHECK(columns("caf\xc3\xa9") == 4);
  CHECK(columns("\xe6\x97\xa5\xe6\x9c\xac") == 4);
  CHECK(columns("e\xcc\x81") == 1);
  CHECK(pad_right("\xc3\xa9", 3) == "\xc3\xa9  ");
  CHECK(pad_left("7", 3) == "  7");
  CHECK(pad_left("1234", 3) == "1234");
}

TEST_CASE("what is cut off is counted", "[render][text]") {
  const Style ascii;
  CHECK(shorten("short", 5, ascii) == "short");
  CHECK(shorten(std::string(1000, 'x'), 30, ascii) == "xxxxxxxxxxxxxxx...(+985 bytes)");
  for (int width = 20; width < 60; ++width)
    for (std::size_t size = 1; size < 300; ++size) {
      const std::string cut = shorten(std::string(size, 'x'), width, ascii);
      const auto kept = static_cast<std::size_t>(std::count(cut.begin(), cut.end(), 'x'));
      CHECK(columns(cut) <= width);
      if (kept < size)
        CHECK(cut.find("(+" + std::to_string(size - kept) + " bytes)") != std::string::npos);
    }
}

TEST_CASE("lines break at blanks, else after commas, else anywhere", "[render][text]") {
  using Lines = std::vector<std::string>;
  using render::flow;
  CHECK(flow("a few words here", 9) == Lines{"a few", "words", "here"});
  CHECK(flow("1,2,3,4", 4) == Lines{"1,2,", "3,4"});
  CHECK(flow("unbreakable", 4) == Lines{"unbr", "eaka", "ble"});
  CHECK(flow("a NUMA\x1fnode", 9) == Lines{"a", "NUMA node"});
  CHECK(flow("\xc3\xa9\xc3\xa9\xc3\xa9", 2) == Lines{"\xc3\xa9\xc3\xa9", "\xc3\xa9"});
  CHECK(flow("ab", 0) == Lines{"a", "b"});
  CHECK(flow("", 4) == Lines{""});
}

TEST_CASE("wrapping loses nothing", "[render][text]") {
  using Lines = std::vector<std::string>;
  CHECK(wrap("a few words here", 9, ' ') == Lines{"a few", "words", "here"});
  CHECK(wrap("1,2,3,4", 4, ',') == Lines{"1,2,", "3,4"});
  CHECK(wrap("", 4, ' ') == Lines{""});
  CHECK(wrap("unbreakable a", 4, ' ') == Lines{"unbreakable", "a"});
}

TEST_CASE("places", "[render][text]") {
  CHECK(where_text({"f.json", 12, 3}) == "f.json:12:3");
  CHECK(where_text({"f.json", 12, 0}) == "f.json:12");
  CHECK(where_text({"f.json", 0, 0, "/rules/3"}) == "f.json /rules/3");
  CHECK(where_text({"<command line>"}) == "<command line>");
  CHECK(where_text({""}) == "");
}

TEST_CASE("values in one line", "[render][value]") {
  CHECK(value_text(Unset{}) == "(unset)");
  CHECK(value_text(std::string("plain text")) == "plain text");
  CHECK(value_text(std::string()) == "''");
  CHECK(value_text(RankFact::local_size) == "<local-size>");
  CHECK(value_text(PerRank{{{"a", "", "c"}, {"d"}}}) == "a / '' / c | d");
}

TEST_CASE("argument groups", "[render][text]") {
  using Groups = std::vector<std::vector<std::string>>;
  CHECK(argument_groups({"mpiexec", "-n", "4", "--flag", "--x=1", "y", "shim/hpclaunch-shim", "/py",
                         "t.py", "-1", "--lr", "-2", "z", "--", "w"}) ==
        Groups{{"mpiexec"},
               {"-n", "4"},
               {"--flag"},
               {"--x=1", "y"},
               {"shim/hpclaunch-shim"},
               {"/py", "t.py", "-1"},
               {"--lr", "-2"},
               {"z"},
               {"--", "w"}});
  CHECK(argument_groups({}).empty());
}
