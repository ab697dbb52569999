#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/sys.h"
#include "sys/local/guard.h"
#include "sys/local/sweep.h"
#include "sys/supervised/start.h"
#include "sys/supervised/watch.h"

namespace hpclaunch::sys {
namespace {

constexpr std::string_view kRecords = "HPCLAUNCH_RECORDS=";

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t signals_to_take() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : local::kPassedOn) {
    if (!is_ignored(signal)) sigaddset(&set, signal);  // nohup: HUP stays without effect
  }
  sigaddset(&set, SIGCHLD);
  return set;
}

// 0, 1 and 2 must be taken, or the pipe would get such a number.
void fill_standard_files() {
  int fd = 0;
  while (fd >= 0 && fd <= 2) fd = open("/dev/null", O_RDWR);
  if (fd > 2) close(fd);
}

std::vector<std::string> environment_of(const EnvSnapshot& env, const std::string& variable) {
  std::vector<std::string> entries;
  entries.reserve(env.entries().size() + 2);
  const std::string_view name = std::string_view(variable).substr(0, variable.find('=') + 1);
  for (const std::string& entry : env.entries()) {
    if (entry.starts_with(kRecords) || (!name.empty() && entry.starts_with(name))) continue;
    entries.push_back(entry);
  }
  entries.push_back(std::string(kRecords) + "1");
  if (!variable.empty()) entries.push_back(variable);
  return entries;
}

Result<Ending> watch(const Plan& plan, const std::vector<std::string>& argv, const EnvSnapshot& env,
                     bool fails_fast, const sigset_t& signals) {
  supervised::Setting setting;
  setting.conduct = supervised::conduct(plan.launcher);
  setting.fails_fast = fails_fast;
  setting.shares_group = isatty(STDIN_FILENO) != 0;  // a group of its own could not read from it
  // As in the local launcher: orphans of a former program of this process are not ours to end.
  setting.alone = local::no_children();
  int was_subreaper = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper);
  if (setting.alone) prctl(PR_SET_CHILD_SUBREAPER, 1);
  const double started = supervised::wall_clock();
  const Result<supervised::Child> child =
      supervised::start(argv, environment_of(env, setting.conduct.variable),
                        setting.conduct.when_we_die, !setting.shares_group);
  Result<Ending> result = Error{};
  if (child) {
    signal(SIGPIPE, SIG_IGN);
    setting.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    result = supervised::Watch(plan, setting, *child, started).run();
    close(setting.signals);
  } else {
    result = child.error();
  }
  if (setting.alone) prctl(PR_SET_CHILD_SUBREAPER, was_subreaper);
  return result;
}

}  // namespace

Result<Ending> run_supervised(const Plan& plan, const std::vector<std::string>& argv,
                              const EnvSnapshot& env, bool fails_fast) {
  fill_standard_files();
  struct sigaction default_child {};
  struct sigaction child_before {};
  struct sigaction pipe_before {};
  default_child.sa_handler = SIG_DFL;  // ignored, the kernel would keep no exit statuses
  sigaction(SIGCHLD, &default_child, &child_before);
  sigaction(SIGPIPE, nullptr, &pipe_before);
  const sigset_t signals = signals_to_take();
  sigset_t mask;
  sigprocmask(SIG_BLOCK, &signals, &mask);
  Result<Ending> result = watch(plan, argv, env, fails_fast, signals);
  timespec at_once{};
  while (sigtimedwait(&signals, nullptr, &at_once) > 0) continue;  // too late to change our status
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGPIPE, &pipe_before, nullptr);
  sigaction(SIGCHLD, &child_before, nullptr);
  return result;
}

}  // namespace hpclaunch::sys
