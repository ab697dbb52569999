// Granted, not existing: what ranks are given, read by the drivers' own rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/text.h"
#include "plan/grants.h"
#include "support/random_topology.h"

using namespace hpclaunch;
using namespace hpclaunch::test;

namespace {

// ---- the drivers, once more and independently -----------------------------------------------------

/// A device, and the instance or tile of it; -1: the whole.
using Part = std::pair<int, int>;
using Parts = std::vector<Part>;

std::vector<std::string> entries_of(const std::string& list) {
  std::vector<std::string> out;
  for (const std::string_view piece : split(list, ',')) out.emplace_back(trim(piece));
  return out;
}

int by_name(const Topology& node, const Parts& from, const std::string& name) {
  int found = -1;
  int hits = 0;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (node.devices[static_cast<std::size_t>(from[i].first)].uuid.starts_with(name)) {
      found = static_cast<int>(i);
      ++hits;
    }
  return hits == 1 ? found : -1;
}

Parts listed(const Topology& node, const Parts& from, const std::string& list) {
  Parts seen;
  for (const std::string& entry : entries_of(list)) {
    Part part{-1, -1};
    if (entry.starts_with("MIG-")) {
      for (const Part& one : from) {
        const auto& names = node.devices[static_cast<std::size_t>(one.first)].instances;
        for (std::size_t i = 0; i < names.size(); ++i)
          if (names[i].starts_with(entry)) part = {one.first, static_cast<int>(i)};
      }
    } else if (entry.starts_with("GPU-")) {
      const int at = by_name(node, from, entry);
      if (at >= 0) part = from[static_cast<std::size_t>(at)];
    } else if (const auto number = parse_natural(entry)) {
      if (static_cast<std::size_t>(*number) < from.size())
        part = from[static_cast<std::size_t>(*number)];
    }
    if (part.first < 0 || std::find(seen.begin(), seen.end(), part) != seen.end()) break;
    seen.push_back(part);
  }
  return seen;
}

Parts cuda(const Topology& node, Parts from, const Env& env) {
  if (const std::string* mask = get(env, "CUDA_VISIBLE_DEVICES")) from = listed(node, from, *mask);
  for (const Part& part : from) {
    const auto& names = node.devices[static_cast<std::size_t>(part.first)].instances;
    if (!names.empty()) return {{part.first, std::max(0, part.second)}};  // one instance, no other
  }
  return from;
}

Parts hip(const Topology& node, Parts from, const Env& env) {
  if (const std::string* mask = get(env, "ROCR_VISIBLE_DEVICES")) from = listed(node, from, *mask);
  for (const char* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    const std::string* mask = get(env, name);
    if (mask != nullptr && !mask->empty()) return listed(node, from, *mask);
  }
  return from;
}

// Devices as a list of what each consists of.
std::vector<std::set<Part>> level_zero(const Topology& node, const Parts& from, const Env& env) {
  const std::string* hierarchy = get(env, "ZE_FLAT_DEVICE_HIERARCHY");
  const bool whole = hierarchy != nullptr && *hierarchy == "COMPOSITE";
  std::vector<std::set<Part>> all;
  for (const Part& one : from) {
    const int tiles = std::max(1, node.devices[static_cast<std::size_t>(one.first)].subdevices);
    if (whole) all.emplace_back();
    for (int t = 0; t < tiles; ++t) {
      if (!whole) all.emplace_back();
      all.back().insert({one.first, t});
    }
  }
  const std::string* mask = get(env, "ZE_AFFINITY_MASK");
  if (mask == nullptr || mask->empty()) return all;
  std::vector<std::set<Part>> left(all.size());
  for (const std::string& entry : entries_of(*mask)) {
    const std::size_t dot = entry.find('.');
    const auto at = static_cast<std::size_t>(parse_natural(entry.substr(0, dot)).value_or(9999));
    if (at >= all.size() || (dot != std::string::npos && !whole)) continue;
    for (const Part& part : all[at])
      if (dot == std::string::npos || std::to_string(part.second) == entry.substr(dot + 1))
        left[at].insert(part);
  }
  left.erase(std::remove(left.begin(), left.end(), std::set<Part>{}), left.end());
  return left;
}

Parts whole(const std::vector<int>& devices) {
  Parts parts;
  for (const int device : devices) parts.emplace_back(device, -1);
  return parts;
}

// ---- laws -----------------------------------------------------------------------------------------

struct Granted {
  Topology node;
  Env env;
  std::vector<int> grant;    // physical
  std::vector<int> visible;  // what drivers count before any mask
};

Granted any_grant(test::Random& random, const char* vendor) {
  Granted one;
  std::vector<int> near;
  for (int d = random.in(1, 8); d > 0; --d) near.push_back(random.in(0, 7));
  one.node = machine(near, vendor, vendor == std::string("intel") ? random.in(0, 3) : 0);
  if (random.chance(50)) name_devices(one.node);
  const int count = static_cast<int>(near.size());
  for (int d = 0; d < count; ++d)
    if (random.chance(60)) one.grant.push_back(d);
  if (one.grant.empty()) one.grant = {count - 1};
  const bool group = random.chance(50);
  for (int d = 0; d < count; ++d) one.visible.push_back(d);
  if (group) one.visible = one.grant;
  std::vector<int> numbers = one.grant;
  for (std::size_t i = 0; group && i < numbers.size(); ++i) numbers[i] = static_cast<int>(i);
  const std::string mask = fmt::format("{}", fmt::join(numbers, ","));
  one.env["SLURM_JOB_GPUS"] = fmt::format("{}", fmt::join(one.grant, ","));
  if (vendor == std::string("nvidia")) one.env["CUDA_VISIBLE_DEVICES"] = mask;
  if (vendor == std::string("amd")) {
    one.env["ROCR_VISIBLE_DEVICES"] = mask;
    if (random.chance(30)) one.env["HIP_VISIBLE_DEVICES"] = std::to_string(random.in(0, 3));
    if (random.chance(30)) one.env["CUDA_VISIBLE_DEVICES"] = mask;
    if (random.chance(30)) one.env["GPU_DEVICE_ORDINAL"] = mask;
  }
  if (vendor == std::string("intel")) {
    one.env["ZE_AFFINITY_MASK"] = mask;
    one.env["ZE_FLAT_DEVICE_HIERARCHY"] = "COMPOSITE";
  }
  return one;
}

std::size_t index_of(const Env& env) {
  return static_cast<std::size_t>(parse_natural(env.at("LOCAL_RANK")).value_or(-1));
}

void check_rank(const Granted& one, const Plan& plan, std::size_t r, std::set<Part>& used) {
  const RankPlan& rank = plan.placement.classes[0].ranks[r];
  const Env env = env_of(plan, one.env, static_cast<int>(r));
  Parts seen;
  const std::string vendor = one.node.devices.front().vendor;
  const std::size_t at = index_of(env);
  if (vendor == "intel") {
    const auto devices = level_zero(one.node, whole(one.visible), env);
    for (const auto& parts : devices) seen.emplace_back(parts.begin()->first, -1);
  } else {
    seen = vendor == "amd" ? hip(one.node, whole(one.visible), env)
                           : cuda(one.node, whole(one.visible), env);
  }
  for (const Part& part : seen)
    CHECK(std::find(one.grant.begin(), one.grant.end(), part.first) != one.grant.end());
  REQUIRE(at < seen.size());
  CHECK(seen[at].first == rank.device());
  used.insert(seen[at]);
}

}  // namespace

