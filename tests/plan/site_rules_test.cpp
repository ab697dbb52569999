// Bindings, devices and rules of profiles, on machines built here. The published lists come from the
// pages that profiles/site/*.json cite; the formulas beside them are an independent second way.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/cores/cores.h"
#include "plan/devices/slots.h"
#include "plan/jobs.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

struct Shape {
  int packages, numa, l3, cores;  // numa per package, l3 and cores per NUMA node
};

// Siblings after all cores: thread t of core c is PU c + t * cores.
Topology machine(const Shape& shape, int threads = 2) {
  Topology node;
  const int all = shape.packages * shape.numa * shape.cores;
  for (int p = 0; p < shape.packages; ++p) {
    Package package{p, "", {}};
    for (int n = 0; n < shape.numa; ++n) {
      NumaNode numa{p * shape.numa + n, 0, {}};
      for (int c = 0; c < shape.cores; ++c) {
        const int first = numa.os_index * shape.cores + c;
        Core core{p, numa.os_index, {}};
        for (int t = 0; t < threads; ++t) core.pus.add(first + t * all);
        numa.pus |= core.pus;
        node.cores.push_back(core);
      }
      package.pus |= numa.pus;
      for (int l = 0; l < shape.l3; ++l) {
        Cache cache{3, 0, {}};
        const int width = shape.cores / shape.l3;
        for (int c = 0; c < width; ++c)
          cache.pus |=
              node.cores[static_cast<std::size_t>(numa.os_index * shape.cores + l * width + c)].pus;
        node.caches.push_back(cache);
      }
      node.numa_nodes.push_back(numa);
    }
    node.packages.push_back(package);
  }
  node.allowed = node.all_pus();
  REQUIRE(check_topology(node));
  return node;
}

Device device(int index, const char* vendor, const CpuSet& pus, int subdevices = 0) {
  Device one;
  one.index = index;
  one.vendor = vendor;
  one.subdevices = subdevices;
  one.pus = pus;
  return one;
}

const Shape kTwoPackages{2, 1, 1, 52};

std::string lists(const std::vector<RankPlan>& ranks) {
  std::string text;
  for (const RankPlan& rank : ranks) text += (text.empty() ? "" : ":") + rank.cpus.to_list();
  return text;
}

std::string bound(const Binding& rule, const Topology& node, int ranks) {
  const auto result = apply_binding(rule, node, ranks);
  return result ? lists(*result) : "does not fit";
}

Binding rule(int first, int stride, int low, int high) {
  Binding binding;
  binding.id = "r";
  binding.first = first;
  binding.stride = stride;
  binding.low = low;
  binding.high = high;
  return binding;
}

// The second way: per package of 52 cores, in text.
std::string formula(int o, int s, int low, int high, int per_package) {
  std::string text;
  for (const int f : {0, 52})
    for (int i = 0; i < per_package; ++i) {
      const int base = f + o + s * i;
      text += fmt::format("{}{}", text.empty() ? "" : ":", base + low);
      if (high > low) text += fmt::format("-{}", base + high);
    }
  return text;
}

PlanInput input(Topology node, const Profile* profile, int ranks) {
  PlanInput in;
  in.node = std::move(node);
  in.profile = profile;
  in.hosts = {"n0.example.org"};
  in.launcher.name = "pals";
  in.launcher.rank_var = "PALS_RANKID";
  in.launcher.binds_sets = true;
  asked(in).ranks = ranks;
  in.job.user = "ada";
  in.job.id = "17";
  return in;
}

const Value& value_of(const Plan& plan, const char* name) {
  const Setting* setting = plan.find_env(name);
  REQUIRE(setting != nullptr);
  return setting->value();
}

}  // namespace

