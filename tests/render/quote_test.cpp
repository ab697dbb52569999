#include "hpclaunch/render.h"
#include "support/catch.h"

using namespace hpclaunch;

TEST_CASE("plain words stay bare in every shell", "[render][quote]") {
  for (const std::string word :
       {"a", "user:0-3,8", "/usr/bin/python3", "--lr=3e-4", "-n", "a.b@c+d"}) {
    CHECK(quote_sh(word) == word);
    CHECK(quote_csh(word) == word);
    CHECK(quote_fish(word) == word);
  }
}

TEST_CASE("words with a meaning are quoted", "[render][quote]") {
  struct Row {
    std::string value, sh, csh, fish;
  };
  const std::vector<Row> rows = {
      {"", "''", "''", "''"},
      {"a b", "'a b'", "'a b'", "'a b'"},
      {"it's", "'it'\\''s'", "'it'\\''s'", "'it\\'s'"},
      {"$x`y`", "'$x`y`'", "'$x`y`'", "'$x`y`'"},
      {"wow!", "'wow!'", "'wow'\\!", "'wow!'"},
      {"a\\", "'a\\'", "'a'\\\\", "'a\\\\'"},
      {"a\nb", "'a\nb'", "'a''\\\n''b'", "'a'\\n'b'"},
      {"\t\x01\x7f", "'\t\x01\x7f'", "'\t\x01\x7f'", "\\t\\x01\\x7f"},
      {"\xc3\xa9", "'\xc3\xa9'", "'\xc3\xa9'", "\\Xc3\\Xa9"},
      {"~", "'~'", "'~'", "'~'"},
      {"=ls", "'=ls'", "'=ls'", "'=ls'"},
  };
  for (const Row& row : rows) {
    CHECK(quote_sh(row.value) == row.sh);
    CHECK(quote_csh(row.value) == row.csh);
    CHECK(quote_fish(row.value) == row.fish);
  }
}
