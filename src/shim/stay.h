#pragma once
// The shim beside the program: it passes stderr on, says how the program ended, and lets the launcher know
// of a failure in a way that the launcher heeds. docs/shim.md, "Staying beside the program".
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "say.h"

namespace hpclaunch::shim {

/// What the kernel sends a staying shim when the process above ends. Nobody else sends it to a rank.
constexpr int kOrphaned = SIGPWR;

/// A signal for us when the process above ends; an end at once, when it has ended already.
inline void die_with_parent(Stay stay) {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, stay == Stay::no ? SIGKILL : kOrphaned);
  if (getppid() != parent) _exit(kFailed);
}

/// The last lines of what passed.
class Tail {
 public:
  void add(const char* bytes, int size) {
    for (int i = 0; i < size; ++i) bytes_[static_cast<unsigned>(total_++) % kRoom] = bytes[i];
  }
  bool ends_line() const { return total_ == 0 || at(total_ - 1) == '\n'; }

  /// Gives each of the last `lines` lines, the oldest first, to `use`.
  template <class Use>
  void each(int lines, Use use) const {
    const long long oldest = total_ > kRoom ? total_ - kRoom : 0;
    long long start = ends_line() ? total_ - 1 : total_;
    const long long end = start;
    for (; start > oldest; --start) {
      if (at(start - 1) == '\n' && --lines == 0) break;
    }
    static char line[kRoom];
    int size = 0;
    for (long long i = start; i < end; ++i) {
      if (at(i) != '\n') {
        line[size++] = at(i);
        continue;
      }
      use(Text(line, size));
      size = 0;
    }
    if (end > start || size > 0) use(Text(line, size));
  }

 private:
  static constexpr int kRoom = 8192;
  char at(long long position) const { return bytes_[static_cast<unsigned>(position) % kRoom]; }
  char bytes_[kRoom] = {};
  long long total_ = 0;
};

constexpr int kPassedOn[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1,  SIGUSR2,
                             SIGALRM, SIGTERM, SIGCONT, SIGWINCH, SIGURG};

class Stayer {
 public:
  Stayer(const Plan& plan, const Place& place, bool records)
      : plan_(plan), place_(place), records_(records) {}

  /// Forks. True in the child, which has its signals and stderr and shall become the program.
  bool start() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    int ends[2];
    sigset_t heard;
    sigemptyset(&heard);
    sigaddset(&heard, SIGCHLD);
    sigaddset(&heard, kOrphaned);
    for (const int signal : kPassedOn) sigaddset(&heard, signal);
    signals_ = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    const bool piped = pipe2(ends, O_CLOEXEC) == 0;
    if (piped) {  // 0, 1 or 2 may have been closed
      for (int& end : ends) end = end > STDERR_FILENO ? end : fcntl(end, F_DUPFD_CLOEXEC, 3);
    }
    const pid_t self = getpid();
    child_ = piped && signals_ >= 0 ? fork() : -1;
    if (child_ < 0) cannot_stay();
    if (child_ == 0) {
      recorded = nullptr;  // the shim that stays tells of our end
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) _exit(kFailed);
      dup2(ends[1], STDERR_FILENO);
      sigprocmask(SIG_SETMASK, &before, nullptr);
      return true;
    }
    if (records_ && place_.local == 0)
      record(place_, static_cast<int>(child_)).add(" begun").print();
    errors_ = ends[0];
    fcntl(errors_, F_SETFL, O_NONBLOCK);
    keep_only_own_files();
    return false;
  }

  [[noreturn]] void watch() {
    siginfo_t end = {};
    while (!ended(end)) {
      pollfd wanted[2] = {{errors_, POLLIN, 0}, {signals_, POLLIN, 0}};
      poll(wanted, 2, wait_ms());
      pass_errors_on();
      hear_signals();
      give_notice();
    }
    pass_errors_on();
    finish(end);
  }

 private:
  [[noreturn]] void cannot_stay() {
    Line line = rank_line(place_);
    line.add("cannot stay beside the program (errno ").add(errno).add(")");
    stop(kFailed, line);
  }

  /// A launcher sees from its end of a pipe or socket that the program has ended: no copies of ours.
  void keep_only_own_files() {
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    const int low = errors_ < signals_ ? errors_ : signals_;
    const int high = errors_ < signals_ ? signals_ : errors_;
    close_from(STDERR_FILENO + 1, low - 1);
    close_from(low + 1, high - 1);
    close_from(high + 1, -1);
  }
  /// `last` -1: all that there are.
  static void close_from(int first, int last) {
    if (last >= 0 && first > last) return;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, static_cast<unsigned>(first), static_cast<unsigned>(last), 0) == 0)
      return;