TEST_CASE("a binding rule gives the published lists, character for character", "[binding]") {
  const Topology node = machine(kTwoPackages);
  CHECK(bound(rule(0, 8, 2, 4), node, 12) ==
        "2-4:10-12:18-20:26-28:34-36:42-44:54-56:62-64:70-72:78-80:86-88:94-96");
  CHECK(bound(rule(4, 4, 0, 3), node, 12) ==
        "4-7:8-11:12-15:16-19:20-23:24-27:56-59:60-63:64-67:68-71:72-75:76-79");
  Binding pairs = rule(0, 2, 0, 0);
  pairs.at_least = 1;
  CHECK(
      bound(pairs, node, 48) ==
      "1:2:4:6:8:10:12:14:16:18:20:22:24:26:28:30:32:34:36:38:40:42:44:46:53:54:56:58:60:62:64:66:"
      "68:70:72:74:76:78:80:82:84:86:88:90:92:94:96:98");
  Binding vectors = rule(0, 1, 0, 0);
  vectors.at = {{4, 9, 14, 19, 20, 25}, {4, 9, 14, 19, 22, 27}};
  CHECK(bound(vectors, node, 12) == "4:9:14:19:20:25:56:61:66:71:74:79");
  vectors.interleave = true;
  CHECK(bound(vectors, node, 12) == "4:56:9:61:14:66:19:71:20:74:25:79");
  Binding split = rule(1, 1, 0, 0);
  split.split = true;
  CHECK(bound(split, node, 12) ==
        "1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100");
  split.siblings = true;
  CHECK(bound(split, node, 12).starts_with("1-8,105-112:9-16,113-120:17-24,121-128"));
  CHECK(bound(rule(1, 16, 0, 15), node, 6) == "1-16:17-32:33-48:53-68:69-84:85-100");
}

TEST_CASE("rules agree with the formula for counts that no page prints", "[binding]") {
  const Topology node = machine(kTwoPackages);
  for (int o = 0; o < 6; ++o)
    for (int s = 1; s < 9; ++s)
      for (int per = 1; per * s + o + s <= 52; ++per)
        CHECK(bound(rule(o, s, 0, s - 1), node, 2 * per) == formula(o, s, 0, s - 1, per));
}

TEST_CASE("a binding rule that does not fit says so", "[binding]") {
  const Topology node = machine(kTwoPackages);
  CHECK(bound(rule(0, 8, 2, 4), node, 13) == "does not fit");  // two packages
  CHECK(bound(rule(0, 8, 2, 4), node, 14) == "does not fit");  // past the package's end
  CHECK(bound(rule(0, 2, 0, 2), node, 4) == "does not fit");   // one core for two ranks
  Binding narrow = rule(0, 1, 0, 0);
  narrow.groups = {0, 7};
  CHECK(bound(narrow, node, 2) == "does not fit");
  Binding split = rule(1, 1, 0, 0);
  split.split = true;
  CHECK(bound(split, node, 104) == "does not fit");
  CHECK(bound(split, node, 102) != "does not fit");
}

TEST_CASE("groups can be caches and NUMA nodes in any order", "[binding]") {
  const Topology eight_caches = machine({1, 4, 2, 16});
  Binding per_cache = rule(1, 1, 0, 6);
  per_cache.per = Binding::Per::l3;
  CHECK(bound(per_cache, eight_caches, 8) == "1-7:9-15:17-23:25-31:33-39:41-47:49-55:57-63");
  per_cache.high = 0;
  per_cache.groups = {6, 7, 2, 3, 0, 1, 4, 5};
  CHECK(bound(per_cache, eight_caches, 8) == "49:57:17:25:1:9:33:41");
  Binding per_numa = rule(0, 8, 0, 7);
  per_numa.per = Binding::Per::numa;
  per_numa.siblings = true;
  per_numa.groups = {3, 2, 1, 0};
  CHECK(bound(per_numa, machine({1, 4, 2, 8}), 4) ==
        "24-31,56-63:16-23,48-55:8-15,40-47:0-7,32-39");
}

TEST_CASE("memory without cores is no group", "[binding]") {
  Topology node = machine(kTwoPackages);
  node.numa_nodes.push_back({2, 1, node.numa_nodes[0].pus});
  node.numa_nodes.push_back({3, 1, {}});
  Binding per_numa = rule(0, 1, 0, 0);
  per_numa.per = Binding::Per::numa;
  CHECK(bound(per_numa, node, 2) == "0:52");
}

