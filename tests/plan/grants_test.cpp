// Granted, not existing: what ranks are given, read by the drivers' own rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

using Env = std::map<std::string, std::string>;
/// A device, and the instance or tile of it; -1: the whole.
using Part = std::pair<int, int>;
using Parts = std::vector<Part>;

// Two packages of four NUMA nodes with two cores each; device i is near NUMA node near[i].
Topology machine(const std::vector<int>& near, const char* vendor = "nvidia", int tiles = 0) {
  Topology node = test::even_machine(2, 4, 2);
  test::add_devices(near, vendor, node);
  for (Device& device : node.devices) device.subdevices = tiles;
  return node;
}

void name_devices(Topology& node) {
  for (Device& device : node.devices)
    device.uuid = fmt::format("GPU-{:x}{:x}a0b1c2d3e4f5", device.index + 10, device.index);
}

PlanInput input(Topology node, const Env& env) {
  PlanInput in = test::job_on(std::move(node), 1);
  in.launcher.multi_node = false;
  std::vector<std::string> entries;
  for (const auto& [name, value] : env) entries.push_back(fmt::format("{}={}", name, value));
  in.env = EnvSnapshot(entries);
  return in;
}

// ---- the drivers, once more and independently -----------------------------------------------------

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

const std::string* get(const Env& env, const char* name) {
  const auto at = env.find(name);
  return at == env.end() ? nullptr : &at->second;
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

// The environment that a rank gets.
Env env_of(const Plan& plan, const Env& job, int local) {
  Env env = job;
  for (const Setting& setting : plan.env) {
    const Value& value = setting.value();
    if (std::holds_alternative<Unset>(value)) env.erase(setting.name);
    if (const auto* text = std::get_if<std::string>(&value)) env[setting.name] = *text;
    if (const auto* each = std::get_if<PerRank>(&value))
      env[setting.name] = each->items[0][static_cast<std::size_t>(local)];
    if (value == Value(RankFact::local_rank)) env[setting.name] = std::to_string(local);
  }
  return env;
}

std::size_t index_of(const Env& env) {
  return static_cast<std::size_t>(parse_natural(env.at("LOCAL_RANK")).value_or(-1));
}

std::vector<std::string> rules(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanReport& report : plan.reports) names.push_back(report.rule);
  return names;
}

// ---- tables ---------------------------------------------------------------------------------------

struct Row {
  const char* what;
  Env env;
  std::string masks;    // of the ranks
  std::string devices;  // of the ranks; -1: not known
  std::string rules;    // that speak
};

std::string masks_of(const Plan& plan, const Env& env, const char* variable) {
  std::vector<std::string> masks;
  const int ranks = plan.max_local_size();
  for (int r = 0; r < ranks; ++r) {
    const Env of_rank = env_of(plan, env, r);
    const std::string* mask = get(of_rank, variable);
    masks.push_back(mask == nullptr ? "-" : *mask);
  }
  return fmt::format("{}", fmt::join(masks, " "));
}

std::string devices_of(const Plan& plan) {
  std::vector<std::string> devices;
  for (const RankPlan& rank : plan.classes[0].ranks)
    devices.push_back(rank.subdevice < 0 ? std::to_string(rank.device)
                                         : fmt::format("{}.{}", rank.device, rank.subdevice));
  return fmt::format("{}", fmt::join(devices, " "));
}

void check_rows(const Topology& node, const char* variable, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    INFO(row.what);
    PlanInput in = input(node, row.env);
    in.options.gpu_view = "own";
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(masks_of(*plan, row.env, variable) == row.masks);
    CHECK(devices_of(*plan) == row.devices);
    CHECK(fmt::format("{}", fmt::join(rules(*plan), " ")) == row.rules);
  }
}

}  // namespace

