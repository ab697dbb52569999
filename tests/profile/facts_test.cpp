// Facts, conditions and templates.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>

#include "hpclaunch/profile.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

Facts some_facts(const EnvSnapshot& env) {
  Facts facts;
  facts.job = {{"nodes", "32"}, {"stack", "a"}, {"local_rank", "job"}, {"in_job", "yes"}};
  facts.modules = {{"tools", "2025.3.1"}, {"plain", ""}};
  facts.values = {{"FI_PROVIDER", "cxi"}};
  facts.env = &env;
  return facts;
}

Test test(const char* fact, Test::Op op, std::vector<std::string> values = {}) {
  return {fact, op, std::move(values)};
}

}  // namespace

TEST_CASE("the table of facts is the manual's, name by name") {
  std::ifstream in(HPCLAUNCH_SOURCE_DIR "/docs/reference/profile-format.md");
  const std::string manual{std::istreambuf_iterator<char>(in), {}};
  const std::size_t begin = manual.find("### facts");
  REQUIRE(begin != std::string::npos);
  const std::string table = manual.substr(begin, manual.find("### expect") - begin);
  std::map<std::string, std::string> written;
  const std::regex row("\n\\| (`[^|]*`) \\| (job|rank|group|late) \\|");
  const std::regex name("`([a-z_.]+?)(NAME)?`");
  for (std::sregex_iterator at(table.begin(), table.end(), row), end; at != end; ++at) {
    const std::string names = (*at)[1];
    for (std::sregex_iterator one(names.begin(), names.end(), name); one != end; ++one)
      written[(*one)[1]] = (*at)[2];
  }
  std::map<std::string, std::string> known;
  for (const FactInfo& fact : known_facts()) {
    const char* const scopes[] = {"job", "rank", "group", "late"};
    known[std::string(fact.name)] = scopes[static_cast<int>(fact.scope)];
  }
  CHECK(known == written);
  CHECK(known.size() == known_facts().size());
  CHECK(std::is_sorted(known_facts().begin(), known_facts().end(),
                       [](const FactInfo& a, const FactInfo& b) { return a.name < b.name; }));
}

TEST_CASE("a look-up falls through from the rank to the job to the groups") {
  const EnvSnapshot env({"HOME=/home/me", "EMPTY="});
  Facts facts = some_facts(env);
  CHECK(facts.find("nodes") == "32");
  CHECK(facts.find("local_rank") == "job");
  facts.rank = {{"local_rank", "3"}, {"role.worker", "42"}};
  CHECK(facts.find("local_rank") == "3");
  CHECK(facts.find("role.worker") == "42");
  CHECK(facts.find("env.HOME") == "/home/me");
  CHECK(facts.find("env.EMPTY") == "");
  CHECK(facts.find("env.NONE") == std::nullopt);
  CHECK(facts.find("module.tools") == "2025.3.1");
  CHECK(facts.find("module.plain") == "");
  CHECK(facts.find("module.none") == std::nullopt);
  CHECK(facts.find("value.FI_PROVIDER") == "cxi");
  CHECK(facts.find("") == std::nullopt);
  facts.env = nullptr;
  CHECK(facts.find("env.HOME") == std::nullopt);
}

TEST_CASE("modules have a name and a version") {
  const auto loaded = [](const char* text) {
    return loaded_modules(EnvSnapshot({std::string("LOADEDMODULES=") + text}));
  };
  using Modules = std::map<std::string, std::string, std::less<>>;
  CHECK(loaded("a/1.2:b") == Modules{{"a", "1.2"}, {"b", ""}});
  CHECK(loaded("a/1:a/2") == Modules{{"a", "2"}});
  CHECK(loaded("a/1:a") == Modules{{"a", ""}});
  CHECK(loaded("a/b/1.2") == Modules{{"a", "b/1.2"}, {"a/b", "1.2"}});
  CHECK(loaded("").empty());
  CHECK(loaded(":::/x").empty());
  CHECK(loaded_modules(EnvSnapshot()).empty());
}

