#pragma once
// Jobs of one node with a batch system's grants in their environment, and what a plan makes of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <vector>

#include "plan/jobs.h"

namespace hpclaunch::test {

using Env = std::map<std::string, std::string>;

/// Two packages of four NUMA nodes with two cores each; device i is near NUMA node near[i].
inline Topology machine(const std::vector<int>& near, const char* vendor = "nvidia",
                        int tiles = 0) {
  Topology node = even_machine(2, 4, 2);
  add_devices(near, vendor, node);
  for (Device& device : node.devices) device.subdevices = tiles;
  return node;
}

/// Names of which the first two digits are enough: GPU-a0..., GPU-b1..., GPU-c2..., ...
inline void name_devices(Topology& node) {
  for (Device& device : node.devices)
    device.uuid = fmt::format("GPU-{:x}{:x}a0b1c2d3e4f5", device.index + 10, device.index);
}

inline PlanInput input(Topology node, const Env& env) {
  PlanInput in = job_on(std::move(node), 1);
  in.launcher.multi_node = false;
  std::vector<std::string> entries;
  for (const auto& [name, value] : env) entries.push_back(fmt::format("{}={}", name, value));
  in.env = EnvSnapshot(entries);
  return in;
}

/// nullptr: not set.
inline const std::string* get(const Env& env, const char* name) {
  const auto at = env.find(name);
  return at == env.end() ? nullptr : &at->second;
}

/// The environment that a rank gets.
inline Env env_of(const Plan& plan, const Env& job, int local) {
  Env env = job;
  for (const Setting& setting : plan.environment.settings) {
    const Value& value = setting.value();
    if (std::holds_alternative<Unset>(value)) env.erase(setting.name);
    if (const auto* text = std::get_if<std::string>(&value)) env[setting.name] = *text;
    if (const auto* each = std::get_if<PerRank>(&value))
      env[setting.name] = each->items[0][static_cast<std::size_t>(local)];
    if (value == Value(RankFact::local_rank)) env[setting.name] = std::to_string(local);
  }
  return env;
}

/// What was said of devices. The machines here have cores that no device is near, and masks in most rows.
inline std::vector<std::string> rules(const Plan& plan) {
  std::vector<std::string> names;
  for (const Diagnostic& report : plan.explanation.reports)
    if (report.id != "idle-cores" && report.id != "mask-restricts") names.push_back(report.id);
  return names;
}

/// An environment and what a plan makes of it, with a mask for each rank ("own").
struct Row {
  const char* what;
  Env env;
  std::string masks;    // of the ranks
  std::string devices;  // of the ranks; -1: not known
  std::string rules;    // that speak
};

inline std::string masks_of(const Plan& plan, const Env& env, const char* variable) {
  std::vector<std::string> masks;
  const int ranks = plan.max_local_size();
  for (int r = 0; r < ranks; ++r) {
    const Env of_rank = env_of(plan, env, r);
    const std::string* mask = get(of_rank, variable);
    masks.push_back(mask == nullptr ? "-" : *mask);
  }
  return fmt::format("{}", fmt::join(masks, " "));
}

inline std::string devices_of(const Plan& plan) {
  std::vector<std::string> devices;
  for (const RankPlan& rank : plan.placement.classes[0].ranks)
    devices.push_back(rank.slots.front().part < 0
                          ? std::to_string(rank.device())
                          : fmt::format("{}.{}", rank.device(), rank.slots.front().part));
  return fmt::format("{}", fmt::join(devices, " "));
}

inline void check_rows(const Topology& node, const char* variable, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    INFO(row.what);
    PlanInput in = input(node, row.env);
    asked(in).gpu_view = "own";
    const auto plan = make_plan(in);
    REQUIRE(plan);
    CHECK(masks_of(*plan, row.env, variable) == row.masks);
    CHECK(devices_of(*plan) == row.devices);
    CHECK(fmt::format("{}", fmt::join(rules(*plan), " ")) == row.rules);
  }
}

}  // namespace hpclaunch::test
