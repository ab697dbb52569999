#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include "hpclaunch/result.h"

namespace hpclaunch::sys::local {

/// How one rank is started. It stays in place, with all that it points to, while the rank lives:
/// until its exec the new process works in our memory.
struct Start {
  const char* program = nullptr;  ///< absolute
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  int input = 0;                  ///< becomes stdin; so do `output` and `errors`. 0, or above 2
  int output = 1;                 ///< above 2
  int errors = 2;                 ///< above 2
  const rlimit* files = nullptr;  ///< RLIMIT_NOFILE for the rank; nullptr: ours
  bool ignore_pipe = false;       ///< SIGPIPE was ignored when hpclaunch started
  pid_t parent = 0;               ///< the caller
  volatile int error = 0;  ///< errno of the exec, when that failed; the process exits with 125
};

/// Room for the stacks of `count` processes before their exec. Never given back.
class Stacks {
 public:
  static Result<Stacks> make(int count);
  char* top(int index) const;

 private:
  char* begin_ = nullptr;
};

/// Starts a process in a session of its own, with an empty signal mask, that is killed when the
/// caller dies. All other descriptors must be close-on-exec, all signals blocked. Does not wait for
/// the exec: a failure of that is seen when the process is reaped, in start.error. Until the exec a
/// failing call of the new process changes errno here, at any moment. pid, or -errno.
pid_t spawn(Start& start, char* stack_top);

}  // namespace hpclaunch::sys::local
