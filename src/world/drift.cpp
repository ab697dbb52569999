// The planned node compared with this one, and which of its devices can be reached.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "hpclaunch/check.h"
#include "hpclaunch/device_vendor.h"
#include "hpclaunch/text.h"
#include "world/node.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kMostShown = 6;

std::string listed(const std::vector<Diagnostic>& drifts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostShown, drifts.size()); ++i)
    text += (i == 0 ? "" : "; ") + drifts[i].message;
  if (drifts.size() > kMostShown) text += fmt::format("; and {} more", drifts.size() - kMostShown);
  return text;
}

bool is_no_device(std::string_view entry) {
  return entry.empty() || entry.front() == '-' || entry == "NoDevFiles";
}

// What the live node lacks, as far as its NUMA nodes and CPUs are there.
template <class Member>
void add_missing(const Topology& live, const std::vector<Member>& planned,
                 std::vector<Member>& members) {
  if (!members.empty()) return;
  members = planned;
  for (Member& one : members) {
    one.pus &= live.all_pus();
    if (live.find_numa(one.numa) == nullptr) one.numa = -1;
  }
}

}  // namespace

OnDrift on_drift(const Request& request) {
  return request.on_drift.value_or(request.verify == Verify::strict ? OnDrift::fail
                                                                    : OnDrift::warn);
}

GrantedDevices granted_devices(const EnvSnapshot& env, const BatchJob& batch) {
  for (const std::string_view name : device_masks())
    if (const std::string* mask = env.find(name); mask != nullptr && !mask->empty()) {
      GrantedDevices devices{0, true};
      for (const std::string_view entry : split(*mask, ',')) {
        if (is_no_device(trim(entry))) break;
        ++devices.count;
      }
      return devices;
    }
  return {batch.devices, batch.devices_listed};
}

bool judge_drift(const Topology& planned, const Topology& live, const std::string& planned_as,
                 int granted, GrantedDevices devices, OnDrift how, Diagnostics& diagnostics) {
  DriftScope scope;
  scope.part_of_cpus = granted > 0 && granted < planned.allowed.count();
  scope.part_of_devices = devices.count > 0 && live.devices.size() >= devices.count;
  const std::vector<Diagnostic> drifts = find_drift(planned, live, scope);
  if (drifts.empty()) return false;
  const std::string what =
      fmt::format("this node ({}) differs from {} ({}): {}", node_fingerprint(live), planned_as,
                  node_fingerprint(planned), listed(drifts));
  if (how == OnDrift::replan) {
    diagnostics.push_back(
        {"node-differs", Severity::note, what + "; planned for this node (--on-drift replan)", ""});
    return true;
  }
  diagnostics.push_back(
      {"node-differs", how == OnDrift::fail ? Severity::error : Severity::warning,
       what + "; planned for the latter, and checked on each rank",
       how == OnDrift::fail
           ? "exclude the node, or plan for it with --on-drift replan"
           : "plan for this node with --on-drift replan; hpclaunch topo shows it"});
  return false;
}

Topology replanned(const Topology& live, const Topology& planned) {
  Topology node = live;
  if (node.devices.empty() && !node.no_devices) {
    node.links = planned.links;
    add_missing(live, planned.devices, node.devices);
  }
  add_missing(live, planned.nics, node.nics);
  return node;
}

std::optional<std::vector<int>> reachable_devices(const Topology& live,
                                                  const std::vector<DeviceFile>& files) {
  if (live.devices.empty() || files.empty()) return std::nullopt;
  std::map<std::string, bool> usable;
  for (const DeviceFile& file : files) {
    usable[file.pci] = file.usable;
  }
  // In a container, a driver that numbers its own files lists granted devices only.
  const auto has_listed_files = [&](const std::string& vendor) {
    const std::string_view stem = device_vendor(vendor).device_file;
    return !stem.empty() && std::ranges::any_of(files, [&](const auto& file) {
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

}  // namespace hpclaunch::job
