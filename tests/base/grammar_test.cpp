#include "hpclaunch/grammar.h"

#include "hpclaunch/text.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

using Name = std::string_view;
using List = std::vector<std::string>;

constexpr Name kNtasks[] = {"--ntasks", "-n"}, kPerNode[] = {"--ntasks-per-node"},
               kNodes[] = {"--nodes", "-N"}, kNodelist[] = {"--nodelist", "-w"},
               kBind[] = {"--cpu-bind", "--cpu_bind"}, kExclusive[] = {"--exclusive"},
               kKill[] = {"--kill-on-bad-exit", "-K"}, kLabel[] = {"--label", "-l"},
               kVerbose[] = {"--verbose", "-v"}, kSet[] = {"--setopt", "-o"};
constexpr Option kSrun[] = {
    {kNtasks, Takes::value, Decides::ranks},
    {kPerNode, Takes::value, Decides::per_node},
    {kNodes, Takes::value, Decides::nodes},
    {kNodelist, Takes::value, Decides::hosts},
    {kBind, Takes::value, Decides::binding},
    {kKill, Takes::joined, Decides::failure},
    {kSet, Takes::value, Decides::devices, "off", "gpu-affinity"},
    {kSet},
};
constexpr std::span<const Name> kSrunFlags[] = {kLabel, kVerbose}, kSrunJoined[] = {kExclusive};
constexpr Grammar kGetopt = {.name = "srun",
                             .abbreviates = true,
                             .options = kSrun,
                             .flags = kSrunFlags,
                             .joined = kSrunJoined};

constexpr Name kNp[] = {"n", "np"}, kGenv[] = {"genv"}, kEnvall[] = {"genvall"};
constexpr Option kHydra[] = {{kNp, Takes::value, Decides::ranks}};
constexpr std::span<const Name> kHydraFlags[] = {kEnvall}, kHydraPairs[] = {kGenv};
constexpr Grammar kFamily = {.name = "family", .syntax = Syntax::words, .pairs = kHydraPairs};
constexpr Grammar kWords = {
    .name = "hydra", .syntax = Syntax::words, .options = kHydra, .flags = kHydraFlags};

constexpr Name kPerNodeOf[] = {"--nproc-per-node"}, kNnodes[] = {"--nnodes"},
               kModule[] = {"--module", "-m"}, kTee[] = {"--tee", "-t"},
               kAlone[] = {"--standalone"};
constexpr Option kTorchrun[] = {{kModule, Takes::nothing, Decides::module}};
constexpr std::span<const Name> kTorchrunFlags[] = {kAlone},
                                kTorchrunValues[] = {kPerNodeOf, kNnodes, kTee};
constexpr Grammar kArgparse = {.name = "torchrun",
                               .syntax = Syntax::argparse,
                               .abbreviates = true,
                               .options = kTorchrun,
                               .flags = kTorchrunFlags,
                               .values = kTorchrunValues};

const Grammars kGetopts = {&kGetopt}, kWordses = {&kWords, &kFamily}, kArgparses = {&kArgparse};

// "--ntasks=3 -l | python": each option by its first name, '?' in front of one that is not known; then the rest.
std::string read(const Grammars& grammars, const List& words, Strays strays = Strays::end) {
  const OptionLine line = read_options(grammars, words, 0, strays);
  std::string text;
  for (const GivenOption& one : line.options) {
    text += one.known ? std::string(one.option.name()) : "?" + one.name;
    if (one.has_value) text += "=" + one.value;
    text += ' ';
    CHECK(one.first < one.end);
    CHECK(one.end <= words.size());
    if (one.has_value && one.option.takes != Takes::pair)
      CHECK(words[one.value_word].substr(one.value_at) == one.value);
  }
  text += line.dashes ? "-- |" : "|";
  for (std::size_t i = line.rest; i < words.size(); ++i) text += " " + words[i];
  for (const std::size_t stray : line.strays) text += " stray " + words[stray];
  return text;
}

}  // namespace

