#include "hpclaunch/text.h"

#include "support/catch.h"

using namespace hpclaunch;

TEST_CASE("split keeps empty pieces", "[text]") {
  CHECK(split("a,,b", ',') == std::vector<std::string_view>{"a", "", "b"});
  CHECK(split("", ',') == std::vector<std::string_view>{""});
  CHECK(split("a,", ',') == std::vector<std::string_view>{"a", ""});
}

TEST_CASE("trim takes blanks at both ends only", "[text]") {
  CHECK(trim("  a b\t\r\n") == "a b");
  CHECK(trim(" \n").empty());
  CHECK(trim("").empty());
}

TEST_CASE("natural numbers: digits only, bounded", "[text]") {
  CHECK(parse_natural("0") == 0);
  CHECK(parse_natural("007") == 7);
  CHECK(parse_natural("2147483647") == 2147483647L);
  for (const char* bad :
       {"", "-1", "+1", " 1", "1 ", "1.0", "0x10", "2147483648", "99999999999999999999999"})
    CHECK_FALSE(parse_natural(bad));
  CHECK(parse_natural("65535", 65535) == 65535);
  CHECK_FALSE(parse_natural("65536", 65535));
  for (const char* large : {"2", "9", "10"}) CHECK_FALSE(parse_natural(large, 1));
  CHECK(parse_natural("1", 1) == 1);
}

TEST_CASE("identifiers: letters, digits and underscores, no digit in front", "[text]") {
  for (const char* name : {"A", "_", "a1", "PMI_RANK2"}) CHECK(is_identifier(name));
  for (const char* name : {"", "1A", "A-B", "A B", "A=", "\xC3\xA4"})
    CHECK_FALSE(is_identifier(name));
}

TEST_CASE("the hash is the published one", "[text]") {
  CHECK(fnv1a("") == 0x811c9dc5u);
  CHECK(fnv1a("a") == 0xe40c292cu);  // test vectors of the authors, isthe.com/chongo/tech/comp/fnv
  CHECK(fnv1a("foobar") == 0xbf9cf968u);
}

TEST_CASE("misspellings find their word, strangers do not", "[text]") {
  const std::vector<std::string> words = {"run",     "plan",           "env", "explain", "topo",
                                          "profile", "--oversubscribe"};
  CHECK(nearest("paln", words) == "plan");
  CHECK(nearest("explian", words) == "explain");
  CHECK(nearest("RUN", words) == "run");
  CHECK(nearest("profil", words) == "profile");
  CHECK(nearest("--oversubscibe", words) == "--oversubscribe");
  CHECK_FALSE(nearest("kubernetes", words));
  CHECK_FALSE(nearest("", words));
  CHECK_FALSE(nearest("x", words));
  CHECK_FALSE(nearest("run", std::vector<std::string>()));
}

TEST_CASE("sizes for people", "[text]") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1 KiB");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes(1024ull * 1024 - 1) == "1 MiB");
  CHECK(human_bytes(33554432) == "32 MiB");
  CHECK(human_bytes(540573884416ull) == "503.4 GiB");
  CHECK(human_bytes(18446744073709551615ull) == "16 EiB");
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(2, "core") == "2 cores");
}