TEST_CASE("each operator, on facts that are set and on facts that are not") {
  const EnvSnapshot env({"NET=a,disable_x,b"});
  const Facts facts = some_facts(env);
  using Op = Test::Op;
  struct Row {
    Test test;
    bool expected;
  };
  const Row rows[] = {
      {test("nodes", Op::eq, {"32"}), true},
      {test("nodes", Op::eq, {"1", "32"}), true},
      {test("nodes", Op::eq, {"1", "2"}), false},
      {test("env.NONE", Op::eq, {""}), false},
      {test("nodes", Op::ne, {"32"}), false},
      {test("nodes", Op::ne, {"1", "32"}), false},
      {test("nodes", Op::ne, {"1", "2"}), true},
      {test("env.NONE", Op::ne, {"1"}), true},
      {test("nodes", Op::gt, {"16"}), true},
      {test("nodes", Op::gt, {"32"}), false},
      {test("nodes", Op::ge, {"32"}), true},
      {test("nodes", Op::lt, {"100"}), true},
      {test("nodes", Op::le, {"31"}), false},
      {test("env.NONE", Op::lt, {"1"}), false},
      {test("stack", Op::lt, {"9"}), false},
      {test("stack", Op::ge, {"9"}), false},
      {test("module.tools", Op::ge, {"2025.3"}), true},
      {test("module.tools", Op::ge, {"2025.10"}), false},
      {test("module.tools", Op::lt, {"2026"}), true},
      {test("module.plain", Op::ge, {"1"}), false},
      {test("env.NET", Op::like, {"*disable_x*"}), true},
      {test("env.NET", Op::like, {"c*", "a*"}), true},
      {test("env.NET", Op::like, {"A*"}), false},
      {test("env.NONE", Op::like, {"*"}), false},
      {test("env.NET", Op::unlike, {"*disable_x*"}), false},
      {test("env.NET", Op::unlike, {"c*"}), true},
      {test("env.NONE", Op::unlike, {"*"}), true},
      {test("env.NET", Op::is_set), true},
      {test("env.NONE", Op::is_set), false},
      {test("env.NET", Op::is_unset), false},
      {test("env.NONE", Op::is_unset), true},
  };
  for (const Row& row : rows) {
    INFO(row.test.fact << " " << static_cast<int>(row.test.op));
    CHECK(holds(row.test, facts) == row.expected);
  }
  CHECK(holds(When{}, facts));
  CHECK(holds(When{rows[0].test, rows[8].test}, facts));
  CHECK_FALSE(holds(When{rows[0].test, rows[2].test}, facts));
}

TEST_CASE("dotted versions are compared part by part") {
  const auto order = [](const char* a, const char* b) {
    Facts facts;
    facts.job["v"] = a;
    const bool less = holds(test("v", Test::Op::lt, {b}), facts);
    const bool more = holds(test("v", Test::Op::gt, {b}), facts);
    const bool at_most = holds(test("v", Test::Op::le, {b}), facts);
    const bool at_least = holds(test("v", Test::Op::ge, {b}), facts);
    CHECK_FALSE((less && more));
    CHECK(at_most == !more);
    CHECK(at_least == !less);
    return less ? -1 : more ? 1 : 0;
  };
  const char* const rising[] = {"0",
                                "1",
                                "1.0.1",
                                "1.2",
                                "1.2rc1",
                                "1.10",
                                "2",
                                "2024.2.1_u1",
                                "2025.3",
                                "2025.3.1",
                                "2025.10",
                                "10000000000000000000000",
                                "10000000000000000000001"};
  const auto count = static_cast<int>(std::size(rising));
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) {
      INFO(rising[i] << " and " << rising[j]);
      CHECK(order(rising[i], rising[j]) == (i < j ? -1 : i > j ? 1 : 0));
    }
  }
  CHECK(order("2025.3", "2025.3.0") == 0);
  CHECK(order("007", "7") == 0);
  CHECK(order("1..2", "1.0.2") == 0);
}