TEST_CASE("roles count from the rank or from its group", "[binding]") {
  const Topology node = machine(kTwoPackages);
  Binding binding = rule(0, 8, 2, 4);
  binding.roles = {{"horovod", true, 4, 0}, {"worker", false, 42, 1}};
  const auto ranks = apply_binding(binding, node, 12);
  REQUIRE(ranks);
  std::string horovod;
  std::string worker;
  for (const RankPlan& rank : *ranks) {
    horovod += std::to_string(rank.roles.at("horovod")) + ",";
    worker += std::to_string(rank.roles.at("worker")) + ",";
  }
  CHECK(horovod == "4,12,20,28,36,44,56,64,72,80,88,96,");
  CHECK(worker == "42,43,44,45,46,47,94,95,96,97,98,99,");
}

namespace {

Topology reversed_gpus() {  // GPU g near NUMA node 3 - g
  Topology node = machine({1, 4, 2, 8});
  for (int g = 0; g < 4; ++g)
    node.devices.push_back(
        device(g, "nvidia", node.numa_nodes[static_cast<std::size_t>(3 - g)].pus));
  return node;
}

Topology gcds() {
  Topology node = machine({1, 4, 2, 16});
  const int region[] = {6, 7, 2, 3, 0, 1, 4, 5};
  for (int g = 0; g < 8; ++g)
    node.devices.push_back(device(g, "amd", node.caches[static_cast<std::size_t>(region[g])].pus));
  for (const Cache& cache : node.caches)
    node.allowed -= *CpuSet::parse(std::to_string(cache.pus.first()));
  return node;
}

std::string devices_of(const Plan& plan) {
  std::string text;
  for (const RankPlan& rank : plan.placement.classes.front().ranks)
    text += (text.empty() ? "" : ",") + std::to_string(rank.unit());
  return text;
}

}  // namespace

TEST_CASE("without a rule ranks sit next to their devices", "[units]") {
  Profile profile;
  profile.name = "p";
  auto plan = make_plan(input(gcds(), &profile, 8));
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "4,5,2,3,6,7,0,1");
  CHECK(plan->placement.gpu_view == "all");
  CHECK(value_of(*plan, "ROCR_VISIBLE_DEVICES") == Value(std::string("4,5,2,3,6,7,0,1")));
  CHECK(value_of(*plan, "LOCAL_RANK") == Value(RankFact::local_rank));
  for (const RankPlan& rank : plan->placement.classes.front().ranks) CHECK(rank.cores >= 7);

  plan = make_plan(input(reversed_gpus(), &profile, 4));
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "3,2,1,0");
  CHECK(lists(plan->placement.classes.front().ranks) ==
        "0-7,32-39:8-15,40-47:16-23,48-55:24-31,56-63");
}

TEST_CASE("every count of ranks keeps to the laws on machines with devices", "[units][law]") {
  Profile profile;
  profile.name = "p";
  for (const Topology& node : {gcds(), reversed_gpus()})
    for (int n = 1; n <= static_cast<int>(node.cores.size()) + 1; ++n) {
      INFO(n << " ranks");
      const auto plan = make_plan(input(node, &profile, n));
      int usable = 0;
      for (const Core& core : node.cores) usable += core.pus.intersects(node.allowed) ? 1 : 0;
      if (!plan) {
        CHECK(n > usable);
        continue;
      }
      CpuSet taken;
      for (const RankPlan& rank : plan->placement.classes.front().ranks) {
        CHECK(!rank.cpus.empty());
        CHECK(!rank.cpus.intersects(taken));
        CHECK(node.allowed.contains(rank.cpus));
        taken |= rank.cpus;
        const auto near = std::find_if(node.devices.begin(), node.devices.end(),
                                       [&](const Device& d) { return d.index == rank.device(); });
        REQUIRE(near != node.devices.end());
        // Fewer ranks than devices have all cores near theirs, and idle ones besides.
        const bool more = n < static_cast<int>(node.devices.size()) &&
                          rank.cpus.contains(near->pus & node.allowed);
        CHECK((near->pus.contains(rank.cpus) || more));
      }
      CHECK(plan->placement.gpu_view ==
            (n > static_cast<int>(node.devices.size()) ? "own" : "all"));
    }
}

