#pragma once
// The rank monitor: the shim beside the program. It forwards stderr and signals, records how the program
// ended, and passes a failure to the launcher in the way that the launcher reacts to. docs/reference/shim.md.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "say.h"

namespace hpclaunch::shim {

/// What the kernel sends a rank monitor when the process above it ends. Launchers do not use it.
constexpr int kOrphaned = SIGPWR;

/// A signal for us when the process above ends; an end at once, when it has ended already.
inline void die_with_parent(Stay stay) {
  const long parent = call(SYS_getppid);
  call(SYS_prctl, PR_SET_PDEATHSIG, stay == Stay::no ? SIGKILL : kOrphaned);
  if (call(SYS_getppid) != parent) leave(kFailed);
}

/// The last lines of what the program wrote.
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

constexpr int kForwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1,  SIGUSR2,
                              SIGALRM, SIGTERM, SIGCONT, SIGWINCH, SIGURG};

class RankMonitor {
 public:
  RankMonitor(const Plan& plan, const Place& place, bool records)
      : plan_(plan), place_(place), records_(records) {}

  /// Forks. True in the child, which has its signals and stderr and execs the program.
  bool start() {
    SignalSet before;
    set_mask({~0UL}, &before);
    SignalSet forwarded;
    forwarded.add(SIGCHLD);
    forwarded.add(kOrphaned);
    for (const int signal : kForwarded) forwarded.add(signal);
    constexpr int kSignalFlags = SFD_CLOEXEC | SFD_NONBLOCK;
    long result = call(SYS_signalfd4, -1, &forwarded, sizeof forwarded, kSignalFlags);
    signals_ = static_cast<int>(result);
    int ends[2];
    if (result >= 0) result = call(SYS_pipe2, ends, O_CLOEXEC);
    for (int i = 0; i < 2 && result >= 0; ++i) {  // 0, 1 or 2 may have been closed
      if (ends[i] > kStderr) continue;
      result = call(SYS_fcntl, ends[i], F_DUPFD_CLOEXEC, kStderr + 1);
      ends[i] = static_cast<int>(result);
    }
    const int self = own_pid();
    if (result >= 0) result = child_ = fork();
    if (result < 0) not_forked(static_cast<int>(-result));
    if (child_ == 0) {
      recorded = nullptr;  // the monitor records our end
      call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
      if (call(SYS_getppid) != self) leave(kFailed);
      call(SYS_dup3, ends[1], kStderr, 0);
      set_mask(before);
      return true;
    }
    if (records_ && place_.local == 0) record(place_, child_).add(" begun").print();
    errors_ = ends[0];
    call(SYS_fcntl, errors_, F_SETFL, O_NONBLOCK);
    keep_only_own_files();
    return false;
  }

  [[noreturn]] void run() {
    siginfo_t end = {};
    while (!ended(end)) {
      pollfd wanted[2] = {{errors_, POLLIN, 0}, {signals_, POLLIN, 0}};
      const long left = until_time_limit_signal();
      const timespec limit = {left, 0};
      call(SYS_ppoll, wanted, 2, left < 0 ? nullptr : &limit, nullptr, 0);
      forward_stderr();
      forward_signals();
      if (until_time_limit_signal() == 0) send_time_limit_signal();
    }
    forward_stderr();
    finish(end);
  }

 private:
  [[noreturn]] void not_forked(int error) {
    Line line = rank_line(place_);
    line.add("cannot start the rank monitor (errno ").add(error).add(")");
    stop(kFailed, line);
  }

  /// A launcher sees from its end of a pipe or socket that the program has ended: no copies of ours.
  void keep_only_own_files() {
    close(0);
    close(1);
    const int low = errors_ < signals_ ? errors_ : signals_;
    const int high = errors_ < signals_ ? signals_ : errors_;
    close_from(kStderr + 1, low - 1);
    close_from(low + 1, high - 1);
    close_from(high + 1, -1);
  }
  /// `last` -1: all that there are.
  static void close_from(int first, int last) {
    if (last >= 0 && first > last) return;
#ifdef SYS_close_range
    if (call(SYS_close_range, first, static_cast<unsigned>(last), 0) == 0) return;
#endif
    constexpr int kUsual = 1024;  // an old kernel: what a launcher may have left open
    for (int fd = first; fd <= (last < 0 ? kUsual : last); ++fd) close(fd);
  }

