#include "plan/devices/nics.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "hpclaunch/make_plan.h"
#include "plan/cores/locality.h"

namespace hpclaunch {

namespace {

std::vector<const Device*> devices_of(const Topology& node, const RankPlan& rank) {
  std::vector<int> indices{rank.device};
  for (const UnitRef& more : rank.more_units) indices.push_back(more.device);
  std::vector<const Device*> devices;
  for (const Device& device : node.devices)
    if (std::find(indices.begin(), indices.end(), device.index) != indices.end())
      devices.push_back(&device);
  return devices;
}

// Where a rank's traffic comes from.
CpuSet home_of(const Topology& node, const RankPlan& rank) {
  CpuSet home;
  for (const Device* device : devices_of(node, rank)) home |= near_device(node, *device);
  return home.empty() ? rank.cpus : home;
}

// A rank that spans NUMA nodes is at home in each of them. An interface of a node that has no CPUs here
// is near to the devices of that node, and nothing is nearer to these; its CPUs are those of the package, if any.
int distance_to(const Topology& node, const std::vector<const Device*>& devices, const CpuSet& home,
                const Nic& nic) {
  constexpr int kSameNode = kNear - 1;
  const bool bare = nic.numa >= 0 && pus_of_numa(node, nic.numa).empty();
  const auto is_there = [&](const Device* device) { return device->numa == nic.numa; };
  if (bare && std::any_of(devices.begin(), devices.end(), is_there)) return kSameNode;
  const CpuSet near = nic.pus.empty() ? pus_of_numa(node, nic.numa) : nic.pus;
  if (near.empty() || home.empty()) return kElsewhere;
  if (near.intersects(home)) return bare ? kSamePackage : kNear;
  return package_around(node, near).intersects(home) ? kSamePackage : kElsewhere;
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

std::vector<int> nearest_by_numa(const Topology& node, const RankPlan& rank,
                                 const std::vector<int>& nics) {
  const CpuSet home = home_of(node, rank);
  const std::vector<const Device*> devices = devices_of(node, rank);
  return least(node, nics, [&](const Nic& nic) { return distance_to(node, devices, home, nic); });
}

// Of those at one distance the ones that share the longest way from the root with one of the devices.
std::vector<int> nearest_to(const Topology& node, const RankPlan& rank,
                            const std::vector<int>& nics) {
  const std::vector<const Device*> devices = devices_of(node, rank);
  return least(node, nearest_by_numa(node, rank, nics), [&](const Nic& nic) {
    std::ptrdiff_t longest = 0;
    for (const Device* device : devices) {
      const std::vector<std::string>& way = device->bridges;
      const auto parting =
          std::mismatch(way.begin(), way.end(), nic.bridges.begin(), nic.bridges.end());
      longest = std::max(longest, parting.first - way.begin());
    }
    return -static_cast<int>(longest);
  });
}

// Neighbours share an interface; where some are in use already, the least used ones get the next rank.
void spread(const std::vector<std::size_t>& members, const std::vector<int>& nics,
            std::vector<int>& used, std::vector<RankPlan>& ranks) {
  const auto use_of = [&](std::size_t n) -> int& { return used[nics[n]]; };
  std::vector<std::size_t> each(nics.size(), 0);
  const bool fresh = std::all_of(nics.begin(), nics.end(), [&](int n) { return used[n] == 0; });
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::size_t next = i * nics.size() / members.size();
    for (std::size_t n = 0; !fresh && n < nics.size(); ++n)
      if (use_of(n) < use_of(next)) next = n;
    ++each[next];
    ++use_of(next);
  }
  auto member = members.begin();
  for (std::size_t n = 0; n < nics.size(); ++n)
    for (std::size_t i = 0; i < each[n]; ++i) ranks[*member++].nic = nics[n];
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

std::string fabric_name(const std::string& kind) {
  for (const Fabric& one : kFabrics)
    if (one.kind == kind) return std::string(one.name);
  return kind;
}

// Of several fabrics one carries the job, and the others storage or nothing: the one with the most ports.
void keep_one_kind(const Topology& node, std::vector<std::string>& why) {
  std::map<std::string, int> ports;
  for (std::size_t n = 0; n < why.size(); ++n)
    if (why[n].empty()) ++ports[node.nics[n].kind];
  const auto order = [](const std::string& kind) {
    return std::find_if(kFabrics.begin(), kFabrics.end(),
                        [&](const Fabric& one) { return one.kind == kind; }) -
           kFabrics.begin();
  };
  const auto most = std::max_element(ports.begin(), ports.end(), [&](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : order(a.first) > order(b.first);
  });
  for (std::size_t n = 0; n < why.size(); ++n)
    if (const std::string& kind = node.nics[n].kind; why[n].empty() && kind != most->first)
      why[n] = fabric_name(kind) + " beside " + fabric_name(most->first);
}

}  // namespace

std::vector<std::string> idle_nics(const Topology& node) {
  const auto is_fabric = [](const Nic& nic) { return !nic.kind.empty() && nic.kind != "ethernet"; };
  const auto is_up = [](const Nic& nic) { return nic.state != "down"; };
  const bool fabric = std::any_of(node.nics.begin(), node.nics.end(),
                                  [&](const Nic& nic) { return is_up(nic) && is_fabric(nic); });
  int fastest = 0;
  for (const Nic& nic : node.nics)
    if (is_up(nic) && is_fabric(nic) == fabric) fastest = std::max(fastest, nic.speed_mbps);
  std::vector<std::string> why;
  for (const Nic& nic : node.nics)
    why.emplace_back(!is_up(nic)                                       ? "down"
                     : fabric && !is_fabric(nic)                       ? "Ethernet beside a fabric"
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
  std::stable_sort(nics.begin(), nics.end(),
                   [&](int a, int b) { return node.nics[a].pci < node.nics[b].pci; });
  return nics;
}

bool bridges_decide(const Topology& node, const RankPlan& rank) {
  const std::vector<int> nics = job_nics(node);
  return nearest_to(node, rank, nics) != nearest_by_numa(node, rank, nics);
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
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.first.size() < b.first.size(); });
  for (auto& [nearest, members] : kinds) {
    const auto place = [&](std::size_t r) {
      const std::vector<const Device*> devices = devices_of(node, ranks[r]);
      return std::pair(devices.empty() ? std::string() : devices.front()->pci, ranks[r].device);
    };
    std::stable_sort(members.begin(), members.end(),
                     [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    spread(members, nearest, used, ranks);
  }
}

}  // namespace hpclaunch
