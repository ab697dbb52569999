// CPU time that control groups grant, as containers, pods and units of systemd have it.
#include <map>

#include "hpclaunch/world.h"
#include "support/catch.h"
#include "world/node.h"

using namespace hpclaunch;
using namespace hpclaunch::job;

namespace {

int quota_with(const std::map<std::string, std::string>& files, const char* given = nullptr,
               Diagnostics* said = nullptr) {
  World world;
  if (given != nullptr) world.env = EnvSnapshot({std::string("HPCLAUNCH_CPU_QUOTA=") + given});
  world.read_file = [&](const std::string& path, std::size_t) -> Result<std::string> {
    const auto at = files.find(path);
    if (at == files.end()) return Error{ErrorKind::not_found, path};
    return at->second;
  };
  Diagnostics diagnostics;
  const CpuQuota quota = cpu_quota(world, diagnostics);
  if (said != nullptr) *said = diagnostics;
  return quota.cpus;
}

}  // namespace

TEST_CASE("a quota that is exported stands in place of the control group's", "[quota]") {
  const std::map<std::string, std::string> two = {{"/proc/self/cgroup", "0::/"},
                                                  {"/sys/fs/cgroup/cpu.max", "200000 100000"}};
  Diagnostics said;
  CHECK(quota_with(two, "none") == 0);
  CHECK(quota_with(two, "5") == 5);
  CHECK(quota_with(two, "", &said) == 2);
  CHECK(said.empty());
  for (const char* given : {"0", "-1", "all", "2.5"}) {
    CHECK(quota_with(two, given, &said) == 2);
    REQUIRE(said.size() == 1);
    CHECK_THAT(said[0].message, ContainsSubstring(std::string("\"") + given + "\""));
  }
}

TEST_CASE("the smallest quota of this group and all around it", "[quota]") {
  const std::string root = "/sys/fs/cgroup";
  const std::string self = "/proc/self/cgroup";
  CHECK(quota_with({}) == 0);
  CHECK(quota_with({{self, "0::/\n"}}) == 0);
  // A container that sees its group as the root, with a path of its own or the host's.
  for (const char* path : {"0::/\n", "0::/docker/3fd2\n", "0::/../..\n"})
    CHECK(quota_with({{self, path}, {root + "/cpu.max", "200000 100000\n"}}) == 2);
  CHECK(quota_with({{self, "0::/\n"}, {root + "/cpu.max", "max 100000\n"}}) == 0);
  CHECK(quota_with({{self, "0::/\n"}, {root + "/cpu.max", "50000 100000\n"}}) == 1);
  CHECK(quota_with({{self, "0::/\n"}, {root + "/cpu.max", "damaged"}}) == 0);
  // A pod's limit is not its container's: 3.5 CPUs, of which whole ones count.
  CHECK(quota_with({{self, "0::/kubepods.slice/pod7/c1\n"},
                    {root + "/kubepods.slice/pod7/c1/cpu.max", "800000 100000\n"},
                    {root + "/kubepods.slice/pod7/cpu.max", "350000 100000\n"}}) == 3);
  // Version 1, and both side by side.
  const std::string v1 = root + "/cpu,cpuacct/docker/3fd2/cpu.cfs_";
  const std::string lines = "4:memory:/x\n3:cpu,cpuacct:/docker/3fd2\n0::/\n";
  CHECK(quota_with(
            {{self, lines}, {v1 + "quota_us", "400000\n"}, {v1 + "period_us", "100000\n"}}) == 4);
  CHECK(quota_with({{self, lines}, {v1 + "quota_us", "-1\n"}, {v1 + "period_us", "100000\n"}}) ==
        0);
  CHECK(quota_with({{self, "1:cpu:/\n"},
                    {root + "/cpu/cpu.cfs_quota_us", "150000"},
                    {root + "/cpu/cpu.cfs_period_us", "50000"}}) == 3);
  CHECK(quota_with({{self, "0::/a\n"}, {root + "/unified/a/cpu.max", "600000 200000"}}) == 3);
}
