// Network interfaces and adapters as the kernel shows them, on trees of files made here.
#include <string>
#include <vector>

#include "probe/tree.h"
#include "support/catch.h"

using namespace hpclaunch;
using test::names;
using test::probed;
using test::Tree;

TEST_CASE("adapters of every fabric", "[probe][sysfs]") {
  const Tree tree;
  const std::string mellanox =
      tree.pci("0000:41:00.0", "020700", "15b3", "101b", 0, "", "mlx5_core");
  tree.net(mellanox, "ib0", "32", "up");
  tree.verbs(mellanox, "mlx5_0", "InfiniBand", "4: ACTIVE", "200 Gb/sec (4X HDR)");
  const std::string ethernet =
      tree.pci("0000:42:00.0", "020000", "15b3", "101d", 0, "", "mlx5_core");
  tree.net(ethernet, "ens1", "1", "up", "100000");
  tree.verbs(ethernet, "mlx5_1", "Ethernet");
  const std::string bare_port =
      tree.pci("0000:c1:00.0", "020700", "15b3", "101b", 1, "", "mlx5_core");
  tree.verbs(bare_port, "mlx5_2", "InfiniBand", "1: DOWN", "10 Gb/sec (4X SDR)");
  const std::string omni = tree.pci("0000:81:00.0", "020800", "8086", "24f0", 1, "", "hfi1");
  tree.verbs(omni, "hfi1_0", "InfiniBand", "4: ACTIVE", "12.5 Gb/sec");
  const std::string efa = tree.pci("0000:10:1b.0", "020000", "1d0f", "efa1", 0, "", "efa");
  tree.verbs(efa, "rdmap16s27", "Unspecified");
  const std::string onboard = tree.pci("0000:01:00.0", "020000", "8086", "1563", 0, "", "ixgbe");
  tree.net(onboard, "eno1", "1", "down", "-1");
  const std::string share = tree.pci("0000:41:00.2", "020700", "15b3", "101c", 0, "", "mlx5_core");
  tree.link(share + "/physfn", mellanox);
  tree.net(share, "ib9", "32", "down");
  tree.verbs(share, "mlx5_9", "InfiniBand", "1: DOWN");
  tree.file("sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet");  // in software
  const Topology got = probed(tree, "xeon-2x52-smt2.xml");
  CHECK(names(got) == std::vector<std::string>{
                          "roce ens1 mlx5_1 up", "omni-path  hfi1_0 up", "infiniband ib0 mlx5_0 up",
                          "infiniband  mlx5_2 down", "efa  rdmap16s27 up", "ethernet eno1  down"});
  CHECK(got.nics[1].speed_mbps == 12500);
  CHECK(got.nics[2].speed_mbps == 200000);
  CHECK(got.nics[3].numa == 1);
  CHECK(got.nics[5].speed_mbps == 0);
}

TEST_CASE("a pod's share of an adapter is its own where the adapter's interface is not there",
          "[probe][sysfs]") {
  const Tree tree;
  const std::string whole = tree.pci("0000:41:00.0", "020000", "15b3", "101d", 0, "", "mlx5_core");
  const auto share = [&](const std::string& number) {
    const std::string device =
        tree.pci("0000:41:00." + number, "020000", "15b3", "101e", 0, "", "mlx5_core");
    tree.link(device + "/physfn", whole);
    return device;
  };
  const std::string given = share("2");
  const std::string others = share("3");
  tree.net(given, "net1", "1", "up", "100000");
  using Names = std::vector<std::string>;
  const auto seen = [&] { return names(probed(tree, "xeon-2x52-smt2.xml")); };
  CHECK(seen() == Names{"ethernet net1  up"});
  tree.verbs(given, "mlx5_2", "Ethernet");
  CHECK(seen() == Names{"roce net1 mlx5_2 up"});
  // Where RDMA devices have no name space of their own, all of them are shown.
  tree.verbs(whole, "mlx5_0", "Ethernet");
  tree.verbs(others, "mlx5_3", "Ethernet");
  CHECK(seen() == Names{"roce net1 mlx5_2 up"});
  tree.net(whole, "ens1", "1", "up", "100000");
  CHECK(seen() == Names{"roce ens1 mlx5_0 up"});
}

