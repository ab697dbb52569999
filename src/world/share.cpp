#include "world/share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/launch.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

using Launches = std::vector<RunningLaunch>;
constexpr std::size_t kMostOfHosts = 200;  // of hosts in a message

std::string named(const RunningLaunch& launch) {
  return launch.program.empty() ? fmt::format("launch {}", launch.pid)
                                : fmt::format("launch {} ({})", launch.pid, launch.program);
}

/// What other launches use of one host. {1, 4, 16}
struct HostUse {
  int launches = 0, devices = 0, cpus = 0;
  auto operator<=>(const HostUse&) const = default;
};

HostUse use_on(const std::string& host, const Launches& others) {
  HostUse use;
  for (const RunningLaunch& one : others)
    for (const NodesInUse& nodes : one.nodes) {
      if (!nodes.hosts.contains(host)) continue;
      ++use.launches;
      use.devices += static_cast<int>(nodes.devices.size());
      use.cpus += nodes.cpus.count();
    }
  return use;
}

template <class Item>
void keep_at(const std::vector<std::size_t>& places, std::vector<Item>& items) {
  if (items.empty()) return;
  std::vector<Item> kept;
  for (const std::size_t place : places) kept.push_back(items[place]);
  items = std::move(kept);
}

// Nodes that the request needs; 0: not said.
int nodes_needed(const Request& request) {
  if (request.nodes) return *request.nodes + request.spares.value_or(0);
  if (request.ranks && request.ranks_per_node)
    return (*request.ranks + *request.ranks_per_node - 1) / *request.ranks_per_node;
  return 0;
}

// "launch 4711 (python train.py) and launch 4712", those on these hosts.
std::string names_on(const HostNames& hosts, const Launches& others) {
  std::vector<std::string> names;
  for (const RunningLaunch& one : others)
    if (std::ranges::any_of(one.nodes, [&](const NodesInUse& nodes) {
          return std::ranges::any_of(
              hosts, [&](const std::string& host) { return nodes.hosts.contains(host); });
        }))
      names.push_back(named(one));
  return joined(names, ", ");
}

std::string device_text(const std::vector<DeviceInUse>& devices) {
  std::vector<std::string> names;
  for (const auto& [id, part] : devices) {
    const int device = id >= 0 ? id : -2 - id;
    names.push_back(part < 0 ? std::to_string(device) : fmt::format("{}.{}", device, part));
  }
  return fmt::format("GPU{} {}", names.size() == 1 ? "" : "s", fmt::join(names, ","));
}

/// What two launches both use on some node. {"n1", {{0, -1}}, "0-15"}
struct Overlap {
  std::string host;
  std::vector<DeviceInUse> devices;
  CpuSet cpus;
  bool unknown = false;  ///< cores of one are not known
};

bool overlaps(const DeviceInUse& a, const DeviceInUse& b) {
  return a.first == b.first && (a.second < 0 || b.second < 0 || a.second == b.second);
}

// nullopt: they have no node in common.
std::optional<Overlap> overlap_of(const RunningLaunch& a, const RunningLaunch& b) {
  std::optional<Overlap> found;
  for (const NodesInUse& mine : a.nodes)
    for (const NodesInUse& theirs : b.nodes) {
      const auto host = std::ranges::find_if(
          mine.hosts, [&](const std::string& name) { return theirs.hosts.contains(name); });
      if (host == mine.hosts.end()) continue;
      Overlap here{*host, {}, mine.cpus & theirs.cpus, mine.unbound || theirs.unbound};
      for (const DeviceInUse& one : mine.devices)
        if (std::ranges::any_of(theirs.devices,
                                [&](const DeviceInUse& other) { return overlaps(one, other); }))
          here.devices.push_back(one);
      const bool more = !here.devices.empty() || !here.cpus.empty();
      if (!found || (more && found->devices.empty() && found->cpus.empty()))
        found = std::move(here);
    }
  return found;
}

Diagnostic common_report(const Overlap& overlap, const RunningLaunch& other, bool waits) {
  std::vector<std::string> what;
  if (!overlap.devices.empty()) what.push_back(device_text(overlap.devices));
  if (!overlap.cpus.empty()) what.push_back(cpus_text(overlap.cpus));
  return {"shared-with-launch", Severity::warning,
          fmt::format("{} uses {} of {} as well{}", named(other),
                      fmt::format("{}", fmt::join(what, " and ")), overlap.host,
                      waits ? "; the ranks start when it has ended" : ""),
          "--free takes what is free"};
}

}  // namespace

