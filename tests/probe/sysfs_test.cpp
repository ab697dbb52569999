// Devices as the kernel shows them, on trees of files made here.
#include "probe/sysfs.h"

#include <string>
#include <string_view>
#include <vector>

#include "probe/tree.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;
using test::names;
using test::nodes;
using test::probed;
using test::Tree;

namespace {

constexpr const char* kBuses[] = {"c1", "c6", "c9", "ce", "d1", "d6", "d9", "de"};

}  // namespace

TEST_CASE("no /sys, no devices", "[probe][sysfs]") {
  const Tree tree;
  const Topology got = probed(tree, "laptop-8.xml");
  CHECK(got.devices.empty());
  CHECK(!got.no_devices);
  CHECK(got.nics.empty());
}

TEST_CASE("a blade of four MI250X without a driver, nodes known", "[probe][sysfs]") {
  const Tree tree;
  const int numa[] = {3, 3, 1, 1, 0, 0, 2, 2};
  const char* cpus[] = {"0-15,64-79", "16-31,80-95", "32-47,96-111", "48-63,112-127"};
  for (std::size_t i = 0; i < 8; ++i)
    tree.pci(std::string("0000:") + kBuses[i] + ":00.0", "038000", "1002", "7408", numa[i],
             cpus[numa[i]]);
  const char* nics[] = {"c5", "cd", "d5", "dd"};
  for (int i = 0; i < 4; ++i) {
    const std::string name = std::to_string(i);
    const std::string device = tree.pci(std::string("0000:") + nics[i] + ":00.0", "020000", "17db",
                                        "0501", numa[2 * i], cpus[numa[2 * i]], "cxi_ss1");
    tree.net(device, "hsn" + name, "1", "up", "200000");
    tree.link("sys/class/cxi/cxi" + name, device + "/cxi/cxi" + name);
    tree.link(device + "/cxi/cxi" + name + "/device", device);
  }
  const Topology got =
      probed(tree, "devices/mi250x-blade.xml", {{"hsn1", true, {"10.1.2.3", "fd00::1"}}});
  CHECK(nodes(got) == std::vector<int>(std::begin(numa), std::end(numa)));
  CHECK(got.devices[0].pci == "0000:c1:00.0");
  CHECK(got.devices[0].model == "Instinct MI250X");
  CHECK(got.devices[4].pus.to_list() == "0-15,64-79");
  CHECK(names(got) == std::vector<std::string>{"slingshot hsn0 cxi0 up", "slingshot hsn1 cxi1 up",
                                               "slingshot hsn2 cxi2 up", "slingshot hsn3 cxi3 up"});
  CHECK(got.nics[0].numa == 3);
  CHECK(got.nics[0].speed_mbps == 200000);
  CHECK(got.nics[1].addresses == std::vector<std::string>{"10.1.2.3", "fd00::1"});
}

TEST_CASE("the same blade where the firmware says nothing", "[probe][sysfs]") {
  const Tree tree;
  tree.file("sys/class/dmi/id/board_name", "HPE CRAY EX235A");
  for (const char* bus : kBuses)
    tree.pci(std::string("0000:") + bus + ":00.0", "038000", "1002", "7408", -1, "0-127", "amdgpu");
  tree.net(tree.pci("0000:c5:00.0", "020000", "17db", "0501", -1, "0-127", "cxi_ss1"), "hsn0");
  const Topology got = probed(tree, "devices/mi250x-blade.xml");
  CHECK(nodes(got) == std::vector<int>{3, 3, 1, 1, 0, 0, 2, 2});
  CHECK(got.nics.at(0).numa == 3);
  CHECK(got.devices[5].pus.to_list() == "8-15,72-79");
  tree.file("sys/class/dmi/id/board_name", "Some Other Board");
  const Topology other = probed(tree, "devices/mi250x-blade.xml");
  CHECK(nodes(other) == std::vector<int>(8, -1));
  CHECK(other.devices[0].pus.empty());
}