TEST_CASE("ranks see their own where the driver's order cannot be theirs", "[units]") {
  Topology node = machine(kTwoPackages);
  for (int card = 0; card < 4; ++card)
    node.devices.push_back(
        device(card, "intel", node.packages[static_cast<std::size_t>(card < 2 ? 1 : 0)].pus));
  Profile profile;
  profile.name = "p";
  PlanInput in = input(node, &profile, 4);
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.gpu_view == "own");
  CHECK(value_of(*plan, "ZE_AFFINITY_MASK") == Value(PerRank{{{"2", "3", "0", "1"}}}));
  CHECK(value_of(*plan, "LOCAL_RANK") == Value(std::string("0")));
  CHECK(plan->find_choice("gpu-view")->history.back().layer == Layer::computed);
  CHECK(plan->explanation.reports.empty());
  Rule rule;
  rule.defaults = {{"SEEN", {"${gpu_view}", Template::Each::once, ""}}};
  profile.rules = {rule};
  profile.gpu_view = "all";
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(value_of(*plan, "SEEN") == Value(std::string("own")));
  profile.rules.clear();
  asked(in).ranks = 2;  // one on each package: 2 and 0
  CHECK(make_plan(in)->placement.gpu_view == "own");
  asked(in).ranks = 1;
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.gpu_view == "all");
  CHECK(value_of(*plan, "ZE_AFFINITY_MASK") == Value(std::string("2")));

  asked(in).gpu_view = "all";
  asked(in).ranks = 7;  // 4 and 3: two classes, said once
  in.hosts = {"n0", "n1"};
  in.launcher.multi_node = true;
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.classes.size() == 2);
  REQUIRE(plan->explanation.reports.size() == 1);
  CHECK(plan->explanation.reports[0].id == "device-order");
  for (Device& one : in.node.devices) one.vendor = "amd";  // whose mask orders
  asked(in).gpu_view.clear();
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.gpu_view == "all");
  CHECK(plan->explanation.reports.empty());
}

TEST_CASE("a mask that hides devices does not claim to show every one", "[units]") {
  Topology node = machine(kTwoPackages);
  for (int card = 0; card < 4; ++card)
    node.devices.push_back(
        device(card, "intel", node.packages[static_cast<std::size_t>(card / 2)].pus));
  Profile profile;
  profile.name = "p";
  const auto plan = make_plan(input(node, &profile, 2));
  REQUIRE(plan);
  CHECK(plan->placement.gpu_view == "all");
  CHECK(value_of(*plan, "ZE_AFFINITY_MASK") == Value(std::string("0,2")));
  for (const Setting* said : {plan->find_env("ZE_AFFINITY_MASK"), plan->find_choice("gpu-view")})
    CHECK(said->history.back().why ==
          "each rank sees the devices that ranks use; device i is nearest to local rank i");
}

TEST_CASE("own view: one device each, as device 0", "[units]") {
  Profile profile;
  profile.name = "p";
  profile.gpu_view = "own";
  PlanInput in = input(reversed_gpus(), &profile, 8);
  auto plan = make_plan(in);
  REQUIRE(plan);
  const PerRank mask{{{"3", "3", "2", "2", "1", "1", "0", "0"}}};
  CHECK(value_of(*plan, "CUDA_VISIBLE_DEVICES") == Value(mask));
  CHECK(value_of(*plan, "LOCAL_RANK") == Value(std::string("0")));
  CHECK(value_of(*plan, "CUDA_DEVICE_ORDER") == Value(std::string("PCI_BUS_ID")));
  asked(in).local_rank = "node";
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(value_of(*plan, "LOCAL_RANK") == Value(RankFact::local_rank));
}

TEST_CASE("a mask of the batch system is composed with", "[units]") {
  Profile profile;
  profile.name = "p";
  PlanInput in = input(reversed_gpus(), &profile, 2);
  in.env = EnvSnapshot({"CUDA_VISIBLE_DEVICES=0,2"});
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "2,0");  // in the order of the cores they are near to
  CHECK(value_of(*plan, "CUDA_VISIBLE_DEVICES") == Value(std::string("2,0")));

  in.env = EnvSnapshot({"CUDA_VISIBLE_DEVICES=GPU-aa,GPU-bb"});
  asked(in).gpu_view = "own";
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(value_of(*plan, "CUDA_VISIBLE_DEVICES") == Value(PerRank{{{"GPU-aa", "GPU-bb"}}}));

  Topology amd = gcds();
  in = input(amd, &profile, 8);
  asked(in).gpu_view = "own";
  in.env = EnvSnapshot({"HIP_VISIBLE_DEVICES=0,1,2,3,4,5,6,7"});
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(std::holds_alternative<Unset>(value_of(*plan, "HIP_VISIBLE_DEVICES")));
}

