// What this process has of the kernel: its CPUs and limits.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::sys {

std::string affinity() {
  std::array<std::uint64_t, 2048> words{};  // for more CPUs than any kernel has
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof words, words.data());
  if (bytes <= 0) return "";
  const auto count = static_cast<std::size_t>(bytes) / sizeof words[0];
  return CpuSet::of_words({words.data(), std::min<std::size_t>(count, CpuSet::kCapacity / 64)})
      .to_list();
}

std::map<std::string, std::string> limits() {
  const struct {
    const char* name;
    decltype(RLIMIT_CORE) which;
  } kLimits[] = {{"core", RLIMIT_CORE},
                 {"memlock", RLIMIT_MEMLOCK},
                 {"nofile", RLIMIT_NOFILE},
                 {"stack", RLIMIT_STACK}};
  const auto text = [](rlim_t value) {
    return value == RLIM_INFINITY ? std::string("unlimited") : fmt::format("{}", value);
  };
  std::map<std::string, std::string> all;
  for (const auto& [name, which] : kLimits) {
    rlimit limit{};
    if (getrlimit(which, &limit) != 0) continue;
    all[name] = text(limit.rlim_cur);
    if (which == RLIMIT_CORE) all["core-hard"] = text(limit.rlim_max);
  }
  return all;
}

}  // namespace hpclaunch::sys