TEST_CASE("what amdgpu reports in files", "[probe][sysfs]") {
  const Tree tree;
  const std::string device = tree.pci("0000:c1:00.0", "038000", "1002", "7408", 0, "", "amdgpu");
  tree.file(device + "/mem_info_vram_total", "68702699520");
  tree.file(device + "/unique_id", "c0c769deeb666106");
  tree.file(device + "/product_name", "AMD INSTINCT MI250X");
  const Topology got = probed(tree, "laptop-8.xml");
  REQUIRE(got.devices.size() == 1);
  CHECK(got.devices[0].memory_bytes == 68702699520);
  CHECK(got.devices[0].uuid == "GPU-c0c769deeb666106");
  CHECK(got.devices[0].model == "AMD INSTINCT MI250X");
  CHECK(got.devices[0].partition.empty());
}

TEST_CASE("partitions are those that KFD counts", "[probe][sysfs]") {
  // Bits 28 to 31 hold the number of a partition; older kernels add it to the function.
  for (const bool old : {false, true}) {
    const Tree tree;
    int node = 0;
    for (; node < 4; ++node) tree.kfd(node, "cpu_cores_count 48\nsimd_count 0\nlocation_id 0");
    for (unsigned domain = 0; domain < 4; ++domain) {
      const std::string device = tree.pci("000" + std::to_string(domain) + ":02:00.0", "120000",
                                          "1002", "74a0", static_cast<int>(domain), "", "amdgpu");
      tree.file(device + "/mem_info_vram_total", "137438953472");
      if (!old) tree.file(device + "/current_compute_partition", "CPX");
      for (unsigned part = 0; part < 6; ++part, ++node) {
        const unsigned location = 0x200 | (old ? part : part << 28);
        tree.kfd(
            node,
            "simd_count 152\ndomain " + std::to_string(domain) + "\nlocation_id " +
                std::to_string(location) + "\nunique_id " +
                std::to_string(old ? 77 : 11150031900141442048UL + static_cast<unsigned>(node)),
            "heap_type 1\nsize_in_bytes 22906492245\nflags 0");
      }
    }
    const Topology got = probed(tree, "devices/mi300a-spx.xml");
    REQUIRE(got.devices.size() == 24);
    CHECK(got.devices[5].pci == "0000:02:00.0");
    CHECK(got.devices[6].pci == "0001:02:00.0");
    CHECK(got.devices[23].numa == 3);
    CHECK(got.devices[23].partition == "CPX");
    CHECK(got.devices[23].memory_bytes == 22906492245);
    // One number for all of them names none.
    CHECK(got.devices[0].uuid == (old ? "" : "GPU-9abcdef012345404"));
  }
}

TEST_CASE("AMD's devices are counted as KFD has them", "[probe][sysfs]") {
  // The board's buses run against the order in which the driver found the cards.
  const char* buses[] = {"de", "c1", "9", "2"};
  const auto addresses = [](const Topology& topology) {
    std::vector<std::string> all;
    for (const Device& device : topology.devices) all.push_back(device.pci);
    return all;
  };
  const Tree tree;
  tree.kfd(0, "cpu_cores_count 48\nsimd_count 0\nlocation_id 0");
  for (int i = 0; i < 4; ++i) {
    const std::string bus = std::string(2 - std::string_view(buses[i]).size(), '0') + buses[i];
    tree.pci("0000:" + bus + ":00.0", "038000", "1002", "740c", 0, "", "amdgpu");
    if (i < 3)
      tree.kfd(8 + i, "simd_count 440\ndomain 0\nlocation_id " +  // 8, 9, 10: numbers, not text
                          std::to_string(std::stoul(buses[i], nullptr, 16) << 8));
  }
  // The cgroup keeps one from us: KFD's order is then not that of all of them.
  CHECK(addresses(probed(tree, "laptop-8.xml")) ==
        std::vector<std::string>{"0000:02:00.0", "0000:09:00.0", "0000:c1:00.0", "0000:de:00.0"});
  tree.kfd(11, "simd_count 440\ndomain 0\nlocation_id 512");
  const std::vector<std::string> counted{"0000:de:00.0", "0000:c1:00.0", "0000:09:00.0",
                                         "0000:02:00.0"};
  CHECK(addresses(probed(tree, "laptop-8.xml")) == counted);
  tree.pci("0000:01:00.0", "030200", "10de", "1eb8", 0, "", "nvidia");
  tree.pci("0000:e1:00.0", "030200", "10de", "1eb8", 0, "", "nvidia");
  std::vector<std::string> both = counted;  // the vendor with more comes first
  both.insert(both.end(), {"0000:01:00.0", "0000:e1:00.0"});
  CHECK(addresses(probed(tree, "laptop-8.xml")) == both);
}