TEST_CASE("a share that is an adapter without an interface", "[probe][sysfs]") {
  const Tree tree;
  const std::string whole = tree.pci("0000:41:00.0", "020700", "15b3", "101b", 0, "", "mlx5_core");
  const std::string share = tree.pci("0000:41:00.1", "020700", "15b3", "101c", 0, "", "mlx5_core");
  tree.link(share + "/physfn", whole);
  tree.verbs(share, "mlx5_1", "InfiniBand");
  CHECK(names(probed(tree, "xeon-2x52-smt2.xml")) ==
        std::vector<std::string>{"infiniband  mlx5_1 up"});
  tree.verbs(whole, "mlx5_0", "InfiniBand");
  CHECK(names(probed(tree, "xeon-2x52-smt2.xml")) ==
        std::vector<std::string>{"infiniband  mlx5_0 up"});
}

TEST_CASE("a cable's addresses may stand on a bond, a bridge or a VLAN", "[probe][sysfs]") {
  const Tree tree;
  for (int i = 0; i < 2; ++i) {
    const std::string name = "ens" + std::to_string(i);
    const std::string device =
        tree.pci("0000:0" + std::to_string(i) + ":00.0", "020000", "8086", "1563", 0, "", "ixgbe");
    const std::string net = tree.net(device, name, "1", "up", "10000");
    tree.link(net + "/upper_bond0", "sys/devices/virtual/net/bond0");
  }
  tree.link("sys/class/net/bond0", "sys/devices/virtual/net/bond0");
  tree.link("sys/devices/virtual/net/bond0/upper_bond0.7", "sys/devices/virtual/net/bond0.7");
  tree.link("sys/class/net/bond0.7", "sys/devices/virtual/net/bond0.7");
  const Topology got =
      probed(tree, "laptop-8.xml", {{"bond0", true, {}}, {"bond0.7", true, {"10.0.0.7"}}});
  CHECK(names(got) == std::vector<std::string>{"ethernet bond0.7  up", "ethernet bond0.7  up"});
  CHECK(got.nics[0].pci == "0000:00:00.0");
  CHECK(got.nics[1].addresses == std::vector<std::string>{"10.0.0.7"});
  const Topology none = probed(tree, "laptop-8.xml");
  CHECK(names(none) == std::vector<std::string>{"ethernet ens0  up", "ethernet ens1  up"});
}

TEST_CASE("where no device carries an address, an interface of software does", "[probe][sysfs]") {
  const Tree tree;
  const std::string folder = "sys/devices/virtual/net/eth0";
  tree.file(folder + "/type", "1");
  tree.file(folder + "/operstate", "up");
  tree.link("sys/class/net/eth0", folder);
  const std::string bridge = "sys/devices/virtual/net/br0";
  tree.file(bridge + "/type", "1");
  tree.file(bridge + "/bridge/bridge_id", "8000.0");
  tree.link("sys/class/net/br0", bridge);
  const std::vector<Interface> addresses = {{"br0", true, {"10.9.0.1"}},
                                            {"eth0", true, {"10.0.0.7"}}};
  const Topology pod = probed(tree, "laptop-8.xml", addresses);
  CHECK(names(pod) == std::vector<std::string>{"ethernet eth0  up"});
  CHECK(pod.nics.at(0).addresses == std::vector<std::string>{"10.0.0.7"});
  const std::string device = tree.pci("0000:01:00.0", "020000", "8086", "1563", 0, "", "ixgbe");
  tree.net(device, "ens1", "1", "up", "10000");
  CHECK(names(probed(tree, "laptop-8.xml", {{"ens1", true, {"10.0.0.8"}}, addresses[1]})) ==
        std::vector<std::string>{"ethernet ens1  up"});
}

