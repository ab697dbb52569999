// Devices, interfaces and links of hwloc's XML, and the rules that need no machine.
#include <string>
#include <vector>

#include "hpclaunch/probe.h"
#include "probe/locality.h"
#include "probe/machine.h"
#include "probe/pci.h"
#include "probe/sysfs.h"
#include "support/catch.h"
#include "support/golden.h"

using namespace hpclaunch;

namespace {

using test::machine;
using test::nodes;

std::vector<std::string> names(const Topology& topology) {
  std::vector<std::string> all;
  for (const Nic& nic : topology.nics)
    all.push_back(nic.kind + ":" + nic.name + ":" + nic.fabric + "@" + std::to_string(nic.numa));
  return all;
}

Topology topology_of(const std::string& xml) {
  const auto got = read_topology(test::TemporaryFile(xml).path(), 120);
  REQUIRE(got);
  return *got;
}

probe::PciFunction function(const char* address, unsigned class_id, unsigned vendor,
                            unsigned device) {
  return {*probe::parse_pci(address), class_id, vendor, device};
}

}  // namespace

TEST_CASE("machines with devices have those of their description", "[probe][xml]") {
  struct Expected {
    const char* file;
    const char* vendor;
    std::vector<int> numa;
    const char *first, *last;
    int subdevices;
    const char* partition;
    std::size_t links;
  };
  // From tests/machines/devices/make.py, and for recordings from the files' own PCI lines.
  const std::vector<int> blade = {3, 3, 1, 1, 0, 0, 2, 2};
  const std::vector<int> tpx = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
  const std::vector<int> cpx = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1,
                                2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3};
  const Expected table[] = {
      {"devices/mi250x-blade.xml", "amd", blade, "0000:c1:00.0", "0000:de:00.0", 0, "", 0},
      {"devices/mi250x-blade-unplaced.xml", "amd", blade, "0000:c1:00.0", "0000:de:00.0", 0, "",
       28},
      {"devices/mi300a-spx.xml", "amd", {0, 1, 2, 3}, "0000:02:00.0", "0003:02:00.0", 0, "", 0},
      {"devices/mi300a-tpx.xml", "amd", tpx, "0000:02:00.0", "0003:02:00.0", 0, "TPX", 0},
      {"devices/mi300a-tpx-lost.xml", "amd", tpx, "0000:02:00.0", "0003:02:00.0", 0, "TPX", 0},
      {"devices/mi300a-cpx.xml", "amd", cpx, "0000:02:00.0", "0003:02:00.0", 0, "CPX", 0},
      {"devices/power9-v100.xml", "nvidia", {0, 0, 8, 8}, "0004:04:00.0", "0035:04:00.0", 0, "", 2},
      {"devices/power9-v100-format1.xml",
       "nvidia",
       {0, 0, 8, 8},
       "0004:04:00.0",
       "0035:04:00.0",
       0,
       "",
       0},
      {"devices/epyc-mi50.xml",
       "amd",
       {3, 3, 1, 1, 7, 7, 5, 5},
       "0000:03:00.0",
       "0000:a3:00.0",
       0,
       "",
       0},
      {"documented/epyc-9654-h100.xml",
       "nvidia",
       {0, 0, 0, 0},
       "0000:01:00.0",
       "0000:c1:00.0",
       0,
       "",
       6},
      {"documented/epyc-9454-h100.xml",
       "nvidia",
       {-1, -1, -1, -1},
       "0000:01:00.0",
       "0000:c1:00.0",
       0,
       "",
       6},
      {"documented/epyc-7543p-a100.xml",
       "nvidia",
       {3, 2, 1, 0},
       "0000:07:00.0",
       "0000:c7:00.0",
       0,
       "",
       6},
      {"documented/power9-2x20-v100.xml",
       "nvidia",
       {0, 0, 8, 8},
       "0004:04:00.0",
       "0035:04:00.0",
       0,
       "",
       2},
      {"documented/power9-2x22-v100.xml",
       "nvidia",
       {0, 0, 0, 8, 8, 8},
       "0004:04:00.0",
       "0035:05:00.0",
       0,
       "",
       6},
      {"documented/dgx-h100.xml",
       "nvidia",
       {0, 0, 0, 0, 1, 1, 1, 1},
       "0000:1b:00.0",
       "0000:df:00.0",
       0,
       "",
       28},
      {"documented/gh200-4x.xml", "nvidia", {0, 1, 2, 3}, "0009:01:00.0", "0039:01:00.0", 0, "", 6},
      {"devices/xeon-t4.xml",
       "nvidia",
       {0, 0, 0, 0, 1, 1, 1, 1},
       "0000:18:00.0",
       "0000:f5:00.0",
       0,
       "",
       0},
      {"devices/xeon-a100-switched.xml",
       "nvidia",
       {0, 0, 0, 0, 1, 1, 1, 1},
       "0000:10:1c.0",
       "0000:a0:1d.0",
       0,
       "",
       28},
      {"devices/xeon-h100-switches.xml",
       "nvidia",
       {0, 0, 0, 0, 1, 1, 1, 1},
       "0000:18:00.0",
       "0000:b9:00.0",
       0,
       "",
       0},
      {"devices/xeon-pvc.xml",
       "intel",
       {0, 0, 0, 1, 1, 1},
       "0000:18:00.0",
       "0001:6c:00.0",
       2,
       "",
       15},
      {"devices/grace-hopper.xml", "nvidia", {0}, "0009:01:00.0", "0009:01:00.0", 0, "", 0},
      {"devices/gpus-without-pci.xml", "nvidia", {0, 0, 1, 1}, "", "", 0, "", 0},
      {"devices/power8-p100.xml", "nvidia", {0, 0, 1, 1}, "0002:01:00.0", "000b:01:00.0", 0, "", 2},
      {"devices/xeon-2x6-fermi.xml", "nvidia", {0, 1, 1}, "0000:06:00.0", "0000:14:00.0", 0, "", 0},
      {"devices/xeon-8x8-groups.xml", "nvidia", {4, 7}, "0002:01:00.0", "0004:01:00.0", 0, "", 0},
  };
  for (const Expected& want : table) {
    const Topology got = machine(want.file);
    INFO(want.file);
    CHECK(nodes(got) == want.numa);
    REQUIRE_FALSE(got.devices.empty());
    CHECK(got.devices.front().pci == want.first);
    CHECK(got.devices.back().pci == want.last);
    CHECK(got.links.size() == want.links);
    for (std::size_t i = 0; i < got.devices.size(); ++i) {
      CHECK(got.devices[i].index == static_cast<int>(i));
      CHECK(got.devices[i].vendor == want.vendor);
      CHECK(got.devices[i].subdevices == want.subdevices);
      CHECK(got.devices[i].partition == want.partition);
      CHECK(got.devices[i].pus.empty() == (got.devices[i].numa == -1));
    }
  }
}