TEST_CASE("parts of devices are units, with the mask that the mode has", "[units]") {
  Topology node = machine(kTwoPackages);
  for (int g = 0; g < 6; ++g)
    node.devices.push_back(
        device(g, "intel", node.packages[static_cast<std::size_t>(g / 3)].pus, 2));
  Profile profile;
  profile.name = "p";
  DeviceMode tile;
  tile.name = "tile";
  tile.subdevices = true;
  DeviceMode composite = tile;
  composite.name = "composite";
  composite.mask_item = "${device}.${subdevice}";
  DeviceMode whole;
  whole.name = "gpu";
  profile.device_modes = {tile, composite, whole};

  PlanInput in = input(node, &profile, 12);
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->find_env("ZE_AFFINITY_MASK") == nullptr);  // device i is local rank i's already
  asked(in).gpu_view = "own";
  asked(in).device_mode = "composite";
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(value_of(*plan, "ZE_AFFINITY_MASK") ==
        Value(PerRank{{{"0.0", "0.1", "1.0", "1.1", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1", "5.0",
                        "5.1"}}}));
  asked(in).device_mode = "gpu";
  asked(in).ranks = 6;
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(value_of(*plan, "ZE_AFFINITY_MASK") == Value(PerRank{{{"0", "1", "2", "3", "4", "5"}}}));
  asked(in).device_mode = "tiles";
  const auto bad = make_plan(in);
  REQUIRE(!bad);
  CHECK(bad.error().hint == "--device-mode tile");
  asked(in).device_mode = "tile";
  asked(in).gpu_view = "all";
  asked(in).ranks = 2;  // one on each package
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(value_of(*plan, "ZE_AFFINITY_MASK") == Value(std::string("0,6")));
}

namespace {

Rule simple(const char* id, const char* name, const char* value) {
  Rule rule;
  rule.id = id;
  rule.defaults = {{name, {value, Template::Each::once, ""}}};
  rule.origin.why = "because";
  rule.origin.profile = "p";
  return rule;
}

}  // namespace

TEST_CASE("rules: defaults yield, requirements hold, later ones overrule", "[rules]") {
  Profile profile;
  profile.name = "p";
  profile.rules = {simple("one", "A", "1"), simple("two", "A", "2"), simple("three", "B", "x")};
  Rule must = simple("must", "C", "wanted");
  std::swap(must.defaults, must.require);
  profile.rules.push_back(must);
  Rule paths = simple("paths", "P", "${env.ROOT}/lib");
  std::swap(paths.defaults, paths.prepend);
  profile.rules.push_back(paths);
  Rule removes;
  removes.id = "removes";
  removes.unset = {"GONE"};
  profile.rules.push_back(removes);

  PlanInput in = input(machine({1, 1, 0, 4}), &profile, 1);
  in.env = EnvSnapshot({"B=mine", "C=mine", "P=/old", "ROOT=/r", "GONE=1"});
  const auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(value_of(*plan, "A") == Value(std::string("2")));
  CHECK(plan->find_env("A")->history.size() == 2);
  CHECK(value_of(*plan, "B") == Value(std::string("mine")));
  CHECK(value_of(*plan, "C") == Value(std::string("wanted")));
  CHECK(value_of(*plan, "P") == Value(std::string("/r/lib:/old")));
  CHECK(std::holds_alternative<Unset>(value_of(*plan, "GONE")));
}

TEST_CASE("a value that cannot be made is reported, and nothing is set", "[rules]") {
  Profile profile;
  profile.name = "p";
  profile.rules = {simple("one", "A", "${env.NOT_THERE}/x")};
  const auto plan = make_plan(input(machine({1, 1, 0, 4}), &profile, 1));
  REQUIRE(plan);
  CHECK(plan->find_env("A") == nullptr);
  REQUIRE(plan->explanation.reports.size() == 1);
  CHECK_THAT(plan->explanation.reports[0].message, ContainsSubstring("NOT_THERE"));
}

