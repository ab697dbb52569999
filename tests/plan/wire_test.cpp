// encode_wire: goldens, refusals, and the law that the shim reads back what the plan says.
#include "hpclaunch/wire.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "hpclaunch/late.h"
#include "hpclaunch/text.h"
#include "shim/run_rank.h"
#include "support/catch.h"

using namespace hpclaunch;
using hpclaunch::test::run_rank;

namespace {

const RankVariables kNames{"PMI_RANK", "MPI_LOCALRANKID"};

Setting setting(std::string name, Value value) {
  return {std::move(name), {Decision{Layer::computed, std::move(value), {}, "for the test"}}};
}

RankPlan on(const std::string& list) {
  RankPlan rank;
  if (!list.empty()) rank.cpus = *CpuSet::parse(list);
  return rank;
}

Plan small_plan() {
  Plan plan;
  plan.hosts.names = {"10.0.0.1", "10.0.0.2"};  // what has no mark
  plan.placement.classes = {NodeClass{{on("0-3"), on("4-7")}}};
  plan.placement.layout = {NodeRun{0, 2}};
  return plan;
}

std::string encoded(const Plan& plan) {
  const auto wire = encode_wire(plan, kNames);
  if (!wire) FAIL(wire.error().message);
  return *wire;
}

std::string fields_of(const Plan& plan) {
  const std::string wire = encoded(plan);
  return wire.substr(wire.find(':'));
}

}  // namespace

TEST_CASE("the wire, byte for byte", "[wire]") {
  Plan plan = small_plan();
  plan.environment.settings = {setting("GONE", Unset{}),
                               setting("LOCAL_RANK", RankFact::local_rank),
                               setting("MASK", PerRank{{{"0", "1:2"}}}),
                               setting("SAME", PerRank{{{"x", "x"}}}),
                               setting("WORLD_SIZE", std::string("4")),
                               setting("http_proxy", PerRank{{{"", "h\xC3\xA9"}}})};
  CHECK(encoded(plan) ==
        "hl2.6bA6s:rank=PMI_RANK:local=MPI_LOCALRANKID:verify=warn:layout=0*2"
        ":LOCAL_RANK=@.local-rank:SAME=x:same=WORLD_SIZE*lrLDx:hosts=......"
        ":class=2:MASK=0/1%3A2:%68ttp_proxy=/h%C3%A9:cpus=0-3/4-7");
}

TEST_CASE("classes, runs and columns", "[wire]") {
  Plan plan = small_plan();
  plan.hosts.names = {"localhost", "fe80::1", "10.0.0.2", "4"};
  plan.placement.classes.push_back(NodeClass{{on("0-7")}});
  plan.placement.layout = {NodeRun{0, 1}, NodeRun{1, 2}, NodeRun{0, 1}};
  plan.supervision.verify = Verify::strict;
  plan.environment.settings = {setting("A", PerRank{{{"x", "x"}, {"x"}}}),
                               setting("B", PerRank{{{"x", "x"}, {"y"}}})};
  const std::string head =
      ":rank=PMI_RANK:local=MPI_LOCALRANKID:verify=strict:layout=0*1/1*2/"
      "0*1:A=x:hosts=............";
  CHECK(fields_of(plan) == head + ":class=2:B=x:cpus=0-3/4-7:class=1:B=y:cpus=0-7");

  SECTION("a launcher that binds is compared with") {
    plan.placement.bind_via = BindVia::launcher;
    CHECK(fields_of(plan) == head + ":class=2:B=x:expect=0-3/4-7:class=1:B=y:expect=0-7");
    plan.supervision.verify = Verify::off;
    CHECK(fields_of(plan).find("expect") == std::string::npos);
  }
  SECTION("nobody binds") {
    plan.placement.bind_via = BindVia::none;
    CHECK(fields_of(plan) == head + ":class=2:B=x:class=1:B=y");
  }
  SECTION("ranks that are not bound") {
    plan.placement.classes[0].ranks[0].cpus = {};
    plan.placement.classes[1].ranks[0].cpus = {};
    CHECK(fields_of(plan) == head + ":class=2:B=x:cpus=/4-7:class=1:B=y");
  }
}

