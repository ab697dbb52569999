#include "sys/start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"

extern char** environ;

namespace hpclaunch::sys {
namespace {

constexpr int kFailed = 125;

// Runs in the new process, in the parent's memory and beside it: system calls only. The parent's state
// is safe: descriptors, limits and signal dispositions are copies, no handler is installed that could
// run here. Only errno is shared, and a failing call here changes it there.
__attribute__((no_sanitize("address", "undefined"))) int exec_in_child(void* argument) {
  Start& start = *static_cast<Start*>(argument);
  if (start.group == Start::Group::own_session) setsid();
  if (start.group == Start::Group::own) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, start.when_we_die);
  if (getppid() != start.parent) _exit(kFailed);  // it died before prctl could watch it
  prctl(PR_SET_PTRACER, start.parent);  // Yama 1: hpclaunch-stacks, beside a rank, may read it
  if (start.input != 0) dup2(start.input, 0);
  if (start.output != 1) dup2(start.output, 1);
  if (start.errors != 2) dup2(start.errors, 2);
  if (start.files != nullptr) setrlimit(RLIMIT_NOFILE, start.files);
  if (start.default_pipe) signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(start.argv[0], start.argv, start.envp);
  start.error = errno;
  _exit(kFailed);
}

}  // namespace

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

Error exec_error(const std::string& program, int why) {
  const ErrorKind kind = why == ENOENT                     ? ErrorKind::program_not_found
                         : why == EACCES || why == ENOEXEC ? ErrorKind::not_executable
                                                           : ErrorKind::system;
  std::string hint;
  if (why == E2BIG) hint = "shorten the environment or the arguments";
  if (why == EAGAIN) hint = "raise the process limit (ulimit -u), or start fewer ranks";
  return Error{kind, fmt::format("cannot execute \"{}\": {}", program, std::strerror(why)), hint};
}

Error system_error(const std::string& what) {
  return Error{ErrorKind::system, fmt::format("{}: {}", what, std::strerror(errno))};
}

pid_t start_beside(Start& start, char* stack_top) {
  start.parent = getpid();
  // Shared memory spares the copy that fork makes; not waiting for the exec, as vfork would, lets
  // many ranks start side by side.
  pid_t pid = clone(exec_in_child, stack_top, CLONE_VM | SIGCHLD, &start);
  // QEMU's user mode (containers for another kind of machine) has only vfork, a fork to it: start.error stays 0 then.
  if (pid < 0 && errno == EINVAL)
    pid = clone(exec_in_child, stack_top, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  return pid < 0 ? -errno : pid;
}

Result<pid_t> start_program(const std::vector<std::string>& argv,
                            const std::vector<std::string>* env, Start start) {
  alignas(16) static std::array<char, kStackBytes> stack;
  const std::vector<char*> words = pointers(argv);
  std::vector<char*> variables;
  if (env != nullptr) variables = pointers(*env);
  start.argv = words.data();
  start.envp = env != nullptr ? variables.data() : environ;
  start.parent = getpid();
  const pid_t pid =
      clone(exec_in_child, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  const int error = pid < 0 ? errno : start.error;
  if (error == 0) return pid;
  if (pid > 0) waitpid(pid, nullptr, 0);
  return exec_error(start.argv[0], error);
}

Error exec(const std::vector<std::string>& argv, const EnvSnapshot& env,
           const std::vector<int>& keep) {
  for (const int fd : keep) fcntl(fd, F_SETFD, 0);
  const std::vector<char*> words = pointers(argv);
  const std::vector<char*> variables = pointers(env.entries());
  sigset_t held;
  const sigset_t none = signal_set({});
  sigprocmask(SIG_SETMASK, &none, &held);  // as for the programs that are started beside us
  execve(words[0], words.data(), variables.data());
  const int why = errno;
  sigprocmask(SIG_SETMASK, &held, nullptr);
  for (const int fd : keep) fcntl(fd, F_SETFD, FD_CLOEXEC);
  return exec_error(argv[0], why);
}

void fill_standard_files() {
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) close(fd);
}

Apart::~Apart() {
  constexpr long kPatience = 2000;
  ends_within(kPatience);
  if (at_work_ >= 0) close(at_work_);
}

bool Apart::ends_within(long ms) {
  const long limit = clock_ms() + ms;
  while (at_work_ >= 0) {
    Wait wait;
    wait.on(at_work_);
    wait.until(limit);
    wait.run();
    if (wait.ready(at_work_)) close(std::exchange(at_work_, -1));
    if (at_work_ >= 0 && clock_ms() >= limit) return false;
  }
  return true;
}

void Apart::run(const std::function<void()>& work) {
  Pipe pipe;
  if (!ends_within(0) || !pipe.open()) return;
  const pid_t pid = fork();
  if (pid == 0) {
    if (fork() != 0) _exit(0);  // nobody's child: who waits for the ranks need not know it
    constexpr int kOwn = STDERR_FILENO + 1;
    if (pipe.write_end != kOwn) dup2(pipe.write_end, kOwn);
#ifdef SYS_close_range  // a pipe of ranks has no other writer then
    syscall(SYS_close_range, kOwn + 1, ~0U, 0);
#endif
    work();
    _exit(0);
  }
  if (pid > 0) waitpid(pid, nullptr, 0);
  at_work_ = std::exchange(pipe.read_end, -1);
}

}  // namespace hpclaunch::sys
