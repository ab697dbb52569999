// Files that count while a process has them open.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "hpclaunch/events.h"
#include "hpclaunch/hosts.h"
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

namespace {

constexpr std::size_t kChosen = 6;  // characters that mkdtemp(3) chooses
constexpr double kOldSeconds = 2 * 86'400;
constexpr const char* kLock = "/.lock";

bool is_abandoned(const std::string& folder, bool of_this_host) {
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
    return false;
  const int fd = of_this_host ? open_own(folder + kLock, O_RDWR) : -1;
  if (fd < 0) return wall_clock() - static_cast<double>(info.st_mtime) > kOldSeconds;
  const bool left = lock(fd);
  close(fd);
  return left;
}

}  // namespace

Result<HeldFolder> hold_folder(const std::string& parent, const std::string& kind) {
  const std::string own = fmt::format("{}-{}-", kind, short_host(host_name()));
  std::error_code failed;
  std::filesystem::create_directories(parent, failed);
  const Result<std::vector<std::string>> names = list_directory(parent);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    const std::string path = fmt::format("{}/{}", parent, name);
    const bool of_this_host = name.starts_with(own) && name.size() == own.size() + kChosen;
    if (name.starts_with(kind + "-") && is_abandoned(path, of_this_host))
      std::filesystem::remove_all(path, failed);
  }
  HeldFolder folder{fmt::format("{}/{}{}", parent, own, std::string(kChosen, 'X'))};
  if (mkdtemp(folder.path.data()) == nullptr)
    return Error{ErrorKind::system, fmt::format("cannot create a directory in {}", parent)};
  folder.lock = hold_file(folder.path + kLock, "");
  return folder;
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