TEST_CASE("what the ranks compare", "[wire]") {
  Plan plan = small_plan();
  plan.hosts.names = {"Node1.example.org", "node2"};
  plan.environment.removed = {"ROCR_VISIBLE_DEVICES", "no identifier", "ZE_AFFINITY_MASK"};
  plan.environment.settings = {setting("A", std::string("1")),
                               setting("API_TOKEN", std::string("x")),
                               setting("GONE", Unset{}),
                               setting("LD_LIBRARY_PATH", std::string("/lib")),
                               setting("MASTER_PORT", std::string("29500")),
                               setting("PATH", std::string("/bin"))};
  const std::string head = ":rank=PMI_RANK:local=MPI_LOCALRANKID:verify=warn:layout=0*2";
  const std::string absent = ":absent=ROCR_VISIBLE_DEVICES/ZE_AFFINITY_MASK";
  const std::string hosts = ":hosts=" + wire_mark("node1", 3) + wire_mark("node2", 3);
  const std::string same = ":same=A*" + wire_mark("1", 5) + "/MASTER_PORT*" + wire_mark("29500", 5);
  const std::string tail = ":class=2:cpus=0-3/4-7";
  CHECK(fields_of(plan) == head + absent + same + hosts + tail);
  plan.environment.settings.insert(plan.environment.settings.begin() + 4,
                                   setting("MASTER_ADDR", std::string("node1")));
  CHECK(fields_of(plan).find(":port=") == std::string::npos);
  plan.environment.settings[4].history.back().layer = Layer::builtin;
  CHECK(fields_of(plan).find(absent + ":port=29500:same=") != std::string::npos);
  plan.environment.settings[5].history.back().value = std::string("x29500");
  CHECK(fields_of(plan).find(":port=") == std::string::npos);
  plan.supervision.verify = Verify::off;
  CHECK(fields_of(plan) ==
        ":rank=PMI_RANK:local=MPI_LOCALRANKID:verify=off:layout=0*2" + absent + tail);
  plan.hosts.names = {"node1", "node2"};
  plan.placement.layout = {NodeRun{0, 1}};
  plan.hosts.names = {"node1"};
  plan.supervision.verify = Verify::warn;
  CHECK(fields_of(plan).find(":hosts=") == std::string::npos);
}

TEST_CASE("checks give way before the plan does, and say so", "[wire]") {
  Plan plan = small_plan();
  plan.hosts.names = std::vector<std::string>(kMaxWireHosts, "n");
  plan.placement.layout = {NodeRun{0, kMaxWireHosts}};
  std::vector<std::string> left_out;
  const auto whole = encode_wire(plan, kNames, &left_out);
  REQUIRE(whole);
  CHECK(left_out.empty());
  CHECK(run_rank(*whole, 2 * kMaxWireHosts - 1).fault.empty());
  plan.hosts.names.push_back("n");
  plan.placement.layout = {NodeRun{0, kMaxWireHosts + 1}};
  const auto part = encode_wire(plan, kNames, &left_out);
  REQUIRE(part);
  CHECK(left_out == std::vector<std::string>{"their host"});
  CHECK(part->size() < 100);
  Plan large = plan;
  large.hosts.first_is_here = true;
  left_out.clear();
  constexpr int kAurora = 10'624;
  large.hosts.names = {};
  for (int n = 0; n < kAurora; ++n) large.hosts.names.push_back("x" + std::to_string(n));
  large.placement.layout = {NodeRun{0, kAurora}};
  const auto all = encode_wire(large, kNames, &left_out);
  REQUIRE(all);
  CHECK(left_out.empty());
  CHECK(all->find(":order=" + wire_mark("x0", 1) + wire_mark("x1", 1)) != std::string::npos);
  CHECK(run_rank(*all, 2 * kAurora - 1).fault.empty());
  for (int i = 0; i < 2000; ++i)
    plan.environment.settings.push_back(
        setting("A_LONG_NAME_" + std::to_string(100000 + i), std::string("1")));
  left_out.clear();
  const auto least = encode_wire(plan, kNames, &left_out);
  REQUIRE(least);
  CHECK(left_out.size() == 2);
  CHECK(least->size() == part->size());
}

