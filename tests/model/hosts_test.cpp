#include "hpclaunch/hosts.h"

#include "hpclaunch/env.h"
#include "support/catch.h"

using namespace hpclaunch;

TEST_CASE("host files in the spellings of Hydra, Open MPI and PBS", "[job]") {
  const auto hosts = parse_host_file("# nodes\nn1:4\n n2 slots=8 \n\nn3 # last\n", "h");
  REQUIRE(hosts);
  CHECK(*hosts == HostFile{{"n1", "n2", "n3"}, {4, 8, 0}});
  const auto pbs = parse_host_file("x1.site\nx1.site\nx2.site\nx1.site\nx2.site", "h");
  REQUIRE(pbs);
  CHECK(*pbs == HostFile{{"x1.site", "x2.site"}, {3, 2}});
  CHECK(*parse_host_file("fe80::1\r\n", "h") == HostFile{{"fe80::1"}, {0}});
}

TEST_CASE("host files: the limits of Open MPI", "[hosts]") {
  const auto hosts = parse_host_file("n1 slots=4 max_slots=8\nn2 slots=2\tmax-slots=2\n", "h");
  REQUIRE(hosts);
  CHECK(*hosts == HostFile{{"n1", "n2"}, {4, 2}});
  CHECK(!parse_host_file("n1 slots=4 more=8\n", "h"));
  const auto other =
      parse_host_file("n1 max_slots=8 slots=4\nn2 slots = 2 max-slots = 3\nn3 max_slots=9\n", "h");
  REQUIRE(other);
  CHECK(*other == HostFile{{"n1", "n2", "n3"}, {4, 2, 0}});
  for (const char* bad : {"n1 slots\n", "n1 slots = \n", "n1 = 4\n", "n1 slots=4 5\n"})
    CHECK(!parse_host_file(bad, "h"));
}

TEST_CASE("a bad host file is refused with file and line", "[job]") {
  const std::pair<const char*, int> cases[] = {
      {"n1\nn2:0\n", 2},     {"n1:x", 1},     {"n[1-4]", 1},   {"a,b", 1}, {"n1 4", 1},
      {"n1 slots=", 1},      {":4", 1},       {"n1:4097", 1},  {"", 0},    {"# none\n", 0},
      {"-x\n", 1},           {"n\xff", 1},    {"me@n1", 1},    {"^n1", 1}, {"\xef\xbb\xbfn1\n", 1},
      {"n1\n10.0.0.300", 2}, {"n1:2:3\n", 1}, {"n1%eth0\n", 1}};
  for (const auto& [text, line] : cases) {
    INFO(text);
    const auto hosts = parse_host_file(text, "hosts.txt");
    REQUIRE_FALSE(hosts);
    REQUIRE(hosts.error().where);
    CHECK(hosts.error().where->file == "hosts.txt");
    CHECK(hosts.error().where->line == line);
  }
}

