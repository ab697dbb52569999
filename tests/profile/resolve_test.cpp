// Merging: extends, in place by id, and what only the whole can tell.
#include <map>

#include "hpclaunch/profile.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

Profile parsed(const std::string& text, const std::string& file = "test.json") {
  ParsedProfile result = parse_profile(text, file);
  for (const Error& problem : result.problems) UNSCOPED_INFO(problem.message);
  REQUIRE(result.problems.empty());
  return std::move(result.profile);
}

class Library {
 public:
  Library& add(const std::string& name, const std::string& more) {
    profiles_[name] =
        parsed(R"({"schema": 1, "name": ")" + name + "\"" + (more.empty() ? "" : ", ") + more + "}",
               name + ".json");
    return *this;
  }
  Result<Profile> resolve(const std::string& name) const {
    const ProfileLookup find = [this](const std::string& wanted) { return look(wanted); };
    return resolve_profile(profiles_.at(name), find);
  }

 private:
  Result<Profile> look(const std::string& wanted) const {
    const auto found = profiles_.find(wanted);
    if (found == profiles_.end())
      return Error{
          ErrorKind::not_found, "no profile is named \"" + wanted + "\"", "look again", {}};
    return found->second;
  }
  std::map<std::string, Profile> profiles_;
};

std::string rule(const std::string& id, const std::string& value) {
  return R"({"id": ")" + id + R"(", "default": {"X": ")" + value + R"("}, "why": "it is so"})";
}

std::vector<std::string> rules_of(const Profile& profile) {
  std::vector<std::string> out;
  for (const Rule& one : profile.rules)
    out.push_back(one.id + "=" + one.defaults.at(0).value.text + "@" + one.origin.profile);
  return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("entries with the same id are replaced whole, in place") {
  Library library;
  library.add("base", R"("rules": [)" + rule("a", "1") + "," + rule("b", "1") + "]")
      .add("other", R"("rules": [)" + rule("c", "2") + "," + rule("a", "2") + "]")
      .add("own", R"("extends": ["base", "other"], "rules": [)" + rule("d", "3") + "," +
                      rule("b", "3") + "]");
  const Result<Profile> own = library.resolve("own");
  REQUIRE(own);
  CHECK(rules_of(*own) == Texts{"a=2@other", "b=3@own", "c=2@other", "d=3@own"});
  CHECK(own->extends == Texts{"base", "other"});
  CHECK(own->rules[1].origin.where.file == "own.json");
  CHECK(own->rules[0].origin.where.pointer == "/rules/1");
}

TEST_CASE("a base that two others share does not undo what one of them changed") {
  Library library;
  library.add("base", R"("rules": [)" + rule("a", "base") + "]")
      .add("left", R"("extends": ["base"], "rules": [)" + rule("a", "left") + "]")
      .add("right", R"("extends": ["base"])")
      .add("own", R"("extends": ["left", "right"])");
  const Result<Profile> own = library.resolve("own");
  REQUIRE(own);
  CHECK(rules_of(*own) == Texts{"a=left@left"});
}

TEST_CASE("own scalars win, unsaid ones are inherited, and some are never inherited") {
  Library library;
  library
      .add("base", R"("doc": "base", "launcher": "pals", "scheduler": "pbs",
        "defaults": {"ranks_per_device": 4, "gpu_view": "own", "stack": "s", "device_mode": "m", "fill": "compact", "mps": "on"},
        "detect": [{"host": "b*"}], "retired": {"date": "2024-02-29"},
        "stacks": [{"name": "s"}], "device_modes": [{"name": "m", "unit": "device"}],
        "expect": [{"name": "c", "cpus": "0"}])")
      .add("own", R"("extends": ["base"], "launcher": "slurm", "defaults": {"gpu_view": "all"})");
  const Result<Profile> own = library.resolve("own");
  REQUIRE(own);
  CHECK(own->name == "own");
  CHECK(own->doc.empty());
  CHECK(own->launcher == "slurm");
  CHECK(own->scheduler == "pbs");
  CHECK(own->ranks_per_device == 4);
  CHECK(own->gpu_view == "all");
  CHECK(own->fill == "compact");
  CHECK(own->mps == "on");
  CHECK(own->stack == "s");
  CHECK(own->device_mode == "m");
  CHECK(own->detect.empty());
  CHECK_FALSE(own->retired);
  CHECK(own->expect.empty());
  CHECK(own->find_stack("s") != nullptr);
  CHECK(own->find_mode("m") != nullptr);
  CHECK(own->find_node("n") == nullptr);
}

TEST_CASE("circles and ladders") {
  Library library;
  library.add("a", R"("extends": ["b"])")
      .add("b", R"("extends": ["c"])")
      .add("c", R"("extends": ["a"])");
  library.add("self", R"("extends": ["self"])");
  const Result<Profile> circle = library.resolve("a");
  REQUIRE_FALSE(circle);
  CHECK(circle.error().kind == ErrorKind::invalid);
  CHECK_THAT(circle.error().message, ContainsSubstring("a -> b -> c -> a"));
  REQUIRE(circle.error().where);
  CHECK(circle.error().where->file == "c.json");
  CHECK(circle.error().where->pointer == "/extends/0");
  CHECK(circle.error().where->column > 1);
  CHECK_THAT(library.resolve("self").error().message, ContainsSubstring("self -> self"));

  Library ladder;
  ladder.add("l0", "");
  for (int i = 1; i <= 5; ++i)
    ladder.add("l" + std::to_string(i), R"("extends": ["l)" + std::to_string(i - 1) + "\"]");
  CHECK(ladder.resolve("l4"));
  const Result<Profile> high = ladder.resolve("l5");
  REQUIRE_FALSE(high);
  CHECK_THAT(high.error().message, ContainsSubstring("more than 4 levels"));
}

