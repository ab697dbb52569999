#pragma once
// Small machines and jobs that planning tests share.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "plan/devices/slots.h"
#include "support/catch.h"

namespace hpclaunch {

/// What was typed, to change it: other copies of `input` keep theirs.
inline Request& asked(PlanInput& input) {
  const auto own = std::make_shared<Request>(*input.request);
  input.request = own;
  return *own;
}

}  // namespace hpclaunch

namespace hpclaunch::test {

/// Packages of NUMA nodes of cores with one thread each, all numbered through, in order.
inline Topology even_machine(int packages, int numa_each, int cores_each) {
  Topology node;
  for (int n = 0; n < packages * numa_each; ++n) {
    CpuSet pus;
    for (int c = 0; c < cores_each; ++c) {
      Core core{n / numa_each, n, {}};
      core.pus.add(n * cores_each + c);
      pus |= core.pus;
      node.cores.push_back(core);
    }
    node.numa_nodes.push_back({n, 0, pus});
    if (n % numa_each == 0) node.packages.push_back({n / numa_each, "", {}});
    node.packages.back().pus |= pus;
  }
  node.allowed = node.all_pus();
  return node;
}

/// Device i near NUMA node near[i] of an even_machine.
inline void add_devices(const std::vector<int>& near, const char* vendor, Topology& node) {
  for (const int numa : near) {
    Device device;
    device.index = static_cast<int>(node.devices.size());
    device.vendor = vendor;
    device.numa = numa;
    device.pus = node.numa_nodes[static_cast<std::size_t>(numa)].pus;
    node.devices.push_back(std::move(device));
  }
}

/// What ranks of a lawful node can hold, with nothing asked for but devices per rank.
inline Slots units_of(const Topology& node, int devices_per_rank = 1) {
  REQUIRE(check_topology(node));
  PlanInput input;
  input.node = node;
  if (devices_per_rank > 1) asked(input).devices_per_rank = devices_per_rank;
  const Result<Slots> units = find_slots(input);
  REQUIRE(units);
  return *units;
}

/// A job on hosts n0, n1, ..., under a launcher that binds, and names each rank in R.
inline PlanInput job_on(Topology node, int hosts) {
  PlanInput in;
  in.node = std::move(node);
  for (int h = 0; h < hosts; ++h) in.hosts.push_back("n" + std::to_string(h));
  in.hosts_why = "a list";
  in.launcher.name = "test";
  in.launcher.rank_var = "R";
  in.launcher.binds_sets = true;
  in.launcher.multi_node = true;
  in.rendezvous = {"n0", "first host", 12345, "free"};
  in.command = {"/bin/true"};
  return in;
}

}  // namespace hpclaunch::test
