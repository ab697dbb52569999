// Reading one file: what it means, and every way in which it can be wrong, with its place.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "hpclaunch/profile.h"
#include "support/catch.h"
#include "support/json_position.h"

using namespace hpclaunch;

namespace {

ParsedProfile parse(const std::string& text) { return parse_profile(text, "p.json"); }

/// A profile with these members behind the head, which is line 1.
std::string with(const std::string& members) {
  return "{\"schema\": 1, \"name\": \"p\",\n" + members + "\n}";
}

std::string all_problems(const ParsedProfile& parsed) {
  std::string out;
  for (const Error& e : parsed.problems) {
    out += e.where->file + ":" + std::to_string(e.where->line) + ":" +
           std::to_string(e.where->column) + ": " + e.message + " (" + e.hint + ")\n";
  }
  return out;
}

std::string rule(const std::string& members) {
  return with("\"rules\": [{\"id\": \"r\", \"why\": \"so\", " + members + "}]");
}

std::string binding(const std::string& members) {
  return with("\"bindings\": [{\"id\": \"b\", \"why\": \"so\", " + members + "}]");
}

}  // namespace

TEST_CASE("everything that a profile can say is read") {
  std::ifstream in(HPCLAUNCH_SOURCE_DIR "/tests/profile/full.json");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const ParsedProfile parsed = parse_profile(text, "full.json");
  INFO(all_problems(parsed));
  REQUIRE(parsed.problems.empty());
  const Profile& p = parsed.profile;
  CHECK(p.name == "full");
  CHECK(p.doc == "everything that a profile can say");
  CHECK_FALSE(p.part);
  CHECK(p.extends == std::vector<std::string>{"base-1", "base.2"});
  REQUIRE(p.retired);
  CHECK(p.retired->date == "2025-09-12");
  CHECK(p.retired->successor == "newer");
  CHECK(p.retired->origin.why == "it was replaced");
  CHECK(p.launcher == "pals");
  CHECK(p.scheduler == "pbs");
  CHECK(p.ranks_per_device == 2);
  CHECK(p.gpu_view == "own");
  CHECK(p.device_mode == "tile");
  CHECK(p.stack == "2025");
  CHECK(p.fill == "compact");
  CHECK(p.mps == "on");
  REQUIRE(p.detect.size() == 2);
  REQUIRE(p.nodes.size() == 1);
  CHECK(p.nodes[0].origin.source == "https://example.org/nodes");
  REQUIRE(p.find_stack("2025") != nullptr);
  CHECK(p.find_stack("2025")->when.size() == 2);
  CHECK(p.find_stack("2025")->when[0].size() == 2);
  REQUIRE(p.find_mode("tile") != nullptr);
  CHECK(p.find_mode("tile")->subdevices);
  CHECK(p.find_mode("tile")->mask == "ZE_AFFINITY_MASK");
  CHECK(p.find_mode("tile")->mask_item == "${device}.${subdevice}");

  REQUIRE(p.bindings.size() == 3);
  const Binding& first = p.bindings[0];
  CHECK(first.per == Binding::Per::package);
  CHECK(first.first == 4);
  CHECK(first.stride == 4);
  CHECK(first.at_least == 2);
  CHECK(first.low == 0);
  CHECK(first.high == 3);
  CHECK(first.siblings);
  CHECK(first.interleave);
  CHECK(first.groups == std::vector<int>{1, 0});
  REQUIRE(first.roles.size() == 2);
  CHECK(first.roles[0].name == "ccl_worker");
  CHECK_FALSE(first.roles[0].from_base);
  CHECK(first.roles[0].stride == 1);
  CHECK(first.roles[1].from_base);
  CHECK(first.roles[1].first == 2);
  REQUIRE(first.when.size() == 2);
  CHECK(first.when[0].values == std::vector<std::string>{"12"});
  CHECK(first.origin.printed == "4,8");
  CHECK(first.origin.disputed == "another page says 5");
  CHECK(p.bindings[1].at == std::vector<std::vector<int>>{{4, 9}, {4, 10}});
  CHECK(p.bindings[1].high == 7);
  CHECK(p.bindings[1].low == 7);
  CHECK(p.bindings[2].split);
  CHECK(p.bindings[2].per == Binding::Per::l3);

  REQUIRE(p.rules.size() == 2);
  const Rule& r = p.rules[0];
  REQUIRE(r.defaults.size() == 3);
  CHECK(r.defaults[1].name == "EMPTY");
  CHECK(r.defaults[1].value.text.empty());
  CHECK(r.defaults[2].value == Template{"${unit}:${ranks_per_device}", Template::Each::unit, ";"});
  CHECK(r.require[0].value == Template{"${role.ccl_worker}", Template::Each::rank, ","});
  CHECK(r.prepend[0].name == "LD_LIBRARY_PATH");
  CHECK(r.unset == std::vector<std::string>{"TUNING"});
  CHECK(r.launch.at("pals") == std::vector<std::string>{"--pmi=pmix"});
  CHECK(r.batch.at("slurm") == std::vector<std::string>{"--network=x"});
  CHECK(r.core_limit == "0");
  CHECK(r.make_dirs == std::vector<std::string>{"/tmp/${user}-${job_id}"});
  CHECK(r.report->severity == "warning");
  CHECK(r.origin.checked == "2024-02-29");
  CHECK(r.origin.profile == "full");
  CHECK(r.origin.where.pointer == "/rules/0");
  CHECK(variables_of(r) == std::vector<std::string>{"A", "EMPTY", "UNITS", "WORKERS", "MINE",
                                                    "LD_LIBRARY_PATH", "TUNING"});
  CHECK(origin_of(r, "A").why == "so");
  CHECK(origin_of(p.rules[1], "B").why == "follows A");
  CHECK(origin_of(p.rules[1], "B").disputed.empty());
  CHECK(origin_of(p.rules[1], "C").disputed == "no");
  CHECK(is_late(p.rules[1].when));
  const std::vector<Test::Op> ops = {Test::Op::gt, Test::Op::le, Test::Op::unlike,
                                     Test::Op::is_unset, Test::Op::is_set};
  REQUIRE(p.rules[1].when.size() == ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) CHECK(p.rules[1].when[i].op == ops[i]);

  REQUIRE(p.notes.size() == 1);
  REQUIRE(p.expect.size() == 2);
  const Case& c = p.expect[0];
  CHECK(c.argv == std::vector<std::string>{"mpiexec", "--np", "6144"});
  CHECK(c.cpus == "2-4:10-12");
  CHECK(c.per_rank.at("ZE_AFFINITY_MASK") == "0:1");
  CHECK((c.make_dirs && c.make_dirs->empty()));
  CHECK((c.reports && c.reports->empty()));
  CHECK(c.origin.source == "https://example.org/case");
  CHECK(p.expect[1].refused == "does not fit");
}

