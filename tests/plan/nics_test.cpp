// Interfaces: which is nearest to each rank, which NCCL and Gloo take, and what is said about a rank.
#include "plan/nics.h"

#include <map>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "plan/jobs.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

// Two packages of two NUMA nodes with four cores; device i and interface i are near NUMA node i.
PlanInput input(int devices, int nics) {
  PlanInput in = test::job_on(test::even_machine(2, 2, 4), 2);
  for (int d = 0; d < devices; ++d) {
    Device device;
    device.index = d;
    device.vendor = "amd";
    device.numa = d % 4;
    in.node.devices.push_back(device);
  }
  for (int n = 0; n < nics; ++n) {
    Nic nic;
    nic.name = "hsn" + std::to_string(n);
    nic.fabric = "cxi" + std::to_string(n);
    nic.pci = "0000:" + std::to_string(10 + n) + ":00.0";
    nic.numa = n;
    nic.kind = "slingshot";
    nic.speed_mbps = 200000;
    nic.state = "up";
    nic.addresses = {"10.1.0." + std::to_string(1 + n)};
    in.node.nics.push_back(nic);
  }
  return in;
}

std::vector<int> nics(const PlanInput& in) {
  const auto plan = make_plan(in);
  REQUIRE(plan);
  std::vector<int> result;
  for (const RankPlan& rank : plan->classes[0].ranks) result.push_back(rank.nic);
  return result;
}

std::vector<std::string> words(const PlanInput& in, const char* name = "placement") {
  const auto plan = make_plan(in);
  REQUIRE(plan);
  const Setting* setting = plan->find_choice(name);
  REQUIRE(setting != nullptr);
  return std::get<PerRank>(setting->value()).items.front();
}

std::string variable(const PlanInput& in, const char* name) {
  const auto plan = make_plan(in);
  REQUIRE(plan);
  const Setting* setting = plan->find_env(name);
  if (setting == nullptr) return "(not decided)";
  const auto* text = std::get_if<std::string>(&setting->value());
  return text == nullptr ? "(removed)" : *text;
}

using Ints = std::vector<int>;

}  // namespace

TEST_CASE("the nearest interface, evenly", "[nics]") {
  CHECK(nics(input(4, 4)) == Ints{0, 1, 2, 3});
  CHECK(nics(input(4, 2)) == Ints{0, 1, 0, 1});  // package 1 has none: both alike
  PlanInput in = input(8, 4);
  CHECK(nics(in) == Ints{0, 0, 1, 1, 2, 2, 3, 3});
  in.node.nics[1].state = "down";
  CHECK(nics(in) == Ints{0, 0, 0, 0, 2, 2, 3, 3});
  in = input(0, 4);
  in.options.ranks_per_node = 4;
  CHECK(nics(in) == Ints{0, 1, 2, 3});
  in.options.ranks_per_node = 1;
  CHECK(nics(in) == Ints{0});
  CHECK(nics(input(4, 0)) == Ints{-1, -1, -1, -1});
}

TEST_CASE("two interfaces of one NUMA node are shared by the ranks there", "[nics]") {
  PlanInput in = input(4, 4);
  for (Device& device : in.node.devices) device.numa = 0;
  for (Nic& nic : in.node.nics) nic.numa = 0;
  CHECK(nics(in) == Ints{0, 1, 2, 3});
  in.options.ranks_per_node = 2;
  CHECK(nics(in) == Ints{0, 2});
  in.node.nics.resize(3);
  in.options.ranks_per_node = 4;
  CHECK(nics(in) == Ints{0, 0, 1, 2});
}

TEST_CASE("a fabric goes before Ethernet, the fast before the slow", "[nics]") {
  PlanInput in = input(4, 4);
  in.node.nics[0].kind = "ethernet";
  CHECK(job_nics(in.node) == Ints{1, 2, 3});
  in.node.nics[1].speed_mbps = 25000;
  CHECK(job_nics(in.node) == Ints{2, 3});
  in.node.nics[2].speed_mbps = 0;  // unknown is not slow
  CHECK(job_nics(in.node) == Ints{2, 3});
  for (Nic& nic : in.node.nics) nic.state = "down";
  CHECK(job_nics(in.node).empty());
}

