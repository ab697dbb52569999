#include <filesystem>
#include <fstream>

#include "probe/vendor/vendor.h"
#include "support/catch.h"
#include "vendor/support.h"

using namespace hpclaunch;
using namespace hpclaunch::test;
using probe::vendor::merge;
using probe::vendor::ReportedDevice;
using probe::vendor::VendorReport;

namespace {

ReportedDevice device_at(const std::string& pci, const std::string& uuid) {
  ReportedDevice device;
  device.pci = pci;
  device.uuid = uuid;
  return device;
}

VendorReport report_of(const std::string& vendor, std::vector<ReportedDevice> devices) {
  VendorReport report;
  report.vendor = vendor;
  report.link_kind = "xgmi";
  report.devices = std::move(devices);
  return report;
}

std::string uuids(const Topology& topology) {
  std::string all;
  for (const Device& device : topology.devices) all += device.uuid + " ";
  return all;
}

}  // namespace

TEST_CASE("partitions that share an address are matched in order", "[vendor]") {
  Topology topology = machine("amd", {"0000:01:00.0", "0000:01:00.0", "0000:02:00.0"});
  const VendorReport report =
      report_of("amd", {device_at("0000:02:00.0", "c"), device_at("0000:01:00.0", "a"),
                        device_at("0000:01:00.0", "b"), device_at("0000:02:00.0", "d")});
  CHECK(merge(topology, report, "/nowhere") == "");
  CHECK(uuids(topology) == "a b c d ");
  CHECK(topology.devices[3].index == 3);
  CHECK(check_topology(topology));
}

TEST_CASE("a UUID that several devices have names none of them", "[vendor]") {
  Topology topology = machine("amd", {"0000:01:00.0", "0000:01:00.0", "0000:02:00.0"});
  const VendorReport report =
      report_of("amd", {device_at("0000:01:00.0", "a"), device_at("0000:01:00.0", "a"),
                        device_at("0000:02:00.0", "b")});
  merge(topology, report, "/nowhere");
  CHECK(uuids(topology) == "  b ");
}

TEST_CASE("a device between others shifts their numbers and their links", "[vendor]") {
  Topology topology = machine("amd", {"0000:01:00.0", "0000:03:00.0", "10000:00:00.0"});
  topology.links = {{0, 1, "xgmi", 2}, {1, 2, "nvlink", 1}};
  VendorReport report =
      report_of("amd", {device_at("0000:02:00.0", "b"), device_at("0000:01:00.0", "a")});
  SECTION("links that are not reported stay") {
    merge(topology, report, "/nowhere");
    CHECK(topology.links == std::vector<Link>{{0, 2, "xgmi", 2}, {2, 3, "nvlink", 1}});
  }
  SECTION("links of the same kind are replaced, nonsense among them left out") {
    report.links = {{1, 0, 3}, {0, 1, 3}, {0, 0, 1}, {0, 7, 1}};
    merge(topology, report, "/nowhere");
    CHECK(topology.links == std::vector<Link>{{0, 1, "xgmi", 3}, {2, 3, "nvlink", 1}});
  }
  CHECK(uuids(topology) == "a b   ");
  CHECK(check_topology(topology));
}

TEST_CASE("an order that is not PCI's stays", "[vendor]") {
  Topology topology = machine("amd", {"0000:03:00.0", "0000:01:00.0", "0000:02:00.0"});
  topology.links = {{0, 2, "xgmi", 2}};
  SECTION("when one comes, which is last") {
    merge(topology,
          report_of("amd", {device_at("0000:00:01.0", "d"), device_at("0000:01:00.0", "b"),
                            device_at("0000:02:00.0", "c"), device_at("0000:03:00.0", "a")}),
          "/nowhere");
    CHECK(uuids(topology) == "a b c d ");
    CHECK(topology.links == std::vector<Link>{{0, 2, "xgmi", 2}});
  }
  SECTION("when one goes") {
    VendorReport report =
        report_of("amd", {device_at("0000:02:00.0", "c"), device_at("0000:03:00.0", "a")});
    report.complete = true;
    merge(topology, report, "/nowhere");
    CHECK(uuids(topology) == "a c ");
    CHECK(topology.links == std::vector<Link>{{0, 1, "xgmi", 2}});
  }
  SECTION("when one of another vendor comes") {
    for (Device& device : topology.devices) device.uuid = std::to_string(device.index);
    merge(topology, report_of("nvidia", {device_at("0000:00:01.0", "n")}), "/nowhere");
    CHECK(uuids(topology) == "0 1 2 n ");
    CHECK(topology.links == std::vector<Link>{{0, 2, "xgmi", 2}});
  }
  CHECK(check_topology(topology));
}