TEST_CASE("CUDA: lists of the batch system and masks are read together", "[grants]") {
  const Topology node = machine({0, 1, 4, 5});
  check_rows(node, "CUDA_VISIBLE_DEVICES",
             {{"control group: 0 is the first that was granted",
               {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "0,1"}},
               "0 1",
               "2 3",
               ""},
              {"no control group: numbers of the node",
               {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "2,3"}},
               "2 3",
               "2 3",
               ""},
              {"the step's list is stronger than the job's",
               {{"SLURM_JOB_GPUS", "0,1,2,3"},
                {"SLURM_STEP_GPUS", "1,3"},
                {"CUDA_VISIBLE_DEVICES", "0,1"}},
               "0 1",
               "1 3",
               ""},
              {"ranges", {{"SLURM_JOB_GPUS", "2-3"}, {"CUDA_VISIBLE_DEVICES", "1"}}, "1", "3", ""},
              {"all of the node", {{"SLURM_JOB_GPUS", "0,1,2,3"}}, "0 1 2 3", "0 1 2 3", ""},
              {"may be either",
               {{"SLURM_JOB_GPUS", "1,2"}, {"CUDA_VISIBLE_DEVICES", "1"}},
               "1",
               "-1",
               "grant-unclear"},
              {"neither",
               {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "0,2"}},
               "0 2",
               "-1 -1",
               "grant-contradicts"},
              {"a mask that goes beyond the grant",
               {{"SLURM_JOB_GPUS", "0,1"}, {"CUDA_VISIBLE_DEVICES", "1,3"}},
               "1",
               "1",
               "grant-contradicts"},
              {"a list without a mask", {{"SLURM_JOB_GPUS", "1,3"}}, "1 3", "1 3", "grant-unclear"},
              {"a list of another node",
               {{"SLURM_JOB_GPUS", "7"}, {"CUDA_VISIBLE_DEVICES", "2"}},
               "2",
               "2",
               "grant-contradicts"},
              {"only how many", {{"SLURM_GPUS_ON_NODE", "2"}}, "0 1", "-1 -1", "grant-unclear"},
              {"as many as there are", {{"SLURM_GPUS_ON_NODE", "4"}}, "0 1 2 3", "0 1 2 3", ""},
              {"a container's numbers", {{"NVIDIA_VISIBLE_DEVICES", "1,2"}}, "0 1", "1 2", ""},
              {"a container with everything",
               {{"NVIDIA_VISIBLE_DEVICES", "all"}},
               "0 1 2 3",
               "0 1 2 3",
               ""},
              {"a container whose runtime says nothing",
               {{"NVIDIA_VISIBLE_DEVICES", "void"}},
               "0 1 2 3",
               "0 1 2 3",
               ""},
              {"no list at all", {{"SLURM_JOB_GPUS", "x"}}, "0 1 2 3", "0 1 2 3", ""},
              {"an entry that is nothing ends the list",
               {{"CUDA_VISIBLE_DEVICES", "2,x,1"}},
               "2",
               "2",
               "mask-cut"},
              {"names that nobody can judge",
               {{"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"}},
               "GPU-a GPU-b",
               "-1 -1",
               ""},
              {"a MIG name that nobody can judge",
               {{"CUDA_VISIBLE_DEVICES", "MIG-1,MIG-2"}},
               "MIG-1 MIG-2",
               "-1 -1",
               ""}});
}

TEST_CASE("CUDA: a plan says what its lists leave out", "[grants]") {
  Topology node = machine({0, 1, 4, 5});
  name_devices(node);
  check_rows(node, "CUDA_VISIBLE_DEVICES",
             {{"words after numbers", {{"CUDA_VISIBLE_DEVICES", "1gpu2"}}, "1", "1", ""},
              {"two forms", {{"CUDA_VISIBLE_DEVICES", "GPU-d3,1"}}, "GPU-d3", "3", "mask-cut"},
              {"a control group's numbers end where CUDA ends them",
               {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "0,1,-1,3"}},
               "0 1",
               "2 3",
               ""}});
  for (const char* mask : {"0,0", "GPU-d3,GPU-d", "2,1,2"}) {
    const auto plan = make_plan(input(node, {{"CUDA_VISIBLE_DEVICES", mask}}));
    REQUIRE(plan);
    CHECK(rules(*plan) == std::vector<std::string>{"mask-repeats", "no-device-left"});
    CHECK(plan->classes[0].ranks[0].device == -1);
  }
  const auto amd = make_plan(input(machine({0, 1}, "amd"), {{"ROCR_VISIBLE_DEVICES", "0,0"}}));
  REQUIRE(amd);
  CHECK(rules(*amd) == std::vector<std::string>{"mask-cut"});
}

