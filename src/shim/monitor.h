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

#include "asked.h"
#include "channel.h"
#include "examine.h"
#include "memory_events.h"
#include "scratch.h"
#include "tail.h"
#include "tree.h"

namespace hpclaunch::shim {

/// What the kernel sends a rank monitor when the process above it ends. Launchers do not use it.
constexpr int kOrphaned = SIGPWR;

/// A signal for us when the process above ends; an end at once, when it has ended already.
inline void die_with_parent(Stay stay) {
  const long parent = call(SYS_getppid);
  call(SYS_prctl, PR_SET_PDEATHSIG, stay == Stay::no ? SIGKILL : kOrphaned);
  if (call(SYS_getppid) != parent) leave(kFailed);
}

constexpr int kForwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1,  SIGUSR2,
                              SIGALRM, SIGTERM, SIGCONT, SIGWINCH, SIGURG};

class RankMonitor {
 public:
  /// `later`: of threads, while the program runs; nullptr for none.
  RankMonitor(const Plan& plan, const Place& place, Channel& channel, Examination* later)
      : plan_(plan), place_(place), channel_(channel), later_(later) {}

  /// Begins FOLDER/RANK with the times of now: monotonic, and UNIX time. The first output follows in it.
  void stamp_exec(Text folder) {
    constinit static Buffer<kMaxPath + 32> path;
    path.add_bytes(folder).add("/").add(place_.rank);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    const long file = call(SYS_openat, AT_FDCWD, path.text().at, kFlags, 0600);
    timed_ = true;
    if (file < 0) return;
    times_ = above_standard(file);
    Line line("host ");
    line.add(host_name());
    write_all(times_, line.add_bytes("\n").text());
    stamp("exec ", true);
  }

  /// Forks. True in the child, which has its signals and stderr and execs the program.
  bool start() {
    SignalSet before;
    set_mask({~0UL}, &before);
    SignalSet forwarded;
    forwarded.add(SIGCHLD);
    forwarded.add(kOrphaned);
    for (const int signal : kForwarded) forwarded.add(signal);
    constexpr int kSignalFlags = SFD_CLOEXEC | SFD_NONBLOCK;
    long result =
        above_standard(call(SYS_signalfd4, -1, &forwarded, sizeof forwarded, kSignalFlags));
    signals_ = static_cast<int>(result);
    if (plan_.logs.size > 0) open_log();
    int into[2] = {-1, -1};
    for (int i = log_ < 0 && times_ < 0 && !hidden_ ? 1 : 0; i < 2 && result >= 0; ++i)
      result = open_pipe(from_[i], into[i]);
    const int self = own_pid();
    if (result >= 0) result = child_ = fork();
    if (result < 0) not_forked(static_cast<int>(-result));
    if (child_ == 0) {
      tell_stop = nullptr;  // the monitor tells of our end
      call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
      if (call(SYS_getppid) != self) leave(kFailed);
      call(SYS_prctl, PR_SET_PTRACER, self);  // Yama 1: what the monitor starts may read stacks
      for (int i = 0; i < 2; ++i)
        if (into[i] >= 0) call(SYS_dup3, into[i], i + 1, 0);
      set_mask(before);
      return true;
    }
    if (later_ != nullptr) later_->started(child_);
    for (const int from : from_) call(SYS_fcntl, from, F_SETFL, O_NONBLOCK);
    channel_.open();
    scratch_.hold(plan_.directories);
    keep_files();
    channel_.tell_begun(child_);
    if (channel_.planned()) oom_before_ = oom_kills();
    if (log_error_ != 0) lose_log(log_error_, "open", log_path_.text());
    return false;
  }

  [[noreturn]] void run() {
    siginfo_t end = {};
    while (!ended(end)) {
      long long ms = -1;
      const auto at_most = [&](long long limit) {
        if (limit >= 0 && (ms < 0 || limit < ms)) ms = limit;
      };
      const long left = until_time_limit_signal();
      if (left >= 0) at_most(left * 1000);
      if (later_ != nullptr) at_most(later_->ms_left());
      wait(ms);
      forward_output();
      forward_signals();
      if (until_time_limit_signal() == 0) send_time_limit_signal();
      if (later_ != nullptr && later_->ms_left() == 0) later_->examine();
    }
    alive_ = false;
    forward_output();
    if (later_ != nullptr) examined(end);
    finish(end);
  }

 private:
  /// `ms`: at most; -1 for as long as nothing happens.
  void wait(long long ms) {
    const long long left = channel_.ms_left();
    if (left >= 0 && (ms < 0 || left < ms)) ms = left;
    if (asked_.ready()) ms = 0;
    pollfd wanted[5] = {{from_[0], POLLIN, 0},
                        {from_[1], POLLIN, 0},
                        {signals_, POLLIN, 0},
                        {channel_.fd(), POLLIN, 0},
                        {asked_.fd(), POLLIN, 0}};
    const timespec limit = {static_cast<long>(ms / 1000), static_cast<long>(ms % 1000 * 1'000'000)};
    call(SYS_ppoll, wanted, 5, ms < 0 ? nullptr : &limit, nullptr, 0);
    channel_.turn(*this);
    asked_.turn();
    keep_files();
  }