TEST_CASE("what is no accelerator is none", "[probe][xml]") {
  for (const char* file :
       {"devices/laptop-graphics.xml", "xeon-2x52-smt2.xml", "knl-snc4-flat.xml"}) {
    const Topology got = machine(file);
    INFO(file);
    CHECK(got.devices.empty());
    CHECK(got.nics.empty());
  }
}

TEST_CASE("halves of a GPU are near a cache, not only a NUMA node", "[probe][xml]") {
  const char* want[] = {"48-55", "56-63", "16-23", "24-31", "0-7", "8-15", "32-39", "40-47"};
  const Topology unplaced = machine("devices/mi250x-blade-unplaced.xml");
  for (std::size_t i = 0; i < 8; ++i) CHECK(unplaced.devices[i].pus.to_list() == want[i]);
  const Topology placed = machine("devices/mi250x-blade.xml");
  CHECK(placed.devices[4].pus.to_list() == "0-7,64-71");
  CHECK(unplaced.devices[0].memory_bytes == std::uint64_t{67092480} * 1024);
  CHECK(unplaced.devices[0].uuid == "GPU-c0c769deeb660000");
  CHECK(names(placed) == std::vector<std::string>{"slingshot:hsn0:cxi0@3", "slingshot:hsn1:cxi1@1",
                                                  "slingshot:hsn2:cxi2@0",
                                                  "slingshot:hsn3:cxi3@2"});
}