TEST_CASE("KFD reports XGMI links of AMD devices", "[probe][sysfs]") {
  const Tree tree;
  const char* buses[] = {"de", "c1", "c6", "c9"};  // of KFD's nodes 1 to 4
  int number = 1;
  for (const char* bus : buses) {
    tree.pci(std::string("0000:") + bus + ":00.0", "038000", "1002", "7408", 0, "", "amdgpu");
    tree.kfd(number++, "simd_count 440\ndomain 0\nlocation_id " +
                           std::to_string(std::stoul(bus, nullptr, 16) << 8));
  }
  tree.kfd(0, "cpu_cores_count 64\nsimd_count 0\nlocation_id 0");
  const auto link = [&](int from, int at, int to, const std::string& rest, int type = 11) {
    tree.file("sys/class/kfd/kfd/topology/nodes/" + std::to_string(from) + "/io_links/" +
                  std::to_string(at) + "/properties",
              "type " + std::to_string(type) + "\nversion_major 0\nnode_from " +
                  std::to_string(from) + "\nnode_to " + std::to_string(to) + "\n" + rest);
  };
  const auto links = [&] { return probed(tree, "laptop-8.xml").links; };
  CHECK(links().empty());
  // Both ends report it: four parallel links.
  link(1, 1, 2, "weight 15\nmin_bandwidth 50000\nmax_bandwidth 200000");
  link(2, 1, 1, "weight 15\nmin_bandwidth 50000\nmax_bandwidth 200000");
  // One end, in one package; a kernel that has no bandwidth; two hops; PCI Express; a processor.
  link(3, 1, 2, "weight 13\nmin_bandwidth 50000\nmax_bandwidth 50000");
  link(4, 1, 1, "weight 15\nmin_bandwidth 0\nmax_bandwidth 0");
  link(4, 2, 2, "weight 30\nmin_bandwidth 50000\nmax_bandwidth 0");
  link(4, 3, 3, "weight 20\nmin_bandwidth 32000\nmax_bandwidth 32000", 2);
  link(1, 0, 0, "weight 15\nmin_bandwidth 36000\nmax_bandwidth 36000");
  link(4, 4, 99, "weight 15\nmin_bandwidth 50000\nmax_bandwidth 50000");
  CHECK(links() == std::vector<Link>{{0, 1, "xgmi", 4}, {0, 3, "xgmi", 1}, {1, 2, "xgmi", 1}});
  tree.kfd(2, "");  // kept from us: those left are numbered by PCI (c1 c6 c9 de)
  CHECK(links() == std::vector<Link>{{2, 3, "xgmi", 1}});
}

TEST_CASE("tiles of Intel's GPUs", "[probe][sysfs]") {
  const Tree tree;
  tree.pci("0000:18:00.0", "038000", "8086", "0bd6", 0);  // no driver: by its model
  const std::string i915 = tree.pci("0000:42:00.0", "038000", "8086", "0bd6", 0, "", "i915");
  tree.file(i915 + "/drm/card1/gt/gt0/id", "0");
  tree.file(i915 + "/drm/card1/gt/gt1/id", "1");
  tree.file(i915 + "/drm/card1/lmem_total_bytes", "137438953472");
  const std::string xe = tree.pci("0001:18:00.0", "038000", "8086", "0bd6", 1, "", "xe");
  for (const char* tile : {"tile0", "tile1"}) tree.file(xe + "/" + tile + "/gt0/id", "0");
  const std::string one = tree.pci("0001:42:00.0", "038000", "8086", "56c0", 1, "", "xe");
  tree.file(one + "/tile0/gt0/id", "0");
  tree.file(one + "/tile0/gt1/id", "1");  // media: no tile
  tree.pci("0000:00:02.0", "030000", "8086", "46a6", 0, "", "i915");
  const std::string share = tree.pci("0000:18:00.1", "038000", "8086", "0bd6", 0);
  tree.link(share + "/physfn", "sys/devices/pci0000:18/0000:18:00.0");
  const Topology got = probed(tree, "xeon-2x52-smt2.xml");
  REQUIRE(got.devices.size() == 4);
  CHECK(got.devices[0].subdevices == 2);
  CHECK(got.devices[1].subdevices == 2);
  CHECK(got.devices[1].memory_bytes == std::uint64_t{128} << 30);
  CHECK(got.devices[2].subdevices == 2);
  CHECK(got.devices[3].subdevices == 0);
  CHECK(nodes(got) == std::vector<int>{0, 0, 1, 1});
}