TEST_CASE("an interface that is down has no address, though its port works", "[probe][sysfs]") {
  const Tree tree;
  const std::string device = tree.pci("0000:41:00.0", "020700", "15b3", "101b", 0, "", "mlx5_core");
  const std::string net = tree.net(device, "ib0", "32", "up");
  tree.verbs(device, "mlx5_0", "InfiniBand");
  const auto seen = [&](bool up) {
    const Topology got = probed(tree, "laptop-8.xml", {{"ib0", up, {"10.1.0.1"}}});
    CHECK(names(got) == std::vector<std::string>{"infiniband ib0 mlx5_0 up"});
    return got.nics.at(0).addresses;
  };
  CHECK(seen(true) == std::vector<std::string>{"10.1.0.1"});
  CHECK(seen(false).empty());
  tree.file(net + "/operstate", "down");  // up, and without a carrier
  CHECK(seen(true).empty());
}

TEST_CASE("an interface of a virtual machine names its PCI function", "[probe][sysfs]") {
  const Tree tree;
  const std::string pci =
      tree.pci("0000:00:03.0", "020000", "1af4", "1000", -1, "0-7", "virtio-pci");
  tree.net(pci + "/virtio2", "eth0", "1", "unknown");
  tree.file(pci + "/virtio2/net/eth0/carrier", "1");
  const Topology got = probed(tree, "laptop-8.xml");
  REQUIRE(got.nics.size() == 1);
  CHECK(got.nics[0].pci == "0000:00:03.0");
  CHECK(got.nics[0].state == "up");
  CHECK(got.nics[0].numa == 0);
}

TEST_CASE("each port of an adapter with two has its own state, kind and speed", "[probe][sysfs]") {
  const Tree tree;
  const auto second = [&](const std::string& device, const std::string& name,
                          const std::string& layer, const std::string& state) {
    const std::string port = device + "/infiniband/" + name + "/ports/2";
    tree.file(port + "/link_layer", layer);
    tree.file(port + "/state", state);
    tree.file(port + "/rate", "56 Gb/sec (4X FDR)");
  };
  // Older kernels number InfiniBand ports in dev_id only.
  const std::string pair = tree.pci("0000:05:00.0", "020700", "15b3", "1003", 0, "", "mlx4_core");
  tree.verbs(pair, "mlx4_0", "InfiniBand", "4: ACTIVE", "40 Gb/sec (4X QDR)");
  second(pair, "mlx4_0", "InfiniBand", "1: DOWN");
  tree.file(tree.net(pair, "ib0", "32") + "/dev_id", "0x0");
  const std::string ib1 = tree.net(pair, "ib1", "32", "down");
  tree.file(ib1 + "/dev_id", "0x1");
  tree.file(ib1 + "/dev_port", "0");
  const std::string mixed = tree.pci("0000:06:00.0", "020700", "15b3", "1003", 0, "", "mlx4_core");
  tree.verbs(mixed, "mlx4_1", "InfiniBand", "1: DOWN", "10 Gb/sec (4X SDR)");
  second(mixed, "mlx4_1", "Ethernet", "4: ACTIVE");
  tree.file(tree.net(mixed, "ens6", "1") + "/dev_port", "1");
  // Its number on the card, while the function's own adapter has one port.
  const std::string own = tree.pci("0000:07:00.1", "020000", "14e4", "1750", 0, "", "bnxt_en");
  tree.verbs(own, "bnxt_re1", "Ethernet");
  tree.file(tree.net(own, "ens7") + "/dev_port", "1");
  const Topology got = probed(tree, "xeon-2x52-smt2.xml");
  CHECK(names(got) == std::vector<std::string>{"roce ens6 mlx4_1 up", "roce ens7 bnxt_re1 up",
                                               "infiniband ib0 mlx4_0 up",
                                               "infiniband ib1 mlx4_0 down"});
  CHECK(got.nics[0].speed_mbps == 56000);
  CHECK(got.nics[2].speed_mbps == 40000);
}

TEST_CASE("a function near several NUMA nodes keeps its CPUs", "[probe][sysfs]") {
  const Tree tree;
  const std::string device = tree.pci("0000:31:00.0", "020000", "15b3", "101d", -1, "16-31");
  tree.net(device, "ens1");
  const Topology got = probed(tree, "devices/xeon-snc2-package1.xml");
  REQUIRE(got.nics.size() == 1);
  CHECK(got.nics[0].numa == -1);
  CHECK(got.nics[0].pus.to_list() == "16-31");
}
