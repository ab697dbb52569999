// What this process really got: the rank's side of hpclaunch verify.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "sys/observe_node.h"

namespace hpclaunch::sys {

namespace {

// Bits of the kernel's arrays of unsigned long, in list format.
std::string bits_to_list(const std::vector<unsigned long>& words) {
  constexpr int kBits = 8 * sizeof(unsigned long);
  CpuSet set;
  for (int bit = 0; bit < std::min(static_cast<int>(words.size()) * kBits, CpuSet::kCapacity);
       ++bit)
    if ((words[static_cast<std::size_t>(bit / kBits)] >> (bit % kBits) & 1) != 0) set.add(bit);
  return set.to_list();
}

// The value of "Name:\t..." in the text of /proc/self/status.
std::string status_field(const std::string& text, std::string_view name) {
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':'))
      return std::string(trim(line.substr(name.size() + 1)));
  return "";
}

// The CPUs of this process's control group: version 2, then the cpuset of version 1, each with the
// nearest group upwards that says something, since a container sees its own group as the root.
std::string cgroup_cpus() {
  const Result<std::string> groups = read_file("/proc/self/cgroup", 1 << 16);
  if (!groups) return "";
  for (const std::string_view line : split(*groups, '\n')) {
    const std::vector<std::string_view> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const bool second = parts[0] == "0" && parts[1].empty();
    const std::vector<std::string_view> controllers = split(parts[1], ',');
    const bool first =
        std::find(controllers.begin(), controllers.end(), "cpuset") != controllers.end();
    if (!second && !first) continue;
    std::string path(line.substr(parts[0].size() + parts[1].size() + 2));
    for (;;) {
      const std::string folder =
          (second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpuset") + (path == "/" ? "" : path);
      const char* file = second ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus";
      if (const Result<std::string> cpus = read_file(folder + file, 1 << 16); cpus)
        if (!trim(*cpus).empty()) return std::string(trim(*cpus));
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return "";
}

// Numbers of linux/mempolicy.h, which is not on every machine.
constexpr unsigned long kMemsAllowed = 4;  // MPOL_F_MEMS_ALLOWED
constexpr int kModeFlags = 0xE000;         // MPOL_F_STATIC_NODES and its like

void add_memory(RankReport& report) {
#ifdef SYS_get_mempolicy
  constexpr std::size_t kMaxNodes = 1024;  // the kernel's largest configuration (MAX_NUMNODES)
  std::vector<unsigned long> nodes(kMaxNodes / (8 * sizeof(unsigned long)), 0);
  int mode = 0;
  if (syscall(SYS_get_mempolicy, &mode, nodes.data(), kMaxNodes, nullptr, 0UL) == 0) {
    constexpr const char* kModes[] = {
        "default",        "preferred",          "bind", "interleave", "local",
        "preferred-many", "weighted-interleave"};
    const auto number = static_cast<std::size_t>(mode & ~kModeFlags);
    report.memory_policy =
        number < std::size(kModes) ? kModes[number] : fmt::format("mode {}", number);
    report.memory_nodes = bits_to_list(nodes);
  }
  std::fill(nodes.begin(), nodes.end(), 0UL);
  if (syscall(SYS_get_mempolicy, nullptr, nodes.data(), kMaxNodes, nullptr, kMemsAllowed) == 0)
    report.memory_allowed = bits_to_list(nodes);
#endif
  const Result<std::string> status = read_file("/proc/self/status", 1 << 16);
  if (report.memory_allowed.empty() && status)
    report.memory_allowed = status_field(*status, "Mems_allowed_list");
}

void add_limits(RankReport& report) {
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
  for (const auto& [name, which] : kLimits) {
    rlimit limit{};
    if (getrlimit(which, &limit) != 0) continue;
    report.limits[name] = text(limit.rlim_cur);
    if (which == RLIMIT_CORE) report.limits["core-hard"] = text(limit.rlim_max);
  }
}

int number_of(const EnvSnapshot& env, const std::string& name, int otherwise) {
  if (name.empty()) return otherwise;
  const std::optional<long> value = parse_natural(env.get(name));
  return value ? static_cast<int>(*value) : otherwise;
}

}  // namespace

std::string affinity() {
  constexpr std::size_t kMostBytes = 1u << 20;
  for (std::size_t bytes = 1024; bytes <= kMostBytes; bytes *= 2) {
    std::vector<unsigned long> words(bytes / sizeof(unsigned long), 0);
    const long got = syscall(SYS_sched_getaffinity, 0, bytes, words.data());
    if (got >= 0) return bits_to_list(words);
    if (errno != EINVAL) break;  // EINVAL: the kernel has more CPUs
  }
  return "";
}

std::string fingerprints(const EnvSnapshot& env, const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) {
    const std::string* value = env.find(name);
    all += value == nullptr ? std::string(kNoFingerprint) : fingerprint(*value);
  }
  return all;
}

RankReport observe(const EnvSnapshot& env, const ObserveRequest& request) {
  RankReport report;
  report.host = host_name();
  report.pid = getpid();
  report.rank = number_of(env, "RANK", -1);
  report.local_rank = number_of(env, "HPCLAUNCH_LOCAL_RANK", -1);
  report.local_size = number_of(env, "HPCLAUNCH_LOCAL_SIZE", 0);
  report.node = number_of(env, "HPCLAUNCH_NODE", -1);
  report.launcher_local_rank = number_of(env, request.launcher_local_variable, -1);
  report.cpus = affinity();
  report.cpuset = cgroup_cpus();
  add_memory(report);
  add_devices(report);
  report.fingerprints = fingerprints(env, request.names);
  for (const auto& [name, value] : env.values())
    if (is_placement_variable(name)) report.values[name] = value;
  add_limits(report);
  if (report.local_rank == 0) report.facts = node_facts(env, request, report.node == 0);
  report.clock = wall_clock();
  return report;
}

}  // namespace hpclaunch::sys
