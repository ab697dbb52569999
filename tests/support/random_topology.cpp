#include "support/random_topology.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace hpclaunch::test {
namespace {

/// A core before its PUs have numbers.
struct Seat {
  int package = 0;
  int region = 0;  ///< the smallest part with memory of its own, counted over the machine
  int threads = 1;
};

template <class T>
void shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<std::size_t>(random.in(0, static_cast<int>(i) - 1))]);
  }
}

std::vector<Seat> seats(Random& random, int packages, int regions_each) {
  constexpr std::array<int, 8> kThreads{1, 1, 1, 2, 2, 2, 4, 8};
  const int threads = kThreads[static_cast<std::size_t>(random.in(0, 7))];
  const bool mixed = random.chance(15);
  const bool unequal = random.chance(30);
  const int cores = random.in(1, 13);
  std::vector<Seat> all;
  for (int package = 0; package < packages; ++package) {
    for (int region = 0; region < regions_each; ++region) {
      const int here = unequal ? random.in(1, 13) : cores;
      for (int core = 0; core < here; ++core) {
        all.push_back(
            {package, package * regions_each + region, mixed && random.chance(50) ? 1 : threads});
      }
    }
  }
  return all;
}

/// Seats in the order in which firmware would count them.
std::vector<std::size_t> counting_order(const std::vector<Seat>& all, bool interleave_packages) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!interleave_packages) return order;
  std::vector<int> place(all.size());
  std::array<int, 4> next{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    place[i] = next[static_cast<std::size_t>(all[i].package)]++;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
  return order;
}

/// The PUs of each seat.
std::vector<CpuSet> number(const std::vector<Seat>& all, Random& random) {
  enum { kSequence, kFarSiblings, kInterleaved, kScattered };
  const int scheme = random.in(kSequence, kScattered);
  const int total = std::accumulate(all.begin(), all.end(), 0,
                                    [](int sum, const Seat& seat) { return sum + seat.threads; });
  std::vector<int> numbers(static_cast<std::size_t>(scheme == kScattered ? 2 * total : total));
  std::iota(numbers.begin(), numbers.end(), 0);
  if (scheme == kScattered) shuffle(numbers, random);
  std::vector<CpuSet> pus(all.size());
  std::size_t next = 0;
  const std::vector<std::size_t> order = counting_order(all, scheme == kInterleaved);
  if (scheme == kSequence) {
    for (const std::size_t seat : order) {
      for (int thread = 0; thread < all[seat].threads; ++thread) pus[seat].add(numbers[next++]);
    }
    return pus;
  }
  for (int thread = 0; thread < 8; ++thread) {
    for (const std::size_t seat : order) {
      if (thread < all[seat].threads) pus[seat].add(numbers[next++]);
    }
  }
  return pus;
}

/// The union of the PUs of the seats for which `key` gives `value`.
template <class Key>
CpuSet pus_where(const Topology& topology, const std::vector<Seat>& all, int value, Key key) {
  CpuSet pus;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (key(all[i]) == value) pus |= topology.cores[i].pus;
  }
  return pus;
}

void add_packages(Topology& topology, const std::vector<Seat>& all, int packages, Random& random) {
  if (random.chance(10)) return;  // a container or a small board: nobody knows
  const int stride = random.chance(20) ? 8 : 1;
  for (int p = 0; p < packages; ++p) {
    const CpuSet pus = pus_where(topology, all, p, [](const Seat& seat) { return seat.package; });
    topology.packages.push_back(
        {p * stride, random.chance(50) ? "Example CPU @ 2.0 \"GHz\"" : "", pus});
  }
  for (std::size_t i = 0; i < all.size(); ++i) topology.cores[i].package = all[i].package * stride;
}

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