TEST_CASE("the way on PCI is that of the kernel's folders", "[probe][sysfs]") {
  using Way = std::vector<std::string>;
  const Tree tree;
  const std::string port = "pci0000:15/0000:15:01.0/0000:16:00.0/";
  tree.pci("0000:18:00.0", "030200", "10de", "2330", 0, "", "nvidia", port + "0000:17:00.0");
  const std::string adapter =
      tree.pci("0000:19:00.0", "020700", "15b3", "1021", 0, "", "mlx5_core", port + "0000:17:01.0");
  tree.net(adapter, "ib0", "32");
  const std::string alone = tree.pci("0000:38:00.0", "020700", "15b3", "1021", 0, "", "mlx5_core",
                                     "pci0000:37/0000:37:01.0");
  tree.verbs(alone, "mlx5_1", "InfiniBand");
  // Below a controller of volumes, with a domain of its own; on the root bus of a virtual machine.
  tree.pci("10000:01:00.0", "030200", "10de", "2330", 0, "", "nvidia",
           "pci0000:15/0000:15:05.5/pci10000:00/10000:00:02.0");
  tree.net(tree.pci("0000:00:03.0", "020000", "1af4", "1000", 0, "", "virtio-pci") + "/virtio0",
           "eth0");
  const Topology got = probed(tree, "xeon-2x52-smt2.xml");
  REQUIRE(got.devices.size() == 2);
  CHECK(got.devices[0].bridges == Way{"0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:00.0"});
  CHECK(got.devices[1].bridges == Way{"10000:00", "10000:00:02.0"});
  REQUIRE(got.nics.size() == 3);
  CHECK(got.nics[0].bridges == Way{"0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:01.0"});
  CHECK(got.nics[1].bridges == Way{"0000:37", "0000:37:01.0"});
  CHECK(got.nics[2].bridges == Way{"0000:00"});
}

TEST_CASE("NVIDIA's driver names model and UUID", "[probe][sysfs]") {
  const Tree tree;
  for (const char* bus : {"18", "19", "e7"})
    tree.pci(std::string("0000:") + bus + ":00.0", "030200", "10de", "1eb8", *bus == 'e' ? 1 : 0,
             "", "nvidia");
  tree.pci("0000:e8:00.0", "030200", "10de", "1eb8", 1, "", "vfio-pci");  // a virtual machine's
  tree.pci("0000:18:00.1", "040300", "10de", "10f8", 0);
  tree.pci("0000:c0:00.0", "068000", "10de", "1af1", 0);
  tree.pci("0000:03:00.0", "030000", "1a03", "2000", 0, "", "ast");
  tree.file("proc/driver/nvidia/gpus/0000:18:00.0/information",
            "Model: \t\t Tesla T4\nIRQ:   \t\t 59\nGPU UUID: \t "
            "GPU-4d5ae3e1-5f6d-7e5d-9b9d-6d2d1f3d1c11\nBus Type: \t PCIe");
  tree.file("proc/driver/nvidia/gpus/0000:19:00.0/information",
            "Model: \t\t Unknown\nGPU UUID: \t GPU-" + std::string(36, '?'));
  const Topology got = probed(tree, "xeon-2x52-smt2.xml");
  CHECK(nodes(got) == std::vector<int>{0, 0, 1});
  CHECK(got.devices[0].uuid == "GPU-4d5ae3e1-5f6d-7e5d-9b9d-6d2d1f3d1c11");
  CHECK(got.devices[0].model == "Tesla T4");
  CHECK(got.devices[1].uuid.empty());
}