TEST_CASE("what a condition lacks is said with the facts") {
  Facts facts;
  facts.job = {{"nodes", "16"}, {"stack", "a"}};
  CHECK(unmet({test("nodes", Test::Op::gt, {"16"}), test("stack", Test::Op::eq, {"a"})}, facts) ==
        "nodes > 16, and it is 16");
  CHECK(unmet({test("env.X", Test::Op::is_set), test("stack", Test::Op::eq, {"b", "c"})}, facts) ==
        "env.X set, and it is not; stack = b or c, and it is a");
  CHECK(unmet({test("live.cores", Test::Op::ge, {"2"})}, facts) ==
        "live.cores >= 2, and it is not set");
  CHECK(unmet({test("stack", Test::Op::is_unset)}, facts) == "stack not set, and it is");
  CHECK(unmet({test("nodes", Test::Op::le, {"16"})}, facts).empty());
}

TEST_CASE("modules call a version v1.2 as well as 1.2") {
  Facts facts;
  facts.modules = {{"libfabric", "v2.2.0"}};
  CHECK(holds(test("module.libfabric", Test::Op::ge, {"2.2"}), facts));
  CHECK(!holds(test("module.libfabric", Test::Op::lt, {"2.2"}), facts));
}

TEST_CASE("what met a condition is said with the facts") {
  const EnvSnapshot env({"NET=a-b", "EMPTY="});
  const Facts facts = some_facts(env);
  using Op = Test::Op;
  CHECK(met({test("nodes", Op::gt, {"16"}), test("stack", Op::eq, {"a", "b"})}, facts) ==
        "nodes = 32 > 16, stack = a");
  CHECK(met({test("env.NET", Op::like, {"c*", "a*"})}, facts) == "env.NET = a-b like a*");
  CHECK(met({test("env.NET", Op::unlike, {"c*", "d*"})}, facts) == "env.NET = a-b unlike c* or d*");
  CHECK(met({test("env.X", Op::is_unset), test("env.EMPTY", Op::is_set)}, facts) ==
        "env.X is not set, env.EMPTY = \"\"");
  CHECK(met({test("stack", Op::ne, {"c"})}, facts) == "stack = a != c");
  CHECK(met({}, facts).empty());
}

TEST_CASE("templates") {
  const EnvSnapshot env({"ROOT=/opt/${nodes}"});
  const Facts facts = some_facts(env);
  const auto text = [&](const char* from) {
    const Result<std::string> result = expand(from, facts);
    REQUIRE(result);
    return *result;
  };
  CHECK(text("") == "");
  CHECK(text("plain") == "plain");
  CHECK(text("${nodes}") == "32");
  CHECK(text("a${nodes}b${stack}c") == "a32bac");
  CHECK(text("$$HOME and $${nodes}") == "$HOME and ${nodes}");
  CHECK(text("${env.ROOT}/lib") == "/opt/${nodes}/lib");  // what comes in is not expanded again
  CHECK(text("$$$$") == "$$");

  const Result<std::string> unset = expand("${nodes}${env.NONE}${env.OTHER}", facts);
  REQUIRE_FALSE(unset);
  CHECK(unset.error().kind == ErrorKind::invalid);
  CHECK(unset.error().message == "${env.NONE} is not set");
  CHECK(unset.error().hint == "export NONE");
  for (const char* broken : {"$", "a$b", "${nodes", "${", "$$$", "$(id)"}) {
    INFO(broken);
    CHECK_FALSE(expand(broken, facts));
  }
  using Names = std::vector<std::string>;
  CHECK(facts_in({"${b}${a}$${c}${b}", Template::Each::once, ""}) == Names{"b", "a"});
  CHECK(facts_in({"$$", Template::Each::once, ""}).empty());
}

TEST_CASE("a condition on value.NAME is late") {
  CHECK(is_late({test("nodes", Test::Op::eq, {"1"}), test("value.X", Test::Op::is_set)}));
  CHECK_FALSE(is_late({test("env.value.X", Test::Op::is_set)}));
  CHECK_FALSE(is_late({}));
}