TEST_CASE("CUDA: names lead to devices and instances", "[grants]") {
  Topology node = machine({0, 1, 4, 5});
  name_devices(node);  // GPU-a0..., GPU-b1..., GPU-c2..., GPU-d3...
  check_rows(node, "CUDA_VISIBLE_DEVICES",
             {{"a unique beginning",
               {{"CUDA_VISIBLE_DEVICES", "GPU-c2,GPU-b"}},
               "GPU-b GPU-c2",
               "1 2",
               ""},
              {"a name of nothing here",
               {{"CUDA_VISIBLE_DEVICES", "GPU-b1,GPU-77,GPU-a"}},
               "GPU-b1",
               "1",
               "mask-cut"},
              {"a list without a mask goes by name",
               {{"SLURM_JOB_GPUS", "1,3"}},
               node.devices[1].uuid + " " + node.devices[3].uuid,
               "1 3",
               ""},
              {"a container's names, which it counts anew",
               {{"NVIDIA_VISIBLE_DEVICES", "GPU-d,GPU-b"}, {"CUDA_VISIBLE_DEVICES", "1"}},
               "GPU-d",
               "3",
               ""}});
  node.devices[1].instances = {"MIG-aa11", "MIG-ab22"};
  node.devices[1].partition = "MIG";
  node.devices[3].partition = "MIG";
  check_rows(
      node, "CUDA_VISIBLE_DEVICES",
      {{"units are instances where devices are split",
        {},
        node.devices[0].uuid + " MIG-aa11 MIG-ab22 " + node.devices[2].uuid,
        "0 1.0 1.1 2",
        "no-instances"},
       {"one of them", {{"CUDA_VISIBLE_DEVICES", "MIG-ab"}}, "MIG-ab", "1.1", "no-instances"},
       {"a device stands for its instances",
        {{"CUDA_VISIBLE_DEVICES", "1"}},
        "MIG-aa11 MIG-ab22",
        "1.0 1.1",
        "no-instances"},
       {"an instance that is not there",
        {{"CUDA_VISIBLE_DEVICES", "MIG-ab22,MIG-77"}},
        "MIG-ab22",
        "1.1",
        "no-instances mask-cut"},
       {"ids of the batch system count instances here",
        {{"SLURM_JOB_GPUS", "0"}, {"CUDA_VISIBLE_DEVICES", "MIG-ab22"}},
        "MIG-ab22",
        "1.1",
        "no-instances"},
       {"the old form names the device",
        {{"CUDA_VISIBLE_DEVICES", "MIG-" + node.devices[1].uuid + "/1/0"}},
        "MIG-" + node.devices[1].uuid + "/1/0",
        "1",
        "no-instances"}});
}

TEST_CASE("Slurm counts instances of split devices", "[grants]") {
  Topology node = machine({0, 1, 4, 5});
  name_devices(node);
  node.devices[0].instances = {"MIG-aa", "MIG-ab"};
  node.devices[2].instances = {"MIG-ca", "MIG-cb"};
  node.devices[3].partition = "MIG";  // and none: Slurm does not count it
  const std::string whole = node.devices[1].uuid;
  const std::string all = "MIG-aa MIG-ab " + whole + " MIG-ca MIG-cb";
  check_rows(
      node, "CUDA_VISIBLE_DEVICES",
      {{"a list, in the order of devices",
        {{"SLURM_JOB_GPUS", "1,3-4"}},
        "MIG-ab MIG-ca MIG-cb",
        "0.1 2.0 2.1",
        "no-instances grant-unclear"},
       {"a device that is not split among them",
        {{"SLURM_STEP_GPUS", "2"}, {"SLURM_JOB_GPUS", "0-4"}},
        whole,
        "1",
        "no-instances grant-unclear"},
       {"all of them", {{"SLURM_JOB_GPUS", "0-4"}}, all, "0.0 0.1 1 2.0 2.1", "no-instances"},
       {"all that are here, by the numbers of a larger node",
        {{"SLURM_JOB_GPUS", "2,6-9"}},
        all,
        "0.0 0.1 1 2.0 2.1",
        "no-instances"},
       {"numbers that nothing here has",
        {{"SLURM_JOB_GPUS", "2,7"}},
        "MIG-aa MIG-ab",
        "0.0 0.1",
        "no-instances grant-unclear"},
       {"more than there are",
        {{"SLURM_JOB_GPUS", "0-5"}},
        all,
        "0.0 0.1 1 2.0 2.1",
        "no-instances grant-contradicts"},
       {"a number alone",
        {{"SLURM_GPUS_ON_NODE", "2"}},
        "MIG-aa MIG-ab",
        "0.0 0.1",
        "no-instances grant-unclear"},
       {"a mask that names them needs no list",
        {{"SLURM_JOB_GPUS", "1"}, {"CUDA_VISIBLE_DEVICES", "MIG-cb"}},
        "MIG-cb",
        "2.1",
        "no-instances"}});
  PlanInput in = input(node, {{"SLURM_JOB_GPUS", "3"}});
  in.reachable = {2};  // a control group
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "2.0");
  CHECK(plan->classes[0].ranks[0].numa == 4);
  in.env = EnvSnapshot({"SLURM_JOB_GPUS=3,4"});
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "2.0 2.1");
  CHECK(rules(*plan) == std::vector<std::string>{"no-instances"});
}

