// What this process has of the kernel: its CPUs, limits and libraries.
#include <fmt/format.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::sys {

std::string affinity() {
  constexpr std::size_t kMostBytes = 1u << 20;
  constexpr int kBits = 8 * sizeof(unsigned long);
  for (std::size_t bytes = 1024; bytes <= kMostBytes; bytes *= 2) {
    std::vector<unsigned long> words(bytes / sizeof(unsigned long), 0);
    const long got = syscall(SYS_sched_getaffinity, 0, bytes, words.data());
    if (got < 0 && errno == EINVAL) continue;  // the kernel has more CPUs
    if (got < 0) break;
    CpuSet set;
    const int most = std::min(static_cast<int>(words.size()) * kBits, CpuSet::kCapacity);
    for (int bit = 0; bit < most; ++bit)
      if ((words[static_cast<std::size_t>(bit / kBits)] >> (bit % kBits) & 1) != 0) set.add(bit);
    return set.to_list();
  }
  return "";
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

std::string own_libraries(const EnvSnapshot& env) {
  std::vector<std::string> files;
  const auto collect = [](dl_phdr_info* info, std::size_t, void* into) {
    static_cast<std::vector<std::string>*>(into)->emplace_back(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(collect, &files);
  std::string folders;
  const std::string all = env.get("LD_LIBRARY_PATH");
  for (const std::string_view folder : split(all, ':')) {
    const std::string start = std::string(folder) + '/';
    if (folder.empty() ||
        std::ranges::none_of(files, [&](const auto& file) { return file.starts_with(start); }))
      continue;
    folders += (folders.empty() ? "" : ":") + std::string(folder);
  }
  return folders;
}

}  // namespace hpclaunch::sys
