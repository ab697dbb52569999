#include "job/drift.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr std::size_t kMostTold = 6;

std::string told(const std::vector<Drift>& drifts) {
  std::vector<std::string> texts;
  texts.reserve(drifts.size());
  for (const Drift& drift : drifts) texts.push_back(drift.text);
  const std::size_t more = texts.size() > kMostTold ? texts.size() - kMostTold : 0;
  texts.resize(texts.size() - more);
  std::string text = fmt::format("{}", fmt::join(texts, "; "));
  if (more > 0) text += fmt::format("; and {} more", more);
  return text;
}

bool is_no_device(std::string_view entry) {
  return entry.empty() || entry.front() == '-' || entry == "NoDevFiles";
}

template <class Member>
void keep_known(const Topology& live, Member& one) {
  const bool there = std::any_of(live.numa_nodes.begin(), live.numa_nodes.end(),
                                 [&](const NumaNode& node) { return node.os_index == one.numa; });
  if (!there) one.numa = -1;
}

}  // namespace

OnDrift on_drift(const Request& args) {
  return args.on_drift.value_or(args.verify == Verify::strict ? OnDrift::fail : OnDrift::warn);
}

std::size_t granted_devices(const EnvSnapshot& env) {
  for (const std::string_view name : device_masks())
    if (const std::string* mask = env.find(name); mask != nullptr && !mask->empty()) {
      std::size_t count = 0;
      for (const std::string_view entry : split(*mask, ',')) {
        if (is_no_device(trim(entry))) break;
        ++count;
      }
      return count;
    }
  for (const char* name : kSlurmGpuLists)
    if (const Result<CpuSet> list = CpuSet::parse(env.get(name)); list && !list->empty())
      return static_cast<std::size_t>(list->count());
  return static_cast<std::size_t>(parse_natural(env.get(kSlurmGpuCount, "0")).value_or(0));
}

bool judge_drift(const Topology& planned, const Topology& live, const std::string& planned_as,
                 int granted, const EnvSnapshot& env, OnDrift how,
                 std::vector<Diagnostic>& diagnostics) {
  const std::size_t given = granted_devices(env);
  DriftScope scope;
  scope.part_of_cpus = granted > 0 && granted < planned.allowed.count();
  scope.part_of_devices = given > 0 && live.devices.size() >= given;
  const std::vector<Drift> drifts = find_drift(planned, live, scope);
  if (drifts.empty()) return false;
  const std::string what = fmt::format("this node ({}) is not {} ({}): {}", node_fingerprint(live),
                                       planned_as, node_fingerprint(planned), told(drifts));
  if (how == OnDrift::replan) {
    diagnostics.push_back({"node-differs", Severity::note,
                           what + "; the plan is for this node, as --on-drift replan asks", ""});
    return true;
  }
  diagnostics.push_back({"node-differs", how == OnDrift::fail ? Severity::error : Severity::warning,
                         what + "; the plan is for the latter, and each rank checks what it gets",
                         how == OnDrift::fail
                             ? "leave the node out, or --on-drift replan plans for this one"
                             : "--on-drift replan plans for this node; hpclaunch topo shows it"});
  return false;
}

Topology replanned(const Topology& live, const Topology& planned) {
  Topology node = live;
  if (node.devices.empty() && !node.no_devices) {
    node.devices = planned.devices;
    node.links = planned.links;
    for (Device& device : node.devices) {
      keep_known(live, device);
      device.pus &= live.all_pus();
    }
  }
  if (node.nics.empty()) {
    node.nics = planned.nics;
    for (Nic& nic : node.nics) {
      keep_known(live, nic);
      nic.pus &= live.all_pus();
    }
  }
  return node;
}

std::optional<std::vector<int>> reachable_devices(const Topology& live,
                                                  const std::vector<sys::DeviceFile>& files) {
  if (live.devices.empty() || files.empty()) return std::nullopt;
  std::map<std::string, bool> usable;
  for (const sys::DeviceFile& file : files) {
    usable[file.pci] = file.usable;
  }
  // A container's driver that numbers its own files lists no others.
  const auto has_listed_files = [&](const std::string& vendor) {
    const std::string_view stem = device_vendor(vendor).device_file;
    return !stem.empty() && std::any_of(files.begin(), files.end(), [&](const auto& file) {
      return file.path.find("/" + std::string(stem)) != std::string::npos;
    });
  };
  std::vector<int> there;
  std::map<std::string, int> times;
  for (const Device& device : live.devices) {
    const auto at = usable.find(device.pci);
    const bool hidden = at == usable.end() && has_listed_files(device.vendor);
    if (device.pci.empty() || ++times[device.pci] > 1 || (at == usable.end() && !hidden))
      return std::nullopt;
    if (!hidden && at->second) there.push_back(device.index);
  }
  return there;
}

}  // namespace hpclaunch::cli
