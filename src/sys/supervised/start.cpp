#include "sys/supervised/start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "sys/exec_words.h"

namespace hpclaunch::sys::supervised {
namespace {

constexpr int kFailed = 125;

struct Request {
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  int errors = 2;
  int when_we_die = 0;
  bool own_group = false;
  bool ignore_pipe = false;
  pid_t parent = 0;
  volatile int error = 0;
};

// Runs in our memory while we stand still (CLONE_VFORK): system calls only.
__attribute__((no_sanitize("address", "undefined"))) int become(void* argument) {
  Request& request = *static_cast<Request*>(argument);
  if (request.own_group) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, request.when_we_die);
  if (getppid() != request.parent) _exit(kFailed);  // it died before prctl could watch it
  dup2(request.errors, 2);
  signal(SIGPIPE, request.ignore_pipe ? SIG_IGN : SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(request.argv[0], request.argv, request.envp);
  request.error = errno;
  _exit(kFailed);
}

}  // namespace

Result<Child> start(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                    int when_we_die, bool own_group) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorKind::system, fmt::format("cannot make a pipe: {}", std::strerror(errno))};
  }
  const std::vector<char*> words = pointers(argv);
  const std::vector<char*> variables = pointers(env);
  struct sigaction pipe_action {};
  sigaction(SIGPIPE, nullptr, &pipe_action);
  Request request;
  request.argv = words.data();
  request.envp = variables.data();
  request.errors = ends[1];
  request.when_we_die = when_we_die;
  request.own_group = own_group;
  request.ignore_pipe = pipe_action.sa_handler == SIG_IGN;
  request.parent = getpid();
  alignas(16) static std::array<char, 64 * 1024> stack;
  const pid_t pid =
      clone(become, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &request);
  const int error = pid < 0 ? errno : request.error;
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    if (pid > 0) waitpid(pid, nullptr, 0);
    return exec_error(argv.front(), error);
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Child{pid, ends[0]};
}

}  // namespace hpclaunch::sys::supervised