  friend class Channel;  // for what hpclaunch sends:
  void ask(const channel::Ask& ask) {
    if (alive_) asked_.begin(ask, child_, place_.rank == ask.ras_rank);
  }
  void deliver(int signal) {
    if (!alive_) return;
    if (ends(signal) || signal == SIGKILL) sent_ = signal;
    signal_tree(child_, signal);
  }
  [[noreturn]] void not_forked(int error) {
    Line line = rank_line(place_);
    line.add("cannot start the rank monitor (errno ").add(error).add(")");
    stop(kFailed, line);
  }

  static long open_pipe(int& from, int& into) {
    int ends[2];
    const long result = call(SYS_pipe2, ends, O_CLOEXEC);
    if (result < 0) return result;
    from = above_standard(ends[0]);
    into = above_standard(ends[1]);
    return from < into ? from : into;
  }

  /// PATH/rank-03.log, its number as wide as the last rank's.
  void open_log() {
    static char directory[kMaxPath];
    read_path(plan_.logs, directory);
    int width = 1;
    for (long long last = world_size(plan_) - 1; last >= 10; last /= 10) ++width;
    log_path_.add_bytes(directory).add("/rank-").add_digits(place_.rank, width).add(".log");
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    const char* path = log_path_.text().at;
    long file = call(SYS_openat, AT_FDCWD, path, kFlags, 0666);
    if (file == -ENOENT && call(SYS_mkdirat, AT_FDCWD, directory, 0777) == 0)
      file = call(SYS_openat, AT_FDCWD, path, kFlags, 0666);
    log_ = above_standard(file);
    if (log_ < 0) log_error_ = -log_;  // told once there is a channel
  }

  /// The program continues without it. Where hpclaunch listens, it prints the line.
  void lose_log(int error, const char* cannot, Text path) {
    close(log_);
    log_ = -1;
    if (channel_.on()) return channel_.tell_log(error);
    Line line = rank_line(place_);
    line.add("cannot ").add(cannot).add(" the log file ").add(path);
    line.add(" (errno ").add(error).add(")").print();
  }

  /// A launcher sees from its end of a pipe or socket that the program has ended, and may kill all at once (Hydra, of a
  /// program with MPI): copies of these keep it from that until hpclaunch has taken the end. Alone, we have none.
  void keep_files() {
    if (!channel_.on() && !only_own_) {
      keep_only_own_files();
      only_own_ = true;
    }
  }
  void keep_only_own_files() {
    close(0);
    if (from_[0] < 0 && later_ == nullptr) close(1);
    for (int first = kStderr + 1;;) {
      int next = -1;
      const int own[] = {from_[0], from_[1], signals_, log_, times_, asked_.fd(), scratch_.fd()};
      for (const int fd : own)
        if (fd >= first && (next < 0 || fd < next)) next = fd;
      close_from(first, next < 0 ? -1 : next - 1);
      if (next < 0) return;
      first = next + 1;
    }
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

  void stamp(Text word, bool first) {
    timespec now = {};
    call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    Line line(word);
    line.add_time(now, 6);
    if (first) line.add(" ").add_time(wall_clock(), 6);
    write_all(times_, line.add_bytes("\n").text());
    if (first) return;
    close(times_);
    times_ = -1;
  }

  bool ended(siginfo_t& end) {
    rusage used = {};
    for (const int which = later_ == nullptr ? P_PID : P_ALL;;) {  // orphans are ours then
      end.si_pid = 0;
      const long result = call(SYS_waitid, which, child_, &end, WEXITED | WNOHANG, &used);
      if (result == 0 && end.si_pid == child_) peak_kib_ = used.ru_maxrss;
      if (result != 0 || end.si_pid == child_) return true;
      if (end.si_pid == 0) return false;
    }
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
      const int sender = static_cast<int>(seen.ssi_pid);
      if (signal == SIGCHLD || sender == own_pid()) continue;
      // The launcher signals the process group; a program may have left it, as timeout(1) does.
      const bool apart = alive_ && call(SYS_getpgid, child_) != call(SYS_getpgid, 0);
      if (ends(signal) && sender != child_) {  // "kill 0" in a script
        sent_ = signal;
        channel_.tell_signalled(signal);
      }
      if (apart) call(SYS_kill, child_, signal);
    }
  }

  void forward_output() {
    for (int i = 0; i < 2; ++i)
      if (from_[i] >= 0) forward(i);
  }

