#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "sys/descendants.h"
#include "sys/local/supervisor.h"

namespace hpclaunch::sys::local {
Supervisor::Supervisor(const Job& job, int control)
    : job_(job),
      first_(job.plan.own_ranks().first),
      control_(control),
      children_(signal_set({SIGCHLD})),
      lines_(job.plan.own_ranks().second, job.plan.supervision.output.label, screen_.one_target(),
             first_, job.plan.world_size()),
      ranks_(static_cast<std::size_t>(job.plan.own_ranks().second)),
      logs_(job.logs.files),
      verdict_(job.plan),
      readers_(job.asking.reader,
               [this](int number, int rank, std::string_view piece, bool last) {
                 watching_.questions().hear(number, rank, piece, last);
               }),
      watching_(verdict_, job.asking, job.pid, [this](int number, bool all_threads) {
        readers_.ask(number, all_threads, by_pid_, job_.asking.ras_port);
      }) {
  facts_.logs = job.logs.directory;
}

Status Supervisor::start() {
  pipes_ = epoll_create1(EPOLL_CLOEXEC);
  death_pipe_.open();
  const int highest =
      fcntl(death_pipe_.write_end, F_DUPFD_CLOEXEC, files_needed(ranks(), !logs_.empty()) - 1);
  if (highest >= 0) close(std::exchange(death_pipe_.write_end, highest));
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  Pipe execs;  // every rank has the writing end until its exec closes it
  if (children_.fd() < 0 || pipes_ < 0 || null < 0 || !execs.open())
    return system_error("cannot start the ranks");
  // Only the pages that are used take memory, but a limit of address space counts all.
  stacks_.reset(new (std::nothrow) char[ranks_.size() * kStackBytes]);
  if (!stacks_) return Error{ErrorKind::system, "not enough memory to start the ranks", ""};
  argv_ = pointers(job_.argv);
  Start common;
  common.argv = argv_.data();
  common.group = Start::Group::own_session;
  common.files = &job_.files;
  common.default_pipe = !job_.ignore_pipe;
  const std::vector<char*> env = pointers(job_.env);
  facts_.started = wall_clock();
  const Result<CpuSet> shown = CpuSet::parse(job_.plan.supervision.output.shown_ranks);
  for (int rank = 0; rank < ranks(); ++rank) {
    Rank& state = ranks_[rank];
    state.shown = !shown || shown->empty() || shown->has(rank);
    char* const top = stacks_.get() + static_cast<std::size_t>(rank + 1) * kStackBytes;
    state.own_variable = fmt::format("HPCLAUNCH_LOCAL_RANK={}", rank);
    state.env = env;
    state.env.back() = state.own_variable.data();
    state.env.push_back(nullptr);
    common.envp = state.env.data();
    common.input = rank == 0 ? 0 : null;
    if (const Status status = start_rank(rank, common, top); !status) {
      end_descendants(kKillPatience);
      return status.error();
    }
  }
  close(null);
  execs.close_write();
  // Until its exec a rank shares our errno and may have no session yet that could be signalled. An exec
  // that hangs does not delay what comes from `control_`.
  Wait wait;
  wait.on(execs.read_end);
  wait.on(control_);
  while (!wait.ready(execs.read_end) && !wait.ready(control_)) wait.run();
  return Done{};
}

Status Supervisor::start_rank(int local, const Start& common, char* stack_top) {
  Rank& state = ranks_[local];
  const int rank = first_ + local;
  state.start = common;
  Pipe pipes[2];
  for (int i = 0; i < 2; ++i) {
    if (!pipes[i].open()) return system_error("cannot create a pipe");
    state.pipes[i] = std::exchange(pipes[i].read_end, -1);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<std::uint32_t>(2 * local + i);
    epoll_ctl(pipes_, EPOLL_CTL_ADD, state.pipes[i], &event);
    ++open_pipes_;
  }
  state.start.output = pipes[0].write_end;
  state.start.errors = pipes[1].write_end;
  const pid_t pid = start_beside(state.start, stack_top);
  if (pid < 0) return exec_error(job_.argv[0], -pid);
  by_pid_[pid] = rank;
  verdict_.begun(rank, std::string(job_.plan.hosts.names[std::max(job_.plan.hosts.own, 0)]));
  kill_with_us(pid);
  return Done{};
}

// KILL for the rank's process group when this process dies, from the kernel: its children would survive
// the death of all three processes of the launcher, which end them otherwise. The end of the last writer of a
// pipe is a signal (O_ASYNC, F_SETSIG) to the owner of each open reading end. A dying process closes its
// descriptors from the highest down (Linux 4.3, task_work.c), so the writing end is the highest.
void Supervisor::kill_with_us(pid_t group) {
  const std::string path = fmt::format("/proc/self/fd/{}", death_pipe_.read_end);
  const int end = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (end < 0) return;
  fcntl(end, F_SETOWN, -group);
  fcntl(end, F_SETSIG, SIGKILL);
  fcntl(end, F_SETFL, O_ASYNC | O_NONBLOCK);
}

void Supervisor::read_ranks() {
  if (screen_.full() || open_pipes_ == 0) return;
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(pipes_, ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto which = static_cast<int>(ready[i].data.u32);
    read_pipe(which / 2, which % 2 == 0 ? Stream::out : Stream::err);
  }
  if (count > 0 || phase_ != Phase::draining) return;
  // No process of the job lives and nothing is left to read: do not wait for another owner of a pipe.
  for (int rank = 0; rank < ranks(); ++rank) {
    for (int& pipe : ranks_[rank].pipes) {
      if (pipe != -1) close_pipe(pipe);
    }
    lines_.close(rank, Stream::out, pieces_);
    lines_.close(rank, Stream::err, pieces_);
  }
}

// A rank before its exec has copies of all our pipes, so that close alone would leave this one in the
// epoll.
void Supervisor::close_pipe(int& pipe) {
  epoll_ctl(pipes_, EPOLL_CTL_DEL, pipe, nullptr);
  close(pipe);
  pipe = -1;
  --open_pipes_;
}

// One read per turn: a rank with much output does not delay the others.
void Supervisor::read_pipe(int local, Stream stream) {
  static std::array<char, 64 * 1024> buffer;
  Rank& state = ranks_[local];
  int& pipe = state.pipes[static_cast<int>(stream)];
  const ssize_t size = read(pipe, buffer.data(), buffer.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) {
    close_pipe(pipe);
    lines_.close(local, stream, pieces_);
    return;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(size));
  state.tail.add(bytes);
  watching_.output();
  write_log(local, bytes);
  if (state.shown) lines_.feed(local, stream, bytes, clock_ms(), pieces_);
}

void Supervisor::write_log(int local, std::string_view bytes) {
  if (logs_.empty()) return;
  int& file = logs_[local];
  if (file == -1 || write_all(file, bytes)) return;
  const int error = errno;
  close(file);
  file = -1;
  output_lost_ = true;
  if (!std::exchange(log_failed_, true)) say(lost_log(job_.logs.paths[local], error));
}

}  // namespace hpclaunch::sys::local
