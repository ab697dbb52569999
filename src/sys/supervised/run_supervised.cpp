#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/sys.h"
#include "sys/local/parent.h"
#include "sys/supervised/start.h"
#include "sys/supervised/watch.h"

namespace hpclaunch::sys {
namespace {

constexpr std::string_view kRecords = "HPCLAUNCH_RECORDS=";

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
                     const sigset_t& signals) {
  supervised::Setting setting;
  setting.shares_group = isatty(STDIN_FILENO) != 0;  // a group of its own could not read from it
  const local::Subreaper reaper;
  setting.alone = reaper.alone();
  const double started = wall_clock();
  const Result<supervised::Child> child =
      supervised::start(argv, environment_of(env, plan.termination.variable),
                        plan.termination.on_parent_death, !setting.shares_group);
  Result<Ending> result = Error{};
  if (child) {
    signal(SIGPIPE, SIG_IGN);
    setting.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    result = supervised::Watch(plan, setting, *child, started).run();
    close(setting.signals);
  } else {
    result = child.error();
  }
  return result;
}

}  // namespace

Result<Ending> run_supervised(const Plan& plan, const std::vector<std::string>& argv,
                              const EnvSnapshot& env) {
  local::fill_standard_files();
  const local::ExitStatuses statuses;
  struct sigaction pipe_before {};
  sigaction(SIGPIPE, nullptr, &pipe_before);
  sigset_t signals = local::signals_to_pass_on();
  sigaddset(&signals, SIGCHLD);
  sigset_t mask;
  sigprocmask(SIG_BLOCK, &signals, &mask);
  Result<Ending> result = watch(plan, argv, env, signals);
  timespec at_once{};
  while (sigtimedwait(&signals, nullptr, &at_once) > 0) continue;  // too late to change our status
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGPIPE, &pipe_before, nullptr);
  return result;
}

}  // namespace hpclaunch::sys
