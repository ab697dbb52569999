// A command of which every line is read while it runs, and of which nothing is left afterwards.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "hpclaunch/sys.h"
#include "sys/exec_words.h"
#include "sys/local/parent.h"
#include "sys/local/sweep.h"

namespace hpclaunch::sys {

namespace {

using local::clock_ms;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

// Ends above the standard descriptors, which may be closed in a caller of ours.
bool open_pipe(Pipe& ends) {
  int raw[2];
  if (pipe2(raw, O_CLOEXEC) != 0) return false;
  const auto raise = [](int fd) {
    if (fd > STDERR_FILENO) return fd;
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return high;
  };
  ends = {raise(raw[0]), raise(raw[1])};
  return ends.read_end >= 0 && ends.write_end >= 0;
}

sigset_t signals_heard() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    if (!local::is_ignored(signal) || signal == SIGCHLD) sigaddset(&set, signal);
  }
  return set;
}

struct Child {
  pid_t pid = -1;
  Pipe input;    // what the child reads: nothing, for as long as it lives
  Pipe output;   // what it says
  Pipe failure;  // errno of its exec
};

[[noreturn]] void be_the_child(const Child& child, char* const* argv, char* const* envp,
                               const sigset_t& mask, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  dup2(child.input.read_end, STDIN_FILENO);
  dup2(child.output.write_end, STDOUT_FILENO);
  execve(argv[0], argv, envp);
  const int why = errno;
  if (write(child.failure.write_end, &why, sizeof why) < 0) _exit(126);
  _exit(125);
}

void close_all(const Child& child) {
  for (const int fd : {child.input.read_end, child.input.write_end, child.output.read_end,
                       child.output.write_end, child.failure.read_end, child.failure.write_end})
    if (fd >= 0) close(fd);
}

// The loop: lines in, signals and the clock heeded.
class Listener {
 public:
  Listener(const Child& child, int signals, double limit_seconds, double grace_seconds,
           const std::function<void(std::string_view, double)>& line)
      : child_(child),
        signals_(signals),
        end_at_(clock_ms() + static_cast<long>(limit_seconds * 1000)),
        grace_(static_cast<long>(grace_seconds * 1000)),
        line_(line) {}

  Ended run() {
    while (open_ || !dead_) step();
    if (!begun_.empty()) line_(begun_, wall_clock());
    return ended_;
  }

 private:
  void step() {
    std::array<pollfd, 2> fds{pollfd{open_ ? child_.output.read_end : -1, POLLIN, 0},
                              pollfd{signals_, POLLIN, 0}};
    const long left = kill_at_ >= 0 ? kill_at_ - clock_ms() : end_at_ - clock_ms();
    const long wait = std::min(std::max(left, 0L), kTick);
    if (poll(fds.data(), fds.size(), static_cast<int>(wait)) > 0) {
      if (fds[0].revents != 0) read_some();
      if (fds[1].revents != 0) hear();
    }
    look_after();
    heed_clock();
  }

  void read_some() {
    std::array<char, 65536> buffer;
    const ssize_t n = read(child_.output.read_end, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {
      open_ = false;
      return;
    }
    const double at = wall_clock();
    std::string_view rest(buffer.data(), static_cast<std::size_t>(n));
    for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
      begun_ += rest.substr(0, end);
      line_(begun_, at);
      begun_.clear();
      rest.remove_prefix(end + 1);
    }
    begun_ += rest;
  }

  void hear() {
    signalfd_siginfo seen{};
    while (read(signals_, &seen, sizeof seen) == static_cast<ssize_t>(sizeof seen)) {
      const int signal = static_cast<int>(seen.ssi_signo);
      if (signal == SIGCHLD || ended_.interrupted_by != 0) continue;
      ended_.interrupted_by = signal;
      begin_end();
    }
  }

  void look_after() {
    int status = 0;
    if (dead_ || waitpid(child_.pid, &status, WNOHANG) != child_.pid) {
      // A descendant may keep the pipe open for ever; what came before the end has been read by then.
      if (dead_ && open_ && clock_ms() > dead_at_ + kLinger) open_ = false;
      return;
    }
    dead_ = true;
    dead_at_ = clock_ms();
    ended_.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  void heed_clock() {
    if (kill_at_ < 0 && !dead_ && clock_ms() >= end_at_) {
      ended_.too_late = true;
      begin_end();
    }
    if (kill_at_ >= 0 && !dead_ && clock_ms() >= kill_at_) {
      kill(-child_.pid, SIGKILL);
      kill(child_.pid, SIGKILL);
    }
  }

  void begin_end() {
    if (kill_at_ >= 0) return;
    kill_at_ = clock_ms() + grace_;
    if (dead_) return;
    kill(-child_.pid, SIGTERM);
  }

  static constexpr long kTick = 50;     // ms
  static constexpr long kLinger = 500;  // ms
  const Child& child_;
  int signals_;
  long end_at_;
  long grace_;
  const std::function<void(std::string_view, double)>& line_;
  std::string begun_;
  Ended ended_;
  bool open_ = true;
  bool dead_ = false;
  long dead_at_ = 0;
  long kill_at_ = -1;
};

}  // namespace

Result<Ended> listen_to(const std::vector<std::string>& argv, const EnvSnapshot& env,
                        double limit_seconds, double grace_seconds,
                        const std::function<void(std::string_view, double)>& line) {
  Child child;
  if (!open_pipe(child.input) || !open_pipe(child.output) || !open_pipe(child.failure)) {
    Error error{ErrorKind::system, fmt::format("pipe: {}", std::strerror(errno)), ""};
    close_all(child);
    return error;
  }
  const local::Subreaper reaper;
  const local::ExitStatuses statuses;
  const sigset_t heard = signals_heard();
  sigset_t mask;
  sigprocmask(SIG_BLOCK, &heard, &mask);
  const int signals = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
  const std::vector<char*> words = pointers(argv);
  const std::vector<char*> variables = pointers(env.entries());
  const pid_t parent = getpid();
  child.pid = fork();
  if (child.pid == 0) be_the_child(child, words.data(), variables.data(), mask, parent);
  Result<Ended> result = Error{ErrorKind::system, "cannot start another process",
                               "ulimit -u says how many processes are allowed"};
  if (child.pid > 0) {
    setpgid(child.pid, child.pid);
    for (int* fd : {&child.input.read_end, &child.output.write_end, &child.failure.write_end}) {
      close(*fd);
      *fd = -1;
    }
    int why = 0;
    const bool failed = read(child.failure.read_end, &why, sizeof why) == sizeof why;
    result = Listener(child, signals, limit_seconds, grace_seconds, line).run();
    if (reaper.alone()) result->clean = local::end_children(local::kHopeless);
    if (failed) result = exec_error(argv[0], why);
  }
  close_all(child);
  close(signals);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  return result;
}

}  // namespace hpclaunch::sys
