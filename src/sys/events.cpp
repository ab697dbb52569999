#include "hpclaunch/events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <vector>

namespace hpclaunch::sys {
namespace {

// `fd` or a copy of it above the standard descriptors.
int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(fd);
  return high;
}

void close_one(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace

long clock_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

void Wait::on(int fd, short events) {
  if (fd >= 0) wanted_.at(count_++) = {fd, events, 0};
}

void Wait::until(long deadline) {
  if (deadline != kNever)
    deadline_ = deadline_ == kNever ? deadline : std::min(deadline_, deadline);
}

void Wait::run() {
  constexpr long kLongest = 3'600'000;  // poll takes an int
  const long left = deadline_ == kNever ? -1 : std::clamp(deadline_ - clock_ms(), 0L, kLongest);
  if (poll(wanted_.data(), count_, static_cast<int>(left)) < 0)
    for (pollfd& one : wanted_) one.revents = 0;
}

bool Wait::ready(int fd) const {
  return std::any_of(wanted_.begin(), wanted_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [&](const pollfd& one) { return one.fd == fd && one.revents != 0; });
}

bool Pipe::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end = above_standard(ends[0]);
  write_end = above_standard(ends[1]);
  return read_end >= 0 && write_end >= 0;
}

Pipe::~Pipe() {
  close_read();
  close_write();
}

std::optional<std::string_view> Pipe::next(bool last) const {
  static std::array<char, 64 * 1024> buffer;
  ssize_t size = 0;
  do size = read(read_end, buffer.data(), buffer.size());
  while (size < 0 && errno == EINTR);
  if (size < 0 && !last) return std::nullopt;
  return std::string_view(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
}

void Pipe::close_read() { close_one(read_end); }

void Pipe::close_write() { close_one(write_end); }

bool read_some(int fd, std::string& into) {
  std::array<char, 64 * 1024> buffer;
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  if (size > 0) into.append(buffer.data(), static_cast<std::size_t>(size));
  return size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN));
}

sigset_t signal_set(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t unless_ignored(std::initializer_list<int> signals) {
  std::vector<int> heard;
  for (const int signal : signals)
    if (!is_ignored(signal)) heard.push_back(signal);
  return signal_set(heard);
}

sigset_t hold(std::initializer_list<int> signals) {
  const sigset_t set = unless_ignored(signals);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return set;
}

int held_signal() {
  sigset_t pending;
  sigpending(&pending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (sigismember(&pending, signal) == 1) return signal;
  return 0;
}

Signals::Signals(const sigset_t& set) {
  sigprocmask(SIG_BLOCK, &set, &before_);
  fd_ = above_standard(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Signals::~Signals() {
  if (fd_ >= 0) close(fd_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<signalfd_siginfo> Signals::next() {
  signalfd_siginfo seen{};
  if (read(fd_, &seen, sizeof seen) != static_cast<ssize_t>(sizeof seen)) return std::nullopt;
  return seen;
}

void Signals::discard() {
  while (next()) continue;
}

KeepExitStatuses::KeepExitStatuses() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &before_);
}

KeepExitStatuses::~KeepExitStatuses() { sigaction(SIGCHLD, &before_, nullptr); }

std::string signal_name(int signal) {
  static constexpr const char* kNames[] = {
      // signal(7), x86 and Arm; not every glibc has sigabbrev_np
      "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1", "SEGV",
      "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN", "TTOU",
      "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS"};
  if (signal >= 1 && signal <= static_cast<int>(std::size(kNames)))
    return fmt::format("SIG{}", kNames[signal - 1]);
  if (signal >= SIGRTMIN && signal <= SIGRTMAX)
    return fmt::format("SIGRTMIN+{}", signal - SIGRTMIN);
  return fmt::format("signal {}", signal);
}

Child::Child(pid_t pid) : pid_(pid), ends_(signal_set({SIGCHLD})) {}

Child::~Child() { kill_now(); }

int Child::fd() const { return reaped_ ? -1 : ends_.fd(); }

bool Child::ended(int to_group) {
  if (reaped_) return true;
  ends_.discard();  // before the look: a later one wakes us again
  siginfo_t info{};
  const bool unknown =  // ECHILD: SIGCHLD is ignored, so the kernel has reaped it
      waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0;
  if (!unknown && info.si_pid == 0) return false;
  if (!unknown && to_group != 0) signal_group(to_group);
  if (!unknown) waitpid(pid_, &status, 0);
  return reaped_ = true;
}

void Child::signal(int number) const {
  if (!reaped_) kill(pid_, number);
}

void Child::signal_group(int number) const {
  if (!reaped_) kill(-pid_, number);
}

void Child::kill_now() {
  constexpr long kPatience = 1000;  // ms; a driver that hangs in the kernel is not killed
  signal(SIGKILL);
  const long deadline = clock_ms() + kPatience;
  while (!ended() && clock_ms() < deadline) {
    Wait wait;
    wait.on(fd());
    wait.until(deadline);
    wait.run();
  }
  reaped_ = true;
}

int Child::shell_status() const {
  constexpr int kBySignal = 128;
  return WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace hpclaunch::sys
