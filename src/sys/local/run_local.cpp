// The local launcher as the process that the user started sees it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"
#include "sys/descendants.h"
#include "sys/local/job.h"
#include "sys/report.h"
#include "sys/start.h"
#include "sys/watching.h"

namespace hpclaunch::sys::local {
namespace {

constexpr int kMostLaunches = 10'000;

// Exclusive unless it is the directory that the user named. errno.
int make_directory(const std::string& path, bool named) {
  std::error_code failed;
  const bool made = named ? (std::filesystem::create_directories(path, failed), true)
                          : std::filesystem::create_directory(path, failed);
  return failed ? failed.value() : made ? 0 : EEXIST;
}

// `files` of `directory`, newly created. errno; EEXIST when one of them exists.
int create(const std::string& directory, int ranks, int first, int files, Logs& logs) {
  logs = {directory, {}, {}};
  for (int rank = first; rank < first + files; ++rank) {
    const std::string path = log_path(directory, rank, ranks);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) {
      const int error = errno;
      for (const int opened : logs.files) close(opened);
      for (const std::string& made : logs.paths) unlink(made.c_str());
      return error;
    }
    logs.paths.push_back(path);
    logs.files.push_back(file);
  }
  return 0;
}

}  // namespace

Result<Logs> open_logs(const std::string& directory, int ranks, int first, int files) {
  Logs logs;
  if (directory.empty()) return logs;
  for (int launch = 1; launch < kMostLaunches; ++launch) {
    const std::string place = launch == 1 ? directory : fmt::format("{}/{}", directory, launch);
    int error = make_directory(place, launch == 1);
    if (error == 0) error = create(place, ranks, first, files, logs);
    if (error == 0 && launch > 1)
      std::fprintf(stderr, "hpclaunch: %s contains logs of an earlier launch; writing to %s\n",
                   directory.c_str(), place.c_str());
    if (error == 0) return logs;
    if (error != EEXIST) {
      return Error{ErrorKind::system,
                   fmt::format("cannot create log files in {}: {}", place, std::strerror(error)),
                   "choose another directory with --log-dir"};
    }
  }
  return Error{ErrorKind::system,
               fmt::format("{} contains logs of {} launches", directory, kMostLaunches - 1),
               "choose another directory with --log-dir"};
}

}  // namespace hpclaunch::sys::local

namespace hpclaunch::sys {
namespace {

using local::Job;

// They may need the hard limit. `before` is what ranks get.
Status raise_file_limit(int ranks, bool logs, rlimit& before) {
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) return Done{};
  const auto needed = static_cast<rlim_t>(local::files_needed(ranks, logs));
  if (before.rlim_cur >= needed) return Done{};
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  if (raised.rlim_max < needed || setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    return Error{
        ErrorKind::system,
        fmt::format("{} ranks need {} open files, {} are allowed", ranks, needed, before.rlim_max),
        "raise the hard limit (ulimit -Hn), or start fewer ranks"};
  }
  return Done{};
}

Result<Job> make_job(const Plan& plan, const EnvSnapshot& env, const std::string& shim,
                     const Asking& asking) {
  Job job{.plan = plan, .asking = asking, .pid = getpid()};
  job.ignore_pipe = is_ignored(SIGPIPE);
  job.argv = plan.launch.command;
  job.argv.insert(job.argv.begin(), shim);
  // Both are of a launch around this one.
  job.env = env.with({{"HPCLAUNCH_LOCAL_RANK", std::nullopt}, {kChannel, std::nullopt}}).entries();
  const auto [first, ranks] = plan.own_ranks();
  const bool with_logs = !plan.supervision.output.log_dir.empty();
  if (const Status status = raise_file_limit(ranks, with_logs, job.files); !status) {
    return status.error();
  }
  Result<local::Logs> logs =
      local::open_logs(plan.supervision.output.log_dir, plan.world_size(), first, ranks);
  if (!logs) return logs.error();
  job.logs = *std::move(logs);
  return job;
}

// Forwards signals until the supervisor is gone. Its last message.
std::string watch(int control, Signals& signals, const Asking& asking) {
  std::string message;
  for (;;) {
    Wait wait;
    wait.on(control);
    wait.on(signals.fd());
    wait.run();
    while (const auto seen = signals.next()) {
      const unsigned from = is_batch_system(*seen, asking) ? local::kFromBatch : 0U;
      const auto byte = static_cast<unsigned char>(seen->ssi_signo | from);
      send(control, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (seen->ssi_signo == SIGTSTP) raise(SIGSTOP);
    }
    if (wait.ready(control) && !read_some(control, message)) return message;
  }
}

// `alone`: every child of this process belongs to this job.
Result<Ending> end(const std::string& message, pid_t guard, bool alone) {
  std::optional<Result<Ending>> outcome = local::decode(message);
  if (outcome) kill(guard, SIGKILL);  // nothing is left for it to do
  if (alone && !outcome) end_descendants(kKillPatience);
  waitpid(guard, nullptr, 0);
  if (!outcome) {
    std::fprintf(stderr, "hpclaunch: supervisor process was killed; stopped all ranks\n");
    Ending ending;
    ending.status = 128 + SIGKILL;
    return ending;
  }
  return *std::move(outcome);
}

Result<Ending> launch(const Job& job) {
  int control[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) {
    return system_error("cannot start the ranks");
  }
  Signals signals(hold(kForwarded));
  const Subreaper reaper;  // the guard and the supervisor are, whatever this process is
  std::fflush(nullptr);
  sigset_t all;
  sigset_t ours;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &ours);
  const pid_t guard = fork();
  if (guard == 0) {
    close(control[0]);
    close(signals.fd());
    local::guard(job, control[1]);
  }
  const int error = errno;
  sigprocmask(SIG_SETMASK, &ours, nullptr);
  close(control[1]);
  Result<Ending> result = exec_error(job.argv[0], error);
  if (guard > 0) result = end(watch(control[0], signals, job.asking), guard, reaper.alone());
  close(control[0]);
  signals.discard();  // for a job that is over: must not end what follows
  return result;
}

}  // namespace

Result<std::string> claim_log_directory(const std::string& directory, int ranks) {
  const Result<local::Logs> logs = local::open_logs(directory, ranks, 0, 1);
  if (!logs) return logs.error();
  for (const int file : logs->files) close(file);
  return logs->directory;
}

Result<Ending> run_local(const Plan& plan, const EnvSnapshot& env, const std::string& shim,
                         const Asking& asking) {
  fill_standard_files();
  Result<Job> job = make_job(plan, env, shim, asking);
  if (!job) return job.error();
  const KeepExitStatuses statuses;
  Result<Ending> result = launch(*job);
  setrlimit(RLIMIT_NOFILE, &job->files);
  for (const int file : job->logs.files) close(file);
  return result;
}

}  // namespace hpclaunch::sys