TEST_CASE("another vendor's devices are left alone", "[vendor]") {
  Topology topology = machine("nvidia", {"0000:01:00.0", "0000:03:00.0"});
  VendorReport report = report_of("amd", {device_at("0000:02:00.0", "b")});
  report.complete = true;
  CHECK(merge(topology, report, "/nowhere") == "");
  REQUIRE(topology.devices.size() == 3);
  CHECK(topology.devices[2].vendor == "amd");  // after those of the vendor that has more
}

TEST_CASE("what goes takes its links along", "[vendor]") {
  Topology topology = machine("amd", {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"});
  topology.links = {{0, 1, "xgmi", 1}, {0, 2, "xgmi", 4}, {1, 2, "xgmi", 1}};
  VendorReport report =
      report_of("amd", {device_at("0000:03:00.0", "c"), device_at("0000:01:00.0", "a")});
  report.complete = true;
  CHECK(merge(topology, report, "/nowhere") ==
        "it lists 2 of the 3 devices in /sys: this job cannot use the others");
  CHECK(uuids(topology) == "a c ");
  CHECK(topology.links == std::vector<Link>{{0, 1, "xgmi", 4}});
}

TEST_CASE("an added device is where the kernel says", "[vendor]") {
  const std::string root = std::filesystem::temp_directory_path() / "hpclaunch-merge-XXXXXX";
  std::string folder = root;
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const auto put = [&](const std::string& pci, const std::string& numa, const std::string& cpus) {
    const std::string at = folder + "/bus/pci/devices/" + pci;
    std::filesystem::create_directories(at);
    std::ofstream(at + "/numa_node") << numa << '\n';
    std::ofstream(at + "/local_cpulist") << cpus << '\n';
  };
  put("0000:01:00.0", "1", "4-7,100-200");
  const std::string below = folder + "/devices/pci0000:00/0000:00:02.0/0000:05:00.0";
  std::filesystem::create_directories(below);
  std::filesystem::create_symlink(below, folder + "/bus/pci/devices/0000:05:00.0");
  put("0000:02:00.0", "-1", "0-7");
  put("0000:03:00.0", "9", "nonsense");
  Topology topology = machine("amd", {});
  merge(topology,
        report_of("amd", {device_at("0000:01:00.0", "a"), device_at("0000:02:00.0", "b"),
                          device_at("0000:03:00.0", "c"), device_at("0000:04:00.0", "d"),
                          device_at("0000:05:00.0", "e")}),
        folder);
  std::filesystem::remove_all(folder);
  REQUIRE(topology.devices.size() == 5);
  CHECK(topology.devices[4].bridges == std::vector<std::string>{"0000:00", "0000:00:02.0"});
  CHECK(topology.devices[0].bridges.empty());
  CHECK(topology.devices[0].numa == 1);
  CHECK(topology.devices[0].pus.to_list() == "4-7");
  CHECK(topology.devices[1].numa == -1);
  CHECK(topology.devices[1].pus.to_list() == "0-7");
  CHECK(topology.devices[2].numa == -1);
  CHECK(topology.devices[2].pus.empty());
  CHECK(topology.devices[3].pus.empty());
  CHECK(check_topology(topology));
}

TEST_CASE("what a library report crosses a pipe whole", "[vendor]") {
  VendorReport report = report_of("amd", {device_at("0000:01:00.0", "a\"\\\xFF")});
  report.devices[0].instances = {"x", ""};
  report.devices[0].memory_bytes = ~0ULL;
  report.links = {{0, 1, 7}};
  report.complete = true;
  report.faults = {"one: two"};
  const Result<VendorReport> back =
      probe::vendor::report_from_json(probe::vendor::report_to_json(report));
  REQUIRE(back);
  CHECK(back->devices[0].uuid == "a\"\\\xEF\xBF\xBD");
  CHECK(back->devices[0].instances == report.devices[0].instances);
  CHECK(back->devices[0].memory_bytes == ~0ULL);
  CHECK(back->devices[0].subdevices == -1);
  CHECK(back->links[0].lanes == 7);
  CHECK(back->complete);
  CHECK(back->faults == report.faults);
  CHECK_FALSE(probe::vendor::report_from_json("{}"));
  CHECK_FALSE(probe::vendor::report_from_json("nonsense"));
}

TEST_CASE("PCI addresses are written as the kernel writes them", "[vendor]") {
  using probe::vendor::pci_text;
  CHECK(pci_text(0, 0xC1, 0, 0) == "0000:c1:00.0");
  CHECK(pci_text(0x10000, 0, 0x1F, 7) == "10000:00:1f.7");
  CHECK(pci_text(0, 0x100, 0, 0) == "");
  CHECK(pci_text(0, 0, 32, 0) == "");
  CHECK(pci_text(0, 0, 0, 8) == "");
  CHECK(pci_text(1ULL << 32, 0, 0, 0) == "");
}