TEST_CASE("a Slingshot adapter that hwloc 2.14 shows beside its interface is no interface",
          "[probe][xml]") {
  std::string xml = test::source_file("tests/machines/devices/mi250x-blade.xml");
  const std::string_view before = "<object type=\"OSDev\" gp_index=\"";
  for (int number = 0; number < 4; ++number) {
    const std::size_t name = xml.find("name=\"hsn" + std::to_string(number));
    REQUIRE(name != std::string::npos);
    xml.insert(xml.rfind(before, name), std::string(before) + std::to_string(900000 + number) +
                                            "\" name=\"cxi" + std::to_string(number) +
                                            "\" subtype=\"Slingshot\" osdev_type=\"2\"/>\n");
  }
  CHECK(names(topology_of(xml)) == names(machine("devices/mi250x-blade.xml")));
}

TEST_CASE("partitions keep the order of their numbers", "[probe][xml]") {
  for (const char* file : {"devices/mi300a-tpx.xml", "devices/mi300a-tpx-lost.xml"}) {
    const Topology got = machine(file);
    INFO(file);
    for (int i = 0; i < 12; ++i) {
      const Device& device = got.devices[static_cast<std::size_t>(i)];
      CHECK(device.uuid == "GPU-9a0000000000000" + std::string(1, "0123456789ab"[i]));
      CHECK(device.pci == "000" + std::to_string(i / 3) + ":02:00.0");
    }
  }
}

TEST_CASE("an interface near several NUMA nodes keeps its CPUs, and its port the port's own state",
          "[probe][xml]") {
  const Topology node = machine("devices/xeon-snc2-package1.xml");
  REQUIRE(node.nics.size() == 4);
  const char* const states[] = {"up", "up", "down", "up"};  // "Port2State" and so on of the adapter
  for (std::size_t n = 0; n < 4; ++n) {
    CAPTURE(n);
    CHECK(node.nics[n].name == "ib" + std::to_string(n));
    CHECK(node.nics[n].numa == -1);
    CHECK(node.nics[n].pus == node.packages[n / 2].pus);
    CHECK(node.nics[n].state == states[n]);
  }
}

TEST_CASE("what hangs on a NUMA node whose CPUs are not shown is near its package",
          "[probe][xml]") {
  const Topology node = machine("devices/epyc-a100-cgroup.xml");
  const char* const cpus[] = {"0-3", "0-3", "12-13", "12-13"};
  REQUIRE(node.devices.size() == 4);
  REQUIRE(node.nics.size() == 4);
  for (std::size_t n = 0; n < 4; ++n) {
    CAPTURE(n);
    CHECK(node.devices[n].numa == static_cast<int>(n));
    CHECK(node.devices[n].pus.to_list() == cpus[n]);
    CHECK(node.nics[n].numa == static_cast<int>(n));
    CHECK(node.nics[n].pus.to_list() == (n == 1 || n == 2 ? cpus[n] : ""));
  }
  // Memory whose CPUs are elsewhere is not that of the cores which are here.
  CHECK(node.cores.back().numa == 3);
  for (const NumaNode& one : node.numa_nodes)
    CHECK(one.pus.empty() == (one.os_index == 1 || one.os_index == 2));
  // lstopo --restrict removes their CPUs from all sets: the device keeps its NUMA node, as in the recording
  // recorded/emulated-1x64-restricted.xml.
  std::string xml = test::source_file("tests/machines/devices/epyc-a100-cgroup.xml");
  for (std::size_t at = 0; (at = xml.find("complete_cpuset=\"0x000000f0\"")) != std::string::npos;)
    xml.replace(at, std::string("complete_cpuset=\"0x000000f0\"").size(),
                "complete_cpuset=\"0x0\"");
  const Topology restricted = topology_of(xml);
  CHECK(restricted.devices[1].numa == 1);
  CHECK(restricted.devices[1].pus.to_list() == "0-3");
}

TEST_CASE("devices in a real cgroup and in a restricted recording keep their NUMA nodes",
          "[probe][xml]") {
  const auto nodes_of = [](const Topology& node) {
    std::vector<int> nodes;
    for (const Device& device : node.devices) nodes.push_back(device.numa);
    return nodes;
  };
  // SHAPES of tests/engines/emulated_node.py.
  const std::vector<int> emulated = {3, 3, 1, 1, 0, 0, 2, 2};
  for (const char* name : {"emulated-1x64", "emulated-1x64-job", "emulated-1x64-restricted"})
    CHECK(nodes_of(machine(std::string("recorded/") + name + ".xml")) == emulated);
  for (const char* name : {"emulated-2x52", "emulated-2x52-job"})
    CHECK(nodes_of(machine(std::string("recorded/") + name + ".xml")) ==
          std::vector<int>{0, 0, 0, 1, 1, 1});
}

