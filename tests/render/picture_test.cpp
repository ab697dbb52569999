// Pictures: laws of the layout over random machines with devices and ranks, the colours, and the texts.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"
#include "plan/jobs.h"
#include "render/palette.h"
#include "render/regions.h"
#include "render/scene.h"
#include "render/text.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;
using render::Box;
using render::What;

namespace {

int any_numa(const Topology& node, test::Random& random) {
  if (node.numa_nodes.empty() || random.chance(15)) return -1;
  const int last = static_cast<int>(node.numa_nodes.size()) - 1;
  return node.numa_nodes[static_cast<std::size_t>(random.in(0, last))].os_index;
}

/// Devices with and without parts, near NUMA nodes, cores, everything or of unknown locality; NICs; links.
Topology random_node(std::uint64_t seed) {
  Topology node = test::random_topology(seed);
  test::Random random(seed + 77);
  const int devices = random.chance(20) ? 0 : random.in(1, 12);
  for (int d = 0; d < devices; ++d) {
    Device device{2 * d,
                  "amd",
                  random.chance(50) ? "A rather long name of a model" : "",
                  "",
                  0,
                  0,
                  any_numa(node, random),
                  {}};
    if (random.chance(30)) device.subdevices = random.in(1, random.chance(20) ? 64 : 4);
    if (random.chance(10)) device.instances = {"MIG-one", "MIG-two"};
    if (random.chance(30)) device.memory_bytes = std::uint64_t{128} << 30;
    if (random.chance(20)) device.pci = "0000:c1:00.0";
    if (random.chance(10)) device.pus = node.all_pus();
    if (random.chance(20)) device.pus = node.cores.back().pus;
    node.devices.push_back(device);
    if (d > 0) node.links.push_back({2 * d - 2, 2 * d, "xgmi", random.in(1, 4)});
  }
  for (int n = random.in(0, 6); n > 0; --n)
    node.nics.push_back({n % 2 == 0 ? "hsn" + std::to_string(n) : "", "cxi0", "",
                         any_numa(node, random), n % 3 == 0 ? "slingshot" : ""});
  REQUIRE(check_topology(node));
  return node;
}

/// Ranks on any cores, shared or not, near or far.
NodeClass random_ranks(const Topology& node, std::uint64_t seed) {
  test::Random random(seed + 99);
  NodeClass all;
  const int last = static_cast<int>(node.cores.size()) - 1;
  for (int r = random.in(1, 20); r > 0; --r) {
    RankPlan rank;
    const int first = random.in(0, last);
    for (int c = first; c <= std::min(last, first + random.in(0, 7)); ++c)
      rank.cpus |= node.cores[static_cast<std::size_t>(c)].pus;
    if (random.chance(10)) rank.cpus = {};
    if (!node.devices.empty() && random.chance(80)) {
      const Device& device = node.devices[static_cast<std::size_t>(
          random.in(0, static_cast<int>(node.devices.size()) - 1))];
      rank.slots = {{-1, device.index, -1}};
      if (render::parts_of(device) > 0 && random.chance(70))
        rank.slots.front().part = random.in(0, render::parts_of(device) - 1);
    }
    if (!node.nics.empty() && random.chance(50))
      rank.nic = random.in(0, static_cast<int>(node.nics.size()) - 1);
    all.ranks.push_back(rank);
  }
  return all;
}

Plan plan_of(const NodeClass& ranks) {
  Plan plan;
  plan.hosts.names = {"node-a"};
  plan.placement.classes = {ranks};
  plan.placement.layout = {{0, 1}};
  return plan;
}

bool apart(const Box& a, const Box& b) {
  return a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
}

bool within(const Box& box, const Box& outer) {
  return box.x >= outer.x && box.y >= outer.y && box.x + box.w <= outer.x + outer.w &&
         box.y + box.h <= outer.y + outer.h;
}

/// What may enclose a box closest.
bool may_hold(What outer, What what) {
  if (what == What::pu) return outer == What::core;
  if (what == What::unit) return outer == What::device;
  return outer == What::node || outer == What::group;
}

/// Two boxes lie apart, or the later one in the other.
void check_boxes(const render::Scene& scene) {
  for (std::size_t i = 1; i < scene.boxes.size(); ++i) {
    const Box& box = scene.boxes[i];
    REQUIRE((box.w > 0 && box.h > 0));
    REQUIRE(within(box, scene.boxes.front()));
    What closest = What::node;
    for (std::size_t j = 0; j < i; ++j) {
      const Box& other = scene.boxes[j];
      if (within(box, other))
        closest = other.what;
      else if (!apart(box, other))
        FAIL(box.tip << " over " << other.tip);
    }
    INFO("box " << i << " '" << box.tip << "'");
    REQUIRE(may_hold(closest, box.what));
  }
}

void check_texts(const render::Scene& scene) {
  for (const Box& box : scene.boxes)
    for (const render::Text& text : box.texts) {
      const int width = render::svg_text_width(text.text, text.size, text.strong);
      const int left = text.middle ? text.x - width / 2 : text.x;
      INFO(text.text << " in " << box.tip);
      REQUIRE((left >= box.x && left + width <= box.x + box.w + 1));
      REQUIRE((text.y >= box.y && text.y <= box.y + box.h));
    }
  for (const render::Text& text : scene.texts) REQUIRE((text.x >= 0 && text.y <= scene.h));
}

std::vector<int> numbers(const render::Scene& scene, What what) {
  std::vector<int> found;
  for (const Box& box : scene.boxes)
    if (box.what == what) found.push_back(box.number);
  std::sort(found.begin(), found.end());
  return found;
}

template <class Items, class Number>
std::vector<int> expected(const Items& items, Number number) {
  std::vector<int> all;
  for (std::size_t i = 0; i < items.size(); ++i)
    all.push_back(number(items[i], static_cast<int>(i)));
  return all;
}

/// Nothing of the machine is left out, nothing is drawn twice.
void check_whole(const render::Scene& scene, const Topology& node) {
  const auto place = [](const auto&, int i) { return i; };
  REQUIRE(numbers(scene, What::pu) == node.all_pus().to_vector());
  REQUIRE(numbers(scene, What::core) == expected(node.cores, place));
  REQUIRE(numbers(scene, What::nic) == expected(node.nics, place));
  REQUIRE(numbers(scene, What::device) ==
          expected(node.devices, [](const Device& one, int) { return one.index; }));
  std::size_t units = 0;
  for (const Device& one : node.devices)
    units += static_cast<std::size_t>(std::max(1, render::parts_of(one)));
  REQUIRE(numbers(scene, What::unit).size() == units);
  std::set<std::string> tips;
  for (const Box& box : scene.boxes)
    if (box.what == What::group || box.what == What::memory)
      for (const std::string_view piece : split(box.tip, ',')) tips.emplace(trim(piece));
  for (const NumaNode& one : node.numa_nodes) REQUIRE(tips.count(render::numa_text(one)) == 1);
  for (const Package& one : node.packages) REQUIRE(tips.count(render::package_text(one)) == 1);
  for (const Cache& one : node.caches) REQUIRE(tips.count(render::cache_text(one)) == 1);
}

/// Who is far, counted without any code of the pictures.
std::set<std::pair<int, int>> far_pairs(const Topology& node, const NodeClass& ranks) {
  std::set<std::pair<int, int>> far;
  for (std::size_t r = 0; r < ranks.ranks.size(); ++r)
    for (const Device& one : node.devices) {
      if (ranks.ranks[r].device() != one.index || ranks.ranks[r].cpus.empty()) continue;
      CpuSet near = one.pus;
      for (const NumaNode& numa : node.numa_nodes)
        if (near.empty() && numa.os_index == one.numa) near = numa.pus;
      if (!near.empty() && (near & ranks.ranks[r].cpus).empty())
        far.insert({static_cast<int>(r), one.index});
    }
  return far;
}

// ---- colours: <https://www.w3.org/TR/WCAG22/#dfn-relative-luminance> --------------------------------

using Rgb = std::array<double, 3>;

Rgb linear(std::string_view colour) {
  Rgb out{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(std::string(colour.substr(1 + 2 * i, 2)), nullptr, 16) / 255.0;
    out[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return out;
}

double luminance(const Rgb& c) { return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; }

double contrast(std::string_view a, std::string_view b) {
  const double one = luminance(linear(a)) + 0.05;
  const double two = luminance(linear(b)) + 0.05;
  return std::max(one, two) / std::min(one, two);
}

// Machado, Oliveira and Fernandes 2009, severity 1.0: protanopia, deuteranopia, tritanopia.
constexpr double kSeen[4][3][3] = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
                                   {{0.152286, 1.052583, -0.204868},
                                    {0.114503, 0.786281, 0.099216},
                                    {-0.003882, -0.048116, 1.051998}},
                                   {{0.367322, 0.860646, -0.227968},
                                    {0.280085, 0.672501, 0.047413},
                                    {-0.011820, 0.042940, 0.968881}},
                                   {{1.255528, -0.076749, -0.178779},
                                    {-0.078411, 0.930809, 0.147602},
                                    {0.004733, 0.691367, 0.303900}}};

/// CIE L*a*b* of a colour as somebody with that vision sees it.
Rgb lab(std::string_view colour, const double (&seen)[3][3]) {
  const Rgb c = linear(colour);
  Rgb s{};
  for (std::size_t i = 0; i < 3; ++i)
    s[i] = std::clamp(seen[i][0] * c[0] + seen[i][1] * c[1] + seen[i][2] * c[2], 0.0, 1.0);
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124 * s[0] + 0.3576 * s[1] + 0.1805 * s[2]) / 0.95047);
  const double y = f(0.2126 * s[0] + 0.7152 * s[1] + 0.0722 * s[2]);
  const double z = f((0.0193 * s[0] + 0.1192 * s[1] + 0.9505 * s[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double distance(const Rgb& a, const Rgb& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

void check_palette(std::string_view render::Colour::*screen) {
  constexpr double kText = 4.5, kMark = 3;
  const render::Palette& p = render::kPalette;
  std::vector<render::Ink> inks(p.ranks.begin(), p.ranks.end());
  for (const render::Ink& one : {p.shared, p.reserved, p.service}) inks.push_back(one);
  for (const render::Colour& shade : {p.page, p.group, p.cell}) {
    const std::string_view ground = shade.*screen;
    for (const render::Colour& text : {p.text, p.faint, p.alarm, p.closed}) {
      INFO(text.*screen << " on " << ground);
      CHECK(contrast(text.*screen, ground) >= kText);
    }
    CHECK(contrast(p.group_edge.*screen, ground) >= kMark);
    for (const render::Ink& one : inks) {
      INFO(one.edge.*screen << " on " << ground);
      CHECK(contrast(one.edge.*screen, ground) >= kMark);
    }
  }
  for (const render::Ink& one : inks) {
    INFO(p.text.*screen << " on " << one.fill.*screen);
    CHECK(contrast(p.text.*screen, one.fill.*screen) >= kText);
  }
  // Neighbours in rank stand side by side: they differ whatever colours somebody sees.
  constexpr double kPlain = 15;
  for (const auto& seen : kSeen)
    for (std::size_t i = 0; i < p.ranks.size(); ++i) {
      const std::string_view fill = p.ranks[i].fill.*screen;
      const std::string_view next = p.ranks[(i + 1) % p.ranks.size()].fill.*screen;
      INFO(fill << " beside " << next);
      CHECK(distance(lab(fill, seen), lab(next, seen)) >= kPlain);
    }
}

Style style_of(int width, bool unicode) {
  Style style;
  style.width = width;
  style.unicode = unicode;
  return style;
}

}  // namespace

TEST_CASE("a picture holds the whole machine, and no box lies over another", "[picture][law]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const Topology node = random_node(seed);
    const NodeClass ranks = random_ranks(node, seed);
    PictureMarks marks;
    if (seed % 3 == 0) marks.reserved = node.all_pus() - node.allowed;
    if (seed % 5 == 0) marks.services = {{"a service", node.cores.front().pus, "it runs there"}};
    const render::Subject subject =
        seed % 4 == 0 ? render::subject_of(node) : render::subject_of(node, ranks, marks);
    const render::Scene scene = render::lay_out(subject, render::svg_metrics());
    check_boxes(scene);
    check_texts(scene);
    check_whole(scene, node);
  }
}

TEST_CASE("only ranks far from a device are marked", "[picture][law]") {
  std::size_t seen = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const Topology node = random_node(seed);
    const NodeClass ranks = random_ranks(node, seed);
    const std::set<std::pair<int, int>> far = far_pairs(node, ranks);
    const render::Subject subject = render::subject_of(node, ranks, {});
    std::set<std::pair<int, int>> marked;
    for (const render::Use* use : render::far_uses(subject)) marked.insert({use->rank, use->place});
    REQUIRE(marked == far);
    const render::Scene scene = render::lay_out(subject, render::svg_metrics());
    REQUIRE(scene.leads.size() == far.size());
    const bool boxed = std::any_of(scene.boxes.begin(), scene.boxes.end(), [](const Box& box) {
      return box.what == What::unit && box.far();
    });
    REQUIRE(boxed == !far.empty());
    std::set<int> far_nics;
    for (std::size_t r = 0; r < ranks.ranks.size(); ++r)
      for (const NumaNode& numa : node.numa_nodes) {
        const RankPlan& rank = ranks.ranks[r];
        if (rank.nic >= 0 && node.nics[static_cast<std::size_t>(rank.nic)].numa == numa.os_index &&
            !numa.pus.empty() && !rank.cpus.empty() && !numa.pus.intersects(rank.cpus))
          far_nics.insert(rank.nic);
      }
    std::set<int> marked_nics;
    for (const Box& box : scene.boxes)
      if (box.what == What::nic && box.far()) marked_nics.insert(box.number);
    REQUIRE(marked_nics == far_nics);
    const std::string svg = plan_svg(plan_of(ranks), node, {});
    REQUIRE((svg.find("FAR") != std::string::npos) == (!far.empty() || !far_nics.empty()));
    REQUIRE((render::locality_text(subject).substr(0, 3) == "FAR") == !far.empty());
    seen += far.size();
  }
  CHECK(seen > 50);
}

TEST_CASE("where near and far ranks share a thing, the far ones are named", "[picture]") {
  constexpr int kPackages = 2;
  constexpr int kCores = 4;
  Topology node = test::even_machine(kPackages, 1, kCores);
  node.nics.push_back({"hsn0", "cxi0", "", 0, "slingshot"});
  NodeClass all;
  for (int r = 0; r < 2 * kPackages; ++r) {
    RankPlan rank;
    rank.cpus.add(2 * r);
    rank.nic = 0;
    all.ranks.push_back(rank);
  }
  const auto interface_text = [&] {
    const render::Subject subject = render::subject_of(node, all, {});
    const render::Scene scene = render::lay_out(subject, render::svg_metrics());
    std::string text;
    for (const Box& box : scene.boxes)
      if (box.what == What::nic) text = box.texts.back().text;
    return text;
  };
  CHECK(interface_text() == "0-3, FAR: 2-3");  // the box is too narrow for "ranks"
  all.ranks.erase(all.ranks.begin(), all.ranks.begin() + 2);
  CHECK(interface_text() == "ranks 0-1 FAR");
}

TEST_CASE("every link is an arc between the dots of its devices", "[picture]") {
  Topology node = test::even_machine(1, 1, 8);
  for (int d = 0; d < 8; ++d) node.devices.push_back({d, "nvidia", "", "", 0, 0, -1, {}});
  for (int a = 0; a < 8; ++a)
    for (int b = a + 1; b < 8; ++b) node.links.push_back({a, b, "nvlink", a == 0 ? 1 : 18});
  const std::string svg = topology_svg(node);
  std::vector<std::string> dots;  // x
  const std::regex dot("<circle class=\"dev\" cx=\"([0-9]+)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), dot), end; at != end; ++at)
    dots.push_back((*at)[1]);
  REQUIRE(dots.size() == 8);
  const std::regex arc(
      "<path class=\"arc\" stroke-width=\"([0-9]+)\" d=\"M([0-9]+) ([0-9]+)A[0-9]+ ([0-9]+) 0 0 1 "
      "([0-9]+) "
      "([0-9]+)\"");
  std::size_t i = 0;
  for (std::sregex_iterator at(svg.begin(), svg.end(), arc), end; at != end; ++at, ++i) {
    REQUIRE(i < node.links.size());
    const Link& link = node.links[i];
    CHECK((*at)[1] == (link.lanes == 1 ? "1" : "4"));
    CHECK((*at)[2] == dots[static_cast<std::size_t>(link.from)]);
    CHECK((*at)[5] == dots[static_cast<std::size_t>(link.to)]);
    CHECK((*at)[3] == (*at)[6]);
    CHECK(std::stoi((*at)[4]) > 0);
  }
  CHECK(i == node.links.size());
  CHECK(render::link_words(node).size() == 2);
  node.links.clear();
  CHECK(topology_svg(node).find("class=\"arc\"") == std::string::npos);
}

TEST_CASE("every rank is described in words", "[picture][law]") {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const Topology node = random_node(seed);
    const NodeClass ranks = random_ranks(node, seed);
    const std::string svg = plan_svg(plan_of(ranks), node, {});
    const std::string words = svg.substr(0, svg.find("</desc>"));
    for (std::size_t r = 0; r < ranks.ranks.size(); ++r)
      REQUIRE(words.find("\nrank " + std::to_string(r) + ": ") != std::string::npos);
    CHECK(plan_svg(plan_of(ranks), node, {}) == svg);
  }
}

TEST_CASE("a terminal's picture keeps to its columns and its characters", "[picture][law]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Topology node = random_node(seed);
    const NodeClass ranks = random_ranks(node, seed);
    for (const int width : {60, 100}) {
      const Style style = style_of(width, seed % 2 == 0);
      const std::string bare = topology_picture(node, style);
      const std::string text = bare + plan_picture(plan_of(ranks), node, {}, style);
      INFO("seed " << seed << ", width " << width << "\n" << text);
      for (const std::string_view line : split(text, '\n')) REQUIRE(render::columns(line) <= width);
      const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
      REQUIRE((style.unicode || ascii));
      for (const Device& one : node.devices)
        REQUIRE(text.find("device " + std::to_string(one.index)) != std::string::npos);
    }
  }
}

TEST_CASE("colours are legible and distinct", "[picture]") {
  SECTION("light") { check_palette(&render::Colour::light); }
  SECTION("dark") { check_palette(&render::Colour::dark); }
}

TEST_CASE("names from outside stay text", "[picture]") {
  Topology node = random_node(3);
  node.hostname = "<script>\"&'\x01\xff\xE2\x80\xAE";
  node.packages.clear();
  for (Core& core : node.cores) core.package = -1;
  node.devices = {{0, "nvidia", "</svg>]]>\x1b[2J", "\x07", 0, 0, -1, {}}};
  node.links.clear();
  const std::string svg = topology_svg(node);
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(svg.find("&lt;script&gt;") != std::string::npos);
  CHECK(svg.find("</svg>") == svg.size() - 7);
  CHECK(render::is_utf8(svg));
  for (const char c : svg) REQUIRE((c == '\n' || static_cast<unsigned char>(c) >= ' '));
  CHECK(topology_picture(node, style_of(100, true)).find('\x1b') == std::string::npos);
}
