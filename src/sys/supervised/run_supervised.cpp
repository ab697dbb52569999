// Starts a launcher with a rank monitor beside it.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"
#include "sys/descendants.h"
#include "sys/start.h"
#include "sys/supervised/monitor.h"

namespace hpclaunch::sys {
namespace {

// 16 hexadecimal digits that no other job has.
std::string draw_key() {
  std::random_device chance;
  return fmt::format("{:08x}{:08x}", chance(), chance());
}

Result<Ending> monitor(const Plan& plan, const std::vector<std::string>& argv,
                       const EnvSnapshot& env, Signals& signals) {
  Pipe errors;
  if (!errors.open()) return system_error("cannot create a pipe");
  fcntl(errors.read_end, F_SETFL, O_NONBLOCK);
  supervised::Launcher launcher;
  launcher.shares_group = isatty(STDIN_FILENO) != 0;  // a group of its own could not read from it
  const Subreaper reaper;
  launcher.alone = reaper.alone();
  launcher.started = wall_clock();
  launcher.errors = errors.read_end;
  launcher.key = draw_key();
  std::map<std::string, std::optional<std::string>> changes = {{kRecords, launcher.key}};
  const std::string& variable = plan.termination.variable;
  if (const std::size_t equals = variable.find('='); equals != std::string::npos)
    changes[variable.substr(0, equals)] = variable.substr(equals + 1);
  const EnvSnapshot changed = env.with(changes);
  const Result<pid_t> pid =
      start_program(argv, &changed.entries(),
                    {.errors = errors.write_end,
                     .group = launcher.shares_group ? Start::Group::inherited : Start::Group::own,
                     .when_we_die = plan.termination.on_parent_death});
  if (!pid) return pid.error();
  launcher.pid = *pid;
  errors.close_write();
  struct sigaction pipe_before {};
  sigaction(SIGPIPE, nullptr, &pipe_before);
  signal(SIGPIPE, SIG_IGN);
  Ending ending = supervised::Monitor(plan, launcher, signals).run();
  sigaction(SIGPIPE, &pipe_before, nullptr);
  return ending;
}

}  // namespace

Result<Ending> run_supervised(const Plan& plan, const std::vector<std::string>& argv,
                              const EnvSnapshot& env) {
  fill_standard_files();
  const KeepExitStatuses statuses;
  sigset_t set = unless_ignored(kForwarded);
  sigaddset(&set, SIGCHLD);
  Signals signals(set);
  Result<Ending> ending = monitor(plan, argv, env, signals);
  signals.discard();  // for a job that is over: must not change our exit status
  return ending;
}

}  // namespace hpclaunch::sys