void add_numa_nodes(Topology& topology, const std::vector<Seat>& all, int regions,
                    int packages_per_node, Random& random) {
  if (random.chance(10)) return;
  const auto node_of = [&](const Seat& seat) {
    return packages_per_node > 1 ? seat.package / packages_per_node : seat.region;
  };
  const int nodes = node_of(all.back()) + 1;
  const int stride = random.chance(20) ? 8 : 1;
  const bool twins = packages_per_node == 1 && random.chance(15);
  for (int n = 0; n < nodes && n < regions; ++n) {
    const CpuSet pus = pus_where(topology, all, n, node_of);
    const auto memory = static_cast<std::uint64_t>(random.in(0, 512)) * kGiB;
    topology.numa_nodes.push_back({n * stride, memory, pus});
    if (twins) topology.numa_nodes.push_back({(nodes + n) * stride, 16 * kGiB, pus});
  }
  for (std::size_t i = 0; i < all.size(); ++i) topology.cores[i].numa = node_of(all[i]) * stride;
  if (random.chance(10)) topology.numa_nodes.push_back({1000, 256 * kGiB, {}});
}

/// Caches of neighbouring cores, `share` at most, never across a region's border.
void add_caches(Topology& topology, const std::vector<Seat>& all, int level, int share) {
  for (std::size_t i = 0; i < all.size();) {
    Cache cache{level, static_cast<std::uint64_t>(level) * 8 * 1024 * 1024, {}};
    std::size_t end = i;
    while (end < all.size() && end - i < static_cast<std::size_t>(share) &&
           all[end].region == all[i].region) {
      cache.pus |= topology.cores[end++].pus;
    }
    if (end - i > 1) topology.caches.push_back(cache);
    i = end;
  }
}

CpuSet some_allowed(const Topology& topology, Random& random) {
  const CpuSet all = topology.all_pus();
  CpuSet left;
  switch (random.in(0, 7)) {
    case 0:
      for (const int pu : all.to_vector()) {
        if (random.chance(70)) left.add(pu);
      }
      break;
    case 1:
    case 2:
      for (const Core& core : topology.cores) {
        if (random.chance(75)) left |= core.pus;
      }
      break;
    case 3:
      if (!topology.packages.empty()) left = topology.packages.back().pus;
      break;
    case 4:
      if (random.chance(30)) left.add(all.last());
      break;
    default:
      break;
  }
  return left.empty() ? all : left;
}

void place_device(const Topology& topology, int kind, Device& device, Random& random) {
  const auto any = [&](const auto& parts) -> const auto& {
    return parts[static_cast<std::size_t>(random.in(0, static_cast<int>(parts.size()) - 1))];
  };
  if (kind == 0 && !topology.numa_nodes.empty()) {
    const NumaNode& numa = any(topology.numa_nodes);
    device.numa = numa.os_index;
    if (random.chance(70)) device.pus = numa.pus;
  } else if (kind == 1 && !topology.packages.empty()) {
    device.pus = any(topology.packages).pus;
  } else if (kind == 2 && !topology.caches.empty()) {
    device.pus = any(topology.caches).pus;
  } else if (kind == 3) {
    device.pus = topology.all_pus();
  }
}

void add_devices(Topology& topology, int most, Random& random) {
  const int kind = random.in(0, 5);  // 4: nobody knows; 5: each in its own way
  const bool one_place = random.chance(15);
  const int count = random.in(1, most);
  const int parts = random.chance(20) ? 2 : 0;
  Device device;
  device.vendor = random.chance(50) ? "amd" : "nvidia";
  device.subdevices = parts;
  for (int d = 0; d < count; ++d) {
    device.index = d;
    device.pci = "0000:" + std::string(1, static_cast<char>('a' + d)) + "0:00.0";
    if (d == 0 || !one_place) {
      device.numa = -1;
      device.pus = {};
      place_device(topology, kind == 5 ? random.in(0, 4) : kind, device, random);
    }
    topology.devices.push_back(device);
  }
}

void add_nics(Topology& topology, Random& random) {
  for (int n = random.in(0, 5); n > 0; --n) {
    Nic nic;
    nic.name = "if" + std::to_string(n);
    nic.kind = random.chance(60) ? "infiniband" : "ethernet";
    nic.speed_mbps = random.chance(40) ? 0 : random.chance(70) ? 200000 : 25000;
    nic.state = random.chance(15) ? "down" : random.chance(50) ? "up" : "";
    nic.pci = "0000:" + std::to_string(10 + random.in(0, 80)) + ":00.0";
    if (!topology.numa_nodes.empty() && random.chance(80))
      nic.numa = topology
                     .numa_nodes[static_cast<std::size_t>(
                         random.in(0, static_cast<int>(topology.numa_nodes.size()) - 1))]
                     .os_index;
    topology.nics.push_back(nic);
  }
}

