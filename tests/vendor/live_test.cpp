// Vendor reports, from the child of the library through the probe's child to the caller.
#include "probe/live.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.h"
#include "vendor/support.h"

using namespace hpclaunch;
using namespace hpclaunch::test;
using probe::probe_asking;

namespace {

/// This machine, as if /sys had shown no device, and these libraries.
Result<LiveNode> probe_with(const Libraries& which, double limit = kPatience) {
  return probe_asking([&](const Topology&) { return which; }, limit);
}

Libraries all_fakes() {
  Libraries which;
  which.nvml = {FAKE_NVML};
  which.level_zero = {FAKE_LEVEL_ZERO};
  which.amd_smi = {FAKE_AMD_SMI};
  which.rocm_smi = {FAKE_ROCM_SMI};
  which.sysfs = "/nowhere";
  which.limit_seconds = kPatience;
  return which;
}

std::string vendors(const Topology& topology) {
  std::string all;
  for (const Device& device : topology.devices) all += device.vendor.substr(0, 1);
  return all;
}

/// Whether a process has come to its end, reaped or not.
bool has_ended(long pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return true;
  return line.substr(line.rfind(')') + 2, 1) == "Z";
}

}  // namespace

TEST_CASE("a live probe has the reports of all vendors", "[vendor]") {
  const Result<LiveNode> without = probe_with(Libraries());
  REQUIRE(without);
  if (!without->topology.devices.empty()) {
    WARN("this machine has devices: not checked");
    return;
  }
  CHECK(without->diagnostics.empty());
  const Result<LiveNode> node = probe_with(all_fakes());
  REQUIRE(node);
  CHECK(node->diagnostics.empty());
  CHECK(vendors(node->topology) == "aaaannniii");  // the most, then NVIDIA
  CHECK(node->topology.links.size() == 7);
  CHECK(node->topology.cores == without->topology.cores);
}

TEST_CASE("one vendor's fault costs only what that one knows, and reaches the caller", "[vendor]") {
  const Result<LiveNode> whole = probe_with(all_fakes());
  REQUIRE(whole);
  const Behaviour crash({{"FAKE_CRASH", "nvmlDeviceGetUUID"}, {"FAKE_EXIT", "zeDeviceGet"}});
  const Result<LiveNode> node = probe_with(all_fakes());
  REQUIRE(node);
  REQUIRE(node->diagnostics.size() == 2);
  CHECK(node->diagnostics[0].message.rfind("NVML: ", 0) == 0);
  CHECK_THAT(node->diagnostics[0].message, ContainsSubstring("SIGSEGV"));
  CHECK(node->diagnostics[1].message.rfind("Level Zero: ", 0) == 0);
  CHECK(node->topology.devices.size() + 6 == whole->topology.devices.size());
}

TEST_CASE("a library that hangs ends with the probe that asked it", "[vendor]") {
  std::string path = std::filesystem::temp_directory_path() / "hpclaunch-pid-XXXXXX";
  const int file = mkstemp(path.data());
  REQUIRE(file >= 0);
  close(file);
  {
    const Behaviour hang({{"FAKE_HANG", "nvmlInit_v2"}, {"FAKE_PID_FILE", path}});
    Libraries which = all_fakes();
    which.level_zero = which.amd_smi = which.rocm_smi = {};
    const Result<LiveNode> node = probe_with(which, 2);
    REQUIRE_FALSE(node);
    CHECK_THAT(node.error().message, ContainsSubstring("longer than 2 seconds"));
  }
  long pid = 0;
  std::ifstream(path) >> pid;
  unlink(path.c_str());
  if (pid == 0) {
    WARN("the library was not reached in time: not checked");
    return;
  }
  for (int tries = 0; tries < 6000 && !has_ended(pid); ++tries) usleep(10000);
  CHECK(has_ended(pid));
}