#endif
    constexpr int kUsual = 1024;  // an old kernel: what a launcher may have left open
    for (int fd = first; fd <= (last < 0 ? kUsual : last); ++fd) close(fd);
  }

  bool ended(siginfo_t& end) const {
    end.si_pid = 0;
    return waitid(P_PID, static_cast<id_t>(child_), &end, WEXITED | WNOHANG) != 0 ||
           end.si_pid == child_;
  }

  /// Until the notice is due, but not longer than a minute: somebody may set the clock.
  int wait_ms() const {
    if (plan_.notice_signal == 0 || noticed_) return -1;
    constexpr long long kMinute = 60'000;
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    const long long left = (static_cast<long long>(plan_.notice_at) - now.tv_sec) * 1000;
    return static_cast<int>(left < 0 ? 0 : left > kMinute ? kMinute : left + 1);
  }
  void give_notice() {
    if (plan_.notice_signal == 0 || noticed_) return;
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec < static_cast<long long>(plan_.notice_at)) return;
    noticed_ = true;
    kill(child_, plan_.notice_signal);
  }

  void hear_signals() {
    signalfd_siginfo seen;
    while (read(signals_, &seen, sizeof seen) == static_cast<ssize_t>(sizeof seen)) {
      const int signal = static_cast<int>(seen.ssi_signo);
      if (signal == kOrphaned) kill_all();
      // A program that has left our process group, as timeout(1) does, is not reached by the launcher.
      const bool apart = getpgid(child_) != getpgrp();
      if (signal != SIGCHLD && (plan_.pass_signals || apart)) kill(child_, signal);
    }
  }

  void pass_errors_on() {
    static char bytes[65536];
    for (;;) {
      const ssize_t size = read(errors_, bytes, sizeof bytes);
      if (size <= 0) {
        if (size == 0) {  // the program has closed it
          close(errors_);
          errors_ = -1;
        }
        return;
      }
      tail_.add(bytes, static_cast<int>(size));
      for (ssize_t done = 0; done < size;) {
        const ssize_t part = write(STDERR_FILENO, bytes + done, static_cast<size_t>(size - done));
        if (part < 0 && errno != EINTR) break;
        if (part > 0) done += part;
      }
    }
  }

  void write_records(const siginfo_t& end, bool failed) const {
    constexpr int kLines = 10;
    const int pid = static_cast<int>(child_);
    if (failed) {
      tail_.each(kLines,
                 [&](Text text) { record(place_, pid).add(" tail=").add_text(text).print(); });
    }
    write_end(place_, pid, end.si_code == CLD_EXITED ? " exit=" : " signal=", end.si_status,
              end.si_code == CLD_DUMPED);
  }

  /// Without anybody who reads records. What ends ranks from outside needs no line of ours.
  void say_end(const siginfo_t& end) const {
    const int status = end.si_status;
    const bool exited = end.si_code == CLD_EXITED;
    if (!exited && (status == SIGTERM || status == SIGKILL || status == SIGINT || status == SIGHUP))
      return;
    Line line = rank_line(place_);
    line.add(exited ? "exit status " : "killed by signal ").add(status);
    line.add(" (pid ").add(static_cast<int>(child_)).add(")").print();
  }

  /// The program, what it has started, and us; us alone where the launcher's own process leads the group.
  static void kill_all() { kill(getpgrp() == getpid() ? 0 : getpid(), SIGKILL); }

  [[noreturn]] void finish(const siginfo_t& end) const {
    const bool exited = end.si_code == CLD_EXITED;
    const bool failed = !exited || end.si_status != 0;
    if (!tail_.ends_line() && (failed || records_)) Line("").print();
    if (records_)
      write_records(end, failed);
    else if (failed)
      say_end(end);
    // Whoever reads records ends the others, and gives them time to end well.
    if (failed && plan_.stay == Stay::kill && !records_) kill_all();
    if (exited) _exit(end.si_status);
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(end.si_status, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    raise(end.si_status);
    constexpr int kBySignal = 128;
    _exit(kBySignal + end.si_status);
  }

  const Plan& plan_;
  const Place& place_;
  bool records_;
  bool noticed_ = false;
  pid_t child_ = -1;
  int errors_ = -1;
  int signals_ = -1;
  Tail tail_;
};

}  // namespace hpclaunch::shim
