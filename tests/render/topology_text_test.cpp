#include <algorithm>
#include <string_view>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"
#include "render/text.h"
#include "support/catch.h"
#include "support/golden.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

Style style_of(int width, bool unicode) {
  Style style;
  style.width = width;
  style.unicode = unicode;
  return style;
}

Topology machine(const std::string& name) {
  const std::string text = test::source_file("tests/machines/" + name);
  const auto got = topology_from_json(text, name);
  REQUIRE(got);
  return *got;
}

/// Two packages of four L3, each with a run of eight cores; a core of one package is left out.
Topology cache_groups() {
  Topology topology;
  topology.hostname = "node-c";
  for (int p = 0; p < 2; ++p) {
    Package package{p, "", {}};
    for (int g = 0; g < 4; ++g) {
      Cache cache{3, std::uint64_t{32} << 20, {}};
      for (int c = 0; c < 8; ++c) {
        Core core{p, -1, {}};
        core.pus.add(32 * p + 8 * g + c);
        core.pus.add(64 + 32 * p + 8 * g + c);
        cache.pus |= core.pus;
        topology.cores.push_back(core);
      }
      package.pus |= cache.pus;
      topology.caches.push_back(cache);
    }
    topology.packages.push_back(package);
  }
  topology.allowed = topology.all_pus();
  topology.allowed -= *CpuSet::parse("0,64");
  return topology;
}

/// Cores of two kinds, and nothing known above them.
Topology bare_hybrid() {
  Topology topology;
  for (int c = 0; c < 3; ++c) {
    Core core;
    core.pus.add(2 * c);
    core.pus.add(2 * c + 1);
    topology.cores.push_back(core);
  }
  for (int c = 6; c < 10; ++c) {
    Core core;
    core.pus.add(c);
    topology.cores.push_back(core);
  }
  topology.allowed = topology.all_pus();
  return topology;
}

int widest(const std::string& tree) {
  int most = 0;
  for (const std::string_view line : split(tree, '\n'))
    most = std::max(most, render::columns(line));
  return most;
}

}  // namespace

TEST_CASE("topology trees", "[render][topology]") {
  test::check_golden("render/topology-hbm-2x48.txt",
                     topology_tree(machine("hbm-2x48-snc4.json"), style_of(100, false)));
  test::check_golden("render/topology-hbm-2x48-narrow.txt",
                     topology_tree(machine("hbm-2x48-snc4.json"), style_of(48, true)));
  test::check_golden("render/topology-cache-groups.txt",
                     topology_tree(cache_groups(), style_of(100, true)));
  test::check_golden("render/topology-bare-hybrid.txt",
                     topology_tree(bare_hybrid(), style_of(100, false)));
}

TEST_CASE("the first line sums up", "[render][topology]") {
  const std::string tree = topology_tree(machine("hbm-2x48-snc4.json"), style_of(100, false));
  CHECK(tree.substr(0, tree.find('\n')) ==
        "node-b: 2 packages, 17 NUMA nodes, 96 cores, 192 PUs (176 allowed), 896 GiB");
}

TEST_CASE("a large node fits a screen", "[render][topology]") {
  const std::string tree = topology_tree(machine("hbm-2x48-snc4.json"), style_of(100, false));
  CHECK(std::count(tree.begin(), tree.end(), '\n') <= 25);
}

TEST_CASE("names from outside cannot move the cursor", "[render][topology]") {
  Topology topology = bare_hybrid();
  topology.hostname = "\x1b[2Jevil\r\n";
  topology.packages = {{0, "\x1b]0;title\x07", topology.all_pus()}};
  const std::string tree = topology_tree(topology, style_of(100, false));
  CHECK(tree.find('\x1b') == std::string::npos);
  CHECK(tree.find('\r') == std::string::npos);
  CHECK(tree.find('\x07') == std::string::npos);
}

TEST_CASE("no tree is wider than it may be, or silent about a part", "[render][topology][law]") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Topology topology = test::random_topology(seed);
    for (const int width : {24, 40, 100}) {
      const std::string tree = topology_tree(topology, style_of(width, seed % 2 == 0));
      INFO("seed " << seed << ", width " << width << "\n" << tree);
      REQUIRE(widest(tree) <= width);
      REQUIRE(tree.back() == '\n');
    }
    const std::string wide = topology_tree(topology, style_of(20'000, false));
    INFO(wide);
    for (const NumaNode& node : topology.numa_nodes) {
      REQUIRE(wide.find("NUMA node " + std::to_string(node.os_index)) != std::string::npos);
    }
    const bool says_not_allowed = wide.find("not allowed") != std::string::npos ||
                                  wide.find("none allowed") != std::string::npos;
    REQUIRE(says_not_allowed == (topology.allowed != topology.all_pus()));
    const bool ascii = std::all_of(wide.begin(), wide.end(), [](char c) { return c > 0; });
    REQUIRE(ascii);
  }
}

TEST_CASE("absurd widths are survived", "[render][topology]") {
  for (const int width : {-5, 0, 1, 3}) {
    CHECK(widest(topology_tree(machine("hbm-2x48-snc4.json"), style_of(width, true))) <= 24);
  }
}