TEST_CASE("NCCL and Gloo get the fastest interfaces with an address", "[nics]") {
  PlanInput in = input(4, 4);
  Nic management;
  management.name = "eno1";
  management.kind = "ethernet";
  management.state = "up";
  management.addresses = {"192.168.0.7"};
  in.node.nics.insert(in.node.nics.begin(), management);
  const auto both = [&] {
    in.live = in.node;
    return variable(in, "NCCL_SOCKET_IFNAME") + " " + variable(in, "GLOO_SOCKET_IFNAME");
  };
  CHECK(both() == "=hsn0,hsn1,hsn2,hsn3 hsn0");
  in.rendezvous.address = "10.1.0.3";  // where rank 0 is met
  CHECK(both() == "=hsn2,hsn0,hsn1,hsn3 hsn2");
  in.node.nics[3].addresses.clear();
  CHECK(both() == "=hsn0,hsn1,hsn3 hsn0");
  for (Nic& nic : in.node.nics)
    if (nic.kind == "slingshot") nic.state = "down";
  CHECK(both() == "(not decided) (not decided)");  // one is left: nothing to choose
}

TEST_CASE("interfaces are left alone where others decide, or nobody can", "[nics]") {
  PlanInput in = input(4, 4);
  in.live = in.node;
  const auto both = [&] {
    return variable(in, "NCCL_SOCKET_IFNAME") + " " + variable(in, "GLOO_SOCKET_IFNAME");
  };
  CHECK(both() == "=hsn0,hsn1,hsn2,hsn3 hsn0");
  in.env = EnvSnapshot({"NCCL_SOCKET_IFNAME=eno1"});
  CHECK(both() == "(not decided) (not decided)");
  in.env = EnvSnapshot();
  in.options.unset = {"GLOO_SOCKET_IFNAME"};
  CHECK(both() == "(not decided) (removed)");
  in.options.unset.clear();
  in.options.set = {{"NCCL_SOCKET_IFNAME", "eno1"}};
  CHECK(both() == "eno1 (not decided)");
  in.options.set.clear();
  in.options.nodes = 1;
  CHECK(both() == "(not decided) (not decided)");
  in.options.nodes.reset();
  Profile profile;
  profile.name = "p";
  in.profile = &profile;
  CHECK(both() == "(not decided) (not decided)");
  in.profile = nullptr;
  in.live.reset();  // not a node of the job: its interfaces may be others
  CHECK(both() == "(not decided) (not decided)");
  for (Nic& nic : in.node.nics) nic.kind = "ethernet";
  in.live = in.node;  // all alike: which leads to the others is not known
  CHECK(both() == "(not decided) (not decided)");
  in.live->nics[2].speed_mbps = 400000;
  CHECK(both() == "=hsn2 hsn2");
  in.live->nics[2].name = "docker0";
  CHECK(both() == "(not decided) (not decided)");
}

TEST_CASE("what each rank gets, in words", "[words]") {
  PlanInput in = input(4, 4);
  CHECK(words(in).at(1) == "GPU 1 on NUMA node 1, NIC cxi1, CPUs 4-7 (4 cores)");
  CHECK(words(in, "nics") == std::vector<std::string>{"cxi0", "cxi1", "cxi2", "cxi3"});
  NodeModel model;
  model.reserved = *CpuSet::parse("4");
  model.reserved_why = "the system's services";
  in.model = &model;
  in.node.allowed -= model.reserved;
  CHECK(words(in).at(1) ==
        "GPU 1 on NUMA node 1, NIC cxi1, CPUs 5-7 (3 cores); CPU 4 is kept for the "
        "system");
  in.model = nullptr;
  CHECK_THAT(words(in).at(1), ContainsSubstring("; CPU 4 is not allowed here"));
  in = input(2, 0);
  in.options.devices_per_rank = 2;
  CHECK(words(in) == std::vector<std::string>{"GPUs 0,1, CPUs 0-7 (8 cores)"});
}

TEST_CASE("ranks that are alike have one text", "[words]") {
  PlanInput in = input(2, 2);
  in.options.ranks_per_node = 8;
  const std::vector<std::string> all = words(in);
  CHECK(std::map<std::string, int>{{all[0], 0}, {all[7], 0}}.size() == 2);
  CHECK(all[0] == "GPU 0 on NUMA node 0, NIC cxi0, CPUs 0-3 (1 core each)");
  CHECK(all[3] == all[0]);
  CHECK(all[4] == all[7]);
  in = input(0, 0);
  in.options.ranks_per_node = 9;
  CHECK(words(in).front() == "NUMA node 0, CPUs 0-3 (1 to 2 cores each)");
}

TEST_CASE("a rank that is far from its device is said to be", "[words]") {
  PlanInput in = input(1, 0);
  in.options.ranks_per_node = 6;
  const std::vector<std::string> all = words(in);
  CHECK(all.front() == "GPU 0 on NUMA node 0, CPUs 0-3 (1 core each)");
  CHECK(all.back() ==
        "GPU 0 on NUMA node 0, CPUs 4-7 (2 cores each, on another NUMA node of the package)");
}
