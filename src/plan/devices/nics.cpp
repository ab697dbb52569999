#include "plan/devices/nics.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "hpclaunch/make_plan.h"
#include "plan/cores/cores.h"
#include "plan/devices/slots.h"

namespace hpclaunch {

namespace {

std::vector<const Device*> devices_of(const Topology& node, const RankPlan& rank) {
  std::vector<const Device*> devices;
  for (const Device& device : node.devices)
    if (std::ranges::count(rank.slots, device.index, &Slot::device) > 0) devices.push_back(&device);
  return devices;
}

// Where a rank's traffic comes from.
CpuSet home_of(const Topology& node, const RankPlan& rank) {
  CpuSet home;
  for (const Device* device : devices_of(node, rank)) home |= node.near(*device);
  return home.empty() ? rank.cpus : home;
}

// A rank that spans NUMA nodes is at home in each of them. An interface of a node that has no CPUs here
// is near to the devices of that node, and nothing is nearer to these; its CPUs are those of the package, if any.
int distance_to(const Topology& node, const std::vector<const Device*>& devices, const CpuSet& home,
                const Nic& nic) {
  constexpr int kSameNode = kNear - 1;
  const bool bare = nic.numa >= 0 && node.numa_pus(nic.numa).empty();
  const auto is_there = [&](const Device* device) { return device->numa == nic.numa; };
  if (bare && std::ranges::any_of(devices, is_there)) return kSameNode;
  const CpuSet near = node.near(nic);
  if (near.empty() || home.empty()) return kElsewhere;
  if (near.intersects(home)) return bare ? kSamePackage : kNear;
  return around(node, near, kSamePackage).intersects(home) ? kSamePackage : kElsewhere;
}

// The members of `nics` for which `measure` is least.
template <class Measure>
std::vector<int> least(const Topology& node, const std::vector<int>& nics, Measure measure) {
  std::vector<int> best;
  int lowest = 0;
  for (const int n : nics) {
    const int value = measure(node.nics[n]);
    if (!best.empty() && value > lowest) continue;
    if (value < lowest) best.clear();
    lowest = value;
    best.push_back(n);
  }
  return best;
}

// By NUMA distance; with `bridges`, of those the ones that share the longest way from the root with a device.
std::vector<int> nearest_to(const Topology& node, const RankPlan& rank,
                            const std::vector<int>& nics, bool bridges = true) {
  const CpuSet home = home_of(node, rank);
  const std::vector<const Device*> devices = devices_of(node, rank);
  std::vector<int> by_numa =
      least(node, nics, [&](const Nic& nic) { return distance_to(node, devices, home, nic); });
  if (!bridges) return by_numa;
  return least(node, by_numa, [&](const Nic& nic) {
    std::ptrdiff_t longest = 0;
    for (const Device* device : devices)
      longest = std::max(longest, std::ranges::mismatch(device->bridges, nic.bridges).in1 -
                                      device->bridges.begin());
    return -static_cast<int>(longest);
  });
}

// Neighbours share an interface; where some are in use already, the least used ones get the next rank.
void spread(const std::vector<std::size_t>& members, const std::vector<int>& nics,
            std::vector<int>& used, std::vector<RankPlan>& ranks) {
  std::vector<std::size_t> chosen;  // positions in `nics`
  const bool fresh = std::ranges::all_of(nics, [&](int n) { return used[n] == 0; });
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::size_t next = i * nics.size() / members.size();
    for (std::size_t n = 0; !fresh && n < nics.size(); ++n)
      if (used[nics[n]] < used[nics[next]]) next = n;
    chosen.push_back(next);
    ++used[nics[next]];
  }
  std::ranges::sort(chosen);
  for (std::size_t i = 0; i < members.size(); ++i) ranks[members[i]].nic = nics[chosen[i]];
}

// Fabrics that are equal in number go in this order: RoCE is Ethernet, which leads to storage as well.
struct Fabric {
  std::string_view kind;
  std::string_view name;  // for people
};
constexpr std::array<Fabric, 5> kFabrics = {{{"slingshot", "Slingshot"},
                                             {"infiniband", "InfiniBand"},
                                             {"omni-path", "Omni-Path"},
                                             {"efa", "EFA"},
                                             {"roce", "RoCE"}}};

// Of several fabrics one carries the job, and the others storage or nothing: the one with the most ports.
void keep_one_kind(const Topology& node, std::vector<std::string>& why) {
  std::map<std::string, int> ports;
  for (std::size_t n = 0; n < why.size(); ++n)
    if (why[n].empty()) ++ports[node.nics[n].kind];
  const auto fabric = [](const std::string& kind) {
    return std::ranges::find(kFabrics, kind, &Fabric::kind);
  };
  const auto name = [&](const std::string& kind) {
    return fabric(kind) == kFabrics.end() ? kind : std::string(fabric(kind)->name);
  };
  const auto most = std::ranges::max_element(ports, {}, [&](const auto& one) {
    return std::pair(one.second, kFabrics.end() - fabric(one.first));
  });
  for (std::size_t n = 0; n < why.size(); ++n)
    if (const std::string& kind = node.nics[n].kind; why[n].empty() && kind != most->first)
      why[n] = name(kind) + " beside " + name(most->first);
}

}  // namespace

