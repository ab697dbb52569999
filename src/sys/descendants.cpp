#include "sys/descendants.h"

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
  Signals ends(signal_set({SIGCHLD}));
  for (;;) {
    ends.discard();  // before the look: a later one wakes us
    reap_all();
    if (no_children()) return true;
    if (clock_ms() > limit) return false;
    // With nothing alive in sight, something was on its way to us or to its end: look again at once.
    if (signal_children(SIGKILL) == 0) continue;
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
