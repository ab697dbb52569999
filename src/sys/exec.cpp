#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "hpclaunch/sys.h"
#include "sys/exec_words.h"

extern char** environ;

namespace hpclaunch::sys {

namespace {

// Reads until the end or the deadline. False: the deadline passed.
bool read_all(int fd, double limit_seconds, std::string& text) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(limit_seconds);
  char buffer[4096];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd poller{fd, POLLIN, 0};
    const int ready = poll(&poller, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > (1u << 20)) return true;
  }
}

}  // namespace

Result<std::string> capture(const std::vector<std::string>& argv, double limit_seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorKind::system, fmt::format("pipe: {}", std::strerror(errno))};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP);  // so that the limit ends its children too
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = -1;
  const int failure =
      posix_spawn(&child, argv[0].c_str(), &actions, &attributes, pointers(argv).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (failure != 0) {
    close(ends[0]);
    return Error{ErrorKind::system,
                 fmt::format("cannot start \"{}\": {}", argv[0], std::strerror(failure))};
  }
  std::string text;
  const bool ended = read_all(ends[0], limit_seconds, text);
  close(ends[0]);
  kill(-child, SIGKILL);  // not reaped yet: the number is still its own
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!ended)
    return Error{ErrorKind::system, fmt::format("\"{}\" did not answer within {} seconds",
                                                fmt::format("{}", argv[0]), limit_seconds)};
  return text;
}

Error exec(const std::vector<std::string>& argv, const EnvSnapshot& env,
           const std::vector<int>& keep) {
  for (const int fd : keep) fcntl(fd, F_SETFD, 0);
  execve(argv[0].c_str(), pointers(argv).data(), pointers(env.entries()).data());
  const int why = errno;
  for (const int fd : keep) fcntl(fd, F_SETFD, FD_CLOEXEC);
  return exec_error(argv[0], why);
}

}  // namespace hpclaunch::sys