  bool ended(siginfo_t& end) const {
    end.si_pid = 0;
    const long result = call(SYS_waitid, P_PID, child_, &end, WEXITED | WNOHANG, nullptr);
    return result != 0 || end.si_pid == child_;
  }

  /// Seconds, at most a minute, so that a change of the clock has its effect; -1: none to come.
  long until_time_limit_signal() const {
    if (plan_.signal == 0 || signal_sent_) return -1;
    constexpr long kMinute = 60;
    const long left = static_cast<long>(plan_.signal_at) - wall_clock().tv_sec;
    return left < 0 ? 0 : left > kMinute ? kMinute : left;
  }
  void send_time_limit_signal() {
    signal_sent_ = true;
    call(SYS_kill, child_, plan_.signal);
  }

  void forward_signals() {
    signalfd_siginfo seen;
    while (call(SYS_read, signals_, &seen, sizeof seen) == static_cast<long>(sizeof seen)) {
      const int signal = static_cast<int>(seen.ssi_signo);
      if (signal == kOrphaned) kill_all();
      // The launcher signals the process group; a program may have left it, as timeout(1) does.
      const bool apart = call(SYS_getpgid, child_) != call(SYS_getpgid, 0);
      if (signal != SIGCHLD && apart) call(SYS_kill, child_, signal);
    }
  }

  void forward_stderr() {
    static char bytes[65536];
    for (;;) {
      const long size = call(SYS_read, errors_, bytes, sizeof bytes);
      if (size == 0) {  // the program has closed it
        close(errors_);
        errors_ = -1;
      }
      if (size <= 0) return;
      tail_.add(bytes, static_cast<int>(size));
      for (long done = 0; done < size;) {
        const long part = call(SYS_write, kStderr, bytes + done, size - done);
        if (part < 0 && part != -EINTR) break;
        if (part > 0) done += part;
      }
    }
  }

  void write_records(const siginfo_t& end, bool failed) const {
    constexpr int kLines = 10;
    if (failed)
      tail_.each(kLines,
                 [&](Text text) { record(place_, child_).add(" tail=").add(text, true).print(); });
    write_end(place_, child_, end.si_code == CLD_EXITED ? " exit=" : " signal=", end.si_status,
              end.si_code == CLD_DUMPED);
  }

  /// Where no records are read. What ends ranks from outside needs no line.
  void print_end(const siginfo_t& end) const {
    const int status = end.si_status;
    const bool exited = end.si_code == CLD_EXITED;
    if (!exited && (status == SIGTERM || status == SIGKILL || status == SIGINT || status == SIGHUP))
      return;
    Line line = rank_line(place_);
    line.add(exited ? "exit status " : "killed by signal ").add(status);
    line.add(" (pid ").add(child_).add(")").print();
  }

  /// The program, what it has started, and us; us alone where the launcher's own process leads the group.
  static void kill_all() {
    call(SYS_kill, call(SYS_getpgid, 0) == own_pid() ? 0 : own_pid(), SIGKILL);
  }

  [[noreturn]] void finish(const siginfo_t& end) const {
    const bool exited = end.si_code == CLD_EXITED;
    const bool failed = !exited || end.si_status != 0;
    if (!tail_.ends_line() && (failed || records_)) Line("").print();
    if (records_)
      write_records(end, failed);
    else if (failed)
      print_end(end);
    // Where records are read, hpclaunch stops the other ranks, with a grace period.
    if (failed && plan_.stay == Stay::kill && !records_) kill_all();
    if (exited) leave(end.si_status);
    const rlimit no_core = {0, 0};
    call(SYS_prlimit64, 0, RLIMIT_CORE, &no_core, nullptr);
    const struct {
      unsigned long handler = 0;  // SIG_DFL, as the kernel has it
      unsigned long more[3] = {};
    } standard;
    call(SYS_rt_sigaction, end.si_status, &standard, nullptr, sizeof(SignalSet));
    set_mask({});
    call(SYS_kill, own_pid(), end.si_status);
    constexpr int kBySignal = 128;
    leave(kBySignal + end.si_status);
  }

  const Plan& plan_;
  const Place& place_;
  bool records_;
  bool signal_sent_ = false;
  int child_ = -1;
  int errors_ = -1;
  int signals_ = -1;
  Tail tail_;
};

}  // namespace hpclaunch::shim