std::vector<std::string> idle_nics(const Topology& node) {
  const auto is_up = [](const Nic& nic) { return nic.state != "down"; };
  const bool fabric =
      std::ranges::any_of(node.nics, [&](const Nic& nic) { return is_up(nic) && nic.on_fabric(); });
  int fastest = 0;
  for (const Nic& nic : node.nics)
    if (is_up(nic) && nic.on_fabric() == fabric) fastest = std::max(fastest, nic.speed_mbps);
  std::vector<std::string> why;
  for (const Nic& nic : node.nics)
    why.emplace_back(!is_up(nic)                                       ? "down"
                     : fabric && !nic.on_fabric()                      ? "Ethernet beside a fabric"
                     : nic.speed_mbps != 0 && nic.speed_mbps < fastest ? "slower than others"
                                                                       : "");
  if (fabric) keep_one_kind(node, why);
  return why;
}

std::vector<int> job_nics(const Topology& node) {
  const std::vector<std::string> idle = idle_nics(node);
  std::vector<int> nics;
  for (std::size_t n = 0; n < idle.size(); ++n)
    if (idle[n].empty()) nics.push_back(static_cast<int>(n));
  std::ranges::stable_sort(nics, {}, [&](int n) { return node.nics[n].pci; });
  return nics;
}

bool bridges_decide(const Topology& node, const RankPlan& rank) {
  const std::vector<int> nics = job_nics(node);
  return nearest_to(node, rank, nics) != nearest_to(node, rank, nics, false);
}

void give_nics(const Topology& node, std::vector<RankPlan>& ranks) {
  const std::vector<int> nics = job_nics(node);
  if (nics.empty()) return;
  std::map<std::vector<int>, std::vector<std::size_t>> alike;  // by the nearest ones
  for (std::size_t r = 0; r < ranks.size(); ++r)
    alike[nearest_to(node, ranks[r], nics)].push_back(r);
  std::vector<int> used(node.nics.size(), 0);
  // Those with the least choice first.
  std::vector<std::pair<std::vector<int>, std::vector<std::size_t>>> kinds(alike.begin(),
                                                                           alike.end());
  std::ranges::stable_sort(kinds, {}, [](const auto& kind) { return kind.first.size(); });
  for (auto& [nearest, members] : kinds) {
    std::ranges::stable_sort(members, {}, [&](std::size_t r) {
      const std::vector<const Device*> devices = devices_of(node, ranks[r]);
      return std::pair(devices.empty() ? std::string() : devices.front()->pci, ranks[r].device());
    });
    spread(members, nearest, used, ranks);
  }
}

}  // namespace hpclaunch
