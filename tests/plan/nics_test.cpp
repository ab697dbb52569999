// Interfaces: which is nearest to each rank, which NCCL and Gloo take, and what is said about a rank.
#include "plan/devices/nics.h"

#include <map>
#include <sstream>

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
  for (const RankPlan& rank : plan->placement.classes[0].ranks) result.push_back(rank.nic);
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

TEST_CASE("an interface of a package, and one of a node without CPUs", "[nics]") {
  PlanInput in = input(4, 2);
  for (const std::size_t n : {0, 1}) {
    in.node.nics[n].numa = -1;
    in.node.nics[n].pus = in.node.packages[1 - n].pus;
  }
  CHECK(nics(in) == Ints{1, 1, 0, 0});
  in = input(4, 4);  // node 1 has no CPU here: what is there has those of the package
  for (CpuSet* const pus : {&in.node.devices[1].pus, &in.node.nics[1].pus})
    *pus = in.node.packages[0].pus - in.node.numa_nodes[1].pus;
  std::erase_if(in.node.cores, [](const Core& core) { return core.numa == 1; });
  in.node.numa_nodes[1].pus = CpuSet{};
  in.node.packages[0].pus = in.node.numa_nodes[0].pus;
  in.node.allowed = in.node.all_pus();
  CHECK(nics(in) == Ints{0, 1, 2, 3});
  in.node.devices[1].pus = in.node.nics[1].pus = CpuSet{};  // nor the package
  CHECK(nics(in) == Ints{0, 1, 2, 3});
}

TEST_CASE("the nearest interface, evenly", "[nics]") {
  CHECK(nics(input(4, 4)) == Ints{0, 1, 2, 3});
  CHECK(nics(input(4, 2)) == Ints{0, 1, 0, 1});  // package 1 has none: both alike
  PlanInput in = input(8, 4);
  CHECK(nics(in) == Ints{0, 0, 1, 1, 2, 2, 3, 3});
  in.node.nics[1].state = "down";
  CHECK(nics(in) == Ints{0, 0, 0, 0, 2, 2, 3, 3});
  in = input(0, 4);
  asked(in).ranks_per_node = 4;
  CHECK(nics(in) == Ints{0, 1, 2, 3});
  asked(in).ranks_per_node = 1;
  CHECK(nics(in) == Ints{0});
  CHECK(nics(input(4, 0)) == Ints{-1, -1, -1, -1});
}

TEST_CASE("two interfaces of one NUMA node are shared by the ranks there", "[nics]") {
  PlanInput in = input(4, 4);
  for (Device& device : in.node.devices) device.numa = 0;
  for (Nic& nic : in.node.nics) nic.numa = 0;
  CHECK(nics(in) == Ints{0, 1, 2, 3});
  asked(in).ranks_per_node = 2;
  CHECK(nics(in) == Ints{0, 2});
  in.node.nics.resize(3);
  asked(in).ranks_per_node = 4;
  CHECK(nics(in) == Ints{0, 0, 1, 2});
}

namespace {

// Four devices and four interfaces on NUMA node 0, in bridges by their numbers.
PlanInput below(const std::vector<std::vector<std::string>>& devices,
                const std::vector<std::vector<std::string>>& nics) {
  PlanInput in = input(static_cast<int>(devices.size()), static_cast<int>(nics.size()));
  for (std::size_t d = 0; d < devices.size(); ++d) {
    in.node.devices[d].numa = 0;
    in.node.devices[d].bridges = devices[d];
  }
  for (std::size_t n = 0; n < nics.size(); ++n) {
    in.node.nics[n].numa = 0;
    in.node.nics[n].bridges = nics[n];
  }
  return in;
}

using Way = std::vector<std::string>;
const Way kA{"0000:10", "0000:10:01.0", "0000:11:00.0"};
const Way kB{"0000:10", "0000:10:01.0", "0000:12:00.0"};  // another switch below the same port
const Way kC{"0000:10", "0000:10:02.0"};                  // another port of the same root
const Way kD{"0000:20", "0000:20:01.0"};

std::string reason(const PlanInput& in) {
  const auto plan = make_plan(in);
  REQUIRE(plan);
  return plan->find_choice("nics")->history.back().why;
}

}  // namespace

TEST_CASE("of interfaces on one NUMA node that below the same bridge is nearest", "[nics]") {
  CHECK(nics(below({kA, kB, kC, kD}, {kD, kC, kB, kA})) == Ints{3, 2, 1, 0});
  CHECK(nics(below({kA, kA, kD, kD}, {kD, kA, kD, kA})) == Ints{1, 3, 0, 2});  // one each
  CHECK(nics(below({kA, kA, kD, kD}, {kD, kA})) == Ints{1, 1, 0, 0});
  // The longest way in common decides: the port, else the root, else nothing.
  CHECK(nics(below({kA, kA}, {kD, kC, kB})) == Ints{2, 2});
  CHECK(nics(below({kA, kA}, {kD, kC, kD})) == Ints{1, 1});
  CHECK(nics(below({kA, kA}, {kD, kD})) == Ints{0, 1});
  CHECK(nics(below({kA, kA}, {{}, {}})) == Ints{0, 1});
  CHECK(nics(below({{}, {}}, {kA, kD})) == Ints{0, 1});
}

