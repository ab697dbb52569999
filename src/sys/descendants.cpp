#include "sys/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <vector>

#include "hpclaunch/events.h"

namespace hpclaunch::sys {
namespace {

struct Stat {
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
};

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return pids;
  while (const dirent* entry = readdir(proc)) {
    const char* end = entry->d_name + std::strlen(entry->d_name);
    pid_t pid = 0;
    if (std::from_chars(entry->d_name, end, pid).ptr == end) pids.push_back(pid);
  }
  closedir(proc);
  std::sort(pids.begin(), pids.end(), std::greater<>());
  return pids;
}

// /proc/PID/stat: "pid (name) state parent group ..."; the name may hold anything, ')' included.
std::optional<Stat> read_stat(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char text[512];
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return std::nullopt;
  text[size] = '\0';
  const char* after = std::strrchr(text, ')');
  Stat found;
  if (after == nullptr ||
      std::sscanf(after, ") %c %d %d", &found.state, &found.parent, &found.group) != 3) {
    return std::nullopt;
  }
  return found;
}

void reap_all() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

}  // namespace

int signal_children(int signal) {
  const pid_t self = getpid();
  const pid_t own_group = getpgrp();
  int found = 0;
  for (const pid_t pid : all_pids()) {
    const std::optional<Stat> stat = read_stat(pid);
    if (!stat || stat->parent != self || stat->state == 'Z') continue;
    ++found;
    if (stat->group > 1 && stat->group != own_group) kill(-stat->group, signal);
    if (signal == SIGKILL || stat->group == own_group) kill(pid, signal);
  }
  return found;
}

bool no_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

bool end_descendants(double limit_seconds) {
  const long limit = clock_ms() + static_cast<long>(limit_seconds * 1000);
  for (;;) {
    reap_all();
    if (no_children()) return true;
    if (clock_ms() > limit) return false;
    // With nothing alive in sight, something was on its way to us or to its end: look again at
    // once.
    if (signal_children(SIGKILL) > 0) {
      const timespec pause{0, 200'000};
      nanosleep(&pause, nullptr);
    }
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