std::string job_of(const JobFacts& facts) {
  return fmt::format("{} {}", facts.scheduler, facts.id);
}

std::vector<RunningLaunch> other_launches(const World& world, const Site& site) {
  Launches others;
  if (site.facts.later || site.facts.invented_hosts) return others;
  for (RunningLaunch& one : world.running_launches())
    if (one.job == job_of(site.facts)) others.push_back(std::move(one));
  return others;
}

void keep_free_hosts(const Request& request, const Launches& others, Site& site) {
  HostList& hosts = site.hosts;
  std::vector<HostUse> uses;
  std::vector<std::size_t> order;
  for (const std::string& host : hosts.names) {
    uses.push_back(use_on(host, others));
    order.push_back(order.size());
  }
  const auto used = [&](std::size_t place) { return uses[place].launches > 0; };
  if (std::ranges::none_of(order, used)) return;
  const int needed = nodes_needed(request);
  std::ranges::stable_sort(order, {}, [&](std::size_t place) { return uses[place]; });
  const auto free =
      static_cast<int>(std::ranges::count_if(order, [&](auto p) { return !used(p); }));
  std::size_t keep = order.size();
  if (free > 0 && free >= needed)
    keep = static_cast<std::size_t>(free);
  else if (needed > 0)
    keep = std::min(keep, static_cast<std::size_t>(needed));
  if (keep == order.size()) return;
  order.resize(keep);
  std::ranges::sort(order);
  HostNames kept;
  for (const std::size_t place : order) kept.push_back(hosts.names[place]);
  if (hosts.places.empty() && hosts.allocation)
    for (const std::size_t place : order) hosts.places.push_back(static_cast<int>(place));
  else
    keep_at(order, hosts.places);
  hosts.why += fmt::format("; --free: without nodes of {}", names_on(hosts.names, others));
  hosts.names = std::move(kept);
  keep_at(order, hosts.slots);
  keep_at(order, hosts.granted);
  keep_at(order, hosts.grants);
  hosts.file.clear();
  site.facts.whole_allocation = false;
}

Status keep_free_cores(const Launches& others, const Site& site, JobNode& node, PlanInput& input) {
  CpuSet cpus;
  std::set<DeviceInUse> devices;
  HostNames used;
  for (const std::string& host : site.hosts.names)
    for (const RunningLaunch& one : others)
      for (const NodesInUse& nodes : one.nodes) {
        if (!nodes.hosts.contains(host)) continue;
        cpus |= nodes.cpus;
        devices.insert(nodes.devices.begin(), nodes.devices.end());
        if (used.empty() || used.back() != host) used.push_back(host);
      }
  if (used.empty()) return Done{};
  const std::string names = names_on(used, others);
  for (const Core& core : node.topology.cores)
    if (core.pus.intersects(cpus)) {
      node.topology.allowed -= core.pus;
      node.whole -= core.pus;
    }
  if (node.topology.allowed.empty())
    return Error{
        ErrorKind::usage,
        fmt::format("--free: no core of {} is free: {}", host_ranges(used, kMostOfHosts), names),
        "wait for its end, or omit --free to share the cores"};
  input.taken.assign(devices.begin(), devices.end());
  input.taken_by = names;
  return Done{};
}

Shared compare_launches(const RunningLaunch& launch, const Launches& others,
                        const Launcher& launcher) {
  Shared shared;
  std::vector<std::string> beside;
  for (const RunningLaunch& other : others) {
    const std::optional<Overlap> overlap = overlap_of(launch, other);
    if (!overlap) continue;
    if (!overlap->devices.empty() || !overlap->cpus.empty())
      shared.diagnostics.push_back(
          common_report(*overlap, other, launcher.traits.termination.queues));
    else if (overlap->unknown)
      shared.diagnostics.push_back(
          {"shared-with-launch", Severity::note,
           fmt::format("{} runs on {} as well, and which cores are whose is not known",
                       named(other), overlap->host),
           "--cpus-per-rank N for each of them keeps them small"});
    beside.push_back(named(other));
  }
  const bool apart = std::ranges::none_of(
      shared.diagnostics, [](const Diagnostic& one) { return one.severity == Severity::warning; });
  if (apart) shared.beside = joined(beside, ", ");
  return shared;
}

}  // namespace hpclaunch::job
