#pragma once
// Starts programs: as a new process that waits for nothing, as one whose exec is waited for, or in place
// of this process. It must not know what the program is.
#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <initializer_list>
#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::sys {

/// Pointers to the words as execve(2) takes them. The words must outlive them.
std::vector<char*> pointers(const std::vector<std::string>& words);

/// Why `program` could not be started, by the errno of clone(2) or execve(2): `program_not_found`,
/// `not_executable` or `system`.
Error exec_error(const std::string& program, int why);

/// "`what`: No space left on device", of errno.
Error system_error(const std::string& what);

/// How one process is started; its signal mask is empty. This stays in place, with all that it points
/// to, until the exec: so long the new process works in our memory.
struct Start {
  enum class Group { inherited, own, own_session };
  char* const* argv = nullptr;  ///< argv[0] absolute
  char* const* envp = nullptr;
  int input = 0;  ///< becomes stdin; 0, or above 2. So `output` and `errors` with 1 and 2
  int output = 1;
  int errors = 2;
  Group group = Group::inherited;
  int when_we_die = SIGKILL;      ///< what it gets when the caller dies
  const rlimit* files = nullptr;  ///< RLIMIT_NOFILE; nullptr: ours
  bool default_pipe = false;  ///< SIGPIPE, which the caller ignores, has its default effect again
  pid_t parent = 0;           ///< set by the calls below, as `error`
  volatile int error = 0;     ///< errno of the exec, when that failed; the process exits with 125
};

/// Of a process before its exec.
inline constexpr std::size_t kStackBytes = 32 * 1024;

/// Does not wait for the exec: a failure of that is seen in start.error when the process is reaped. All
/// other descriptors must be close-on-exec, all signals blocked. Until the exec a failing call of the
/// new process changes errno here, at any moment. pid, or -errno.
pid_t start_beside(Start& start, char* stack_top);

/// Returns once the exec has worked. `start` is without its words; `env`: nullptr for ours. Errors: as exec_error.
Result<pid_t> start_program(const std::vector<std::string>& argv,
                            const std::vector<std::string>* env, Start start);

/// Opens /dev/null as 0, 1 and 2 where they are closed, or another file would get such a number.
void fill_standard_files();

/// What goes on to the ranks.
inline constexpr std::initializer_list<int> kForwarded = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                                          SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

/// Where hpclaunch listens, for the shims of a launch that it supervises.
inline constexpr const char* kChannel = "HPCLAUNCH_CHANNEL";

}  // namespace hpclaunch::sys