  void forward(int stream) {
    static char bytes[65536];
    for (;;) {
      const long size = call(SYS_read, from_[stream], bytes, sizeof bytes);
      if (size == 0) {  // the program has closed it
        close(from_[stream]);
        from_[stream] = -1;
      }
      if (size <= 0) return;
      const Text seen(bytes, static_cast<int>(size));
      if (times_ >= 0) stamp("output ", false);
      if (stream == 1) tail_.add(seen);
      if (const int error = log_ < 0 ? 0 : write_all(log_, seen))
        lose_log(error, "write", plan_.logs);
      if (!hidden_) write_all(stream + 1, seen);
    }
  }

  /// Once its report is written, hpclaunch stops the program through the launcher.
  void examined(const siginfo_t& end) {
    if (!later_->written()) return later_->write(&end);
    Examination::kill_rest();
    leave(0);
  }

  /// To hpclaunch, which says when the launcher may know of it. True: it has said so.
  bool told(const siginfo_t& end, bool failed) {
    if (!channel_.planned()) return false;
    channel::Ended told;
    told.pid = child_;
    told.by_signal = end.si_code != CLD_EXITED;
    told.status = static_cast<uint8_t>(end.si_status);
    told.core = end.si_code == CLD_DUMPED;
    told.sent = static_cast<uint8_t>(sent_);
    told.peak_kib = static_cast<uint32_t>(peak_kib_);
    if (const int kills = failed ? oom_kills() : 0; kills > oom_before_)
      told.oom_kills = static_cast<uint32_t>(kills - oom_before_);
    channel_.tell_ended(told, failed ? tail_.text() : Text());
    while (channel_.on() && (!channel_.released() || channel_.is_needed())) {
      wait(-1);
      forward_signals();
    }
    return channel_.released();
  }

  /// A launcher that ends ranks signals one process after the other: ours may be on its way, and be KILL.
  void await_own_signal(const siginfo_t& end) {
    forward_signals();
    const int by = end.si_code == CLD_EXITED ? 0 : end.si_status;
    if (sent_ != 0 || (by != SIGTERM && by != SIGKILL && by != SIGINT && by != SIGHUP)) return;
    pollfd wanted = {signals_, POLLIN, 0};
    constexpr timespec kPause = {0, 50'000'000};
    call(SYS_ppoll, &wanted, 1, &kPause, nullptr, 0);
    forward_signals();
  }

  /// Where hpclaunch does not listen. What ends ranks from outside needs no line.
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

  [[noreturn]] void finish(const siginfo_t& end) {
    scratch_.leave();
    const bool exited = end.si_code == CLD_EXITED;
    const bool failed = !exited || end.si_status != 0;
    if (failed && channel_.planned()) await_own_signal(end);
    const bool heard = told(end, failed);
    if (!heard && failed && !timed_ &&
        later_ == nullptr) {  // the local launcher or verify reports it
      if (!tail_.ends_line()) Line("").print();
      print_end(end);
    }
    // Where it listens, hpclaunch stops the other ranks, with a grace period.
    if (failed && plan_.stay == Stay::kill && !heard) kill_all();
    // KILL of hpclaunch is for all that the program has started, but before this it would have ended us, too.
    if (!exited && end.si_status == SIGKILL && sent_ == SIGKILL) kill_all();
    if (exited) leave(end.si_status);
    const rlimit no_core = {0, 0};
    call(SYS_prlimit64, 0, RLIMIT_CORE, &no_core, nullptr);
    const struct {
      unsigned long handler = 0;  // SIG_DFL, as the kernel has it
      unsigned long more[3] = {};
    } standard;
    call(SYS_rt_sigaction, end.si_status, &standard, nullptr, sizeof(SignalSet));
    call(SYS_kill, own_pid(), end.si_status);
    SignalSet others{~0UL};  // another signal that waits must not come first
    others.bits &= ~(1UL << (end.si_status - 1));
    set_mask(others);
    constexpr int kBySignal = 128;
    leave(kBySignal + end.si_status);
  }

  const Plan& plan_;
  const Place& place_;
  Channel& channel_;
  Examination* later_;
  bool signal_sent_ = false;
  int sent_ = 0;       // the last one that ends programs
  bool alive_ = true;  // the program: its number may be another one's afterwards
  int child_ = -1;
  int oom_before_ = 0;
  long peak_kib_ = 0;
  int from_[2] = {-1, -1};  // the program's stdout, where it has a log, and stderr
  int log_ = -1;
  int log_error_ = 0;
  constinit inline static Buffer<kMaxPath + 32> log_path_;
  const bool hidden_ = is_hidden(plan_, place_);  // output goes to the log only
  bool timed_ = false, only_own_ = false;         // only_own_: descriptors are open
  int times_ = -1;                                // file of --profile-start, until the first output
  int signals_ = -1;
  Tail tail_;
  Scratch scratch_;
  Asked asked_{channel_};
};

}  // namespace hpclaunch::shim