TEST_CASE("what SR-IOV shares out counts once", "[probe][xml]") {
  CHECK(names(machine("devices/xeon-h100-shares.xml")) ==
        std::vector<std::string>{"infiniband:ibp49s0:mlx5_0@0", "infiniband:ibp177s0:mlx5_5@1"});
  std::string xml = test::source_file("tests/machines/devices/xeon-h100-shares.xml");
  const auto without = [](std::string text, const std::string& name) {
    const std::size_t at = text.rfind('\n', text.find("name=\"" + name + "\"")) + 1;
    return text.erase(at, text.find("</object>", at) + std::string("</object>").size() - at);
  };
  // A pod that was given two shares: their interfaces alone are in its network namespace.
  for (const char* gone : {"ibp49s0", "ibp49s0v0", "ibp49s0v2", "ibp177s0"})
    xml = without(xml, gone);
  CHECK(names(topology_of(xml)) == std::vector<std::string>{"infiniband:ibp49s0v1:mlx5_2@0",
                                                            "infiniband:ibp49s0v3:mlx5_4@0",
                                                            "infiniband::mlx5_5@1"});
  // A virtual machine that was given the four shares alone, two of them without an interface.
  CHECK(names(topology_of(without(xml, "mlx5_0"))).size() == 5);
}

TEST_CASE("a duplicate GPU is an error", "[probe][xml]") {
  std::string xml = test::source_file("tests/machines/devices/xeon-h100-shares.xml");
  const std::size_t at = xml.find("0000:61:00.0");
  xml.replace(at, std::string("0000:61:00.0").size(), "0000:41:00.0");
  const auto got = read_topology(test::TemporaryFile(xml).path(), 120);
  REQUIRE(!got);
  CHECK(got.error().message.find("duplicate GPU 0000:41:00.0") != std::string::npos);
}

TEST_CASE("interfaces carry the kind of their network", "[probe][xml]") {
  CHECK(names(machine("devices/power9-v100.xml")) ==
        std::vector<std::string>{"infiniband:ib0:mlx5_0@0", "infiniband:ib1:mlx5_1@0",
                                 "infiniband:ib2:mlx5_2@8", "infiniband:ib3:mlx5_3@8",
                                 "ethernet:enP5p1s0f0:@0"});
  CHECK(names(machine("devices/xeon-a100-switched.xml")) ==
        std::vector<std::string>{"efa::rdmap16s27@0", "efa::rdmap32s27@0", "efa::rdmap144s27@1",
                                 "efa::rdmap160s27@1", "ethernet:ens32:@0"});
  const Topology fermi = machine("devices/xeon-2x6-fermi.xml");
  CHECK(names(fermi) == std::vector<std::string>{"roce:eth2:mlx4_0@0", "infiniband:ib0:mlx4_0@0",
                                                 "ethernet:eth0:@0", "ethernet:eth1:@0"});
}

TEST_CASE("devices and interfaces name the bridges above them", "[probe][xml]") {
  using Way = std::vector<std::string>;
  const Topology node = machine("devices/xeon-h100-switches.xml");
  CHECK(node.devices[0].bridges == Way{"0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:00.0"});
  CHECK(node.nics[1].bridges == Way{"0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:02.0"});
  // On the bus of the root itself, and below a port of it.
  CHECK(machine("devices/xeon-a100-switched.xml").nics.back().bridges == Way{"0000:00"});
  const Topology lost = machine("devices/mi300a-tpx-lost.xml");
  CHECK(lost.devices[5].bridges == Way{"0001:01", "0001:01:01.0"});  // of the part before it
  CHECK(machine("devices/gpus-without-pci.xml").devices[0].bridges.empty());
  const Topology recorded = machine("devices/xeon-2x6-fermi.xml");
  CHECK(recorded.devices[0].bridges == Way{"0000:00", "0000:00:07.0"});
  CHECK(recorded.devices[2].bridges == Way{"0000:10", "0000:10:03.0"});
}

