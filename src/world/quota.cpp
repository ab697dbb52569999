// How many CPUs' time the control groups of this process grant: containers, pods and units of systemd.
//
// Source: Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max), scheduler/sched-bwc.rst (cpu.cfs_quota_us), cgroups(7).
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "world/node.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kMost = 65536;

std::string line_of(const World& world, const std::string& path) {
  const Result<std::string> text = world.read_file(path, kMost);
  return text ? std::string(trim(*text)) : std::string();
}

// "200000 100000": microseconds of CPU time in each period; "max" or "-1": no limit.
CpuQuota read_quota(const std::string& text, const std::string& path) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos) return {};
  constexpr long kMostMicroseconds = 1'000'000'000'000;
  const auto quota = parse_natural(text.substr(0, blank), kMostMicroseconds);
  const auto period = parse_natural(text.substr(blank + 1), kMostMicroseconds);
  if (!quota || !period || *quota == 0 || *period == 0) return {};
  return {static_cast<int>(std::clamp(*quota / *period, 1L, long{CpuSet::kCapacity})),
          fmt::format("{}: {}", path, text)};
}

}  // namespace

CpuQuota cpu_quota(const World& world, Diagnostics& diagnostics) {
  constexpr const char* kName = "HPCLAUNCH_CPU_QUOTA";
  const std::string given = world.env.get(kName);
  const auto cpus = parse_natural(given, CpuSet::kCapacity);
  if (given == "none") return {};
  if (cpus && *cpus > 0) return {static_cast<int>(*cpus), fmt::format("{}={}", kName, given)};
  if (!given.empty())
    diagnostics.push_back(
        {"cpu-quota", Severity::warning,
         fmt::format("ignoring {}=\"{}\": neither a number of CPUs nor none", kName, shown(given)),
         fmt::format("export {}=none", kName)});
  CpuQuota least;
  const auto add = [&](const std::string& text, const std::string& path) {
    CpuQuota found = read_quota(text, path);
    if (found.cpus > 0 && (least.cpus == 0 || found.cpus < least.cpus)) least = std::move(found);
  };
  // A container may see its own group as the root, under the path that the host has for it.
  const auto each_group = [](std::string path, auto visit) {
    for (;; path.erase(path.rfind('/'))) {
      while (path.ends_with('/')) path.pop_back();
      visit(path);
      if (path.find('/') == std::string::npos) return;
    }
  };
  const std::string groups = line_of(world, "/proc/self/cgroup");
  for (const std::string_view line : split(groups, '\n')) {
    const std::vector<std::string_view> fields = split(line, ':');  // number, controllers, path
    if (fields.size() < 3) continue;
    const std::string path(line.substr(fields[0].size() + fields[1].size() + 2));
    const std::vector<std::string_view> controllers = split(fields[1], ',');
    if (fields[1].empty()) {
      for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
        each_group(path, [&](const std::string& group) {
          const std::string file = root + group + "/cpu.max";
          add(line_of(world, file), file);
        });
    } else if (std::ranges::count(controllers, "cpu") > 0) {
      for (const char* root : {"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"})
        each_group(path, [&](const std::string& group) {
          const std::string file = root + group + "/cpu.cfs_";
          add(fmt::format("{} {}", line_of(world, file + "quota_us"),
                          line_of(world, file + "period_us")),
              file + "quota_us");
        });
    }
  }
  return least;
}

}  // namespace hpclaunch::job
