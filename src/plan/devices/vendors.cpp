#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

using Vendors = std::vector<std::string>;  // in the node's order, each once

Vendors vendors_of(const Topology& node) {
  Vendors vendors;
  for (const Device& device : node.devices)
    if (std::ranges::count(vendors, device.vendor) == 0) vendors.push_back(device.vendor);
  return vendors;
}

// The one vendor whose drivers read a variable; "" for several or none.
std::string reader_of(const Vendors& vendors, const std::string& variable) {
  Vendors readers;
  std::ranges::copy_if(vendors, std::back_inserter(readers), [&](const std::string& vendor) {
    return std::ranges::count(device_vendor(vendor).masks(), variable) > 0;
  });
  return readers.size() == 1 ? readers.front() : "";
}

std::string by_mode(const PlanInput& input, const Vendors& vendors) {
  const std::string& typed = input.request->device_mode;
  if (input.profile == nullptr || input.profile->device_modes.empty())
    return typed.empty() ? "" : "intel";  // the one with modes of its own
  const std::string& name = typed.empty() ? input.profile->device_mode : typed;
  const DeviceMode* mode =
      name.empty() ? &input.profile->device_modes.front() : input.profile->find_mode(name);
  return mode == nullptr || mode->mask.empty() ? "" : reader_of(vendors, mode->mask);
}

std::string by_profile(const PlanInput& input) {
  if (input.profile == nullptr) return "";
  std::set<std::string> known;
  for (const NodeModel& model : input.profile->nodes)
    for (const Device& device : model.topology.devices) known.insert(device.vendor);
  return known.size() == 1 ? *known.begin() : "";
}

std::string choose(const PlanInput& input, const Vendors& vendors) {
  for (const std::string& wanted : {by_mode(input, vendors), by_profile(input)})
    if (std::ranges::count(vendors, wanted) > 0) return wanted;
  return vendors.front();
}

// Device::index as it was, by the number that each of the vendor's devices gets.
std::vector<int> keep(const std::string& vendor, Topology& node) {
  std::erase_if(node.devices, [&](const Device& device) { return device.vendor != vendor; });
  std::vector<int> index;
  for (Device& device : node.devices)
    index.push_back(std::exchange(device.index, static_cast<int>(index.size())));
  for (Link& link : node.links)
    for (int* end : {&link.from, &link.to})
      *end = static_cast<int>(std::ranges::find(index, *end) - index.begin());
  std::erase_if(node.links, [&](const Link& link) {
    return std::max(link.from, link.to) == std::ssize(index);
  });
  return index;
}

Diagnostic report_other_vendors(const Topology& node, Vendors others, const std::string& kept) {
  std::erase(others, kept);
  const auto used = std::ranges::count(node.devices, kept, &Device::vendor);
  return {"several-vendors", Severity::note,
          fmt::format("the plan uses the {} of {} only, not the {} of {}: a program uses one "
                      "vendor's devices",
                      counted(used, "device"), kept, static_cast<long>(node.devices.size()) - used,
                      fmt::join(others, ", ")),
          "--devices-per-rank 0 plans without devices"};
}

}  // namespace

std::optional<OneVendor> keep_one_vendor(const PlanInput& input) {
  const Vendors vendors = vendors_of(input.node);
  if (vendors.size() < 2 || input.request->devices_per_rank == 0) return std::nullopt;
  const std::string vendor = choose(input, vendors);
  OneVendor kept{input, {}, report_other_vendors(input.node, vendors, vendor)};
  kept.index = keep(vendor, kept.input.node);
  if (kept.input.live) keep(vendor, *kept.input.live);
  std::erase_if(kept.input.taken, [&](std::pair<int, int>& one) {
    if (one.first < 0) return false;
    const auto place = std::ranges::find(kept.index, one.first);
    one.first = static_cast<int>(place - kept.index.begin());
    return place == kept.index.end();
  });
  const auto renumber = [&](std::optional<std::vector<int>>& devices) {
    if (!devices) return;
    const std::vector<int> before = std::exchange(*devices, {});
    for (std::size_t n = 0; n < kept.index.size(); ++n)
      if (std::ranges::count(before, kept.index[n]) > 0) devices->push_back(static_cast<int>(n));
  };
  renumber(kept.input.reachable);
  for (NodeGrant& grant : kept.input.grants) renumber(grant.devices);
  return kept;
}

void restore_indices(const OneVendor& kept, Placement& placement) {
  for (NodeClass& one : placement.classes)
    for (RankPlan& rank : one.ranks)
      for (Slot& unit : rank.slots)
        if (unit.device >= 0) unit.device = kept.index[unit.device];
}

}  // namespace hpclaunch
