#include "sys/local/readers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "sys/descendants.h"
#include "sys/start.h"

namespace hpclaunch::sys::local {

Readers::~Readers() {
  stop();
  if (events_ >= 0) close(events_);
}

void Readers::stop() {
  waiting_.clear();
  while (!at_work_.empty()) end(at_work_.begin()->first, true);
}

void Readers::ask(int number, bool all_threads, const std::map<pid_t, int>& ranks, int ras_port) {
  stop();
  if (events_ < 0) events_ = epoll_create1(EPOLL_CLOEXEC);
  number_ = number;
  all_threads_ = all_threads;
  ras_port_ = ras_port;
  waiting_.assign(ranks.begin(), ranks.end());
  for (const auto& [program, rank] : ranks)
    hear_(number, rank, "", false);  // our own machine is there
  strays_ = left_to_us(ranks);
  start_some();
}

void Readers::start_some() {
  while (!waiting_.empty() && static_cast<int>(at_work_.size()) < kAtOnce) {
    const auto [program, rank] = waiting_.front();
    waiting_.pop_front();
    if (!start(program, rank)) hear_(number_, rank, "", true);
  }
}

bool Readers::start(pid_t program, int rank) {
  std::vector<std::string> words = {reader_};
  if (all_threads_) words.emplace_back("--all-threads");
  if (ras_port_ != 0 && rank == 0)  // one answer is of the whole job
    words.insert(words.end(),
                 {"--ras", fmt::format("localhost:{}", ras_port_), "--most", "524288"});
  Pipe pipe;
  if (!pipe.open()) return false;
  std::vector<pid_t> programs = {program};
  if (const auto other = strays_.find(rank); other != strays_.end())
    programs.push_back(other->second);
  const Memories memories(programs);
  for (const pid_t one : programs) words.push_back(fmt::format("{}", one));
  fcntl(pipe.read_end, F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&how);
  posix_spawn_file_actions_adddup2(&files, pipe.write_end, STDOUT_FILENO);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  std::array<char*, 1> nothing = {nullptr};
  const int error =
      posix_spawn(&pid, reader_.c_str(), &files, &how, pointers(words).data(), nothing.data());
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return false;
  const int fd = std::exchange(pipe.read_end, -1);
  at_work_[fd] = {pid, rank};
  alive_.insert(pid);
  epoll_event event{EPOLLIN, {.fd = fd}};
  epoll_ctl(events_, EPOLL_CTL_ADD, fd, &event);
  return true;
}

// Whoever reaps all children reaps it as well.
void Readers::end(int fd, bool at_work) {
  if (at_work) kill(at_work_.at(fd).pid, SIGKILL);
  at_work_.erase(fd);
  epoll_ctl(events_, EPOLL_CTL_DEL, fd, nullptr);  // another process may have a copy of it
  close(fd);
}

void Readers::turn() {
  if (events_ < 0 || at_work_.empty()) return;
  std::array<epoll_event, kAtOnce> ready{};
  const int count = epoll_wait(events_, ready.data(), kAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const int fd = ready[i].data.fd;
    const auto found = at_work_.find(fd);
    if (found == at_work_.end()) continue;
    const int rank = found->second.rank;
    std::string piece;
    const bool more = read_some(fd, piece);
    hear_(number_, rank, piece, !more);
    if (!more) end(fd, false);
  }
  start_some();
}

}  // namespace hpclaunch::sys::local
