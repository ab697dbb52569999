#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "hpclaunch/device_vendor.h"
#include "probe/pci.h"
#include "support/catch.h"
#include "support/places.h"
#include "vendor/support.h"

using namespace hpclaunch;
using namespace hpclaunch::test;
using probe::vendor::libraries_to_open;

namespace {

namespace fs = std::filesystem;

/// A made-up root with /dev, /proc and /sys.
class Root {
 public:
  Root() {
    path_ = fs::temp_directory_path() / "hpclaunch-libraries-XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~Root() { fs::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  void put(const std::string& file, const std::string& text = "") const {
    fs::create_directories(fs::path(path_ + file).parent_path());
    std::ofstream(path_ + file) << text << '\n';
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Which would be opened: "NZR" for NVML, Level Zero, ROCm SMI.
std::string opened(const Topology& topology, VendorLibraries want, const Root& root,
                   bool by_uuid = false) {
  const Libraries which = libraries_to_open(topology, want, by_uuid, root.path());
  return std::string(which.nvml.empty() ? "" : "N") + (which.level_zero.empty() ? "" : "Z") +
         (which.rocm_smi.empty() ? "" : "R");
}

constexpr auto kAll = VendorLibraries::all;
constexpr auto kNeeded = VendorLibraries::if_needed;

}  // namespace

// CONTRIBUTING.md, "A device vendor".
TEST_CASE("every device vendor is in each place that names vendors", "[vendor][places]") {
  for (const DeviceVendor& vendor : device_vendors()) {
    const std::string name(vendor.name);
    const std::string id(vendor.pci_id.substr(2));
    const probe::PciFunction card = {
        {0, 0xc1, 0, 0}, 0x0302, unsigned(std::stoul(id, nullptr, 16)), 1};
    expect(accelerator_vendor(card) == name, "src/probe/pci.cpp",
           in_quotes(name) + " for class 0302 of vendor " + id, "a case of accelerator_vendor");
    expect_in("src/probe/hwloc_io.cpp", in_quotes(name), "a row of kNames, for hwloc's XML");
    expect_in("src/profile/kinds.h", in_quotes(name), "add it to kVendors");
    expect_in("profiles/programs/engines.json", in_quotes(name) + ": [",
              "each container engine's options for its devices");
    expect_in("profiles/programs/gpus.json", "\"vendor\": " + in_quotes(name),
              "a row with the names of its models");
    expect_in("docs/reference/topology.md", "vendor " + in_ticks(id), "a row of \"Devices\"");
    expect_in_line("docs/reference/topology.md", "| `vendor`, `model`", in_ticks(name), "name it");
    expect_in("docs/devices.md", in_ticks(vendor.masks().front()), "a row of \"Vendors\"");
    for (const std::string_view mask : vendor.masks())
      expect_key_below("profiles/variables", mask, "explain knows the name");
  }
}

TEST_CASE("every reader of a vendor's library is asked, and has a fake to break",
          "[vendor][places]") {
  const std::string readers = source_file("src/probe/vendor/reader.h");
  const std::string start = "Result<VendorReport> read_";
  for (std::size_t at = readers.find(start); at != std::string::npos;
       at = readers.find(start, at + 1)) {
    const std::size_t from = at + start.size();
    const std::string name = readers.substr(from, readers.find('(', from) - from);
    expect_in("src/probe/vendor/enrich.cpp", "read_" + name, "a task of enrich()");
    expect_in("src/probe/vendor/libraries.cpp", "which." + name, "when it is opened");
    for (const std::string& test : {"fake_" + name, "abi_" + name}) {
      const std::string file = "tests/vendor/" + test + ".cpp";
      expect(fs::exists(HPCLAUNCH_SOURCE_DIR "/" + file), file, "a file", "copy that of rocm_smi");
    }
  }
}

TEST_CASE("a machine without devices opens nothing", "[vendor]") {
  const Root root;
  CHECK(opened(machine("nvidia", {}), kAll, root) == "");
  CHECK(opened(machine("nvidia", {}), kNeeded, root, true) == "");
}

TEST_CASE("the driver's file stands for a device that /sys does not show", "[vendor]") {
  const Root root;
  root.put("/dev/nvidiactl");
  CHECK(opened(machine("nvidia", {}), kAll, root) == "N");
  root.put("/dev/kfd");
  CHECK(opened(machine("nvidia", {}), kAll, root) == "NR");
  root.put("/dev/dri/renderD128");
  CHECK(opened(machine("nvidia", {}), kAll, root) == "NZR");
  CHECK(opened(machine("nvidia", {"0000:01:00.0"}), kAll, root) == "NR");
  CHECK(opened(machine("nvidia", {"0000:01:00.0"}), VendorLibraries::none, root, true) == "");
}

TEST_CASE("the launch path opens NVML only where that can change the plan", "[vendor]") {
  const Root root;
  const Topology two = machine("nvidia", {"0000:01:00.0", "0000:02:00.0"});
  root.put("/dev/nvidiactl");
  root.put("/dev/nvidia-uvm");
  root.put("/dev/nvidia0");
  root.put("/dev/nvidia1");
  CHECK(opened(two, kNeeded, root) == "");
  CHECK(opened(two, kAll, root) == "N");
  CHECK(opened(two, kNeeded, root, true) == "N");
  SECTION("MIG instances") {
    root.put("/proc/driver/nvidia/capabilities/gpu1/mig/config");
    CHECK(opened(two, kNeeded, root) == "");
    root.put("/proc/driver/nvidia/capabilities/gpu1/mig/gi2/access");
    CHECK(opened(two, kNeeded, root) == "N");
  }
  SECTION("fewer device files than devices") {
    fs::remove(root.path() + "/dev/nvidia1");
    CHECK(opened(two, kNeeded, root) == "N");
  }
}

TEST_CASE("the launch path opens Level Zero only where tiles are hidden", "[vendor]") {
  const Root root;
  Topology one = machine("intel", {"0000:01:00.0"});
  CHECK(opened(one, kAll, root) == "Z");
  CHECK(opened(one, kNeeded, root) == "");
  root.put("/sys/bus/pci/devices/0000:01:00.0/device", "0x0bd5");
  CHECK(opened(one, kNeeded, root) == "Z");
  one.devices[0].subdevices = 2;
  CHECK(opened(one, kNeeded, root) == "");
  one.devices[0].subdevices = 0;
  root.put("/sys/bus/pci/devices/0000:01:00.0/device", "0x0bda");
  CHECK(opened(one, kNeeded, root) == "");
}

TEST_CASE("AMD's library is never opened to launch", "[vendor]") {
  const Root root;
  root.put("/dev/kfd");
  CHECK(opened(machine("amd", {"0000:01:00.0"}), kAll, root) == "R");
  CHECK(opened(machine("amd", {"0000:01:00.0"}), kNeeded, root, true) == "");
}

TEST_CASE("the real libraries, where they are installed, do no harm", "[vendor]") {
  Libraries which;
  which.nvml = {"libnvidia-ml.so.1"};
  which.level_zero = {"libze_loader.so.1"};
  which.rocm_smi = {"librocm_smi64.so.7", "librocm_smi64.so.5", "librocm_smi64.so.1"};
  which.limit_seconds = kPatience;
  for (const Diagnostic& note : enriched(machine("nvidia", {}), which).notes) {
    WARN(note.message);
  }
}