TEST_CASE("no rank gets a device beyond the grant, and each that was granted is used",
          "[grants][law]") {
  test::Random random(77);
  int planned = 0;
  for (int round = 0; round < 1500; ++round) {
    const char* vendor = round % 3 == 0 ? "amd" : round % 3 == 1 ? "nvidia" : "intel";
    const Granted one = any_grant(random, vendor);
    PlanInput in = input(one.node, one.env);
    if (random.chance(60)) asked(in).gpu_view = "own";
    if (random.chance(30)) asked(in).ranks_per_node = random.in(1, 8);
    std::string said;
    for (const auto& [name, value] : one.env) said += name + "=" + value + " ";
    INFO("round " << round << ": " << vendor << " " << one.node.devices.size() << " " << said);
    const auto plan = make_plan(in);
    REQUIRE(plan);
    const auto spoken = rules(*plan);
    if (std::find(spoken.begin(), spoken.end(), "no-device-left") != spoken.end()) {
      CHECK(hip(one.node, whole(one.visible), one.env).empty());
      continue;
    }
    std::size_t expected = one.grant.size();
    const bool shortage = vendor == std::string("amd") &&
                          one.env.count("HIP_VISIBLE_DEVICES") > 0 &&
                          one.env.at("HIP_VISIBLE_DEVICES") != one.env.at("ROCR_VISIBLE_DEVICES");
    if (shortage) expected = 1;
    ++planned;
    std::set<Part> used;
    const std::size_t ranks = plan->placement.classes[0].ranks.size();
    for (std::size_t r = 0; r < ranks; ++r) check_rank(one, *plan, r, used);
    CHECK(used.size() == std::min(ranks, expected));
  }
  CHECK(planned > 1200);
}
