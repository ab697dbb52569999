#include "probe/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <string_view>
#include <vector>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/text.h"

extern char** environ;

namespace hpclaunch::probe {
namespace {

using Clock = std::chrono::steady_clock;

/// Variables beside the vendors' (device_vendor.h) that change what a probe sees. '*' ends a prefix.
constexpr std::string_view kCleared[] = {"HWLOC_*", "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
                                         "SYCL_DEVICE_FILTER", "SYCL_DEVICE_ALLOWLIST",
                                         "FI_PROVIDER"};

constexpr std::size_t kMaxAnswer = std::size_t{64} << 20;
constexpr std::size_t kMaxRemarks = 2048;  ///< the last bytes of stderr that are kept
constexpr int kTickMs = 50;                ///< how often we look whether a silent child still lives

// The answer as it crosses the pipe: its length in decimal, a newline, then a mark and the text.
// 'v': value. 'e': kind digit, message, NUL, hint.
std::string pack(const Result<std::string>& result) {
  const std::string body = result ? "v" + *result
                                  : fmt::format("e{}{}{}{}", static_cast<int>(result.error().kind),
                                                result.error().message, '\0', result.error().hint);
  return fmt::format("{}\n{}", body.size(), body);
}

Result<std::string> unpack(std::string_view body) {
  if (body.substr(0, 1) == "v") return std::string(body.substr(1));
  if (body.size() < 2) return Error{ErrorKind::system, "the probe's answer cannot be read"};
  const std::size_t end = std::min(body.find('\0', 2), body.size());
  Error error{static_cast<ErrorKind>(body[1] - '0'), std::string(body.substr(2, end - 2))};
  if (end < body.size()) error.hint = std::string(body.substr(end + 1));
  return error;
}

/// The body once it has come in whole; an empty view before.
std::string_view whole_body(std::string_view received) {
  const std::size_t end = received.find('\n');
  if (end == std::string_view::npos) return {};
  const auto length = parse_natural(received.substr(0, end), static_cast<long>(kMaxAnswer));
  const std::string_view body = received.substr(end + 1);
  if (!length || *length < 1 || body.size() < static_cast<std::size_t>(*length)) return {};
  return body.substr(0, static_cast<std::size_t>(*length));
}

// ---- the child -------------------------------------------------------------------------------------

void clear_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const std::string_view name = pair.substr(0, pair.find('='));
    const auto meant = [&](std::string_view pattern) {
      return pattern.back() == '*'
                 ? name.substr(0, pattern.size() - 1) == pattern.substr(0, pattern.size() - 1)
                 : name == pattern;
    };
    if (is_device_variable(name) || std::any_of(std::begin(kCleared), std::end(kCleared), meant))
      names.emplace_back(name);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

void settle(int remarks, pid_t parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
#else
  static_cast<void>(parent);
#endif
  for (const int crash : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(crash, SIG_DFL);
  rlimit no_core{};
  if (getrlimit(RLIMIT_CORE, &no_core) == 0) {
    no_core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &no_core);
  }
  dup2(remarks, STDOUT_FILENO);
  dup2(remarks, STDERR_FILENO);
  clear_environment();
}

[[noreturn]] void be_the_child(const std::function<Result<std::string>()>& function, int answer) {
  Result<std::string> result = Error{};
  try {
    result = function();
  } catch (const std::exception& error) {
    result = Error{ErrorKind::system, fmt::format("the probe failed: {}", error.what())};
  }
  const std::string packed = pack(result);
  std::string_view left = packed;
  while (!left.empty()) {
    const ssize_t n = write(answer, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  _exit(0);
}

// ---- the parent ------------------------------------------------------------------------------------

/// A pipe above the three standard descriptors, which may be closed in a caller of ours.
struct Pipe {
  int read_end = -1;
  int write_end = -1;

  bool open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read_end = raise(ends[0]);
    write_end = raise(ends[1]);
    return read_end >= 0 && write_end >= 0;
  }
  void close_write() { close_one(write_end); }
  void close_read() { close_one(read_end); }

  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_read();
    close_write();
  }

 private:
  static int raise(int fd) {
    if (fd > STDERR_FILENO) return fd;
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return high;
  }
  static void close_one(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

/// The child as its parent sees it; killed and reaped at the latest when this goes out of scope.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  /// True when it has ended by itself; then `status` holds what waitpid said (0 when nobody could
  /// say).
  bool ended() { return reap(WNOHANG); }

  /// What the kernel cannot kill (a driver that hangs) is left behind: it must not hang us.
  void end() {
    if (done_) return;
    kill(pid_, SIGKILL);
    constexpr timespec kPause{0, 5'000'000};
    for (int tries = 0; tries < 200 && !reap(WNOHANG); ++tries) nanosleep(&kPause, nullptr);
    done_ = true;
  }

  int status = 0;

 private:
  bool reap(int options) {
    while (!done_) {
      const pid_t got = waitpid(pid_, &status, options);
      if (got == 0) return false;
      if (got < 0 && errno == EINTR) continue;
      done_ = true;  // got < 0: the caller ignores SIGCHLD, so the kernel has reaped it
    }
    return true;
  }

  pid_t pid_;
  bool done_ = false;
};

/// Appends what can be read now. False at the end of the stream.
bool read_some(int fd, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) into.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/// The last line that says something, cut to a length that fits a message.
std::string last_words(const std::string& remarks) {
  constexpr std::size_t kMaxLength = 200;
  std::string last;
  for (const std::string_view line : split(remarks, '\n')) {
    if (!trim(line).empty()) last = std::string(trim(line).substr(0, kMaxLength));
  }
  std::replace_if(
      last.begin(), last.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return last.empty() ? "" : fmt::format("its last words: {}", last);
}

std::string signal_name(int signal) {
  const char* name = nullptr;
  switch (signal) {
    case SIGSEGV:
      name = "SIGSEGV";
      break;
    case SIGABRT:
      name = "SIGABRT";
      break;
    case SIGBUS:
      name = "SIGBUS";
      break;
    case SIGFPE:
      name = "SIGFPE";
      break;
    case SIGILL:
      name = "SIGILL";
      break;
    case SIGKILL:
      name = "SIGKILL";
      break;
    case SIGTERM:
      name = "SIGTERM";
      break;
    case SIGINT:
      name = "SIGINT";
      break;
    default:
      break;
  }
  return name != nullptr ? name : fmt::format("signal {}", signal);
}

Error no_answer(Child& child, const std::string& remarks) {
  child.end();
  const int status = child.status;
  std::string message =
      WIFSIGNALED(status)
          ? fmt::format("the probe crashed: {}", signal_name(WTERMSIG(status)))
          : fmt::format("the probe ended without an answer (exit status {})", WEXITSTATUS(status));
  return Error{ErrorKind::system, std::move(message), last_words(remarks)};
}

/// What both pipes have brought so far.
struct Intake {
  std::string answer;
  std::string remarks;
  bool answer_open = true;
  bool remarks_open = true;

  /// Waits at most `wait_ms` for bytes and takes them in. False when there were none.
  bool take(int answer_fd, int remarks_fd, int wait_ms) {
    std::array<pollfd, 2> fds{pollfd{answer_open ? answer_fd : -1, POLLIN, 0},
                              pollfd{remarks_open ? remarks_fd : -1, POLLIN, 0}};
    if (poll(fds.data(), fds.size(), wait_ms) <= 0) return false;
    if (fds[0].revents != 0) answer_open = read_some(answer_fd, answer);
    if (fds[1].revents != 0) remarks_open = read_some(remarks_fd, remarks);
    if (remarks.size() > kMaxRemarks) remarks.erase(0, remarks.size() - kMaxRemarks);
    return true;
  }
};

Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::clamp(count, 0.0, 86400.0)));
}

// A child that was ready long ago may still have to hand over more than a pipe holds.
Result<std::string> listen(Child& child, int answer_fd, int remarks_fd, double limit_seconds,
                           Clock::time_point start) {
  const Clock::time_point end = std::max(start + seconds(limit_seconds),
                                         Clock::now() + seconds(std::min(limit_seconds, 1.0)));
  Intake in;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) break;
    const int wait_ms = static_cast<int>(std::min<long long>(left, kTickMs));
    const bool silent = !in.take(answer_fd, remarks_fd, wait_ms);
    const std::string_view body = whole_body(in.answer);
    if (!body.empty()) return unpack(body);
    if (in.answer.size() > kMaxAnswer) {
      return Error{ErrorKind::system, "the probe's answer is longer than 64 MiB"};
    }
    // A grandchild may hold the pipes open, and a child may close its end and live on: only its own
    // end counts, and what it wrote before that has been taken in when a look finds nothing.
    const bool closed = !in.answer_open && !in.remarks_open;
    if (closed) poll(nullptr, 0, 1);
    if ((silent || closed) && child.ended() && !in.take(answer_fd, remarks_fd, 0)) {
      return no_answer(child, in.remarks);
    }
  }
  return Error{ErrorKind::system,
               fmt::format("the probe took longer than {} seconds and was killed", limit_seconds),
               last_words(in.remarks)};
}

}  // namespace

Result<std::string> run_in_child(const std::function<Result<std::string>()>& function,
                                 double limit_seconds, const std::function<void()>& meanwhile) {
  Pipe answer;
  Pipe remarks;
  const bool piped = answer.open() && remarks.open();
  const pid_t parent = getpid();
  const Clock::time_point start = Clock::now();
  const pid_t pid = piped ? fork() : -1;
  if (pid < 0) {
    Error error{ErrorKind::system,
                fmt::format("{}: {}", piped ? "fork" : "pipe", std::strerror(errno))};
    meanwhile();
    return error;
  }
  if (pid == 0) {
    settle(remarks.write_end, parent);
    be_the_child(function, answer.write_end);
  }
  Child child(pid);
  answer.close_write();
  remarks.close_write();
  meanwhile();
  return listen(child, answer.read_end, remarks.read_end, limit_seconds, start);
}

}  // namespace hpclaunch::probe
