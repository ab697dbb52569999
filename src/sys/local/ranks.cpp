#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "sys/exec_words.h"
#include "sys/local/supervisor.h"
#include "sys/local/sweep.h"

namespace hpclaunch::sys::local {
namespace {

Error system_error(const std::string& what, int error) {
  return Error{ErrorKind::system, fmt::format("{}: {}", what, std::strerror(error))};
}

}  // namespace

Supervisor::Supervisor(const Job& job, int control)
    : job_(job),
      control_(control),
      lines_(job.ranks, job.output.label, screen_.one_target()),
      ranks_(static_cast<std::size_t>(job.ranks)),
      logs_(job.logs.files) {}

Status Supervisor::start() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  children_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  pipes_ = epoll_create1(EPOLL_CLOEXEC);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int execs[2] = {-1, -1};  // every rank holds the writing end until its exec closes it
  if (children_ < 0 || pipes_ < 0 || null < 0 || pipe2(execs, O_CLOEXEC) != 0) {
    return system_error("cannot start the ranks", errno);
  }

  Result<Stacks> stacks = Stacks::make(job_.ranks);
  if (!stacks) return stacks.error();
  argv_ = pointers(job_.argv);
  Start common;
  common.program = argv_[0];
  common.argv = argv_.data();
  common.files = &job_.files;
  common.ignore_pipe = job_.ignore_pipe;
  const std::vector<char*> env = pointers(job_.env);
  started_ = clock_ms();
  for (int rank = 0; rank < job_.ranks; ++rank) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    state.own_variable = fmt::format("HPCLAUNCH_LOCAL_RANK={}", rank);
    state.env = env;
    state.env.back() = state.own_variable.data();
    state.env.push_back(nullptr);
    common.envp = state.env.data();
    common.input = rank == 0 ? 0 : null;
    if (const Status status = start_rank(rank, common, stacks->top(rank)); !status) {
      end_children(kHopeless);
      return status.error();
    }
  }
  close(null);
  close(execs[1]);
  // Ranks on their way to the exec share our errno and may not have a session to be signalled by.
  // poll says so without errno; word from `control_` is not kept waiting by an exec that hangs.
  std::array<pollfd, 2> wanted = {{{execs[0], POLLIN, 0}, {control_, POLLIN, 0}}};
  while (poll(wanted.data(), wanted.size(), -1) < 0) continue;
  close(execs[0]);
  return Done{};
}

Status Supervisor::start_rank(int rank, const Start& common, char* stack_top) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  state.start = common;
  int* const ends[2] = {&state.start.output, &state.start.errors};
  for (int i = 0; i < 2; ++i) {
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
    state.pipes[i] = pair[0];
    *ends[i] = pair[1];
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<std::uint32_t>(2 * rank + i);
    epoll_ctl(pipes_, EPOLL_CTL_ADD, pair[0], &event);
    ++open_pipes_;
  }
  const pid_t pid = spawn(state.start, stack_top);
  close(state.start.output);
  close(state.start.errors);
  if (pid < 0) return start_error(-pid);
  state.pid = pid;
  state.alive = true;
  ++alive_;
  by_pid_[pid] = rank;
  return Done{};
}

Error Supervisor::start_error(int error) const {
  Error found = system_error(fmt::format("cannot start {}", job_.argv[0]), error);
  if (error == ENOENT) found.kind = ErrorKind::program_not_found;
  if (error == EACCES || error == ENOEXEC) found.kind = ErrorKind::not_executable;
  if (error == EAGAIN) found.hint = "start fewer ranks, or raise ulimit -u";
  return found;
}

void Supervisor::read_ranks() {
  if (screen_.full() || open_pipes_ == 0) return;
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(pipes_, ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto which = static_cast<int>(ready[static_cast<std::size_t>(i)].data.u32);
    read_pipe(which / 2, which % 2 == 0 ? Stream::out : Stream::err);
  }
  if (count > 0 || phase_ != Phase::draining) return;
  // Nothing lives and nothing is left to read: whoever still holds a pipe is not ours to wait for.
  for (int rank = 0; rank < job_.ranks; ++rank) {
    for (int& pipe : ranks_[static_cast<std::size_t>(rank)].pipes) {
      if (pipe != -1) close_pipe(pipe);
    }
    lines_.close(rank, Stream::out, pieces_);
    lines_.close(rank, Stream::err, pieces_);
  }
}

// A rank on its way to its exec holds copies of all our pipes, so that close alone would leave this
// one in the epoll.
void Supervisor::close_pipe(int& pipe) {
  epoll_ctl(pipes_, EPOLL_CTL_DEL, pipe, nullptr);
  close(pipe);
  pipe = -1;
  --open_pipes_;
}

// One read per turn: a rank that floods its output waits its turn like the others.
void Supervisor::read_pipe(int rank, Stream stream) {
  static std::array<char, 64 * 1024> buffer;
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  int& pipe = state.pipes[static_cast<int>(stream)];
  const ssize_t size = read(pipe, buffer.data(), buffer.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) {
    close_pipe(pipe);
    lines_.close(rank, stream, pieces_);
    return;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(size));
  state.tail.add(bytes);
  write_log(rank, bytes);
  lines_.feed(rank, stream, bytes, clock_ms(), pieces_);
}

void Supervisor::write_log(int rank, std::string_view bytes) {
  if (logs_.empty()) return;
  int& file = logs_[static_cast<std::size_t>(rank)];
  while (file != -1 && !bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      const int error = errno;
      close(file);
      file = -1;
      if (!std::exchange(log_failed_, true)) {
        say(fmt::format("hpclaunch: cannot write {}: {}; the job goes on without this log\n",
                        job_.logs.paths[static_cast<std::size_t>(rank)], std::strerror(error)));
      }
    }
  }
}

}  // namespace hpclaunch::sys::local
