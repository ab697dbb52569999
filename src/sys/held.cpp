// Files that count while a process has them open.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::sys {

namespace {

bool lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }

int open_own(const std::string& path, int flags) {
  return open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
}

}  // namespace

// Written and locked under another name first: whoever finds the file finds it held and whole.
int hold_file(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  const int fd = open_own(fresh, O_RDWR | O_CREAT | O_TRUNC);
  if (fd >= 0 && lock(fd) && write_all(fd, text) && std::rename(fresh.c_str(), path.c_str()) == 0)
    return fd;
  if (fd >= 0) close(fd);
  unlink(fresh.c_str());
  return -1;
}

std::vector<std::string> held_files(const std::string& folder) {
  constexpr std::size_t kMost = 1u << 20;
  std::vector<std::string> texts;
  const Result<std::vector<std::string>> names = list_directory(folder);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (name.ends_with(".new")) continue;
    const int fd = open_own(path, O_RDONLY);
    if (fd < 0) continue;
    const bool left = flock(fd, LOCK_SH | LOCK_NB) == 0;
    if (left) unlink(path.c_str());
    if (Result<std::string> text = left ? Error{} : read_file(path, kMost); text)
      texts.push_back(*std::move(text));
    close(fd);
  }
  return texts;
}

// The end of a turn closes the file, of which inotify tells; with a process that was killed the lock goes a moment after
// that, so that the last look is a second later at most.
int take_turn(const std::string& path, double seconds) {
  constexpr long kSecond = 1000;  // ms
  const int fd = open_own(path, O_RDWR | O_CREAT);
  if (fd < 0 || lock(fd)) return fd;
  const int ends = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  inotify_add_watch(ends, path.c_str(), IN_CLOSE);
  const long limit = clock_ms() + static_cast<long>(seconds * kSecond);
  bool mine = false;
  while (!(mine = lock(fd)) && clock_ms() < limit) {
    Wait wait;
    wait.on(ends);
    wait.until(std::min(limit, clock_ms() + kSecond));
    wait.run();
    std::string events;
    read_some(ends, events);
  }
  close(ends);
  if (mine) return fd;
  close(fd);
  return -1;
}

void end_turn(int fd) {
  flock(fd, LOCK_UN);
  close(fd);
}

}  // namespace hpclaunch::sys
