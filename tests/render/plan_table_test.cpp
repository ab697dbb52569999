#include "hpclaunch/render.h"
#include "hpclaunch/text.h"
#include "plans.h"
#include "render/ranks.h"
#include "render/text.h"
#include "support/catch.h"
#include "support/golden.h"

using namespace hpclaunch;
using test::Sample;

namespace {

std::string table(const Sample& sample, const Style& style) {
  return plan_table(sample.plan, sample.node, sample.argv, style, true);
}

int widest_line(const std::string& text) {
  int widest = 0;
  for (const std::string_view line : split(text, '\n'))
    widest = std::max(widest, render::columns(line));
  return widest;
}

const Style kAscii{};
const Style kUnicode{true, false, 100};

}  // namespace

TEST_CASE("plans as tables", "[render][table]") {
  test::check_golden("render/two_ranks.table", table(test::two_ranks(), kAscii));
  test::check_golden("render/two_nodes.table", table(test::two_nodes(), kAscii));
  test::check_golden("render/two_nodes_narrow.table", table(test::two_nodes(), {true, false, 60}));
  test::check_golden("render/uneven.table", table(test::uneven(), kUnicode));
}

TEST_CASE("no line is wider than asked, at any width from 60", "[render][table]") {
  for (const Sample& sample : {test::two_ranks(), test::two_nodes(), test::uneven()})
    for (int width = 60; width <= 200; ++width)
      for (const bool unicode : {false, true}) {
        INFO("width " << width);
        CHECK(widest_line(table(sample, {unicode, false, width})) <= width);
      }
}

TEST_CASE("a terminal sees no control byte of ours without colour", "[render][table]") {
  for (const Sample& sample : {test::two_ranks(), test::two_nodes(), test::uneven()})
    for (const char c : table(sample, kUnicode))
      CHECK((c == '\n' || static_cast<unsigned char>(c) >= 32));
}

TEST_CASE("colour adds sequences and nothing else", "[render][table]") {
  for (const Sample& sample : {test::two_ranks(), test::two_nodes(), test::uneven()}) {
    std::string colored = table(sample, {false, true, 100});
    CHECK(colored.find("\033[1m") != std::string::npos);
    for (const std::string sequence : {"\033[1m", "\033[2m", "\033[0m"})
      for (std::size_t at; (at = colored.find(sequence)) != std::string::npos;)
        colored.erase(at, sequence.size());
    CHECK(colored == table(sample, kAscii));
  }
}

TEST_CASE("a secret that the user exported is not in the table", "[render][table]") {
  const std::string text = table(test::two_ranks(), kAscii);
  CHECK(text.find("hf_abcdef") == std::string::npos);
  CHECK(text.find("<hidden>") != std::string::npos);
}

TEST_CASE("a plan without bindings, environment, topology and command", "[render][table]") {
  Plan plan;
  plan.hosts.names = {"h"};
  plan.placement.classes = {{{RankPlan{}}}};
  plan.placement.layout = {{0, 1}};
  plan.launch.launcher = "local";
  plan.placement.bind_via = BindVia::none;
  const std::string text = plan_table(plan, Topology{}, {}, kAscii);
  CHECK(text ==
        "program   (none)\n"
        "ranks     1 on 1 node\n"
        "hosts     h\n"
        "launcher  local\n"
        "binding   none\n"
        "\n"
        "  local  ranks  package  NUMA  cores  CPUs\n"
        "      0      0        -     -      0  not bound\n");
}

TEST_CASE("every label of the head has room", "[render][table]") {
  Sample sample = test::two_nodes();
  sample.plan.environment.core_limit = "0";
  sample.plan.launch.batch = {"-l x"};
  sample.plan.environment.make_dirs = {"/tmp/d"};
  const std::string text = table(sample, kAscii);
  CHECK(text.find("\njob needs -l x\n") != std::string::npos);
  CHECK(text.find("\ncore file none\n") != std::string::npos);
  CHECK(text.find("\nmakes     /tmp/d\n") != std::string::npos);
}

TEST_CASE("a short table has what a plain launch lacks", "[render][table]") {
  for (const Sample& sample : {test::two_ranks(), test::two_nodes(), test::uneven()}) {
    const std::string text = plan_table(sample.plan, sample.node, sample.argv, kAscii);
    for (const Setting& setting : sample.plan.environment.settings) {
      const Layer layer = setting.history.back().layer;
      const bool plain = layer == Layer::builtin || layer == Layer::computed;
      INFO(setting.name);
      CHECK((text.find(" " + setting.name + "=") == std::string::npos) == plain);
    }
  }
}

TEST_CASE("lists of ranks", "[render][table]") {
  CHECK(render::number_list({3}, kAscii) == "3");
  CHECK(render::number_list({0, 4, 8, 12}, kAscii) == "0 4 8 12");
  CHECK(render::number_list({0, 4, 8, 12, 16}, kAscii) == "0 4 ... 16");
  CHECK(render::number_list({0, 4, 8, 12, 17}, kUnicode) == "0 4 … 17 (5 ranks)");
}

TEST_CASE("lists of hosts are cut only with their count", "[render][table]") {
  CHECK(render::host_list({"n1", "n2", "gpu"}, 80) == "n[1-2],gpu");
  CHECK(render::host_list({"aa", "bb", "cc", "dd", "ee"}, 14) == "aa,bb,cc,dd,ee");
  CHECK(render::host_list({"aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff"}, 24) ==
        "aaaa,bbbb,... (6 nodes)");
}

TEST_CASE("nodes laid out alike share a table, however many classes they have", "[render][table]") {
  Sample sample = test::uneven();
  sample.plan.placement.classes.push_back(sample.plan.placement.classes[0]);
  sample.plan.placement.layout = {{0, 2}, {2, 2}, {1, 2}};
  const std::string text = table(sample, kAscii);
  CHECK(text.find("on 4 nodes, 2 ranks each: n[1-4]\n") != std::string::npos);
  CHECK(text.find("on 2 nodes, 1 rank each: n[5-6]\n") != std::string::npos);
}

TEST_CASE("every CPU list is in the table whole", "[render][table]") {
  for (int width : {60, 80, 100}) {
    Sample sample = test::two_ranks();
    CpuSet odd;
    for (int i = 1; i < 300; i += 2) odd.add(i);
    sample.plan.placement.classes[0].ranks[0].cpus = odd;
    std::string joined;
    for (const char c : table(sample, {false, false, width}))
      if (c != ' ' && c != '\n') joined += c;
    CHECK(joined.find(odd.to_list()) != std::string::npos);
  }
}