TEST_CASE("one thing wrong: its place, its message and what to type") {
  struct Row {
    std::string text;
    const char* where;
    const char* message;
    const char* hint;
  };
  const Row rows[] = {
      // the text
      {"", "1:1", "broken JSON: ", "close every"},
      {"{\"schema\": 1,\n \"name\": \"p\",\n}", "3:1", "unexpected '}'", "remove the comma"},
      {"{\"schema\": 1,\n \"name\": \"p\"\n", "3:1", "unexpected end of input", "close every"},
      {"{\"schema\": 1\n \"name\": \"p\"}", "2:7", "unexpected string literal", "put a comma"},
      {"{\"schema\": 1, \"name\": \"\xff\"}", "1:24", "UTF-8", "save the file as UTF-8"},
      {"{} {}", "1:4", "broken JSON", "put a comma"},
      {"[]", "1:1", "expected an object, found a list", ""},
      {"7", "1:1", "expected an object, found a number", ""},
      {std::string(40, '['), "1:33", "more than 32 nested", ""},
      {std::string(1'048'577, ' '), "1:1", "the file has 1048577 bytes", "extends"},
      // the head
      {"{\"name\": \"p\"}", "1:1", "\"schema\" is missing", "add"},
      {"{\"schema\": 1}", "1:1", "\"name\" is missing", "add"},
      {"{\"schema\": 2, \"name\": \"p\"}", "1:2", "reads schema 1", "\"schema\": 1"},
      {"{\"schema\": \"1\", \"name\": \"p\"}", "1:2", "reads schema 1", "\"schema\": 1"},
      {"{\"schema\": 1, \"name\": \"a b\"}", "1:15", "is not a profile name", "use letters"},
      {"{\"schema\": 1, \"name\": \"none\"}", "1:15", "is not a profile name", "none"},
      {"{\"schema\": 1, \"name\": \"x.json\"}", "1:15", "is not a profile name", ".json"},
      {"{\"schema\": 1, \"name\": \"-x\"}", "1:15", "is not a profile name", ""},
      {"{\"schema\": 1, \"name\": \"p\", \"name\": \"q\"}", "1:28",
       "the key \"name\" appears twice", "keep one"},
      {with("\"$schema\": 7"), "2:1", "expected a string, found a number", "\"7\""},
      {with("\"rule\": []"), "2:1", "unknown key \"rule\"", "did you mean \"rules\"?"},
      {with("\"frobnicate\": []"), "2:1", "unknown key \"frobnicate\"", "known: $schema"},
      {with("\"a/b~c\": []"), "2:1", "unknown key \"a/b~c\"", ""},
      {with("\"doc\": \"\""), "2:1", "empty string", "omit the key"},
      {with("\"doc\": \"a\\u0007b\""), "2:1", "a control character", ""},
      {with("\"doc\": null"), "2:1", "expected a string, found null", ""},
      {with("\"launcher\": \"slrum\""), "2:1", "\"slrum\" is not one of flux, hydra",
       "did you mean \"slurm\"?"},
      {with("\"scheduler\": \"loadleveler\""), "2:1", "\"loadleveler\" is not one of", ""},
      {with("\"extends\": \"base\""), "2:1", "expected a list of names", "[ ]"},
      {with("\"extends\": [\n\"a\",\n  \"a\"]"), "4:3", "\"a\" appears twice", ""},
      {with("\"extends\": [\"x/y.json\"]"), "2:13", "not a profile name", "not files"},
      {with("\"part\": \"yes\""), "2:1", "expected true or false", ""},
      {with("\"part\": true, \"detect\": [{\"host\": \"x\"}]"), "2:15", "\"detect\" has no effect",
       "remove"},
      {with("\"retired\": {\"date\": \"2025-02-29\"}"), "2:13", "\"2025-02-29\" is not a date",
       "YYYY-MM-DD"},
      {with("\"retired\": {}"), "2:1", "\"date\" is missing", ""},
      {with("\"defaults\": {\"gpu_view\": \"al\"}"), "2:14", "is not one of own, all, launcher",
       "did you mean \"all\"?"},
      {with("\"defaults\": {\"ranks_per_device\": 0}"), "2:14", "from 1 to 1024, found 0", ""},
      {with("\"defaults\": {\"ranks_per_device\": \"1\"}"), "2:14", "found a string",
       "without quotes"},
      {with("\"defaults\": {\"ranks_per_device\": 1.5}"), "2:14", "found a number", ""},
      {with("\"defaults\": {\"ranks_per_device\": 99999999999999999999}"), "2:14", "found a number",
       ""},
      {with("\"defaults\": {\"ranks_per_device\": 9999999999}"), "2:14", "found 9999999999", ""},
      // recognising
      {with("\"detect\": [{}]"), "2:12", "neither \"env\" nor \"host\"", "write"},
      {with("\"detect\": [{\"env\": \"A\"}]"), "2:12", "\"like\" is missing", ""},
      {with("\"detect\": [{\"env\": \"A=B\", \"like\": \"x\"}]"), "2:13", "name of a variable", ""},
      {with("\"detect\": [{\"env\": \"A\", \"like\": \"x\", \"host\": \"y\"}]"), "2:38",
       "both given", "two entries"},
      {with("\"detect\": [{\"host\": \"x\", \"like\": \"y\"}]"), "2:26", "has no effect", ""},
      {with("\"detect\": [{\"host\": \"*\"}]"), "2:13", "matches every machine", ""},
      {with("\"detect\": []"), "2:1", "an empty list", "omit the key"},
      // who says so
      {with("\"notes\": [{\"id\": \"a\", \"title\": \"t\", \"text\": \"x\", \"why\": \"End.\"}]"),
       "2:50", "ends with a full stop", "remove"},
      {with(
           "\"notes\": [{\"id\": \"a\", \"title\": \"t\", \"text\": \"x\", \"source\": \"page\"}]"),
       "2:50", "\"page\" is not a URL", "https://"},
      {with("\"notes\": [{\"id\": \"a\", \"title\": \"t\", \"text\": \"x\", \"checked\": "
            "\"24-1-1\"}]"),
       "2:50", "is not a date", "YYYY-MM-DD"},
      {with("\"notes\": [{\"id\": \"a\", \"title\": \"t\", \"text\": \"x\", \"printed_why\": "
            "\"y\"}]"),
       "2:50", "has no effect here", "printed"},
      {with("\"notes\": [{\"id\": \"a\", \"title\": \"t\"}]"), "2:11", "\"text\" is missing", ""},
      // stacks and modes
      {with("\"stacks\": [{\"name\": \"a\"}, {\"name\": \"a\"}]"), "2:28",
       "two entries have the name \"a\"", "rename"},
      {with("\"stacks\": [{\"name\": \"a b\"}]"), "2:13", "is not a valid name", "use letters"},
      {with("\"stacks\": [{\"name\": \"a\", \"when\": {\"nodes\": 1}}]"), "2:26",
       "expected a list of conditions", "[ ]"},
      {with("\"stacks\": [{\"name\": \"a\", \"when\": [{\"stack\": \"b\"}]}]"), "2:36",
       "is decided by this condition", ""},
      {with("\"device_modes\": [{\"name\": \"a\"}]"), "2:18", "\"unit\" is missing", ""},
      {with("\"device_modes\": [{\"name\": \"a\", \"unit\": \"tile\"}]"), "2:32", "is not one of",
       ""},
      {with("\"device_modes\": [{\"name\": \"a\", \"unit\": \"device\", \"mask_item\": "
            "\"${devise}\"}]"),
       "2:50", "unknown fact \"devise\"", "did you mean \"device\"?"},
      // conditions
      {rule("\"unset\": [\"X\"], \"when\": {}"), "2:52", "an empty object of tests", "omit"},
      {rule("\"unset\": [\"X\"], \"when\": {\"node\": 1}"), "2:61", "unknown fact \"node\"",
       "did you mean \"nodes\"?"},
      {rule("\"unset\": [\"X\"], \"when\": {\"modul.x\": \"1\"}"), "2:61", "unknown fact",
       "did you mean \"module.x\"?"},
      {rule("\"unset\": [\"X\"], \"when\": {\"env.\": \"1\"}"), "2:61", "unknown fact \"env.\"",
       ""},
      {rule("\"unset\": [\"X\"], \"when\": {\"local_rank\": 0}"), "2:61", "differs by rank",
       "whole job"},
      {rule("\"unset\": [\"X\"], \"when\": {\"role.x\": 0}"), "2:61", "differs by rank", ""},
      {rule("\"unset\": [\"X\"], \"when\": {\"nodes\": {\"gtt\": 1}}"), "2:71",
       "unknown operator \"gtt\"", "did you mean \"gt\"?"},
      {rule("\"unset\": [\"X\"], \"when\": {\"nodes\": {\"gt\": \"many\"}}"), "2:71",
       "neither a whole number nor a version", "16"},
      {rule("\"unset\": [\"X\"], \"when\": {\"nodes\": {\"gt\": [1]}}"), "2:71", "needs one value",
       ""},
      {rule("\"unset\": [\"X\"], \"when\": {\"nodes\": {\"gt\": 1.5}}"), "2:71", "found a number",
       "in quotes"},
      {rule(R"("unset": ["X"], "when": {"nodes": ">4"})"), "2:61",
       "\"nodes\" is a whole number, never \">4\"", R"(write {"gt": 4})"},
      {rule(R"("unset": ["X"], "when": {"devices": ["4", ">= 8"]})"), "2:61", "never \">= 8\"",
       R"(write {"ge": 8})"},
      {rule(R"("unset": ["X"], "when": {"ranks": {"ne": "2-8"}})"), "2:71", "never \"2-8\"",
       R"({"ge": 4, "le": 8})"},
      {rule(R"("unset": ["X"], "when": {"units": {"lt": "1.5"}})"), "2:71", "never \"1.5\"", ""},
      {rule(R"("unset": ["X"], "when": {"module.x": ">=6.1"})"), "2:61",
       "\"module.x\" is a version, never \">=6.1\"", R"(write {"ge": "6.1"})"},
      {rule("\"unset\": [\"X\"], \"when\": {\"nodes\": {}}"), "2:61", "an empty object", ""},
      {rule("\"unset\": [\"X\"], \"when\": {\"stack\": []}"), "2:61", "an empty list", ""},
      {rule("\"unset\": [\"X\"], \"when\": {\"stack\": null}"), "2:61", "found null", ""},
      {rule("\"unset\": [\"X\"], \"when\": {\"in_job\": true}"), "2:61", "not true or false",
       "yes"},
      {rule("\"unset\": [\"X\"], \"when\": {\"in_job\": \"true\"}"), "2:61", "is never \"true\"",
       "one of yes, no"},
      {rule("\"unset\": [\"X\"], \"when\": {\"env.X\": {\"set\": 1}}"), "2:71",
       "expected true or false", ""},
      {rule("\"unset\": [\"X\"], \"when\": {\"env.X\": {\"like\": 1}}"), "2:71",
       "expected a string", "\"1\""},
      // one mistake is one problem, whatever else depends on it
      {with(R"("nodes": [{"name": "n", "packges": 2, "cores_per_numa": 4,)"
            R"( "devices": {"vendor": "amd", "list": [{"numa": 1}, {"cores": "4-7"}]}}])"),
       "2:25", "unknown key \"packges\"", "did you mean \"packages\"?"},
      {with(R"("nodes": [{"name": "n", "packages": "2", "cores_per_numa": 4, "package_model": "m",)"
            R"( "devices": {"vendor": "amd", "list": [{"numa": 1}, {"cores": "4-7"}]}}])"),
       "2:25", "found a string", "without quotes"},
      {with(R"("nodes": [{"name": "n", "packages": 2, "numa_per_pakage": 2, "cores_per_numa": 4,)"
            R"( "devices": {"vendor": "amd", "list": [{"numa": 3}, {"cores": "8-15"}]}}])"),
       "2:40", "unknown key \"numa_per_pakage\"", "did you mean"},
      {with(
           R"("nodes": [{"name": "n", "packages": 1, "cores_per_numa": 4, "numa_memory_mb": [1, 2],)"
           R"( "devices": {"vendor": "amd", "list": [{"numa": 1}, {"cores": "4-7"}]}}])"),
       "2:61", "2 numbers for 1 NUMA nodes", "or correct \"packages\""},
      {with(
           R"("nodes": [{"name": "n", "packages": 1, "cores_per_numa": 4, "devices":)"
           R"( {"vendor": "amd", "lits": [{}, {}, {}], "links": [{"from": 0, "to": 2, "kind": "x"}]}}])"),
       "2:90", "unknown key \"lits\"", "did you mean \"list\"?"},
      {rule(R"("whne": {"value.A": "1"}, "default": {"B": "${value.B}", "C": "${value.C}"})"),
       "2:36", "unknown key \"whne\"", "did you mean \"when\"?"},
      {rule(R"("when": {"valeu.A": "1"}, "default": {"B": "${value.B}", "C": "${value.C}"})"),
       "2:45", "unknown fact \"valeu.A\"", "did you mean \"value.A\"?"},
      {rule(R"("default": {"X": {"each": "ranks", "item": "${local_rank}:${cpus}"}})"), "2:54",
       "is not one of rank, unit", ""},
      {binding(R"("spilt": true)"), "2:39", "unknown key \"spilt\"", "did you mean \"split\"?"},
      {binding(R"("split": "yes")"), "2:39", "expected true or false", ""},
      {binding(R"("cores": "0", "at": [[1], 2])"), "2:65", "expected a list of bases", ""},
      {with(R"("bindings": ["b"])"), "2:14", "expected an object, found a string", ""},
      // templates
      {rule("\"default\": {\"X\": \"${nods}\"}"), "2:48", "unknown fact \"nods\"",
       "did you mean \"nodes\"?"},
      {rule("\"default\": {\"X\": \"$HOME\"}"), "2:48", "a '$' starts neither", "$$"},
      {rule("\"default\": {\"X\": 8}"), "2:48", "expected a string, found a number",
       "write it in quotes: \"8\""},
      {rule("\"default\": {\"X=Y\": \"8\"}"), "2:48", "\"X=Y\" cannot be the name of a variable",
       "'='"},
      {rule("\"default\": {\"\": \"8\"}"), "2:48", "cannot be the name of a variable", ""},
      {rule("\"default\": {\"X\": {\"each\": \"ranks\", \"item\": \"1\"}}"), "2:54",
       "is not one of rank, unit", "did you mean \"rank\"?"},
      {rule("\"default\": {\"X\": {\"each\": \"unit\", \"item\": \"${cpus}\"}}"), "2:70",
       "differs by rank", ""},
      {rule("\"default\": {\"X\": {\"each\": \"rank\"}}"), "2:48", "\"item\" is missing", ""},
      {rule("\"default\": {\"X\": \"${value.Y}\"}"), "2:48", "is not known yet", "\"when\" asks"},
      {rule("\"launch\": {\"pals\": [\"--x=${local_rank}\"]}"), "2:56", "differs by rank",
       "values"},
      {rule("\"make_dirs\": [\"/tmp/${unit}\"]"), "2:50", "differs by rank", ""},
      {rule("\"report\": {\"severity\": \"note\", \"message\": \"${cpus}\"}"), "2:67",
       "differs by rank", ""},
      // rules
      {with("\"rules\": [{\"id\": \"r\", \"unset\": [\"X\"]}]"), "2:11", "\"why\" is missing",
       "add"},
      {with("\"rules\": [{\"id\": \"r\", \"why\": \"so\"}]"), "2:11", "the rule does nothing",
       "add one of"},
      {with("\"rules\": [{\"unset\": [\"X\"], \"why\": \"so\"}]"), "2:11", "\"id\" is missing", ""},
      {rule("\"defualt\": {\"X\": \"1\"}, \"unset\": [\"Y\"]"), "2:36", "unknown key \"defualt\"",
       "did you mean \"default\"?"},
      {rule("\"default\": {\"X\": \"1\"}, \"unset\": [\"X\"]"), "2:69",
       "\"X\" is in both \"default\" and \"unset\"", "two rules"},
      {rule("\"launch\": {\"plas\": [\"-x\"]}"), "2:47", "\"launch\" takes no \"plas\"",
       "did you mean \"pals\"?"},
      {rule("\"launch\": {\"pals\": []}"), "2:47", "an empty list of flags", ""},
      {rule("\"batch\": {\"loadleveler\": [\"-x\"]}"), "2:46", "\"batch\" takes no \"loadleveler\"",
       "one of flux, pbs, slurm"},
      {rule("\"core_limit\": \"1G\""), "2:36", "is not a core file limit", "unlimited"},
      {rule("\"core_limit\": 0"), "2:36", "expected a string", "\"0\""},
      {rule("\"make_dirs\": [\"tmp\"]"), "2:50", "not an absolute path", "'/'"},
      {rule("\"make_dirs\": [\"/tmp/../etc\"]"), "2:50", "not an absolute path", ".."},
      {rule("\"report\": {\"severity\": \"bad\", \"message\": \"x\"}"), "2:47",
       "is not one of note, warning, error", ""},
      {rule("\"unset\": [\"A\", 7]"), "2:51", "expected a string", ""},
      {rule("\"unset\": \"A\""), "2:36", "expected a list of names", "[ ]"},
      // bindings
      {with("\"bindings\": [{\"id\": \"b\", \"cores\": \"0\"}]"), "2:14", "\"why\" is missing", ""},
      {binding("\"first\": 1"), "2:14", "\"cores\" is missing", ""},
      {binding("\"cores\": \"3-0\""), "2:39", "is not a core range", "0-3"},
      {binding("\"cores\": \"0-9999\""), "2:39", "is not a core range", ""},
      {binding("\"cores\": \"0\", \"at\": []"), "2:53", "an empty list of bases", ""},
      {binding("\"cores\": \"0\", \"at\": [[1], []]"), "2:65", "an empty list of bases", ""},
      {binding("\"cores\": \"0\", \"at\": [[1, 2], [1]]"), "2:68", "1 base here, and 2", "equally"},
      {binding("\"cores\": \"0\", \"at\": [1], \"stride\": 2"), "2:64", "\"stride\" has no effect",
       ""},
      {binding("\"cores\": \"0\", \"split\": true"), "2:39", "\"cores\" has no effect", ""},
      {binding("\"cores\": \"0\", \"groups\": [1, 0, 1]"), "2:70", "\"1\" appears twice", ""},
      {binding("\"cores\": \"0\", \"per\": \"socket\""), "2:53", "is not one of node, package", ""},
      {binding("\"cores\": \"0\", \"first\": -1"), "2:53", "from 0 to 4095, found -1", ""},
      {binding("\"cores\": \"0\", \"roles\": {\"w\": {\"first\": 1, \"stride\": 1}}"), "2:81",
       "\"stride\" has no effect", "from"},
      {binding("\"cores\": \"0\", \"roles\": {\"w\": {}}"), "2:63", "\"first\" is missing", ""},
      {binding("\"cores\": \"0\", \"when\": {\"value.X\": \"1\"}"), "2:62", "is not known yet",
       "only rules"},
      // cases
      {with("\"expect\": [{\"name\": \"c\"}]"), "2:12", "the case compares nothing", "add one of"},
      {with("\"expect\": [{\"name\": \"c\", \"refused\": \"x\", \"cpus\": \"0\"}]"), "2:12",
       "nothing else to compare", ""},
      {with("\"expect\": [{\"name\": \"c\", \"cpus\": \"0-\"}]"), "2:26",
       "is not a list of numbers", ":"},
      {with("\"expect\": [{\"name\": \"c\", \"reports\": []}, {\"name\": \"c\", \"reports\": []}]"),
       "2:43", "two entries have the name", ""},
  };
  for (const Row& row : rows) {
    const ParsedProfile parsed = parse(row.text);
    INFO(row.text.substr(0, 300) << "\n" << all_problems(parsed));
    REQUIRE(parsed.problems.size() == 1);
    const Error& problem = parsed.problems[0];
    CHECK(std::to_string(problem.where->line) + ":" + std::to_string(problem.where->column) ==
          row.where);
    CHECK(problem.where->file == "p.json");
    CHECK_THAT(problem.message, ContainsSubstring(row.message));
    CHECK_THAT(problem.hint, ContainsSubstring(row.hint));
    CHECK(problem.kind == ErrorKind::invalid);
    // The place is where the pointer leads, unless the text is broken or the key stands there twice.
    const bool single = problem.message.find("twice") == std::string::npos;
    if (!problem.where->pointer.empty() && single &&
        problem.message.find("more than 32") == std::string::npos) {
      const TextPosition at = position_of_pointer(row.text, problem.where->pointer);
      CHECK(at.line == problem.where->line);
      CHECK(at.column == problem.where->column);
    }
  }
}

