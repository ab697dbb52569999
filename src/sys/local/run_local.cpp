#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "hpclaunch/sys.h"
#include "sys/local/guard.h"
#include "sys/local/job.h"
#include "sys/local/parent.h"
#include "sys/local/sweep.h"

namespace hpclaunch::sys {
namespace {

using local::Job;
using local::Outcome;

constexpr std::string_view kLocalRank = "HPCLAUNCH_LOCAL_RANK=";
constexpr std::string_view kRecords = "HPCLAUNCH_RECORDS=";  // of a launch around this one
constexpr int kOtherFiles = 64;                              // besides those of the ranks

// Two pipes and perhaps a log for every rank: takes the hard limit. `before` is what ranks get.
Status raise_file_limit(int ranks, bool logs, rlimit& before) {
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) return Done{};
  const rlim_t needed = static_cast<rlim_t>(ranks) * (logs ? 3 : 2) + kOtherFiles;
  if (before.rlim_cur >= needed) return Done{};
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  if (raised.rlim_max < needed || setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    return Error{ErrorKind::system,
                 fmt::format("{} ranks need {} open files, and only {} are allowed", ranks, needed,
                             before.rlim_max),
                 "raise the hard limit (ulimit -Hn), or start fewer ranks"};
  }
  return Done{};
}

Result<Job> make_job(const Plan& plan, const EnvSnapshot& env, const std::string& shim) {
  Job job;
  const std::size_t node_class = static_cast<std::size_t>(plan.layout.at(0).node_class);
  job.ranks = static_cast<int>(plan.classes.at(node_class).ranks.size());
  job.host = plan.hosts.at(0);
  job.output = plan.output;
  job.notice = plan.time_limit_signal;
  job.ignore_pipe = local::is_ignored(SIGPIPE);
  job.argv = plan.command;
  job.argv.insert(job.argv.begin(), shim);
  for (const std::string& entry : env.entries()) {
    if (!entry.starts_with(kLocalRank) && !entry.starts_with(kRecords)) job.env.push_back(entry);
  }
  const bool with_logs = !plan.output.log_dir.empty();
  if (const Status status = raise_file_limit(job.ranks, with_logs, job.files); !status) {
    return status.error();
  }
  Result<local::Logs> logs = local::open_logs(plan.output.log_dir, job.ranks);
  if (!logs) return logs.error();
  job.logs = *std::move(logs);
  if (with_logs && job.logs.directory != plan.output.log_dir) {
    std::fprintf(stderr, "hpclaunch: %s has logs of an earlier launch; these go to %s\n",
                 plan.output.log_dir.c_str(), job.logs.directory.c_str());
  }
  return job;
}

// Passes signals on until the supervisor is gone; then what it had to say.
std::string watch(int control, int signals) {
  std::string message;
  for (;;) {
    std::array<pollfd, 2> wanted = {{{control, POLLIN, 0}, {signals, POLLIN, 0}}};
    if (poll(wanted.data(), wanted.size(), -1) < 0) continue;
    signalfd_siginfo seen;
    while (read(signals, &seen, sizeof seen) == static_cast<ssize_t>(sizeof seen)) {
      const auto byte = static_cast<unsigned char>(seen.ssi_signo);
      send(control, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (seen.ssi_signo == SIGTSTP) raise(SIGSTOP);
    }
    if (wanted[0].revents == 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t size = recv(control, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size > 0) message.append(buffer.data(), static_cast<std::size_t>(size));
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) return message;
  }
}

// `alone`: every child we have belongs to this job.
Result<Ending> end(const std::string& message, pid_t guard, bool alone) {
  std::optional<Result<Outcome>> outcome = local::decode(message);
  if (outcome) kill(guard, SIGKILL);  // nothing is left for it to do
  if (alone && !outcome) local::end_children(local::kHopeless);
  waitpid(guard, nullptr, 0);
  if (!outcome) {
    std::fprintf(stderr,
                 "hpclaunch: the supervisor of the ranks was killed; the ranks were ended\n");
    Ending ending;
    ending.status = 128 + SIGKILL;
    return ending;
  }
  if (!*outcome) return outcome->error();
  return (*outcome)->ending;
}

Result<Ending> launch(const Job& job, const sigset_t& signals) {
  int control[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) {
    return Error{ErrorKind::system,
                 fmt::format("cannot start the ranks: {}", std::strerror(errno))};
  }
  const int incoming = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  const local::Subreaper reaper;  // the guard and the supervisor are, whatever we are
  std::fflush(nullptr);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  const pid_t guard = fork();
  if (guard == 0) {
    close(control[0]);
    close(incoming);
    local::guard(job, control[1]);
  }
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  close(control[1]);
  Result<Ending> result = Error{ErrorKind::system, "cannot start another process",
                                "ulimit -u says how many processes are allowed"};
  if (guard > 0) result = end(watch(control[0], incoming), guard, reaper.alone());
  close(control[0]);
  signalfd_siginfo late;  // for a job that is over: must not change our exit status
  while (read(incoming, &late, sizeof late) > 0) continue;
  close(incoming);
  return result;
}

}  // namespace

Result<Ending> run_local(const Plan& plan, const EnvSnapshot& env, const std::string& shim) {
  local::fill_standard_files();
  Result<Job> job = make_job(plan, env, shim);
  if (!job) return job.error();
  const local::ExitStatuses statuses;
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  Result<Ending> result = launch(*job, local::signals_to_pass_on());
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  setrlimit(RLIMIT_NOFILE, &job->files);
  for (const int file : job->logs.files) close(file);
  return result;
}

}  // namespace hpclaunch::sys