/// A root, or none that is known, at most two ports of it, at most two switches below each.
std::vector<std::string> way(Random& random) {
  const std::string root = "0000:" + std::to_string(10 * random.in(1, 3));
  std::vector<std::string> bridges;
  if (random.chance(15)) return bridges;
  bridges.push_back(root);
  if (random.chance(20)) return bridges;
  bridges.push_back(root + ":0" + std::to_string(random.in(1, 2)) + ".0");
  if (random.chance(50)) bridges.push_back(root + ":1" + std::to_string(random.in(0, 1)) + ".0");
  return bridges;
}

void add_bridges(Topology& topology, Random random) {
  if (random.chance(50)) return;
  for (Device& device : topology.devices) device.bridges = way(random);
  for (Nic& nic : topology.nics) nic.bridges = way(random);
}

void add_links(Topology& topology, Random& random) {
  const int chance = random.chance(50) ? 100 : 40;
  const auto count = static_cast<int>(topology.devices.size());
  for (int from = 0; from < count; ++from)
    for (int to = from + 1; to < count; ++to)
      if (random.chance(chance)) topology.links.push_back({from, to, "xgmi", random.in(1, 4)});
}

}  // namespace

Topology random_node(std::uint64_t seed) {
  Topology topology = random_topology(seed);
  Random random(seed ^ 0xD1B54A32D192ED03u);
  add_devices(topology, 9, random);
  add_nics(topology, random);
  if (random.chance(30)) add_links(topology, random);
  add_bridges(topology, Random(seed ^ 0x8CB92BA72F3D8DD7u));
  return topology;
}

Topology small_node(std::uint64_t seed) {
  Random random(seed);
  Topology topology;
  const int packages = random.in(1, 2);
  const int numa_each = random.in(1, 2);
  int next = 0;
  for (int p = 0; p < packages; ++p) {
    Package package{p, "", {}};
    for (int n = 0; n < numa_each; ++n) {
      NumaNode numa{p * numa_each + n, 0, {}};
      for (int c = random.in(1, 3); c > 0; --c) {
        Core core{p, numa.os_index, {}};
        core.pus.add(next++);
        numa.pus |= core.pus;
        topology.cores.push_back(core);
      }
      package.pus |= numa.pus;
      topology.numa_nodes.push_back(numa);
    }
    topology.packages.push_back(package);
  }
  topology.allowed = topology.all_pus();
  for (const Core& core : topology.cores)
    if (random.chance(20) && topology.allowed.count() > 1) topology.allowed -= core.pus;
  add_devices(topology, 4, random);
  for (Device& device : topology.devices) device.subdevices = 0;
  return topology;
}

std::uint64_t Random::next() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int Random::in(int low, int high) {
  const auto span = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<int>(next() % span);
}

bool Random::chance(int percent) { return in(1, 100) <= percent; }

Topology random_topology(std::uint64_t seed) {
  Random random(seed);
  const int packages = random.in(1, 4);
  const bool above = packages > 1 && random.chance(15);  // one NUMA node for two or more packages
  const int regions_each = above ? 1 : random.in(1, random.chance(50) ? 1 : 4);
  const std::vector<Seat> all = seats(random, packages, regions_each);
  Topology topology;
  if (random.chance(80)) topology.hostname = "node-" + std::to_string(seed % 1000);
  for (const CpuSet& pus : number(all, random)) topology.cores.push_back({-1, -1, pus});
  add_packages(topology, all, packages, random);
  add_numa_nodes(topology, all, packages * regions_each, above ? random.in(2, packages) : 1,
                 random);
  const int l3_share = random.in(1, 3) == 1 ? 13 : random.in(2, 8);
  if (random.chance(75)) add_caches(topology, all, 3, l3_share);
  // pairs fit into L3 groups only if those are not cut in the middle of a pair
  if (random.chance(20) && l3_share % 2 == 0) add_caches(topology, all, 2, 2);
  topology.allowed = some_allowed(topology, random);
  return topology;
}

}  // namespace hpclaunch::test