TEST_CASE("instances need a mask of their own", "[grants]") {
  Topology node = machine({0, 4});
  node.devices[0].instances = {"MIG-0", "MIG-1", "MIG-2"};
  node.devices[1].instances = {"MIG-3"};
  PlanInput in = input(node, {});
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->gpu_view == "own");
  CHECK_THAT(plan->find_choice("gpu-view")->history.back().why, ContainsSubstring("MIG"));
  CHECK(plan->max_local_size() == 4);
  CHECK(plan->classes[0].ranks[3].package == 1);
  in.options.gpu_view = "all";
  CHECK(rules(*make_plan(in)) == std::vector<std::string>{"far-from-device", "parts-need-masks"});
  in.options.gpu_view.clear();
  in.options.devices_per_rank = 2;
  CHECK_THAT(make_plan(in).error().message, ContainsSubstring("a process can have one"));
  in.options.devices_per_rank.reset();
  in.hosts = {"n0", "n1"};
  in.launcher.multi_node = true;
  CHECK(rules(*make_plan(in)) == std::vector<std::string>{"far-from-device", "names-of-one-node"});
  in.options.gpu_view = "launcher";
  for (const std::string& rule : rules(*make_plan(in))) CHECK(rule != "names-of-one-node");
  in.options.gpu_view.clear();
  in.node = machine({0, 4});
  name_devices(in.node);  // whole devices go by number there
  in.env = EnvSnapshot({"CUDA_VISIBLE_DEVICES=GPU-b"});
  const auto two = make_plan(in);
  REQUIRE(two);
  CHECK(two->reports.empty());
  CHECK(masks_of(*two, {}, "CUDA_VISIBLE_DEVICES") == "1");
}

TEST_CASE("AMD: masks compose", "[grants]") {
  const Topology node = machine({3, 2, 1, 0}, "amd");
  check_rows(
      node, "ROCR_VISIBLE_DEVICES",
      {{"the second counts what the first leaves",
        {{"ROCR_VISIBLE_DEVICES", "3,1"}, {"HIP_VISIBLE_DEVICES", "1"}},
        "1",
        "1",
        ""},
       {"CUDA's is HIP's where HIP's is not there",
        {{"ROCR_VISIBLE_DEVICES", "3,1"}, {"CUDA_VISIBLE_DEVICES", "0"}},
        "3",
        "3",
        ""},
       {"HIP's is stronger",
        {{"HIP_VISIBLE_DEVICES", "0"}, {"CUDA_VISIBLE_DEVICES", "2"}},
        "0",
        "0",
        ""},
       {"an empty HIP mask is none", {{"HIP_VISIBLE_DEVICES", ""}}, "3 2 1 0", "3 2 1 0", ""},
       {"the same said twice",
        {{"ROCR_VISIBLE_DEVICES", "2,3"}, {"CUDA_VISIBLE_DEVICES", "2,3"}},
        "3 2",
        "3 2",
        "mask-twice"},
       {"control group",
        {{"SLURM_JOB_GPUS", "1,3"}, {"ROCR_VISIBLE_DEVICES", "0,1"}, {"GPU_DEVICE_ORDINAL", "0,1"}},
        "1 0",
        "3 1",
        ""},
       {"OpenCL's alone is heeded as a grant", {{"GPU_DEVICE_ORDINAL", "1"}}, "1", "1", ""}});
  PlanInput in = input(node, {{"ROCR_VISIBLE_DEVICES", ""}});
  CHECK(rules(*make_plan(in)) == std::vector<std::string>{"no-device-left"});
}

