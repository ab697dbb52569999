#include "sys/descendants.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::sys {
namespace {

struct Stat {
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
};

// Descending: what forks and exits quickly is met while it is there.
std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  const Result<std::vector<std::string>> names = list_directory("/proc");
  if (!names) return pids;
  for (const std::string& name : *names)
    if (const auto pid = parse_natural(name)) pids.push_back(static_cast<pid_t>(*pid));
  std::sort(pids.rbegin(), pids.rend());
  return pids;
}

// /proc/PID/stat: "pid (name) state parent group ..."; the name may hold anything, ')' included.
std::optional<Stat> read_stat(pid_t pid) {
  const Result<std::string> text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return std::nullopt;
  const char* after = std::strrchr(text->c_str(), ')');
  Stat found;
  if (after == nullptr ||
      std::sscanf(after, ") %c %d %d", &found.state, &found.parent, &found.group) != 3)
    return std::nullopt;
  return found;
}

constexpr std::size_t kMostBelow = 64;  // processes of a rank that are looked at

// None where the kernel does not list them.
std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> found;
  const std::string tasks = fmt::format("/proc/{}/task", process);
  const Result<std::vector<std::string>> threads = list_directory(tasks);
  if (!threads) return found;
  for (const std::string& thread : *threads)
    if (const Result<std::string> children = read_file(tasks + "/" + thread + "/children"))
      for (const std::string_view child : split(*children, ' '))
        if (const auto pid = parse_natural(child)) found.push_back(static_cast<pid_t>(*pid));
  return found;
}

void reap_all() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

}  // namespace

int signal_children(int signal, const std::set<pid_t>& but) {
  const pid_t self = getpid();
  const pid_t own_group = getpgrp();
  int found = 0;
  for (const pid_t pid : all_pids()) {
    const std::optional<Stat> stat = read_stat(pid);
    if (!stat || stat->parent != self || stat->state == 'Z' || but.contains(pid)) continue;
    ++found;
    if (stat->group > 1 && stat->group != own_group) kill(-stat->group, signal);
    if (signal == SIGKILL || stat->group == own_group) kill(pid, signal);
  }
  return found;
}

std::map<int, pid_t> left_to_us(const std::map<pid_t, int>& ranks) {
  std::map<int, pid_t> found;
  for (const pid_t child : children_of(getpid())) {
    if (ranks.contains(child)) continue;
    std::vector<pid_t> all = {child};
    for (std::size_t i = 0; i < all.size() && i < kMostBelow; ++i) {
      const Result<std::string> text = read_file(fmt::format("/proc/{}/environ", all[i]));
      std::optional<long> rank;
      if (text)
        for (const std::string_view entry : split(*text, '\0'))
          if (entry.starts_with("RANK=")) rank = parse_natural(entry.substr(5));
      if (rank) {
        found.try_emplace(static_cast<int>(*rank), all[i]);
        break;
      }
      for (const pid_t below : children_of(all[i])) all.push_back(below);
    }
  }
  return found;
}

Memories::Memories(std::vector<pid_t> programs) {
  const Result<std::string> scope = read_file("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope || !scope->starts_with('1')) return;
  for (std::size_t i = 0; i < programs.size() && i < kMostBelow; ++i) {
    const int fd = ::open(fmt::format("/proc/{}/mem", programs[i]).c_str(), O_RDONLY);
    if (fd >= 0) open_.push_back(fd);
    for (const pid_t child : children_of(programs[i])) programs.push_back(child);
  }
}

Memories::~Memories() {
  for (const int fd : open_) close(fd);
}

bool no_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

bool end_descendants(double limit_seconds, const std::set<pid_t>& but) {
  const long limit = clock_ms() + static_cast<long>(limit_seconds * 1000);
  Signals ends(signal_set({SIGCHLD}));
  bool alone = false;  // with those of `but`, at the last look
  for (;;) {
    ends.discard();  // before the look: a later one wakes us
    reap_all();
    if (no_children()) return true;
    if (clock_ms() > limit) return false;
    // With nothing alive in sight, something was on its way to us or to its end: look again at once.
    if (signal_children(SIGKILL, but) == 0) {
      if (!but.empty() && std::exchange(alone, true)) return true;
      continue;
    }
    alone = false;
    Wait wait;
    wait.on(ends.fd());
    wait.until(limit + 1);
    wait.run();
  }
}

Subreaper::Subreaper() : alone_(no_children()) {
  prctl(PR_GET_CHILD_SUBREAPER, &before_);
  if (alone_) prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Subreaper::~Subreaper() {
  if (alone_) prctl(PR_SET_CHILD_SUBREAPER, before_);
}

}  // namespace hpclaunch::sys