TEST_CASE("parts of nodes whose CPUs are only counted", "[wire]") {
  Plan plan = small_plan();
  NodeClass& first = plan.placement.classes.front();
  first.granted = 6;
  first.ranks = {RankPlan{}, RankPlan{}};
  first.ranks[0].part_first = 0;
  first.ranks[0].part_last = 2;
  first.ranks[1].part_first = 3;
  first.ranks[1].part_last = 5;
  const std::string head =
      ":rank=PMI_RANK:local=MPI_LOCALRANKID:verify=warn:layout=0*2:hosts=......";
  CHECK(fields_of(plan) == head + ":class=2:granted=6:part=0-2/3-5");
  CHECK(run_rank(encoded(plan), 1).binding == shim::Binding::part);
  plan.placement.bind_via = BindVia::none;
  CHECK(fields_of(plan) == head + ":class=2");
}

TEST_CASE("who stays, and how a rank ends", "[wire]") {
  Plan plan = small_plan();
  const std::string head = ":rank=PMI_RANK:local=MPI_LOCALRANKID:verify=warn";
  const std::string tail = ":layout=0*2:hosts=......:class=2:cpus=0-3/4-7";
  plan.supervision.time_limit_signal = {10, 1'800'000'000};
  plan.supervision.termination.fails_fast = false;
  CHECK(fields_of(plan) == head + tail);  // nobody stays
  plan.supervision.supervise = true;
  CHECK(fields_of(plan) == head + ":stay=kill:notice=10*1800000000" + tail);
  plan.supervision.time_limit_signal = {};
  plan.supervision.termination.fails_fast = true;
  plan.supervision.termination.ranks_outlive_launcher = true;
  CHECK(fields_of(plan) == head + ":stay=exit:end=with-parent" + tail);
  CHECK(run_rank(encoded(plan), 3).fault.empty());
}

TEST_CASE("the shim's marks are ours", "[wire]") {
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    std::string text(random() % 40, 'x');
    for (char& c : text) c = static_cast<char>(random());
    for (const int size : {3, 5}) {
      const std::string mark = wire_mark(text, size);
      const shim::Text shim_mark(mark.data(), size);
      const shim::Text shim_text(text.data(), static_cast<int>(text.size()));
      CHECK(shim::is_mark_of(shim_mark, shim_text));
    }
    std::string other = text + "x";
    CHECK(wire_mark(other, 5) != wire_mark(text, 5));
  }
}

TEST_CASE("limits and directories come before the layout", "[wire]") {
  Plan plan = small_plan();
  plan.environment.core_limit = "0";
  plan.environment.make_dirs = {"/tmp/me", "/tmp/me/a:b c"};
  CHECK(fields_of(plan) ==
        ":rank=PMI_RANK:local=MPI_LOCALRANKID:verify=warn:core=0:dir=%2Ftmp%2Fme/%2Ftmp%2Fme%2Fa"
        "%3Ab%20c:layout=0*2:hosts=......:class=2:cpus=0-3/4-7");
  plan.environment.make_dirs = {"/tmp/me", "/tmp/me"};
  CHECK(fields_of(plan).find(":dir=%2Ftmp%2Fme:layout") != std::string::npos);
  for (const char* core : {"unlimited", "1", "999999999999999999"}) {
    plan.environment.core_limit = core;
    CHECK(run_rank(encoded(plan), 3).core == core);
  }
  plan.environment.core_limit.clear();
  plan.environment.make_dirs = {"/" + std::string(4094, 'x')};
  CHECK(run_rank(encoded(plan), 0).directories == plan.environment.make_dirs);
  for (const std::string& path :
       {std::string(), std::string("tmp"), "/" + std::string(4095, 'x'), std::string("$HOME/x")}) {
    INFO(path);
    plan.environment.make_dirs = {"/fine", path};
    CHECK_FALSE(encode_wire(plan, kNames));
  }
}

