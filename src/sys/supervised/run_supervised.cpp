// Starts a launcher with a rank monitor beside it.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <string>
#include <string_view>
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

std::vector<std::string> environment_of(const EnvSnapshot& env, const std::string& variable,
                                        const std::string& key) {
  std::vector<std::string> entries;
  entries.reserve(env.entries().size() + 2);
  const std::string_view name = std::string_view(variable).substr(0, variable.find('=') + 1);
  for (const std::string& entry : env.entries()) {
    if (entry.starts_with(kRecords) || (!name.empty() && entry.starts_with(name))) continue;
    entries.push_back(entry);
  }
  entries.push_back(std::string(kRecords) + key);
  if (!variable.empty()) entries.push_back(variable);
  return entries;
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
  const std::vector<std::string> entries =
      environment_of(env, plan.termination.variable, launcher.key);
  const std::vector<char*> words = pointers(argv);
  const std::vector<char*> variables = pointers(entries);
  Start start;
  start.argv = words.data();
  start.envp = variables.data();
  start.errors = errors.write_end;
  start.group = launcher.shares_group ? Start::Group::inherited : Start::Group::own;
  start.when_we_die = plan.termination.on_parent_death;
  const Result<pid_t> pid = start_program(start);
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
