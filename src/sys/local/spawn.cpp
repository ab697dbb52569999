#include "sys/local/spawn.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace hpclaunch::sys::local {
namespace {

constexpr std::size_t kStackBytes = 32 * 1024;

// Runs in the new process, in the parent's memory and beside it: system calls only. Nothing of the
// parent's state can be hurt: descriptors, limits and signal dispositions are copies, no handler is
// installed that could run here. Only errno is shared, and a failing call here changes it there.
__attribute__((no_sanitize("address", "undefined"))) int become(void* argument) {
  Start& start = *static_cast<Start*>(argument);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != start.parent) _exit(125);  // it died before prctl could watch it
  if (start.input != 0) dup2(start.input, 0);
  dup2(start.output, 1);
  dup2(start.errors, 2);
  if (start.files != nullptr) setrlimit(RLIMIT_NOFILE, start.files);
  if (!start.ignore_pipe) signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(start.program, start.argv, start.envp);
  start.error = errno;
  _exit(125);
}

}  // namespace

Result<Stacks> Stacks::make(int count) {
  void* memory =
      mmap(nullptr, static_cast<std::size_t>(count) * kStackBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    return Error{ErrorKind::system, "no memory to start the ranks"};
  }
  Stacks stacks;
  stacks.begin_ = static_cast<char*>(memory);
  return stacks;
}

char* Stacks::top(int index) const {
  return begin_ + (static_cast<std::size_t>(index) + 1) * kStackBytes;
}

pid_t spawn(Start& start, char* stack_top) {
  start.parent = getpid();
  // Shared memory spares the copy that fork makes; not waiting for the exec, as vfork would, lets
  // many ranks start side by side.
  const pid_t pid = clone(become, stack_top, CLONE_VM | SIGCHLD, &start);
  return pid < 0 ? -errno : pid;
}

}  // namespace hpclaunch::sys::local