TEST_CASE("late rules follow what a variable is in the end", "[rules]") {
  Profile profile;
  profile.name = "p";
  profile.rules = {simple("pmix", "CCL_PROCESS_LAUNCHER", "pmix")};
  Rule flag;
  flag.id = "flag";
  flag.when = {{"value.CCL_PROCESS_LAUNCHER", Test::Op::eq, {"pmix"}}};
  flag.launch = {{"pals", {"--pmi=pmix"}}, {"slurm", {"--mpi=pmix"}}};
  profile.rules.push_back(flag);
  PlanInput in = input(machine({1, 1, 0, 4}), &profile, 1);
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->launch.profile_args == std::vector<std::string>{"--pmi=pmix"});
  asked(in).set = {{"CCL_PROCESS_LAUNCHER", "none"}};
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->launch.profile_args.empty());
  asked(in).set.clear();
  in.env = EnvSnapshot({"CCL_PROCESS_LAUNCHER=hydra"});
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->launch.profile_args.empty());
}

TEST_CASE("lists are as long as the ranks or the units", "[rules]") {
  Topology node = machine(kTwoPackages);
  for (int g = 0; g < 6; ++g)
    node.devices.push_back(device(g, "intel", node.packages[static_cast<std::size_t>(g / 3)].pus));
  Profile profile;
  profile.name = "p";
  Rule rule = simple("lists", "RANKS", "");
  rule.defaults = {{"RANKS", {"${cores}", Template::Each::rank, ","}},
                   {"UNITS", {"${unit}:${ranks_per_device}", Template::Each::unit, ";"}},
                   {"EACH", {"r${local_rank}", Template::Each::once, ""}}};
  profile.rules = {rule};
  for (const int n : {1, 5, 6, 12, 18}) {
    const auto plan = make_plan(input(node, &profile, n));
    REQUIRE(plan);
    const auto count = [&](const char* name, char separator) {
      const std::string text = std::get<std::string>(value_of(*plan, name));
      return 1 + std::count(text.begin(), text.end(), separator);
    };
    CHECK(count("RANKS", ',') == n);
    CHECK(count("UNITS", ';') == 6);
    if (n > 1)
      CHECK(std::get<PerRank>(value_of(*plan, "EACH")).items[0].size() ==
            static_cast<std::size_t>(n));
  }
}

TEST_CASE("parts that only a mask can reach are never all visible", "[units]") {
  Topology node = machine(kTwoPackages);
  for (int g = 0; g < 6; ++g)
    node.devices.push_back(
        device(g, "intel", node.packages[static_cast<std::size_t>(g / 3)].pus, 2));
  Profile profile;
  profile.name = "p";
  profile.gpu_view = "all";
  DeviceMode composite;
  composite.name = "composite";
  composite.subdevices = true;
  composite.mask_item = "${device}.${subdevice}";
  profile.device_modes = {composite};
  PlanInput in = input(node, &profile, 12);
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.gpu_view == "own");
  CHECK(std::holds_alternative<PerRank>(value_of(*plan, "ZE_AFFINITY_MASK")));
  asked(in).gpu_view = "all";
  plan = make_plan(in);
  REQUIRE(plan);
  REQUIRE(plan->explanation.reports.size() == 1);
  CHECK(plan->explanation.reports[0].id == "parts-need-masks");
  CHECK(plan->explanation.reports[0].severity == Severity::error);
}

TEST_CASE("the launcher's view needs flags", "[units]") {
  Profile profile;
  profile.name = "p";
  PlanInput in = input(reversed_gpus(), &profile, 4);
  asked(in).gpu_view = "launcher";
  auto plan = make_plan(in);
  REQUIRE(plan);
  REQUIRE(plan->explanation.reports.size() == 1);
  CHECK(plan->explanation.reports[0].id == "launcher-view");
  CHECK(plan->explanation.reports[0].message.starts_with("--gpu-view launcher: "));
  Rule flags;
  flags.id = "flags";
  flags.launch = {{"pals", {"--gpu-bind=closest"}}};
  profile.rules = {flags};
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->explanation.reports.empty());
}

