#include <algorithm>
#include <map>
#include <random>

#include "hpclaunch/hosts.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

std::string joined(const HostNames& names) {
  std::string text;
  for (const std::string& name : names) (text += text.empty() ? "" : " ") += name;
  return text;
}

std::string hosts(const std::string& list) {
  const auto expanded = expand_hostlist(list);
  return expanded ? joined(*expanded) : "error: " + expanded.error().message;
}

}  // namespace

TEST_CASE("lists of hosts, as scontrol show hostnames prints them", "[job][hostlist]") {
  const std::pair<const char*, const char*> cases[] = {
      {"n1", "n1"},
      {"n1,n2", "n1 n2"},
      {" ,n1,, n2\nn3\t", "n1 n2 n3"},
      {"n[1-3]", "n1 n2 n3"},
      {"n[1-3,7]", "n1 n2 n3 n7"},
      {"n[7]", "n7"},
      {"n[3,1-2]", "n3 n1 n2"},
      {"n[1,1,2]", "n1 n1 n2"},
      {"n[08-11]", "n08 n09 n10 n11"},
      {"n[099-101]", "n099 n100 n101"},
      {"n[8-11]", "n8 n9 n10 n11"},
      {"n[9-0010]", "n9 n10"},
      {"n[0-0]", "n0"},
      {"n[00]", "n00"},
      {"n[1-2]-ib0", "n1-ib0 n2-ib0"},
      {"a[1-2].site.org,b", "a1.site.org a2.site.org b"},
      {"nid[001000-001001],gpu-3", "nid001000 nid001001 gpu-3"},
      {"x4001c[0-1]s0b0n0", "x4001c0s0b0n0 x4001c1s0b0n0"},
      {"rack[0-1]node[0-1]", "rack0node0 rack0node1 rack1node0 rack1node1"},
      {"x[1000-1001]c[0-1]s[0-1]b0n0",
       "x1000c0s0b0n0 x1000c0s1b0n0 x1001c0s0b0n0 x1001c0s1b0n0 "
       "x1000c1s0b0n0 x1000c1s1b0n0 x1001c1s0b0n0 x1001c1s1b0n0"},
      {"a[0-1]b[0-1]c[0-1]d[5]",
       "a0b0c0d5 a1b0c0d5 a0b1c0d5 a1b1c0d5 a0b0c1d5 a1b0c1d5 a0b1c1d5 a1b1c1d5"},
      {"[1-2]", "1 2"},
      {"1n[2-3]", "1n2 1n3"},
      {"n[999999999999999998-999999999999999999]", "n999999999999999998 n999999999999999999"},
  };
  for (const auto& [list, want] : cases) {
    INFO(list);
    CHECK(hosts(list) == want);
  }
}

