// Prints what a topology costs a fresh process, in milliseconds: the child alone, then all of it.
// usage: probe_bench [FILE]. Times of a first call are wanted, so each line is measured in one
// process: the runs are forked off here.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "hpclaunch/probe.h"
#include "hpclaunch/sys.h"
#include "probe/child.h"
#include "probe/sysfs.h"

namespace {

using hpclaunch::Result;

double milliseconds(const std::function<bool()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  if (!work()) return -1;
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

int report(const char* what, const std::function<bool()>& work) {
  constexpr int kRuns = 101;
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) {
    const Result<std::string> fresh = hpclaunch::probe::run_in_child(
        [&]() -> Result<std::string> { return std::to_string(milliseconds(work)); }, 60);
    times.push_back(fresh ? std::atof(fresh->c_str()) : -1);
  }
  std::sort(times.begin(), times.end());
  std::printf("%-14s least %6.2f ms, median %6.2f ms of %d\n", what, times.front(),
              times[kRuns / 2], kRuns);
  return times.front() < 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  int failures = report("empty child", [] {
    return bool(
        hpclaunch::probe::run_in_child([]() -> Result<std::string> { return std::string(); }, 60));
  });
  if (argc > 1) {
    const std::string path = argv[1];
    failures += report("read_topology", [&] { return bool(hpclaunch::read_topology(path)); });
  } else {
    failures += report("probe_node", [] {
      return bool(hpclaunch::probe_node(hpclaunch::VendorLibraries::if_needed));
    });
    failures += report("of that, /sys", [] {
      hpclaunch::Topology topology;
      hpclaunch::probe::add_devices("", topology);
      hpclaunch::probe::add_nics("", hpclaunch::sys::interfaces(), topology);
      return true;
    });
  }
  return failures;
}