TEST_CASE("what only the job knows is put in by its shell", "[wire]") {
  Plan plan = small_plan();
  plan.hosts.invented = plan.hosts.later = true;
  plan.environment.make_dirs = {"/tmp/" + stand_in("USER") + "-" + stand_in("JOB"),
                                stand_in("DIR") + "/a^b"};
  plan.environment.settings = {
      setting("A", PerRank{{{stand_in("USER") + ".0", "b^" + stand_in("JOB")}}}),
      setting("B", stand_in("USER")), setting("C", std::string("fixed"))};
  plan.supervision.supervise = true;
  plan.supervision.time_limit_signal = {10, 1700000000, 3300};
  std::string wire = encoded(plan);
  CHECK(wire.find(":dir=%2Ftmp%2F^USER^-^JOB^/^DIR^%2Fa%5Eb:") != std::string::npos);
  CHECK(wire.find(":A=^USER^.0/b%5E^JOB^:") != std::string::npos);
  CHECK(wire.find(":notice=10*^+3300^:") != std::string::npos);
  CHECK(wire.find("same=C*") != std::string::npos);  // B differs
  const auto put = [&](const std::string& name, const std::string& value) {
    for (std::size_t at; (at = wire.find("^" + name + "^")) != std::string::npos;)
      wire.replace(at, name.size() + 2, "^" + value + "^");
  };
  put("USER", "%3Ame%3D");
  put("JOB", "");
  put("DIR", "%2Fscratch");
  put("+3300", "1800000000");
  const auto rank = run_rank(wire, 1);
  CHECK(rank.fault.empty());
  CHECK(rank.directories == std::vector<std::string>{"/tmp/:me=-", "/scratch/a^b"});
  CHECK(rank.environment == std::vector<std::string>{"A=b^"});
  CHECK(run_rank(wire, 0).environment == std::vector<std::string>{"A=:me=.0"});
  CHECK_FALSE(run_rank(wire + "^", 0).fault.empty());
  wire.replace(wire.find("-^"), 2, "+^");
  CHECK_FALSE(run_rank(wire, 0).fault.empty());
}

TEST_CASE("parts of a value that the job decides", "[wire]") {
  const std::string value = "/tmp/" + stand_in("USER") + stand_in_behind("PATH");
  CHECK(late_parts(value) ==
        std::vector<LatePart>{{"/tmp/", false}, {"USER", true}, {":PATH", true}});
  CHECK(late_shown(value) == "/tmp/$USER:$PATH");
  for (const char* text : {"", "/tmp/$USER", "\x0F", "\x0F x \x0E"}) {
    CHECK_FALSE(has_late(text));
    CHECK(late_shown(text) == text);
  }
}

TEST_CASE("the last decision about a variable holds", "[wire]") {
  Plan plan = small_plan();
  Setting overruled = setting("A", PerRank{{{"x", "y"}}});
  overruled.history.push_back({Layer::command_line, std::string("z"), {}, "typed"});
  Setting computed = setting("B", std::string("old"));
  computed.history.push_back({Layer::computed, RankFact::node, {}, "a fact"});
  plan.environment.settings = {overruled, computed};
  CHECK(fields_of(plan).find(":A=") == std::string::npos);
  CHECK(fields_of(plan).find(":B=@.node:") != std::string::npos);
}

TEST_CASE("a launcher without a local rank", "[wire]") {
  const auto wire = encode_wire(small_plan(), {"R", ""});
  REQUIRE(wire);
  CHECK(wire->find("local=") == std::string::npos);
}

TEST_CASE("a constant device mask is set again where ranks may find another", "[wire]") {
  Plan plan = small_plan();
  plan.environment.settings = {setting("CUDA_VISIBLE_DEVICES", std::string("1,0")),
                               setting("HIP_VISIBLE_DEVICES", std::string("-1")),
                               setting("WORLD_SIZE", std::string("4"))};
  const auto inherited = encode_wire(plan, {"R", ""});
  const auto replaced = encode_wire(plan, {"R", "", true});
  REQUIRE(inherited);
  REQUIRE(replaced);
  CHECK_THAT(*inherited, ContainsSubstring(":same=CUDA_VISIBLE_DEVICES*"));
  CHECK_THAT(*replaced, ContainsSubstring(
                            ":CUDA_VISIBLE_DEVICES=1,0:HIP_VISIBLE_DEVICES=-1:same=WORLD_SIZE*"));
  CHECK(run_rank(*replaced, 3).environment ==
        std::vector<std::string>{"CUDA_VISIBLE_DEVICES=1,0", "HIP_VISIBLE_DEVICES=-1"});
  plan.environment.settings = {setting("CUDA_VISIBLE_DEVICES", std::string())};  // hides all
  CHECK(run_rank(*encode_wire(plan, {"R", "", true}), 3).environment ==
        std::vector<std::string>{"CUDA_VISIBLE_DEVICES="});
}