TEST_CASE("links count what lies side by side", "[probe][xml]") {
  const Topology power = machine("devices/power9-v100.xml");
  CHECK(power.links == std::vector<Link>{{0, 1, "nvlink", 3}, {2, 3, "nvlink", 3}});
  CHECK(machine("devices/power8-p100.xml").links ==
        std::vector<Link>{{0, 1, "nvlink", 2}, {2, 3, "nvlink", 2}});
  const Topology switched = machine("devices/xeon-a100-switched.xml");
  for (const Link& link : switched.links)
    CHECK(link.lanes == 12);  // six switches, two links to each
  for (const Link& link : machine("devices/xeon-pvc.xml").links)
    CHECK(link.lanes == 2);  // a tile to its like
}

TEST_CASE("tiles that Level Zero shows as devices are tiles", "[probe][xml]") {
  const Topology got = machine("devices/xeon-pvc-flat.xml");
  REQUIRE(got.devices.size() == 2);
  CHECK(got.devices[1].subdevices == 2);
  CHECK(got.devices[1].memory_bytes == std::uint64_t{128} << 30);
}

TEST_CASE("memory of a GPU that is a NUMA node is the GPU's", "[probe][xml]") {
  const Topology got = machine("devices/grace-hopper.xml");
  CHECK(got.devices[0].memory_bytes == std::uint64_t{96} << 30);
  CHECK(got.numa_nodes.size() == 2);
  CHECK(got.cores[71].numa == 0);
}

TEST_CASE("PCI addresses", "[probe][pci]") {
  CHECK(probe::to_string(*probe::parse_pci("0000:C1:00.0")) == "0000:c1:00.0");
  CHECK(probe::to_string(*probe::parse_pci("10000:e1:1f.7")) == "10000:e1:1f.7");
  for (const char* wrong :
       {"", "0000:c1:00", "c1:00.0", "0000:1c1:00.0", "0000:c1:20.0", "0000:c1:00.8",
        "0000:c1:00.0x", "0000:c1:00.", "g000:c1:00.0", "-000:c1:00.0", "pci0000:00"})
    CHECK_FALSE(probe::parse_pci(wrong));
}

TEST_CASE("class, vendor and bus identify an accelerator", "[probe][pci]") {
  const auto vendor = [](const char* address, unsigned class_id, unsigned vendor_id,
                         unsigned device) {
    return probe::accelerator_vendor(function(address, class_id, vendor_id, device));
  };
  CHECK(vendor("0000:18:00.0", 0x0302, 0x10de, 0x20b2) == "nvidia");
  CHECK(vendor("0000:01:00.0", 0x0300, 0x10de, 0x2204) == "nvidia");
  CHECK(vendor("0000:c1:00.0", 0x0380, 0x1002, 0x7408) == "amd");
  CHECK(vendor("0000:02:00.0", 0x1200, 0x1002, 0x74a0) == "amd");
  CHECK(vendor("0000:41:00.0", 0x0300, 0x1002, 0x5046) == "amd");
  CHECK(vendor("0000:18:00.0", 0x0380, 0x8086, 0x0bd6) == "intel");
  CHECK(vendor("0000:00:02.0", 0x0300, 0x8086, 0x46a6).empty());  // a laptop's own
  CHECK(vendor("0000:00:01.0", 0x0300, 0x1002, 0x1309).empty());
  CHECK(vendor("0000:03:00.0", 0x0300, 0x1a03, 0x2000).empty());  // ASPEED
  CHECK(vendor("0000:03:00.0", 0x0300, 0x102b, 0x0538).empty());  // Matrox
  CHECK(vendor("0000:03:00.0", 0x0300, 0x1002, 0x515e).empty());  // ES1000
  CHECK(vendor("0000:c0:00.0", 0x0680, 0x10de, 0x1af1).empty());  // NVSwitch
  CHECK(vendor("0000:18:00.1", 0x0403, 0x10de, 0x1aef).empty());  // its sound
  CHECK(vendor("0000:70:00.0", 0x1200, 0x8086, 0x09c4).empty());  // an FPGA
  CHECK(probe::tiles_of(function("0000:18:00.0", 0x0380, 0x8086, 0x0bd6)) == 2);
  CHECK(probe::tiles_of(function("0000:18:00.0", 0x0380, 0x8086, 0x0bda)) == 0);
}