TEST_CASE("a device's NUMA node stands for the cores near it", "[units]") {
  Topology node = machine({1, 2, 0, 8});
  for (const int numa : {0, 1, 1}) {
    Device one = device(static_cast<int>(node.devices.size()), "nvidia", {});
    one.numa = numa;
    node.devices.push_back(one);
  }
  Profile profile;
  profile.name = "p";
  const auto plan = make_plan(input(node, &profile, 3));
  REQUIRE(plan);
  const std::vector<RankPlan>& ranks = plan->placement.classes.front().ranks;
  CHECK(ranks[0].numa == 0);
  CHECK(ranks[1].numa == 1);
  CHECK(ranks[2].numa == 1);
}

TEST_CASE("masks mean what the driver makes of them", "[units]") {
  Profile profile;
  profile.name = "p";
  struct Row {
    const char* mask;
    const char* devices;  // of the ranks, one per device that is left
  };
  for (const Row& row :
       {Row{"2,-1,0", "2"}, Row{"0,GPU-1", "0"}, Row{"1,9,0", "1"}, Row{"3,1", "3,1"}}) {
    INFO(row.mask);
    PlanInput in = input(reversed_gpus(), &profile, 1);
    asked(in).ranks.reset();
    in.env = EnvSnapshot({std::string("CUDA_VISIBLE_DEVICES=") + row.mask});
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(devices_of(*plan) == row.devices);
  }
  for (const char* mask : {"", "9", "-1"}) {
    INFO("\"" << mask << "\"");
    PlanInput in = input(reversed_gpus(), &profile, 1);
    in.env = EnvSnapshot({std::string("CUDA_VISIBLE_DEVICES=") + mask});
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(plan->placement.gpu_view.empty());
    REQUIRE(plan->explanation.reports.size() == 1);
    CHECK(plan->explanation.reports[0].id == "no-device-left");
  }
}

TEST_CASE("a mask that leaves one side of the node keeps ranks on that side", "[units]") {
  Topology node = machine(kTwoPackages);
  for (int g = 0; g < 4; ++g)
    node.devices.push_back(device(g, "nvidia", node.packages[static_cast<std::size_t>(g / 2)].pus));
  Profile profile;
  profile.name = "p";
  Binding split = rule(1, 1, 0, 0);
  split.split = true;
  split.origin.why = "evenly";
  profile.bindings = {split};
  PlanInput in = input(node, &profile, 2);
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->find_choice("cpu-bind")->history.back().rule == "r");
  in.env = EnvSnapshot({"CUDA_VISIBLE_DEVICES=2,3"});
  plan = make_plan(in);
  REQUIRE(plan);
  for (const RankPlan& rank : plan->placement.classes.front().ranks) CHECK(rank.package == 1);
}

TEST_CASE("a binding says what made it hold, and whom it overruled", "[binding]") {
  Profile profile;
  profile.name = "p";
  Binding wide = rule(0, 8, 0, 7);
  wide.id = "wide";
  Binding narrow = rule(0, 8, 2, 4);
  narrow.id = "narrow";
  narrow.when = {{"ranks_per_node", Test::Op::eq, {"12"}}};
  profile.bindings = {wide, narrow};
  const auto plan = make_plan(input(machine(kTwoPackages), &profile, 12));
  REQUIRE(plan);
  const std::vector<Decision>& history = plan->find_choice("cpu-bind")->history;
  REQUIRE(history.size() == 2);
  CHECK(history[0].rule == "wide");
  CHECK(history[1].rule == "narrow");
  CHECK_THAT(history[1].condition, ContainsSubstring("ranks_per_node = 12"));
}

TEST_CASE("cores that nobody can name are not bound", "[plan]") {
  PlanInput in = input(machine({1, 1, 0, 8}), nullptr, 2);
  in.part_of_node = true;
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.bind_via == BindVia::launcher);
  in.cores_known = false;
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->placement.bind_via == BindVia::none);
  CHECK(plan->environment.wire.find("expect=") == std::string::npos);
  CHECK(plan->environment.wire.find("cpus=") == std::string::npos);
}
