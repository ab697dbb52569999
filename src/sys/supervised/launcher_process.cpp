#include "sys/supervised/launcher_process.h"

#include <algorithm>
#include <csignal>

namespace hpclaunch::sys::supervised {

Status LauncherProcess::start(const std::vector<std::string>& argv, const EnvSnapshot& env,
                              const Relay& relay) {
  program_ = argv.front();
  const Result<pid_t> pid =
      start_program(argv, &env.entries(),
                    {.output = relay.output(),
                     .errors = relay.errors(),
                     .group = shares_group_ ? Start::Group::inherited : Start::Group::own,
                     .when_we_die = policy_.on_parent_death,
                     .files = &files_});
  if (!pid) return pid.error();
  pid_ = *pid;
  return Done{};
}

void LauncherProcess::signal(int number) const {
  if (end_ || number == 0) return;  // reaped: another process may have its number
  kill(pid_, number);
}

long LauncherProcess::next_step() {
  const TerminationPolicy::Step& step = policy_.steps[std::min(steps_, policy_.steps.size() - 1)];
  ++steps_;
  signal(step.signal);
  signal(SIGCONT);  // a stopped one would not get it
  return step.wait_ms;
}

}  // namespace hpclaunch::sys::supervised