TEST_CASE("Level Zero: tiles in every hierarchy", "[grants]") {
  Profile profile;
  profile.name = "p";
  profile.device_modes.push_back({"tile", "", true, "", "${device}.${subdevice}", {}});
  profile.device_modes.push_back({"flat", "", true, "", "${unit}", {}});
  profile.device_modes.push_back({"gpu", "", false, "", "", {}});
  struct Tiled {
    const char* hierarchy;
    const char* mask;
    const char* mode;
    const char* masks;
    const char* devices;
  };
  for (const Tiled& row : {
           Tiled{"COMPOSITE", "1", "tile", "1.0 1.1", "1.0 1.1"},
           Tiled{"COMPOSITE", "1.0", "tile", "1.0", "1.0"},
           Tiled{"COMPOSITE", "0.1,2", "tile", "0.1 2.0 2.1", "0.1 2.0 2.1"},
           Tiled{"COMPOSITE", "0.1,2", "gpu", "0.1 2", "0 2"},
           Tiled{"COMPOSITE", "0.1,2", "flat", "1 4 5", "0.1 2.0 2.1"},
           Tiled{"FLAT", "1,4", "flat", "1 4", "0.1 2.0"},
           Tiled{"FLAT", "1,4", "tile", "0.1 2.0", "0.1 2.0"},
           Tiled{"COMBINED", "1,4", "gpu", "0.1 2.0", "0 2"},
           Tiled{"FLAT", "1.0,3", "flat", "3", "1.1"},
           Tiled{"FLAT", "default", "gpu", "0 1 2", "0 1 2"},
           Tiled{"", "5", "flat", "5", "2.1"},
       }) {
    INFO(row.hierarchy << " " << row.mask << " " << row.mode);
    Env env = {{"ZE_AFFINITY_MASK", row.mask}};
    if (*row.hierarchy != 0) env["ZE_FLAT_DEVICE_HIERARCHY"] = row.hierarchy;
    PlanInput in = input(machine({0, 2, 4}, "intel", 2), env);
    in.profile = &profile;
    in.options.device_mode = row.mode;
    in.options.gpu_view = "own";
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(masks_of(*plan, env, "ZE_AFFINITY_MASK") == row.masks);
    CHECK(devices_of(*plan) == row.devices);
  }
}