TEST_CASE("a plan that is too long says what makes it so", "[wire]") {
  Plan plan = small_plan();
  plan.environment.settings = {
      setting("BIG", PerRank{{{std::string(20000, 'a'), std::string(20000, 'b')}}}),
      setting("RANK", RankFact::rank)};
  const auto wire = encode_wire(plan, kNames);
  REQUIRE(!wire);
  CHECK(wire.error().kind == ErrorKind::unsupported);
  CHECK(
      wire.error().message ==
      "HPCLAUNCH_PLAN would have 40107 bytes, the limit is 32768; the largest part is BIG (40006)");

  std::vector<std::string> half(2, std::string(16000, 'a'));
  half[1] = std::string(16000, 'b');
  plan.environment.settings[0] = setting("BIG", PerRank{{half}});
  const std::string fits = encoded(plan);
  CHECK(run_rank(fits, 3).environment == std::vector<std::string>{"RANK=3", "BIG=" + half[1]});

  plan.environment.settings.clear();
  for (int i = 0; i < kMaxWireVariables; ++i) {
    plan.environment.settings.push_back(setting("V" + std::to_string(1000 + i), RankFact::rank));
  }
  CHECK(run_rank(encoded(plan), 0).fault.empty());
  plan.environment.settings.push_back(setting("W", RankFact::rank));
  CHECK(!encode_wire(plan, kNames));
}

namespace {

/// A random plan in the sense of the round trip: several classes, uneven layouts, all bytes.
class Maker {
 public:
  explicit Maker(unsigned seed) : engine_(seed) {}

  int below(int limit) { return static_cast<int>(engine_() % static_cast<unsigned>(limit)); }

  Plan plan() {
    Plan out;
    const int classes = 1 + below(4);
    for (int c = 0; c < classes; ++c) {
      NodeClass node_class;
      for (int r = below(7); r >= 0; --r) node_class.ranks.push_back(rank());
      out.placement.classes.push_back(node_class);
    }
    for (int runs = below(5); runs >= 0; --runs) {
      out.placement.layout.push_back({below(classes), 1 + below(4)});
      for (int n = 0; n < out.placement.layout.back().nodes; ++n) {
        out.hosts.names.push_back("n" + std::to_string(out.hosts.names.size()));
      }
    }
    out.placement.bind_via = static_cast<BindVia>(below(3));
    out.supervision.verify = static_cast<Verify>(below(3));
    if (below(2) == 0)
      out.environment.core_limit = below(2) == 0 ? "unlimited" : std::to_string(engine_());
    for (int d = below(4); d > 0; --d)
      out.environment.make_dirs.push_back("/" + std::to_string(below(9)) + text());
    std::map<std::string, Value> variables;
    for (int v = below(8); v > 0; --v) variables[name()] = value(out);
    for (auto& [key, item] : variables) out.environment.settings.push_back(setting(key, item));
    return out;
  }

 private:
  char byte() { return static_cast<char>(1 + below(255)); }

  std::string name() {
    std::string out;
    do {
      const char c = below(3) == 0 ? byte() : static_cast<char>("AZaz_9"[below(6)]);
      if (c != '=') out += c;
    } while (out.empty() || below(4) != 0);
    return out;
  }

  std::string text() {
    std::string out;
    for (int i = below(5); i > 0; --i) out += below(2) == 0 ? byte() : "%:/=@.-"[below(7)];
    return out;
  }

  RankPlan rank() {
    RankPlan out;
    if (below(6) == 0) return out;
    for (int i = below(5); i >= 0; --i) {
      const int first = below(CpuSet::kCapacity);
      for (int k = below(9); k >= 0; --k) out.cpus.add(std::min(first + k, CpuSet::kCapacity - 1));
    }
    return out;
  }

  Value value(const Plan& plan) {
    const int kind = below(8);
    if (kind == 0) return Unset{};
    if (kind == 1) return text();
    if (kind == 2) return static_cast<RankFact>(below(4));
    PerRank out;
    const std::string same = text();
    const bool all = below(4) == 0;
    for (const NodeClass& node_class : plan.placement.classes) {
      out.items.emplace_back();
      const std::string first = text();
      const bool constant = below(4) == 0;
      for (std::size_t r = 0; r < node_class.ranks.size(); ++r) {
        out.items.back().push_back(all ? same : constant ? first : text());
      }
    }
    return out;
  }

