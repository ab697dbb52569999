#pragma once
// Ends everything that was started below this process, and nothing else.
//
// A child that has not been reaped keeps its pid, so a signal to it cannot hit another process. Only such
// children are signalled, each with its process group. A process whose parent ended becomes our child,
// because we are a subreaper, and gets its signal in the next round.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <set>
#include <vector>

namespace hpclaunch::sys {

/// Sends `signal` to every child, as it is found, and to the child's process group unless that is
/// our own (members of a group share its session, and every session below us was made below us).
/// Zombies are left out. Newest pid first: what forks and exits quickly is met while it is there.
/// Returns how many living children were found, without those of `but`, which get nothing.
int signal_children(int signal, const std::set<pid_t>& but = {});

/// True when no child is left, dead or alive.
bool no_children();

/// KILL, round by round, until no child is left. False: some did not end within `limit_seconds`
/// (they hang in the kernel, where KILL does not reach them). Children of `but` are neither ended nor waited for.
bool end_descendants(double limit_seconds, const std::set<pid_t>& but = {});

/// Reaps what has ended, `pid` or, with 0, any child, and calls `use` with the siginfo_t of each and the most memory that
/// it had, in KiB. True when no such child is left.
template <class Use>
bool reap_ended(pid_t pid, Use use) {
  siginfo_t info{};
  rusage used{};
  long result = 0;
  while ((result = syscall(SYS_waitid, pid == 0 ? P_ALL : P_PID, pid, &info, WEXITED | WNOHANG,
                           &used)) == 0 &&
         info.si_pid != 0) {
    use(info, used.ru_maxrss);
    info = {};
  }
  return result != 0;  // ECHILD, the only error that this call can have
}

/// Of each rank of ours, by the process ID of its program: a process with its RANK that is not below it, as podman leaves a
/// container to us and not to itself.
std::map<int, pid_t> left_to_us(const std::map<pid_t, int>& ranks);

/// Open while it lives, and inherited by what is started meanwhile: the memory of programs and their descendants, where Yama's
/// ptrace_scope is 1. Only an ancestor may open it then.
class Memories {
 public:
  explicit Memories(std::vector<pid_t> programs);
  Memories(const Memories&) = delete;
  Memories& operator=(const Memories&) = delete;
  ~Memories();

 private:
  std::vector<int> open_;
};

/// Between TERM and KILL, in milliseconds, for what a job has left behind.
inline constexpr long kCleanupGrace = 2000;

/// How long to wait, in seconds, for what does not end when it is killed.
inline constexpr double kKillPatience = 10;

/// While it lives, orphans below this process become its children. Not where a shell that execs us has left
/// us children of its own: their orphans would come to us too, and look like ours.
class Subreaper {
 public:
  Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;
  ~Subreaper();

  /// Every child that this process has from now on belongs to what it starts.
  bool alone() const { return alone_; }

 private:
  bool alone_;
  int before_ = 0;
};

}  // namespace hpclaunch::sys