TEST_CASE("Level Zero: Slurm's masks count cards, others tiles", "[grants]") {
  struct Written {
    const char* list;  // SLURM_JOB_GPUS
    const char* mask;
    const char* devices;
    const char* rules;
  };
  const char* const all = "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1";
  const Topology node = machine({0, 2, 4, 6}, "intel", 2);
  for (const Written& row : {
           Written{"1,2", "1,2", "1.0 1.1 2.0 2.1", "mask-counts-tiles"},
           Written{"0,1,2,3", "0,1,2,3", all, "mask-counts-tiles"},
           Written{"0-3", "0, 1, 2, 3", all, "mask-counts-tiles"},
           Written{"0-1", "0,1", "0.0 0.1 1.0 1.1", "mask-counts-tiles"},
           // 0 to k-1: a device control group
           Written{"2,3", "0,1", "2.0 2.1 3.0 3.1", "mask-counts-tiles"},
           Written{"1,2", "0,1", "1.0 1.1 2.0 2.1", "mask-counts-tiles"},
           Written{"2", "0", "2.0 2.1", "mask-counts-tiles"},
           // what Slurm would not have written counts tiles
           Written{"0,1,2,3", "0,1,2,3,4,5,6,7", all, ""},
           Written{"0,1,2,3", "0,1", "0.0 0.1", ""},
           Written{"0,1", "1", "0.1", ""},
           Written{"0,1,2,3", "1,0,2,3", "0.0 0.1 1.0 1.1", ""},
           Written{"2,3", "4,7", "2.0 3.1", ""},
           Written{"2,3", "0,3", "2.0 3.1", ""},
           Written{"2,3", "0,1,2,3", "2.0 2.1 3.0 3.1", ""},
           Written{"", "0,1,2,3", "0.0 0.1 1.0 1.1", ""},
           Written{"4,5", "0,1", "0.0 0.1", "grant-contradicts"},
       }) {
    INFO(row.list << " " << row.mask);
    const Env env = {{"SLURM_JOB_GPUS", row.list}, {"ZE_AFFINITY_MASK", row.mask}};
    PlanInput in = input(node, env);
    in.options.gpu_view = "own";
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(devices_of(*plan) == row.devices);
    CHECK(fmt::format("{}", fmt::join(rules(*plan), " ")) == row.rules);
    // Composite masks count cards whoever wrote them.
    in.env = EnvSnapshot({fmt::format("SLURM_JOB_GPUS={}", row.list), "ZE_AFFINITY_MASK=0",
                          "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"});
    for (const std::string& rule : rules(*make_plan(in))) CHECK(rule != "mask-counts-tiles");
  }
  // Each rank's mask leads to its tile, in a control group too, whatever else says that there is one.
  PlanInput in = input(node, {{"SLURM_STEP_GPUS", "2,3"}, {"ZE_AFFINITY_MASK", "0,1"}});
  for (const bool opened : {false, true}) {
    if (opened) in.reachable = {2, 3};
    in.options.gpu_view = "own";
    auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(masks_of(*plan, {}, "ZE_AFFINITY_MASK") == "0 1 2 3");
    CHECK(devices_of(*plan) == "2.0 2.1 3.0 3.1");
    in.options.gpu_view = "all";
    plan = make_plan(in);
    REQUIRE(plan);
    CHECK(plan->max_local_size() == 4);
    CHECK(masks_of(*plan, {}, "ZE_AFFINITY_MASK") == "0,1,2,3 0,1,2,3 0,1,2,3 0,1,2,3");
    CHECK_THAT(plan->reports.front().message, ContainsSubstring("SLURM_STEP_GPUS=2,3"));
  }
}

TEST_CASE("Level Zero: entries for COMPOSITE without it", "[grants]") {
  const auto fix = [](const char* mask, const char* hierarchy) {
    const Env env = {{"ZE_AFFINITY_MASK", mask}, {"ZE_FLAT_DEVICE_HIERARCHY", hierarchy}};
    const auto plan = make_plan(input(machine({0, 2}, "intel", 2), env));
    REQUIRE(plan);
    REQUIRE(plan->reports.front().rule == "mask-cut");
    return plan->reports.front().fix;
  };
  for (const char* hierarchy : {"FLAT", "COMBINED", ""})
    for (const char* mask : {"0.0,1.1", "0.1,1"})
      CHECK_THAT(fix(mask, hierarchy), ContainsSubstring("=COMPOSITE"));
  CHECK(fix("0.0,2.1", "FLAT") ==
        "give it entries that are there");  // no third device there either
  CHECK(fix("0,4", "FLAT") == "give it entries that are there");
  CHECK(fix("0.0,1.2", "COMPOSITE") == "give it entries that are there");
}

TEST_CASE("CUDA's own order of different models is not the plan's", "[grants]") {
  Topology node = machine({0, 1, 4, 5});
  name_devices(node);
  const auto planned = [&](const Env& env, bool differ = true) {
    for (Device& device : node.devices)
      device.model = differ && device.index == 3 ? "large" : "small";
    PlanInput in = input(node, env);
    in.options.gpu_view = "own";
    return in;
  };
  const auto said = [](const PlanInput& in) {
    const auto plan = make_plan(in);
    REQUIRE(plan);
    std::string text;
    for (const PlanReport& report : plan->reports)
      text += fmt::format("{} {}", report.rule, report.severity);
    return text;
  };
  const Env fastest = {{"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}};
  CHECK(said(planned({})).empty());  // the plan sets the order
  CHECK(said(planned(fastest)) == "device-order warning");
  CHECK(said(planned(fastest, false)).empty());
  CHECK(said(planned({{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}})).empty());
  PlanInput in = planned(fastest);
  in.options.set = {{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}};
  CHECK(said(in).empty());
  CHECK(make_plan(planned(fastest))->reports.front().fix == "--set CUDA_DEVICE_ORDER=PCI_BUS_ID");
  in = planned({});
  in.options.unset = {"CUDA_DEVICE_ORDER"};
  CHECK(said(in) == "device-order warning");
  in = planned(fastest);
  in.options.gpu_view = "all";  // no mask: programs count what CUDA counts
  CHECK(make_plan(in)->find_env("CUDA_VISIBLE_DEVICES") == nullptr);
  CHECK(said(in) == "device-order warning");
  Env named = fastest;  // names are the same in every order
  named["CUDA_VISIBLE_DEVICES"] = node.devices[1].uuid + "," + node.devices[3].uuid;
  CHECK(said(planned(named)).empty());
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "1,3"}})) == "device-order note");
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "3,2,1,0"}})).empty());  // whatever they count
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "1,3"}}, false)).empty());
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "1,3"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}))
            .empty());
  CHECK(said(planned({{"CUDA_VISIBLE_DEVICES", "1,3"}, {"SLURM_JOB_GPUS", "1,3"}})).empty());
}