TEST_CASE("a list of hosts that means nothing is refused with the piece", "[job][hostlist]") {
  const std::pair<const char*, const char*> cases[] = {
      {"", "it is empty"},
      {" , \n", "it is empty"},
      {"n[5-3]", "\"5-3\" in \"n[5-3]\" counts down"},
      {"n[1-", "\"[1-\" in \"n[1-\" has a \"[\" without \"]\""},
      {"n[", "has a \"[\" without"},
      {"n[]", "has an empty entry"},
      {"n[1-3,]", "has an empty entry"},
      {"n[,1]", "has an empty entry"},
      {"n[0x1-0x3]", "\"0x1-0x3\" in \"n[0x1-0x3]\" is not a number or range"},
      {"n[000x111]", "is not a number or range"},
      {"n[1-2-3]", "\"1-2-3\""},
      {"n[-1]", "is not a number or range"},
      {"n[1-]", "is not a number or range"},
      {"n[a]", "\"a\""},
      {"n[1, 2]", "has a \"[\" without"},
      {"n[1[2]]", "has a \"[\" without"},
      {"n1]", "has a \"]\" without \"[\""},
      {"n[1]]", "has a \"]\" without \"[\""},
      {"ok,n[1-2],n[x]", "\"x\" in \"n[x]\""},
      {"n[0-999999999999999999]", "more than 1000000 hosts"},
      {"n[0-1000000]", "more than 1000000 hosts"},
      {"a[0-9999]b[0-9999]", "more than 1000000 hosts"},
      {"a[0-99999]b[0-99999]c[0-99999]d[0-99999]e[0-99999]", "more than 1000000 hosts"},
      {"n[0-999999],m", "more than 1000000 hosts"},
      {"n[0-9999999999999999999999]", "is not a number or range"},
      {"n[\x1b\n]", "has a \"[\" without"},
      {"n[\x1b]", "\"?\""},
  };
  for (const auto& [list, want] : cases) {
    INFO(list);
    const auto expanded = expand_hostlist(list);
    REQUIRE_FALSE(expanded);
    CHECK(expanded.error().kind == ErrorKind::invalid);
    CHECK_THAT(expanded.error().message, ContainsSubstring(want));
    CHECK_FALSE(expanded.error().hint.empty());
  }
  CHECK(expand_hostlist("n[" + std::string(100'000, '1') + "]").error().message.size() < 300);
  const std::string head(253, 'n');
  for (const std::string& list :
       {head + "n", "ok," + head + "[0-9]", "[1]" + head, "a[0-9]" + head + "[0-999]",
        head.substr(5) + "[1-100000]", std::string(800'000, 'n') + "[0-999]x[0-999]"}) {
    INFO(list.substr(0, 300));
    CHECK_THAT(hosts(list), ContainsSubstring("bytes (at most 253)"));
    CHECK(hosts(list).size() < 300);
  }
  CHECK(expand_hostlist(head + "," + head.substr(5) + "[1-10000]")->size() == 10'001);
}

TEST_CASE("long lists of hosts", "[job][hostlist]") {
  // Work that grows with the square would be minutes here.
  const auto range = expand_hostlist("nid[000001-100000]");
  REQUIRE(range);
  CHECK(range->size() == 100'000);
  CHECK(range->back() == "nid100000");
  std::string names;
  std::string numbers = "n[";
  for (int i = 0; i < 100'000; ++i) {
    names += "n" + std::to_string(i) + ",";
    numbers += (i > 0 ? "," : "") + std::to_string(i);
  }
  const auto listed = expand_hostlist(names);
  REQUIRE(listed);
  CHECK(listed->size() == 100'000);
  const auto in_one_bracket = expand_hostlist(numbers + "]");
  REQUIRE(in_one_bracket);
  CHECK(*in_one_bracket == *listed);
  CHECK(expand_hostlist("n[0-999999]")->size() == 1'000'000);
}

TEST_CASE("what is written as a list reads back as it was", "[job][hostlist][law]") {
  std::mt19937 engine(20260311);
  const auto below = [&](unsigned limit) { return static_cast<int>(engine() % limit); };
  for (int round = 0; round < 500; ++round) {
    std::string list;
    std::vector<std::string> want;
    for (int token = 0; token <= below(5); ++token) {
      const std::string prefix = "p" + std::to_string(below(3)) + "-";
      const std::string suffix = below(2) == 0 ? "" : "s.org";
      if (token > 0) list += ",";
      list += prefix + "[";
      for (int range = 0; range <= below(4); ++range) {
        const int first = below(300);
        const int count = 1 + below(20);
        const auto width = static_cast<std::size_t>(below(6));
        const auto padded = [&](int number) {
          const std::string digits = std::to_string(number);
          return std::string(digits.size() < width ? width - digits.size() : 0, '0') + digits;
        };
        if (range > 0) list += ",";
        list += padded(first);
        if (count > 1) list += "-" + std::to_string(first + count - 1);
        for (int i = first; i < first + count; ++i) want.push_back(prefix + padded(i) + suffix);
      }
      list += "]" + suffix;
    }
    INFO(list);
    const auto expanded = expand_hostlist(list);
    REQUIRE(expanded);
    REQUIRE(*expanded == want);
  }
}

TEST_CASE("damaged lists of hosts: an error or hosts, never anything else", "[job][hostlist]") {
  std::mt19937 engine(7);
  const std::string bytes = "n1-9,[]() x\n0\xff";
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string list;
    for (auto i = engine() % 14; i > 0; --i) list += bytes[engine() % bytes.size()];
    const auto expanded = expand_hostlist(list);
    if (!expanded) continue;
    ++accepted;
    for (const std::string& host : *expanded) {
      REQUIRE_FALSE(host.empty());
      REQUIRE(host.find_first_of("[] \n") == std::string::npos);
    }
  }
  CHECK(accepted > 1000);
}

TEST_CASE("counts per node", "[job][hostlist]") {
  CHECK(*expand_tasks_per_node("4(x2),3") == std::vector<int>{4, 4, 3});
  CHECK(*expand_tasks_per_node("8") == std::vector<int>{8});
  CHECK(*expand_tasks_per_node("1,2(x1),3(x2)") == std::vector<int>{1, 2, 3, 3});
  CHECK(expand_tasks_per_node("8(x100000)")->size() == 100'000);
  for (const char* text : {"",
                           ",",
                           "4,",
                           "0",
                           "4(x0)",
                           "4(x)",
                           "4(2)",
                           "4x2",
                           "(x2)",
                           "4(x2",
                           "4(x2)3",
                           "-1",
                           "4(x-1)",
                           "4(x1000001)",
                           "4(x600000),4(x600000)",
                           "a",
                           "4 (x2)",
                           "99999999999",
                           "4(x99999999999999999999)",
                           "4((x2))"}) {
    INFO(text);
    const auto counts = expand_tasks_per_node(text);
    REQUIRE_FALSE(counts);
    CHECK(counts.error().kind == ErrorKind::invalid);
  }
}

TEST_CASE("lists of hosts the short way give the hosts back", "[hosts]") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> lists = {
      {{"n1"}, "n1"},
      {{"n1", "n2", "n3", "n7"}, "n[1-3,7]"},
      {{"n08", "n09", "n10", "n11"}, "n[08-11]"},
      {{"n9", "n10", "n011"}, "n[9-10,011]"},
      {{"x1c0", "x2c0", "x3c0", "x3c1"}, "x[1-3]c0,x3c1"},
      {{"r1n1", "r1n2", "r2n1", "r2n2"}, "r1n[1-2],r2n[1-2]"},
      {{"n3", "n2", "n1"}, "n[3,2,1]"},
      {{"n1", "n1"}, "n[1,1]"},
      {{"a", "b", "a1", "aa1"}, "a,b,a1,aa1"},
      {{"1", "2"}, "[1-2]"},
      {{"n1", "n"}, "n1,n"},
      {{"n11", "n1"}, "n[11,1]"},
      {{"n999999999999999999999", "n1"}, "n999999999999999999999,n1"}};
  for (const auto& [hosts, text] : lists) {
    CHECK(host_ranges(hosts, 1000) == text);
    const auto back = expand_hostlist(text);
    REQUIRE(back);
    CHECK(*back == HostNames(hosts));
  }
  std::vector<std::string> many;
  for (int i = 0; i < 5000; ++i) many.push_back("n" + std::to_string(i * 3));
  CHECK(host_ranges(many, 40) == "n[0,3,6,9,12,15,18,21,... (5000 nodes)");
  for (std::size_t most : {0U, 10U, 16U, 20U, 100U})
    CHECK(host_ranges(many, most).size() <= std::max<std::size_t>(most, 17));
}