TEST_CASE("option lines: every style", "[base]") {
  struct Case {
    const Grammars& grammars;
    List words;
    const char* expected;
  };
  const Case cases[] = {
      {kGetopts, {"-n", "3", "a.out", "-n", "4"}, "--ntasks=3 | a.out -n 4"},
      {kGetopts, {"-n3", "a.out"}, "--ntasks=3 | a.out"},
      {kGetopts, {"-n=3", "a.out"}, "--ntasks=3 | a.out"},
      {kGetopts, {"--ntasks=3"}, "--ntasks=3 |"},
      {kGetopts, {"--ntasks", "3", "a.out"}, "--ntasks=3 | a.out"},
      {kGetopts, {"--ntasks=", "a.out"}, "--ntasks= | a.out"},
      {kGetopts, {"--node", "2", "a.out"}, "?--node=2 | a.out"},  // --nodes or --nodelist
      {kGetopts, {"--nodes", "2", "a.out"}, "--nodes=2 | a.out"},
      {kGetopts, {"--nodel", "a,b", "a.out"}, "--nodelist=a,b | a.out"},
      {kGetopts, {"--nta", "4", "a.out"}, "?--nta=4 | a.out"},  // --ntasks or --ntasks-per-node
      {kGetopts, {"--ntasks-p=4"}, "--ntasks-per-node=4 |"},
      {kGetopts, {"--cpu", "none", "a.out"}, "--cpu-bind=none | a.out"},
      {kGetopts, {"-lN1", "a.out"}, "--label --nodes=1 | a.out"},
      {kGetopts, {"-lvn", "4", "a.out"}, "--label --verbose --ntasks=4 | a.out"},
      {kGetopts, {"-K", "a.out"}, "--kill-on-bad-exit | a.out"},
      {kGetopts, {"-K1", "a.out"}, "--kill-on-bad-exit=1 | a.out"},
      {kGetopts, {"--kill-on-bad-exit=0"}, "--kill-on-bad-exit=0 |"},
      {kGetopts, {"--exclusive", "a.out"}, "--exclusive | a.out"},
      {kGetopts, {"--exclusive=user", "a.out"}, "--exclusive=user | a.out"},
      {kGetopts, {"-n", "3", "--", "-l"}, "--ntasks=3 -- | -l"},
      {kGetopts, {"-", "-n", "3"}, "| - -n 3"},
      {kGetopts, {"-n", "-3", "a.out"}, "--ntasks=-3 | a.out"},
      {kGetopts, {"--ntasks", "--label", "a.out"}, "--ntasks=--label | a.out"},
      {kGetopts, {"-n"}, "--ntasks |"},
      {kGetopts, {"--other", "x", "a.out"}, "?--other=x | a.out"},
      {kGetopts, {"--other", "-n", "3"}, "?--other --ntasks=3 |"},
      {kGetopts, {"--other=x", "a.out"}, "?--other=x | a.out"},
      {kGetopts, {"-Zx", "a.out"}, "?-Z=x | a.out"},
      {kGetopts,
       {"-o", "gpu-affinity=off", "-o", "x=1", "a"},
       "--setopt=gpu-affinity=off --setopt=x=1 | a"},
      {kWordses, {"-np", "4", "a.out"}, "n=4 | a.out"},
      {kWordses, {"--np=4", "-genvall", "a.out"}, "n=4 genvall | a.out"},
      {kWordses, {"-n4", "a.out"}, "n=4 | a.out"},
      {kWordses, {"-genv", "A", "B", "a.out"}, "genv=A=B | a.out"},
      {kWordses, {"-genv", "A=B", "a.out"}, "genv=A=B | a.out"},
      {kWordses, {"-genv", "A", "-1", "a.out"}, "genv=A=-1 | a.out"},
      {kWordses, {"-npp", "4", "a.out"}, "?-npp=4 | a.out"},
      {kWordses, {"--unknown", "-n", "2", "a.out"}, "?--unknown n=2 | a.out"},
      {kArgparses, {"--nproc_per_node", "4", "t.py"}, "--nproc-per-node=4 | t.py"},
      {kArgparses, {"--nproc_per=4", "t.py"}, "--nproc-per-node=4 | t.py"},
      {kArgparses, {"--n", "4", "t.py"}, "?--n=4 | t.py"},
      {kArgparses, {"--nn", "4", "t.py"}, "--nnodes=4 | t.py"},
      {kArgparses, {"-mt3", "pkg"}, "--module --tee=3 | pkg"},
      {kArgparses, {"-t=3", "-m", "pkg", "-m"}, "--tee=3 --module | pkg -m"},
      {kArgparses, {"--nnodes", "-1", "t.py"}, "--nnodes=-1 | t.py"},
      {kArgparses, {"--nnodes", "--standalone", "t.py"}, "--nnodes --standalone | t.py"},
      {kArgparses, {"--standalone=1", "t.py"}, "--standalone=1 | t.py"},
  };
  for (const Case& one : cases) {
    INFO(joined(one.words, " "));
    CHECK(read(one.grammars, one.words) == one.expected);
  }
}

TEST_CASE("option lines: words between options", "[base]") {
  CHECK(read(kGetopts, {"x", "-n", "3", "y", "-l", "--", "-N2"}, Strays::skip) ==
        "--ntasks=3 --label -- | -N2 stray x stray y");
  CHECK(read_options(kGetopts, List{"a", "-n", "3"}, 1).options.size() == 1);
}

TEST_CASE("option lines: the words of each option", "[base]") {
  const List words = {"-lN1", "-genv", "A", "B"};
  const OptionLine letters = read_options(kGetopts, words);
  REQUIRE(letters.options.size() >= 2);
  CHECK(letters.options[0].end == 1);
  CHECK(letters.options[1].first == 0);
  CHECK(letters.options[1].value_at == 3);
  const OptionLine pair = read_options(kWordses, words, 1);
  REQUIRE(pair.options.size() == 1);
  CHECK(pair.options[0].first == 1);
  CHECK(pair.options[0].end == 4);
  CHECK(pair.options[0].value_word == 2);
}

TEST_CASE("option lines: names that are short for several", "[base]") {
  const std::vector<Option> meant = options_named(kArgparses, "--n");
  REQUIRE(meant.size() == 2);
  CHECK(meant[0].name() == "--nproc-per-node");
  CHECK(meant[1].name() == "--nnodes");
  CHECK(options_named(kGetopts, "--ntasks").size() == 1);
  CHECK(options_named(kGetopts, "--none").empty());
  CHECK(options_named({}, "--ntasks").empty());
}