TEST_CASE("a laptop computes on nothing but its processor", "[probe][sysfs]") {
  const Tree tree;
  tree.pci("0000:c3:00.0", "030000", "1002", "15bf", -1, "0-15",
           "amdgpu");  // beside it the processor's own
  tree.pci("0000:c3:00.2", "108000", "1022", "15c7", -1, "0-15");
  const std::string wireless =
      tree.pci("0000:01:00.0", "028000", "14c3", "0616", -1, "0-15", "mt7921e");
  const std::string radio = tree.net(wireless, "wlp1s0");
  tree.link(radio + "/phy80211", "sys/class/ieee80211/phy0");
  tree.file("sys/class/net/lo/type", "772");
  tree.file("sys/class/net/docker0/type", "1");
  const std::string usb = "sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0";
  tree.file(usb + "/bInterfaceClass", "02");
  tree.net(usb, "usb0");
  const Topology got = probed(tree, "laptop-8.xml");
  CHECK(got.devices.empty());
  CHECK(got.no_devices);
  CHECK(got.nics.empty());
}

TEST_CASE("files that say nonsense leave fields unknown", "[probe][sysfs][law]") {
  test::Random random(5);
  const char* texts[] = {"",     "-1",    "0x", "99999999999999999999", "4-2", "0-9999", "GPU-",
                         "\n\n", "a b c", "7"};
  for (int round = 0; round < 40; ++round) {
    const Tree tree;
    const std::string device = tree.pci("0000:c1:00.0", "038000", "1002", "7408");
    const std::string nic = tree.pci("0000:c5:00.0", "020000", "17db", "0501");
    tree.net(nic, "hsn0");
    tree.verbs(nic, "mlx5_0", "InfiniBand");
    const std::string files[] = {device + "/numa_node",
                                 device + "/local_cpulist",
                                 device + "/mem_info_vram_total",
                                 device + "/unique_id",
                                 device + "/device",
                                 nic + "/net/hsn0/speed",
                                 nic + "/net/hsn0/operstate",
                                 nic + "/infiniband/mlx5_0/ports/1/rate",
                                 nic + "/numa_node",
                                 "sys/class/kfd/kfd/topology/nodes/0/properties"};
    for (const std::string& file : files) tree.file(file, texts[random.in(0, 9)]);
    const Topology got = probed(tree, "xeon-2x52-smt2.xml");
    CHECK(got.devices.size() == 1);
    CHECK(got.nics.size() == 1);
  }
}

TEST_CASE("one file with all PCI functions spares the rest their own", "[probe][sysfs]") {
  // Bus and function, vendor and device, interrupt, six windows and the ROM, their sizes, the driver.
  const auto line = [](const std::string& place, const std::string& id, const std::string& size) {
    std::string text = place + "\t" + id + "\t0";
    for (int i = 0; i < 7; ++i) text += "\t               0";
    text += "\t" + std::string(16 - size.size(), ' ') + size;
    for (int i = 0; i < 6; ++i) text += "\t               0";
    return text + "\tdriver\n";
  };
  const Tree tree;
  for (const char* const bus : {"c1", "c2", "c3", "c4", "c5"})
    tree.pci(std::string("0001:") + bus + ":00.0", "030200", "10de", "2330");
  tree.file("proc/bus/pci/devices",
            line("c100", "10de2330", "1000000") +        // a GPU
                line("c200", "10de2330", "80000") +      // no window of its size
                line("c300", "19a22330", "1000000") +    // another vendor
                line("c401", "10de2330", "1000000") +    // another function
                "c500\t10de2330\t0\t               0");  // cut off
  const Topology got = probed(tree, "laptop-8.xml");
  REQUIRE(got.devices.size() == 1);
  CHECK(got.devices[0].pci == "0001:c1:00.0");
}