TEST_CASE("what does not exist is named, with its place") {
  Library library;
  library.add("missing", R"("extends": ["nowhere"])")
      .add("gone", R"("retired": {"date": "2025-01-01", "successor": "nobody"})")
      .add("stack", R"("defaults": {"stack": "2025-4"}, "stacks": [{"name": "2025.4"}])")
      .add("mode", R"("defaults": {"device_mode": "tile"})")
      .add("part", R"("part": true, "defaults": {"stack": "later"})")
      .add("test", R"("stacks": [{"name": "new"}], "rules": [{"id": "r", "when": {"stack": "nwe"},
                      "unset": ["X"], "why": "it is so"}])")
      .add(
          "alone",
          R"("bindings": [{"id": "b", "when": {"stack": "new"}, "cores": "0-1", "why": "it is so"}])")
      .add(
          "node",
          R"("nodes": [{"name": "n", "packages": 1, "cores_per_numa": 1, "when": {"stack": "m"}}])")
      .add("service", R"("nodes": [{"name": "n", "packages": 1, "cores_per_numa": 2, "services": [
                         {"name": "a", "cores": "0"}, {"name": "b", "cores": "1", "when": [{"stack": "m"}]}]}])")
      .add("chosen", R"("stacks": [{"name": "new", "when": [{"device_mode": "tile"}]}])")
      .add(
          "shared",
          R"("part": true, "stacks": [{"name": "new"}], "rules": [{"id": "r", "when": {"stack": "nwe"}, "unset": ["X"], "why": "x"}])")
      .add("unknown",
           R"("part": true, "rules": [{"id": "r", "when": {"stack": "nwe"}, "unset": ["X"],
                      "why": "it is so"}])")
      .add("live", R"("nodes": [{"name": "n", "packages": 1, "cores_per_numa": 1}],
                      "rules": [{"id": "r", "when": {"node_type": ["n", "live"]}, "unset": ["X"], "why": "it is so"}])");
  struct Row {
    const char* name;
    ErrorKind kind;
    const char* message;
    const char* hint;
    const char* pointer;
  };
  const Row rows[] = {
      {"missing", ErrorKind::not_found, "no profile is named \"nowhere\"", "look", "/extends/0"},
      {"gone", ErrorKind::not_found, "no profile is named \"nobody\"", "look",
       "/retired/successor"},
      {"stack", ErrorKind::invalid, "unknown stack \"2025-4\"", "did you mean \"2025.4\"?",
       "/defaults/stack"},
      {"mode", ErrorKind::invalid, "unknown device mode \"tile\"", "has no device mode",
       "/defaults/device_mode"},
      {"test", ErrorKind::invalid, "unknown stack \"nwe\"", "did you mean \"new\"?",
       "/rules/0/when/stack"},
      {"alone", ErrorKind::invalid, "unknown stack \"new\"", "has no stack",
       "/bindings/0/when/stack"},
      {"node", ErrorKind::invalid, "unknown stack \"m\"", "has no stack", "/nodes/0/when/stack"},
      {"chosen", ErrorKind::invalid, "unknown device mode \"tile\"", "has no",
       "/stacks/0/when/0/device_mode"},
      {"service", ErrorKind::invalid, "unknown stack \"m\"", "has no stack",
       "/nodes/0/services/1/when/0/stack"},
      {"shared", ErrorKind::invalid, "unknown stack \"nwe\"", "did you mean",
       "/rules/0/when/stack"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const Result<Profile> result = library.resolve(row.name);
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == row.kind);
    CHECK_THAT(result.error().message, ContainsSubstring(row.message));
    CHECK_THAT(result.error().hint, ContainsSubstring(row.hint));
    REQUIRE(result.error().where);
    CHECK(result.error().where->pointer == row.pointer);
    CHECK(result.error().where->line == 1);
  }
  CHECK(library.resolve("part"));
  CHECK(library.resolve("unknown"));
  CHECK(library.resolve("live"));
}
