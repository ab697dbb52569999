// Vendor reports, from the child of the library through the probe's child to the caller.
#include "probe/live.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

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
    which.level_zero = which.rocm_smi = {};
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

TEST_CASE("a library that hung is loaded once, then skipped until it changes", "[vendor]") {
  const RuntimeFolder runtime;
  const std::string library = std::string(FAKE_NVML) + ".copy";
  std::filesystem::copy_file(FAKE_NVML, library, std::filesystem::copy_options::overwrite_existing);
  const std::string count = library + ".count";
  std::filesystem::remove(count);
  const auto loads = [&] {
    std::ifstream file(count);
    return std::string(std::istreambuf_iterator<char>(file), {}).size();
  };
  Libraries which;
  which.nvml = {library};
  which.sysfs = "/nowhere";
  which.limit_seconds = 0.5;
  const Topology base = machine("nvidia", {"0000:01:00.0"});
  const auto ask = [&] {
    Topology topology = base;
    return probe::vendor::enrich(topology, which);
  };
  const auto skipped = [&] {
    const std::vector<Diagnostic> all = ask();
    return std::ranges::any_of(all, [](const Diagnostic& one) {
      return one.message.find("skipped") != std::string::npos;
    });
  };
  {
    const Behaviour hang({{"FAKE_HANG", "nvmlInit_v2"}, {"FAKE_COUNT_FILE", count}});
    const std::vector<Diagnostic> first = ask();
    REQUIRE(first.size() == 1);
    CHECK_THAT(first[0].message, ContainsSubstring("longer than 0.5 seconds"));
    CHECK_THAT(first[0].message, ContainsSubstring("from now on it is skipped"));
    for (int again = 0; again < 3; ++again) {
      const std::vector<Diagnostic> later = ask();
      REQUIRE(later.size() == 1);
      CHECK(later[0].message ==
            "NVML: skipped: the library did not answer earlier, and is unchanged");
      CHECK(later[0].fix == first[0].fix);
    }
    CHECK(loads() == 1);
  }
  which.limit_seconds = kPatience;
  const Behaviour counted({{"FAKE_COUNT_FILE", count}});
  SECTION("asked again after what the diagnostic names is typed") {
    const std::string fix = ask().at(0).fix;
    REQUIRE(std::system(fix.c_str()) == 0);
    CHECK_FALSE(skipped());
    CHECK(loads() == 2);
  }
  SECTION("asked again when the file changes") {
    std::filesystem::last_write_time(
        library, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
    CHECK_FALSE(skipped());
    CHECK(loads() == 2);
  }
  SECTION("a record that somebody else could write is not believed") {
    const std::string folder = std::string(std::getenv("XDG_RUNTIME_DIR")) + "/hpclaunch";
    std::filesystem::permissions(folder, std::filesystem::perms::others_all,
                                 std::filesystem::perm_options::add);
    CHECK_FALSE(skipped());
    CHECK(loads() == 2);
  }
  std::filesystem::remove(library);
  std::filesystem::remove(count);
}