TEST_CASE("all problems are collected, in the order of the text") {
  const ParsedProfile parsed = parse(
      "{\"rules\": [{\"id\": \"a\", \"when\": {\"nods\": 1}, \"defualt\": {}}],\n"
      "\"doc\": 7,\n\"name\": \"p\", // said once\n\"schema\": 3, \"stacks\": 1}");
  INFO(all_problems(parsed));
  REQUIRE(parsed.problems.size() == 6);
  CHECK(
      std::is_sorted(parsed.problems.begin(), parsed.problems.end(),
                     [](const Error& a, const Error& b) { return a.where->line < b.where->line; }));
  CHECK(parsed.problems.back().where->pointer == "/stacks");
  CHECK(parsed.profile.name == "p");
}

TEST_CASE("a file full of problems ends with a word on the rest") {
  std::string text = "{\"schema\": 1, \"name\": \"p\"";
  for (int i = 0; i < 500; ++i) text += ",\n\"k" + std::to_string(i) + "\": 1";
  const ParsedProfile parsed = parse(text + "}");
  REQUIRE(parsed.problems.size() == 101);
  CHECK_THAT(parsed.problems.back().message, ContainsSubstring("too many problems"));
}

TEST_CASE("comments, escapes and a byte order mark do not shift places") {
  const ParsedProfile parsed = parse(
      "\xEF\xBB\xBF// first \"line\"\n{ // the head\n \"schema\": 1, \"name\": \"p\", "
      "\"do\\u0063\": "
      "\"a\\\\\\\"b\",\n  // \"rules\": 7\n  \"extends\": [ \"a\\\"\" ]}");
  INFO(all_problems(parsed));
  REQUIRE(parsed.problems.size() == 1);
  CHECK(parsed.problems[0].where->line == 5);
  CHECK(parsed.problems[0].where->column == 16);
  CHECK(parsed.profile.doc == "a\\\"b");
}