  std::mt19937 engine_;
};

struct Want {
  int rank, local, node, node_class;
};

std::string number_of(RankFact fact, const Want& want, const Plan& plan) {
  const auto size = plan.placement.classes[static_cast<std::size_t>(want.node_class)].ranks.size();
  switch (fact) {
    case RankFact::rank:
      return std::to_string(want.rank);
    case RankFact::local_rank:
      return std::to_string(want.local);
    case RankFact::node:
      return std::to_string(want.node);
    case RankFact::local_size:
      return std::to_string(size);
    case RankFact::address:
      break;  // the shim's main finds it
  }
  return {};
}

void check_rank(const Plan& plan, const std::string& wire, const Want& want) {
  const auto got = run_rank(wire, want.rank);
  REQUIRE(got.fault == "");
  const bool placed = !got.beyond && got.place.local == want.local && got.place.node == want.node;
  REQUIRE(placed);
  REQUIRE(static_cast<int>(got.verify) == static_cast<int>(plan.supervision.verify));
  REQUIRE(got.core == plan.environment.core_limit);
  const bool all_equal =
      std::set(plan.environment.make_dirs.begin(), plan.environment.make_dirs.end()).size() == 1;
  REQUIRE(got.directories == (all_equal ? std::vector{plan.environment.make_dirs.front()}
                                        : plan.environment.make_dirs));

  const auto c = static_cast<std::size_t>(want.node_class);
  const auto r = static_cast<std::size_t>(want.local);
  std::map<std::string, std::string> variables;
  for (const Setting& s : plan.environment.settings) {
    if (const auto* fact = std::get_if<RankFact>(&s.value())) {
      variables[s.name] = number_of(*fact, want, plan);
    }
    if (const auto* items = std::get_if<PerRank>(&s.value()))
      variables[s.name] = items->items[c][r];
  }
  std::map<std::string, std::string> found;
  bool repeated = false;
  for (const std::string& entry : got.environment) {
    const auto equals = entry.find('=');
    repeated = repeated || !found.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second;
  }
  REQUIRE(!repeated);
  REQUIRE(found == variables);

  const CpuSet& cpus = plan.placement.classes[c].ranks[r].cpus;
  const bool compares =
      plan.placement.bind_via == BindVia::launcher && plan.supervision.verify != Verify::off;
  const shim::Binding binding = cpus.empty()                               ? shim::Binding::none
                                : plan.placement.bind_via == BindVia::shim ? shim::Binding::bind
                                : compares                                 ? shim::Binding::expect
                                                                           : shim::Binding::none;
  REQUIRE(got.binding == binding);
  if (binding == shim::Binding::none) return;
  CpuSet mask;
  for (int cpu = 0; cpu < CpuSet::kCapacity; ++cpu) {
    if (got.mask.has(cpu)) mask.add(cpu);
  }
  REQUIRE(mask == cpus);
}

}  // namespace

TEST_CASE("round trip: each rank of a random plan gets what the plan says", "[wire][law]") {
  Maker maker(20260116);
  for (int round = 0; round < 2000; ++round) {
    const Plan plan = maker.plan();
    const std::string wire = encoded(plan);
    INFO("round " << round << " " << wire);
    REQUIRE(wire == encoded(plan));
    REQUIRE(std::all_of(wire.begin(), wire.end(), [](char c) { return c > ' ' && c <= '~'; }));
    Want want{0, 0, 0, 0};
    for (const NodeRun& run : plan.placement.layout) {
      want.node_class = run.node_class;
      const auto ranks =
          plan.placement.classes[static_cast<std::size_t>(run.node_class)].ranks.size();
      for (int n = 0; n < run.nodes; ++n, ++want.node) {
        for (want.local = 0; want.local < static_cast<int>(ranks); ++want.local, ++want.rank) {
          check_rank(plan, wire, want);
        }
      }
    }
    REQUIRE(run_rank(wire, want.rank).beyond);
  }
}