TEST_CASE("a device without an interface below its switch takes what is used least", "[nics]") {
  const PlanInput in = below({kA, kA, kD, {"0000:30"}}, {kD, kA, kC});
  CHECK(nics(in) == Ints{1, 1, 0, 2});
}

TEST_CASE("another NUMA node is farther than another bridge", "[nics]") {
  PlanInput in = below({kA, kA}, {kA, kD});
  in.node.nics[0].numa = 1;
  CHECK(nics(in) == Ints{1, 1});
}

TEST_CASE("of several devices the one that is nearest to an interface decides", "[nics]") {
  PlanInput in = below({kA, kC, kD, {"0000:30"}}, {kD, kA});
  asked(in).devices_per_rank = 2;
  CHECK(nics(in) == Ints{1, 0});
}

TEST_CASE("the reason names bridges where they decided", "[nics]") {
  const std::string by_bridge = "below the same PCI bridge";
  CHECK_THAT(reason(below({kA, kD}, {kD, kA})), ContainsSubstring(by_bridge));
  CHECK_THAT(reason(below({kA, kA}, {kA, kA})), !ContainsSubstring(by_bridge));
  CHECK_THAT(reason(input(4, 4)), !ContainsSubstring(by_bridge));
}

TEST_CASE("neighbours are those of PCI, whatever the driver counts", "[nics]") {
  PlanInput in = below({{}, {}, {}, {}}, {{}, {}, {}, {}});
  const char* pci[] = {"0000:d0:00.0", "0000:c0:00.0", "0000:b0:00.0", "0000:a0:00.0"};
  for (std::size_t d = 0; d < 4; ++d) in.node.devices[d].pci = pci[d];
  CHECK(nics(in) == Ints{3, 2, 1, 0});
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

TEST_CASE("of several fabrics that with the most ports counts", "[nics]") {
  PlanInput in = input(4, 4);
  const auto kinds = [&](const std::vector<std::string>& list) {
    for (std::size_t n = 0; n < list.size(); ++n) in.node.nics[n].kind = list[n];
    return job_nics(in.node);
  };
  for (Nic& nic : in.node.nics) nic.speed_mbps = 0;
  CHECK(kinds({"roce", "infiniband", "infiniband", "infiniband"}) == Ints{1, 2, 3});
  CHECK(kinds({"roce", "infiniband", "roce", "roce"}) == Ints{0, 2, 3});
  CHECK(kinds({"roce", "infiniband", "infiniband", "roce"}) == Ints{1, 2});
  CHECK(nics(in) == Ints{1, 1, 2, 2});
  CHECK_THAT(reason(in), ContainsSubstring("Not used: cxi0, cxi3 (RoCE beside InfiniBand)"));
  in.node.nics[0].speed_mbps = in.node.nics[3].speed_mbps = 400'000;
  in.node.nics[1].speed_mbps = in.node.nics[2].speed_mbps = 100'000;
  CHECK(job_nics(in.node) == Ints{0, 3});  // speed goes first
  in.node.nics[0].state = in.node.nics[3].state = "down";
  CHECK(job_nics(in.node) == Ints{1, 2});
}

TEST_CASE("interfaces that were left out are named, with the reason", "[nics]") {
  PlanInput in = input(4, 4);
  for (std::size_t n = 0; n < 4; ++n) in.node.nics[n].fabric = "hsn" + std::to_string(n);
  CHECK_THAT(reason(in), !ContainsSubstring("Left out"));
  in.node.nics[0].kind = "ethernet";
  in.node.nics[1].state = "down";
  in.node.nics[2].speed_mbps = 100'000;
  in.node.nics[3].speed_mbps = 200'000;
  CHECK_THAT(reason(in), ContainsSubstring("Not used: hsn0 (Ethernet beside a fabric); hsn1 "
                                           "(down); hsn2 (slower than others)"));
  for (Nic& nic : in.node.nics) nic.state = "down";
  CHECK(reason(in) ==
        "no network interface can be used for the job's traffic. Not used: hsn0, hsn1, hsn2, hsn3 "
        "(down)");
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
  in.node.nics[3].addresses = {"2001:db8::3"};  // of IPv6 alone
  CHECK(both() == "=hsn0,hsn1,hsn2,hsn3 hsn0");
  in.rendezvous.address = "2001:db8::3";
  CHECK(both() == "=hsn2,hsn0,hsn1,hsn3 hsn2");
  for (Nic& nic : in.node.nics)
    if (nic.kind == "slingshot") nic.state = "down";
  CHECK(both() == "(not decided) eno1");  // one is left; NCCL takes it by itself
  in.node.nics.front().name = "docker0";
  CHECK(both() == "(not decided) (not decided)");
}

namespace {

// Interfaces of this node as "name kind Gbit/s address", and what NCCL gets of them, with the reason.
std::string sockets(const std::vector<std::string>& ours, const std::string& master = "") {
  PlanInput in = input(0, 0);
  for (const std::string& one : ours) {
    std::istringstream words(one);
    Nic nic;
    std::string address;
    words >> nic.name >> nic.kind >> nic.speed_mbps >> address;
    nic.speed_mbps *= 1000;
    nic.state = "up";
    nic.addresses = {address};
    in.node.nics.push_back(nic);
  }
  in.live = in.node;
  if (!master.empty()) asked(in).master_addr = master;
  const auto plan = make_plan(in);
  REQUIRE(plan);
  const Setting* setting = plan->find_env("NCCL_SOCKET_IFNAME");
  if (setting == nullptr) return "";
  return std::get<std::string>(setting->value()) + ": " + setting->history.back().why;
}

}  // namespace

TEST_CASE("to sockets RoCE is Ethernet, and the faster goes first", "[nics]") {
  const std::vector<std::string> storage{"st0 roce 25 10.3.0.1", "eth0 ethernet 100 10.0.0.1"};
  CHECK(sockets(storage) ==
        "=eth0: eth0 (ethernet, 100 Gbit/s): fastest with an address; not used: st0");
  CHECK(sockets({"r0 roce 400 10.3.0.1", "r1 roce 400 10.3.0.2", "eth0 ethernet 100 10.0.0.1"}) ==
        "=r0,r1: r0, r1 (roce, 400 Gbit/s): fastest with an address; not used: eth0");
  CHECK(sockets({"r0 roce 100 10.3.0.1", "eth0 ethernet 100 10.0.0.1"}).empty());
  CHECK(sockets({"r0 roce 0 10.3.0.1", "eth0 ethernet 1 10.0.0.1"}) ==
        "=eth0: eth0 (ethernet, 1 Gbit/s): fastest with an address, as far as speeds are "
        "known; not used: r0");
  CHECK(sockets({"hsn0 slingshot 0 10.1.0.1", "eth0 ethernet 100 10.0.0.1"}) ==
        "=hsn0: hsn0 (slingshot): fabric with an address; not used: eth0");
  CHECK(sockets({"ib0 infiniband 100 10.1.0.1", "ib1 infiniband 400 10.1.0.2"}) ==
        "=ib1: ib1 (infiniband, 400 Gbit/s): fastest fabric with an address; not used: ib0");
}

TEST_CASE("the interface with the address that MASTER_ADDR was given decides", "[nics]") {
  const std::vector<std::string> ethernet{"eth0 ethernet 25 10.0.0.1", "eth1 ethernet 25 10.0.1.1",
                                          "st0 roce 100 10.3.0.1"};
  CHECK(sockets(ethernet, "10.0.1.1") ==
        "=eth1: eth1 (ethernet, 25 Gbit/s): MASTER_ADDR is an address of eth1; not used: "
        "eth0, st0");
  CHECK_THAT(sockets(ethernet, "10.9.9.9"), ContainsSubstring("=st0: "));  // another node's
  CHECK(sockets({"hsn0 slingshot 200 10.1.0.1", "hsn1 slingshot 200 10.1.0.2",
                 "eth0 ethernet 25 10.0.0.1"},
                "10.1.0.2") ==
        "=hsn1,hsn0: hsn1, hsn0 (slingshot, 200 Gbit/s): MASTER_ADDR is an address of hsn1; "
        "not used: eth0");
}

TEST_CASE("a bond is one interface, whatever its slaves", "[nics]") {
  const std::string eth0 = "eth0 ethernet 1 10.0.0.1";
  CHECK(sockets({"bond0 ethernet 10 10.2.0.1", "bond0 ethernet 25 10.2.0.1", eth0}) ==
        "=bond0: bond0 (ethernet, 25 Gbit/s): fastest with an address; not used: eth0");
  CHECK(sockets({"bond0 ethernet 25 10.2.0.1", "bond0 ethernet 25 10.2.0.1"}).empty());
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
  asked(in).unset = {"GLOO_SOCKET_IFNAME"};
  CHECK(both() == "(not decided) (removed)");
  asked(in).unset.clear();
  asked(in).set = {{"NCCL_SOCKET_IFNAME", "eno1"}};
  CHECK(both() == "eno1 (not decided)");
  asked(in).set.clear();
  asked(in).nodes = 1;
  CHECK(both() == "(not decided) (not decided)");
  asked(in).nodes.reset();
  Profile profile;
  profile.name = "p";
  in.profile = &profile;  // NCCL is the site's
  CHECK(both() == "(not decided) hsn0");
  in.profile = nullptr;
  in.live.reset();  // not a node of the job: its interfaces may be others
  CHECK(both() == "(not decided) (not decided)");
  for (Nic& nic : in.node.nics) nic.kind = "ethernet";
  in.live = in.node;  // all alike: which leads to the others is not known
  CHECK(both() == "(not decided) (not decided)");
  in.rendezvous.address = "10.1.0.3";  // which leads to rank 0
  CHECK(both() == "(not decided) hsn2");
  in.rendezvous.address.clear();
  in.live->nics[2].speed_mbps = 400000;
  CHECK(both() == "=hsn2 hsn2");
  in.live->nics[2].name = "docker0";
  CHECK(both() == "(not decided) (not decided)");
}

TEST_CASE("Gloo follows NCCL, whoever has chosen its interface", "[nics]") {
  PlanInput in = input(4, 4);
  const auto gloo = [&](const char* nccl) {
    in.env = EnvSnapshot({std::string("NCCL_SOCKET_IFNAME=") + nccl});
    return variable(in, "GLOO_SOCKET_IFNAME");
  };
  for (const bool live : {false, true}) {  // by the node's model, and by the node itself
    if (live) in.live = in.node;
    CHECK(gloo("hsn") == "hsn0");
    CHECK(gloo("=hsn2,hsn1") == "hsn1");
    CHECK(gloo("hsn3,eth") == "hsn3");
    CHECK(gloo("=hsn") == "(not decided)");
    CHECK(gloo("^hsn0,lo") == "(not decided)");
    CHECK(gloo("eth0") == "(not decided)");
  }
  in.live->nics[0].state = "down";
  CHECK(gloo("hsn") == "hsn1");
  asked(in).set = {{"NCCL_SOCKET_IFNAME", "hsn3"}};
  CHECK(gloo("hsn") == "hsn3");
  Profile profile;
  profile.name = "p";
  Rule rule;
  rule.id = "r";
  rule.defaults = {{"NCCL_SOCKET_IFNAME", {"hsn2", Template::Each::once, ""}}};
  profile.rules = {rule};
  in.profile = &profile;
  asked(in).set.clear();
  in.env = EnvSnapshot();
  CHECK(variable(in, "GLOO_SOCKET_IFNAME") == "hsn2");
  profile.rules.front().defaults.push_back(
      {"GLOO_SOCKET_IFNAME", {"eno1", Template::Each::once, ""}});
  CHECK(variable(in, "GLOO_SOCKET_IFNAME") == "eno1");
  asked(in).nodes = 1;
  profile.rules.front().defaults.pop_back();
  CHECK(variable(in, "GLOO_SOCKET_IFNAME") == "(not decided)");
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
        "GPU 1 on NUMA node 1, NIC cxi1, CPUs 5-7 (3 cores); CPU 4 is reserved for the "
        "system");
  in.model = nullptr;
  CHECK_THAT(words(in).at(1), ContainsSubstring("; CPU 4 is not allowed here"));
  in = input(2, 0);
  asked(in).devices_per_rank = 2;
  CHECK(words(in) == std::vector<std::string>{"GPUs 0,1, CPUs 0-7 (8 cores)"});
}

TEST_CASE("ranks that are alike have one text", "[words]") {
  PlanInput in = input(2, 2);
  asked(in).ranks_per_node = 8;
  const std::vector<std::string> all = words(in);
  CHECK(std::map<std::string, int>{{all[0], 0}, {all[7], 0}}.size() == 2);
  CHECK(all[0] == "GPU 0 on NUMA node 0, NIC cxi0, CPUs 0-3 (1 core each)");
  CHECK(all[3] == all[0]);
  CHECK(all[4] == all[7]);
  in = input(0, 0);
  asked(in).ranks_per_node = 9;
  CHECK(words(in).front() == "NUMA node 0, CPUs 0-3 (1 to 2 cores each)");
}

TEST_CASE("a rank that is far from its device is said to be", "[words]") {
  PlanInput in = input(1, 0);
  asked(in).ranks_per_node = 6;
  const std::vector<std::string> all = words(in);
  CHECK(all.front() == "GPU 0 on NUMA node 0, CPUs 0-3 (1 core each)");
  CHECK(all.back() ==
        "GPU 0 on NUMA node 0, CPUs 4-7 (2 cores each, on another NUMA node of the package)");
}