TEST_CASE("numbers follow PCI addresses, the vendor with most devices first", "[probe][pci]") {
  Topology topology = machine("xeon-2x8-offline-holes.xml");
  const auto found = [](const char* address, const char* vendor, int sequence) {
    probe::FoundDevice one;
    if (*address != '\0') one.address = probe::parse_pci(address);
    one.device.vendor = vendor;
    one.sequence = sequence;
    return one;
  };
  const auto order =
      probe::add_in_order({found("0001:01:00.0", "nvidia", 0), found("0000:41:00.0", "intel", 0),
                           found("", "nvidia", 7), found("0000:81:00.0", "nvidia", 1),
                           found("0000:81:00.0", "nvidia", 0)},
                          topology);
  CHECK(order == std::vector<std::size_t>{4, 3, 0, 2, 1});
  CHECK(topology.devices[4].vendor == "intel");
  CHECK(topology.devices[4].index == 4);
  CHECK(check_topology(topology));
}

TEST_CASE("a place is a part of the machine", "[probe][pci]") {
  const Topology two = machine("xeon-2x52-smt2.xml");
  const auto set = [](const char* list) { return *CpuSet::parse(list); };
  CHECK(probe::locality_of(two.all_pus(), -1, two).pus.empty());
  CHECK(probe::locality_of(two.all_pus(), -1, two).numa == -1);
  CHECK(probe::locality_of({}, 1, two).pus == two.numa_nodes[1].pus);
  CHECK(probe::locality_of(two.all_pus(), 1, two).pus == two.numa_nodes[1].pus);
  CHECK(probe::locality_of(set("0-3"), -1, two).numa == 0);
  CHECK(probe::locality_of(set("0-3,4000"), -1, two).pus == set("0-3"));
  CHECK(probe::locality_of(set("50-60"), -1, two).numa == -1);  // of both
  CHECK(probe::locality_of({}, 9, two).numa == -1);             // there is no such node
  Topology bare = two;  // one of the two has no CPU here: it is still not the other one
  std::erase_if(bare.cores, [](const Core& core) { return core.numa == 1; });
  bare.numa_nodes[1].pus = CpuSet{};
  CHECK(probe::locality_of({}, 1, bare).numa == 1);
  CHECK(probe::locality_of({}, 1, bare).pus.empty());
  CHECK(probe::locality_of(set("0-3"), 1, bare).numa == 1);
  CHECK(probe::locality_of(set("0-3"), 1, bare).pus == set("0-3"));
  const Topology one = machine("laptop-8.xml");
  CHECK(probe::locality_of({}, -1, one).numa == 0);
  CHECK(probe::locality_of({}, -1, one).pus == one.all_pus());
}

TEST_CASE("names with numbers stand in the order of the numbers", "[probe][pci]") {
  std::vector<Nic> nics;
  for (const char* const name : {"hsn10", "ib0", "hsn2", "a2b10", "a2b3"})
    nics.emplace_back().name = name;
  probe::sort_nics(nics);
  std::string names;
  for (const Nic& nic : nics) names += nic.name + " ";
  CHECK(names == "a2b3 a2b10 hsn2 hsn10 ib0 ");
}

TEST_CASE("serial numbers of AMD become what its tools print", "[probe][pci]") {
  CHECK(probe::amd_uuid("c0c769deeb666106") == "GPU-c0c769deeb666106");
  CHECK(probe::amd_uuid("0xC0") == "0xC0");
  CHECK(probe::amd_uuid("C0FFEE") == "GPU-0000000000c0ffee");
  CHECK(probe::amd_uuid("GPU-abcd1234abcd123") == "GPU-0abcd1234abcd123");
  CHECK(probe::amd_uuid("GPU-ffffffffffffffff").empty());
  CHECK(probe::amd_uuid("GPU-0000000000000000").empty());
  CHECK(probe::amd_uuid("0").empty());
  CHECK(probe::amd_uuid("").empty());
  CHECK(probe::partition_name(6) == "CPX");
}