TEST_CASE("what can be opened is stronger than what is said", "[grants]") {
  PlanInput in =
      input(machine({0, 1, 4, 5}), {{"SLURM_JOB_GPUS", "1,2"}, {"CUDA_VISIBLE_DEVICES", "1"}});
  in.reachable = {1, 2};
  in.options.gpu_view = "own";
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "2");
  CHECK(plan->classes[0].ranks[0].numa == 4);
  CHECK(plan->find_choice("granted-devices") != nullptr);
  in = input(machine({0, 1, 4, 5}), {});
  in.reachable = std::vector<int>{};
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(rules(*plan) == std::vector<std::string>{"no-device-left"});
  in.reachable = {0, 1, 2, 3};
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(devices_of(*plan) == "0 1 2 3");
  CHECK(plan->find_choice("granted-devices") == nullptr);
  for (const char* mask : {"CUDA_VISIBLE_DEVICES=1", "NONE="}) {  // without a control group
    in = input(machine({0, 1, 4, 5}), {});
    in.env = EnvSnapshot({"SLURM_JOB_GPUS=1,2", mask});
    in.reachable = {0, 1, 2, 3};
    in.options.gpu_view = "own";
    plan = make_plan(in);
    REQUIRE(plan);
    CHECK(devices_of(*plan) == (*mask == 'N' ? "1 2" : "1"));
    CHECK(plan->reports.empty());
  }
}

TEST_CASE("ranks sit near the devices that were granted", "[grants]") {
  PlanInput in =
      input(machine({0, 1, 4, 5}), {{"SLURM_JOB_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "0,1"}});
  auto plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->classes[0].ranks[0].cpus.to_list() == "8-9");
  CHECK(plan->classes[0].ranks[1].cpus.to_list() == "10-11");
  in.node.allowed = *CpuSet::parse("1,8,11");  // a part of the node, with holes
  plan = make_plan(in);
  REQUIRE(plan);
  CHECK(plan->classes[0].ranks[0].cpus.to_list() == "8");
  CHECK(plan->classes[0].ranks[1].cpus.to_list() == "11");
}

// ---- laws -----------------------------------------------------------------------------------------

namespace {

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

void check_rank(const Granted& one, const Plan& plan, std::size_t r, std::set<Part>& used) {
  const RankPlan& rank = plan.classes[0].ranks[r];
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
  CHECK(seen[at].first == rank.device);
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
    if (random.chance(60)) in.options.gpu_view = "own";
    if (random.chance(30)) in.options.ranks_per_node = random.in(1, 8);
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
    const bool narrowed = vendor == std::string("amd") &&
                          one.env.count("HIP_VISIBLE_DEVICES") > 0 &&
                          one.env.at("HIP_VISIBLE_DEVICES") != one.env.at("ROCR_VISIBLE_DEVICES");
    if (narrowed) expected = 1;
    ++planned;
    std::set<Part> used;
    const std::size_t ranks = plan->classes[0].ranks.size();
    for (std::size_t r = 0; r < ranks; ++r) check_rank(one, *plan, r, used);
    CHECK(used.size() == std::min(ranks, expected));
  }
  CHECK(planned > 1200);
}