TEST_CASE("texts made to be slow or deep end at once") {
  std::string keys = "{\"schema\": 1, \"name\": \"p\"";
  for (int i = 0; keys.size() < 300'000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  CHECK(parse(keys + "}").problems.size() == 101);
  std::string ids = with("\"stacks\": [{\"name\": \"s\"}");
  ids.resize(ids.size() - 2);
  for (int i = 0; ids.size() < 300'000; ++i) ids += ",{\"name\":\"" + std::to_string(i) + "\"}";
  CHECK(parse(ids + "]}").problems.empty());
  CHECK(parse(with("\"" + std::string(1'000'000, 'x') + "\": 1")).problems.size() == 1);
  for (const char* piece : {"[", "{\"a\":", "{\"rules\":["}) {
    std::string deep;
    while (deep.size() < 1'000'000) deep += piece;
    CHECK(parse(deep).problems.size() == 1);
  }
}

TEST_CASE("golden cases can be left out, with what is wrong in them", "[profile]") {
  const std::string text =
      R"({"schema": 1, "name": "x", "doc": "d", "expect": [{"name": "a", "cpsu": "0"}]})";
  CHECK(parse_profile(text, "x.json").problems.size() == 1);
  const ParsedProfile read = parse_profile(text, "x.json", Cases::skip);
  CHECK(read.problems.empty());
  CHECK(read.profile.expect.empty());
}
