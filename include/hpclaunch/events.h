#pragma once
// The core of every loop here that waits for child processes: one thread, one poll(2) per turn, no
// sleep. It must not know what a rank, a launcher or a probe is.
//
//            exec fails                        signal, time limit
//   started ------------> error     running ----------------------> TERM sent
//      | exec works                    | exits                        | exits   | grace is over
//      v                               v                              v         v
//   running                          ended <------------------------ ended <- KILL sent
//
//   ended -> reaped -> what it left behind: TERM, grace, KILL round by round (descendants.h) -> done
//
// One turn: collect what to wait for in a Wait (descriptors, the nearest deadline), run() it, then
// take signals, reap, read what is ready, act on the deadlines that have passed. A descriptor that is
// left out of a turn is back pressure; no deadline means no wake-up.
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include <array>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpclaunch::sys {

/// CLOCK_MONOTONIC in milliseconds. Deadlines are such times; kNever is none.
long clock_ms();
inline constexpr long kNever = -1;

/// What one turn of a loop waits for.
class Wait {
 public:
  static constexpr std::size_t kMost = 8;  ///< descriptors
  void on(int fd, short events = POLLIN);  ///< -1: nothing
  void until(long deadline);               ///< the nearest one counts; kNever: none
  void run();                              ///< a signal handler may end it early
  bool ready(int fd) const;                ///< also at its end and on errors

 private:
  std::array<pollfd, kMost> wanted_{};
  nfds_t count_ = 0;
  long deadline_ = kNever;
};

/// A pipe, close-on-exec, both ends above the standard descriptors, which may be closed in this process.
struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe();
  bool open();  ///< errno on failure
  /// What it has; "" at its end, nullopt for nothing now. Valid until the next call for any pipe. `last`: nothing now
  /// is the end, so that another process which has it open is not waited for.
  std::optional<std::string_view> next(bool last) const;
  void close_read();
  void close_write();
};

/// Appends what can be read now, at most 64 KiB. False at the end of the stream, or when reading fails.
bool read_some(int fd, std::string& into);

/// Gives each whole line of `begun`, without its newline, to `use`, and leaves the rest in `begun`.
template <class Use>
void take_lines(std::string& begun, Use use) {
  std::size_t start = 0;
  for (std::size_t end; (end = begun.find('\n', start)) != std::string::npos; start = end + 1)
    use(std::string_view(begun).substr(start, end - start));
  begun.erase(0, start);
}

sigset_t signal_set(const std::vector<int>& signals);
bool is_ignored(int signal);

/// Without those that this process ignores: under nohup, HUP has no effect.
sigset_t unless_ignored(std::initializer_list<int> signals);

/// Blocks them, unless they are ignored, until this process exits or becomes another program, and returns them. A launch
/// that is over has its exit status: a signal that comes while a report is written must not replace it.
sigset_t hold(std::initializer_list<int> signals);

/// INT, TERM or HUP that came while held, and that nobody has taken; 0 for none.
int held_signal();

/// While it lives, these signals are blocked and come out of a descriptor instead.
class Signals {
 public:
  explicit Signals(const sigset_t& set);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  int fd() const { return fd_; }
  std::optional<signalfd_siginfo> next();  ///< nullopt: none is pending
  void discard();                          ///< takes those that are pending

 private:
  sigset_t before_;
  int fd_;
};

/// While it lives, ended children leave an exit status: with SIGCHLD ignored the kernel keeps none.
class KeepExitStatuses {
 public:
  KeepExitStatuses();
  KeepExitStatuses(const KeepExitStatuses&) = delete;
  KeepExitStatuses& operator=(const KeepExitStatuses&) = delete;
  ~KeepExitStatuses();

 private:
  struct sigaction before_ {};
};

/// INT, TERM, HUP, QUIT: the ranks are expected to end.
bool ends_programs(int signal);

/// "SIGSEGV", "SIGRTMIN+3"; "signal 99" when it has no name.
std::string signal_name(int signal);

/// A child process. Its end is a descriptor to wait for, of SIGCHLD: this thread must be the only one, and ended() comes
/// before each wait. (A pidfd needs Linux 5.3, and RHEL 8 has 4.18.)
class Child {
 public:
  explicit Child(pid_t pid);
  ~Child();  ///< as kill_now

  int fd() const;  ///< readable once it has ended; -1 when it is reaped
  /// Reaps it; `status` is then what waitpid(2) gave, 0 where the kernel kept nothing. `to_group`: a
  /// signal for what is left of the process group that it leads; 0 for none.
  bool ended(int to_group = 0);
  void signal(int number) const;  ///< nothing once it is reaped: the number may be a stranger's
  void signal_group(int number) const;  ///< the same for the process group that it leads
  void kill_now();  ///< KILL, then up to a second for its end; a hung one is left behind

  int status = 0;
  int shell_status() const;  ///< 128+n for signal n

 private:
  pid_t pid_;
  bool reaped_ = false;
  KeepExitStatuses statuses_;
  Signals ends_;
};

}  // namespace hpclaunch::sys