TEST_CASE("a file that is no text is refused in words that can be read", "[job]") {
  using namespace std::string_view_literals;
  const auto utf16 = parse_host_file("n\0001\0\n\0n\0002\0"sv, "h");
  REQUIRE_FALSE(utf16);
  CHECK(utf16.error().message == "host file: a character that host names do not have in \"n?1?\"");
  const auto core = parse_host_file(std::string(100'000, '\x7f'), "h");
  REQUIRE_FALSE(core);
  CHECK(core.error().message.size() < 300);
  for (const char* text : {"n1 \x1b[2J", "n1:\x1b[2J", "n1 slots=\x1b"}) {
    const auto escape = parse_host_file(text, "h");
    REQUIRE_FALSE(escape);
    CHECK(escape.error().message.find('\x1b') == std::string::npos);
  }
  CHECK(parse_host_file("fe80::1%eth0\na_b-c.d.\n", "h")->names.size() == 2);
}

TEST_CASE("hosts are names by RFC 1035 or addresses", "[hosts]") {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  for (const std::string& good :
       {std::string("n1"), std::string("x1000c0s0b0n0.hsn.cm.site.org"),
        std::string("gpu_a-1.site."), std::string("1"), std::string("3com.net"), label, longest,
        longest + ".", std::string("10.0.0.255"), std::string("::"), std::string("::1"),
        std::string("fe80::1%eth0"), std::string("2001:DB8:0:0:1:2:3:4"), std::string("1::"),
        std::string("::ffff:10.0.0.1"), std::string("1:2:3:4:5:6:10.0.0.1")}) {
    INFO(good);
    CHECK_FALSE(strange_in_host(good));
  }
  const std::pair<std::string, const char*> cases[] = {
      {"", "no host name"},
      {std::string(800'000, 'a'), "a name of 800000 bytes (at most 253)"},
      {longest + "b", "a name of 254 bytes (at most 253)"},
      {longest + "b.", "a name of 255 bytes"},
      {label + "a.org", "a label of 64 bytes (at most 63)"},
      {"n." + label + "a", "a label of 64 bytes"},
      {"n1..org", "an empty label"},
      {".n1", "an empty label"},
      {".", "an empty label"},
      {"10.0.0.256", "not an IPv4 address"},
      {"10.0.0", "not an IPv4 address"},
      {"10.0.0.1.2", "not an IPv4 address"},
      {"10.0.0.0001", "not an IPv4 address"},
      {"a,b", "a list"},
      {"n[1-2]", "a list"},
      {"-n1", "a character"},
      {"n1%eth0", "a character"},
      {"n1:4", "a character"},
      {"n 1", "a character"},
      {"1:2:3:4:5:6:7", "a character"},
      {"1:2:3:4:5:6:7:8:9", "a character"},
      {"1:2:3:4:5:6:7::8", "a character"},
      {"1::2::3", "a character"},
      {":::1", "a character"},
      {"12345::", "a character"},
      {"g::1", "a character"},
      {"10.0.0.1::", "a character"},
      {"fe80::1%", "a character"},
      {"fe80::1%a b", "a character"}};
  for (const auto& [bad, why] : cases) {
    INFO(bad.substr(0, 300));
    CHECK_THAT(strange_in_host(bad).value_or("a host"), ContainsSubstring(why));
  }
}

TEST_CASE("host files above a limit are refused with their line", "[hosts]") {
  const std::pair<std::string, const char*> cases[] = {
      {"n1\n" + std::string(800, 'a') + "\n", "a name of 800 bytes"},
      {"n1\n" + std::string(70, 'a') + ":4\n", "a label of 70 bytes"},
      {"n1\n" + std::string(50'000'000, 'a') + "\nn3\n", "a line of 50000000 bytes (at most 4096)"},
      {"n1\nn2" + std::string(50'000'000, ' ') + "slots=4\n", "a line of 50000009 bytes"},
      {"n1\n" + std::string(4096, ':') + "\n", "a name of 4096 bytes"}};
  for (const auto& [text, why] : cases) {
    const auto hosts = parse_host_file(text, "hosts.txt");
    REQUIRE_FALSE(hosts);
    CHECK_THAT(hosts.error().message, ContainsSubstring(why));
    CHECK(hosts.error().message.size() < 400);
    REQUIRE(hosts.error().where);
    CHECK(hosts.error().where->line == 2);
  }
  const std::string blank(60'000'000, '\n');
  const auto lines = parse_host_file("n1\n" + blank, "hosts.txt");
  REQUIRE_FALSE(lines);
  CHECK(lines.error().message == "host file: 60000001 lines (at most 4000000)");
  std::string many;
  for (int i = 0; i <= 1'000'000; ++i) many += "n" + std::to_string(i) + "\n";
  const auto hosts = parse_host_file(many, "hosts.txt");
  REQUIRE_FALSE(hosts);
  CHECK(hosts.error().message == "host file: 1000001 hosts (at most 1000000)");
  const std::string comment = "n1 slots=4 # " + std::string(100'000, 'x') + "\n\n  \nn2\n";
  CHECK(*parse_host_file(comment, "h") == HostFile{{"n1", "n2"}, {4, 0}});
}

TEST_CASE("a host file of a hundred thousand lines, in any order", "[job]") {
  // Quadratic work would be ten thousand million comparisons: minutes.
  constexpr int kHosts = 100'000;
  std::string text;
  for (int i = 0; i < kHosts; ++i) text += "n" + std::to_string(i * 7919LL % kHosts) + "\n";
  const auto once = parse_host_file(text, "h");
  REQUIRE(once);
  CHECK(once->names.size() == kHosts);
  CHECK(once->names.first(2) == HostNames{"n0", "n7919"});
  CHECK(once->slots[1] == 0);
  const auto twice = parse_host_file(text + text, "h");
  REQUIRE(twice);
  CHECK(twice->names == once->names);
  CHECK(twice->slots[1] == 2);
}

TEST_CASE("names of hosts in one piece", "[hosts]") {
  HostNames names = {"a", "", "node2"};
  names.push_back("b");
  CHECK(names.size() == 4);
  CHECK(std::vector<std::string>(names.begin(), names.end()) ==
        std::vector<std::string>{"a", "", "node2", "b"});
  CHECK(names.front() == "a");
  CHECK(names.back() == "b");
  CHECK(names.first(3) == HostNames{"a", "", "node2"});
  CHECK(names != HostNames{"a", "n", "ode2", "b"});
  CHECK(HostNames().empty());
}

TEST_CASE("repeated hosts are one, in any order", "[hosts]") {
  HostNames names = {"b", "a", "b", "c", "a", "b"};
  std::vector<int> slots = {1, 2, 0, 4, 3, 1};
  CHECK(merge_repeated(names, slots));
  CHECK(names == HostNames{"b", "a", "c"});
  CHECK(slots == std::vector<int>{3, 5, 4});
  CHECK_FALSE(merge_repeated(names, slots));
  CHECK(names == HostNames{"b", "a", "c"});
  std::vector<int> none;
  HostNames descending = {"c", "b", "a", "c"};
  CHECK(merge_repeated(descending, none));
  CHECK(descending == HostNames{"c", "b", "a"});
  CHECK(none.empty());
}

TEST_CASE("host names are compared as far as they go", "[job]") {
  CHECK(same_host("n1", "N1"));
  CHECK(same_host("n1", "n1.site.org"));
  CHECK(same_host("n1.site.org", "n1.site.org"));
  CHECK_FALSE(same_host("n1.a.org", "n1.b.org"));
  CHECK_FALSE(same_host("n1", "n10"));
  CHECK_FALSE(same_host("10.0.0.1", "10.0.0.2"));
  CHECK(same_host("10.0.0.1", "10.0.0.1"));
}

TEST_CASE("an environment keeps order, odd entries and bytes", "[env]") {
  const EnvSnapshot env({"B=1", "A=2", "odd", "B=3", "EMPTY=", "X=a=b"});
  CHECK(env.get("B") == "1");
  CHECK(env.get("X") == "a=b");
  CHECK(env.has("EMPTY"));
  CHECK(env.find("odd") == nullptr);
  CHECK(env.get("none", "other") == "other");
  const EnvSnapshot changed =
      env.with({{"B", "9"}, {"A", std::nullopt}, {"Z", "new"}, {"C", ""}, {"odd", "set"}});
  CHECK(changed.entries() ==
        std::vector<std::string>{"B=9", "odd", "EMPTY=", "X=a=b", "C=", "Z=new", "odd=set"});
  CHECK(env.with({}).entries() == env.entries());
}

TEST_CASE("addresses of one machine, and of one link", "[job]") {
  for (const char* text : {"127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"})
    CHECK(is_loopback(text));
  for (const char* text : {"fe80::1", "FE80::1%eth0", "fe90::1", "febf::1", "169.254.1.1"})
    CHECK(is_link_local(text));
  for (const char* text : {"10.0.0.1", "fec0::1", "fe8::1", "fd00::1", "feb.example.org", ""}) {
    INFO(text);
    CHECK_FALSE(is_loopback(text));
    CHECK_FALSE(is_link_local(text));
  }
}
