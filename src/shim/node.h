#pragma once
// One node of a job that the launcher "ssh" has started (src/sys/ssh).
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "../shared/node_frames.h"
#include "environment.h"
#include "say.h"
#include "threads.h"
#include "tree.h"

namespace hpclaunch::shim {

using node::Head;
using NodeWhat = node::What;

constexpr long long kGrace = 5000;  // ms between TERM and KILL when hpclaunch is gone
constexpr long long kRest = 2000;   // the same for what ended ranks have left behind

struct NodeRank {
  int pid = -1;
  int from[2] = {-1, -1};  ///< its stdout and stderr
  bool alive = false;
};

class Node {
 public:
  [[noreturn]] void run(const char* marker, const char* folder, char** environment) {
    Line hello;
    hello.add(marker).add(" ready ").add_bytes(Text(folder)).add_bytes("\n");
    write_all(1, hello.text());
    if (!read_job()) leave(kFailed);
    const char* next = job_bytes_ + sizeof job_;
    const auto string = [&] {
      const char* const start = next;
      while (*next != '\0') ++next;
      ++next;
      return start;
    };
    const char* const directory = string();
    for (int i = 0; i < job_.words; ++i) words_[i] = string();
    for (int i = 0; i < job_.variables; ++i) variables_[variable_count_++] = string();
    for (; *environment != nullptr && variable_count_ < kMaxEnvironment; ++environment)
      if (node::begins_with_one(*environment, node::kOfLogin))
        variables_[variable_count_++] = *environment;
    if (const long error = -call(SYS_chdir, directory); error != 0)
      refuse(static_cast<int>(error), "working directory ", directory);
    tell({sizeof(Head), NodeWhat::accepted}, {});
    flush();
    Head go;
    if (!read_whole(reinterpret_cast<char*>(&go), sizeof go) || go.what != NodeWhat::go)
      leave(kFailed);
    call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
    prlimit();
    set_mask({~0UL}, &before_);
    SignalSet seen;
    constexpr int kSeen[] = {SIGCHLD, SIGHUP, SIGINT, SIGTERM};
    for (const int signal : kSeen) seen.add(signal);
    signals_ =
        static_cast<int>(call(SYS_signalfd4, -1, &seen, sizeof seen, SFD_CLOEXEC | SFD_NONBLOCK));
    for (int i = 0; i < job_.ranks; ++i) start(i);
    call(SYS_fcntl, 0, F_SETFL, O_NONBLOCK);
    call(SYS_fcntl, 1, F_SETFL, O_NONBLOCK);
    tell({sizeof(Head), NodeWhat::started}, {});
    for (;;) turn();
  }

 private:
  // ---- the job ----

  static bool read_whole(char* to, long size) {
    while (size > 0) {
      const long part = call(SYS_read, 0, to, size);
      if (part == -EINTR) continue;
      if (part <= 0) return false;
      to += part;
      size -= part;
    }
    return true;
  }
  /// False: hpclaunch is gone, or is none.
  bool read_job() {
    char* const head = reinterpret_cast<char*>(&job_);
    if (!read_whole(head, sizeof job_) || job_.head.what != NodeWhat::job ||
        job_.head.size < sizeof job_ || job_.head.size > node::kMostJob || job_.ranks < 1 ||
        job_.ranks > node::kMostRanks)
      return false;
    const long rest = job_.head.size - sizeof job_;
    const long at = call(SYS_mmap, nullptr, job_.head.size + 1L, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0 && at > -4096) refuse(ENOMEM, "the environment", "");
    job_bytes_ = reinterpret_cast<char*>(at);
    if (job_.words > kMostWords || job_.variables > kMaxEnvironment)
      refuse(E2BIG, "the environment or the arguments", "");
    return read_whole(job_bytes_ + sizeof job_, rest);
  }

  /// Two pipes for each rank.
  void prlimit() {
    call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &files_);
    rlimit more = files_;
    more.rlim_cur = more.rlim_max;
    call(SYS_prlimit64, 0, RLIMIT_NOFILE, &more, nullptr);
  }

  /// HPCLAUNCH_SSH_NAME=VALUE
  void add_variable(const char* name, int value) {
    constexpr int kMost = 48;
    static char lines[5][kMost];
    static int used = 0;
    Buffer<kMost> line;
    line.add(name).add("=").add(value);
    char* const at = lines[used++];
    for (int i = 0; i < line.text().size; ++i) at[i] = line.text().at[i];
    variables_[variable_count_++] = at;
  }

  void start(int local) {
    NodeRank& rank = ranks_[local];
    int into[2] = {-1, -1};
    long result = 0;
    for (int i = 0; i < 2 && result >= 0; ++i) {
      int ends[2];
      result = call(SYS_pipe2, ends, O_CLOEXEC);
      if (result < 0) break;
      rank.from[i] = above_standard(ends[0]);
      into[i] = above_standard(ends[1]);
      call(SYS_fcntl, rank.from[i], F_SETFL, O_NONBLOCK);
    }
    if (result >= 0) result = rank.pid = fork();
    if (result < 0) {
      signal_rest(SIGKILL);
      refuse(static_cast<int>(-result), "rank ", "");
    }
    if (rank.pid == 0) become(local, into);
    rank.alive = true;
    ++alive_;
    for (const int fd : into) close(fd);
  }

  [[noreturn]] void become(int local, const int (&into)[2]) {
    const long parent = call(SYS_getppid);
    call(SYS_setpgid, 0, 0);
    call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (call(SYS_getppid) != parent) leave(kFailed);
    const int nothing = static_cast<int>(call(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY));
    call(SYS_dup3, nothing, 0, 0);
    for (int i = 0; i < 2; ++i) call(SYS_dup3, into[i], i + 1, 0);
    call(SYS_prlimit64, 0, RLIMIT_NOFILE, &files_, nullptr);
    set_mask(before_);
    add_variable("HPCLAUNCH_SSH_RANK", job_.first_rank + local);
    add_variable("HPCLAUNCH_SSH_LOCAL_RANK", local);
    add_variable("HPCLAUNCH_SSH_SIZE", job_.world);
    add_variable("HPCLAUNCH_SSH_LOCAL_SIZE", job_.ranks);
    add_variable("HPCLAUNCH_SSH_NODE", job_.node);
    const int error = static_cast<int>(-call(SYS_execve, words_[0], words_, variables_));
    Line line("hpclaunch: rank ");
    line.add(job_.first_rank + local).add(" on ").add(host_name()).add(": ").add(words_[0]);
    line.add(" cannot be executed (errno ").add(error).add(")").print();
    leave(kCannotRun);
  }

  [[noreturn]] void refuse(int error, const char* what, const char* name) {
    Line text;
    text.add(what).add_bytes(name);
    Head head{sizeof(Head), NodeWhat::refused};
    head.number = error;
    tell(head, text.text());
    write_all(1, Text(out_, out_size_));
    leave(kFailed);
  }

  // ---- the loop ----

  void turn() {
    int count = 0;
    const auto add = [&](int fd, short events) { wanted_[count++] = {fd, events, 0}; };
    add(listens_ ? 0 : -1, POLLIN);
    add(signals_, POLLIN);
    add(out_size_ > 0 ? 1 : -1, POLLOUT);
    const bool reads = room() > kPiece;
    for (int i = 0; i < job_.ranks && reads; ++i)
      for (const int from : ranks_[i].from) add(from, POLLIN);
    const long long left = kill_at_ < 0 ? -1 : kill_at_ > clock_ms() ? kill_at_ - clock_ms() : 0;
    const timespec limit = {static_cast<long>(left / 1000),
                            static_cast<long>(left % 1000 * 1'000'000)};
    call(SYS_ppoll, wanted_, count, left < 0 ? nullptr : &limit, nullptr, 0);
    if (wanted_[0].revents != 0) hear();
    take_signals();
    flush();
    for (int i = 0; i < job_.ranks && reads; ++i)
      for (int stream = 0; stream < 2; ++stream)
        if (wanted_[3 + 2 * i + stream].revents != 0) pass_on(i, stream);
    flush();
    if (kill_at_ >= 0 && clock_ms() >= kill_at_) {
      constexpr long long kAgain = 200;
      signal_rest(SIGKILL);
      kill_at_ = clock_ms() + kAgain;
      if (alive_ == 0 && ++kills_ > kMostKills) leave(0);  // what is left hangs in the kernel
    }
    if (alive_ == 0 && childless_ && !is_open() && (out_size_ == 0 || !listens_)) leave(0);
  }

  bool is_open() const {
    for (int i = 0; i < job_.ranks; ++i)
      for (const int from : ranks_[i].from)
        if (from >= 0) return true;
    return false;
  }

  void hear() {
    for (;;) {
      constexpr int kSize = sizeof(Head);
      const long size = call(SYS_read, 0, heard_ + heard_size_, kSize - heard_size_);
      if (size == -EAGAIN || size == -EINTR) return;
      if (size <= 0) return lose();
      heard_size_ += static_cast<int>(size);
      if (heard_size_ < kSize) continue;
      Head head;
      copy_bytes(&head, heard_, sizeof head);
      heard_size_ = 0;
      if (head.what != NodeWhat::signal) return lose();
      if (head.number == SIGKILL)
        signal_rest(SIGKILL);
      else
        signal_ranks(head.number);
    }
  }

  /// hpclaunch is gone.
  void lose() {
    if (!listens_) return;
    listens_ = false;
    out_size_ = 0;
    signal_ranks(SIGTERM);
    if (kill_at_ < 0) kill_at_ = clock_ms() + kGrace;
  }

  void take_signals() {
    signalfd_siginfo seen;
    while (call(SYS_read, signals_, &seen, sizeof seen) == static_cast<long>(sizeof seen))
      if (static_cast<int>(seen.ssi_signo) != SIGCHLD) lose();
    reap();
  }

  void reap() {
    const int before = alive_;
    for (;;) {
      int status = 0;
      const int pid = static_cast<int>(call(SYS_wait4, -1, &status, WNOHANG, nullptr));
      childless_ = pid == -ECHILD;
      if (pid <= 0) break;
      for (int i = 0; i < job_.ranks; ++i)
        if (ranks_[i].alive && ranks_[i].pid == pid) {
          ranks_[i].alive = false;
          --alive_;
          pass_on(i, 0);
          pass_on(i, 1);
          Head head{sizeof(Head), NodeWhat::ended};
          head.local = i;
          head.number = status;
          tell(head, {});
        }
    }
    if (alive_ > 0 || before == 0) return;
    signal_rest(SIGTERM);
    kill_at_ = clock_ms() + kRest;
  }

  void signal_ranks(int signal) const {
    for (int i = 0; i < job_.ranks; ++i)
      if (ranks_[i].alive) call(SYS_kill, -ranks_[i].pid, signal);
  }
  /// Also what ended ranks have left behind.
  void signal_rest(int signal) const {
    signal_ranks(signal);
    // The numbers of ranks that have ended may be another job's now: what they have started is ours, or below ours.
    each_child(own_pid(), own_pid(), [&](int child) { signal_tree(child, signal); });
  }

  // ---- what is told ----

  int room() const { return kRoom - out_size_ - kReserve; }

  void pass_on(int local, int stream) {
    static char bytes[node::kMostOutput];
    int& from = ranks_[local].from[stream];
    while (from >= 0 && room() > kPiece) {
      const long size = call(SYS_read, from, bytes, sizeof bytes);
      if (size == -EAGAIN || size == -EINTR) return;
      if (size <= 0) {
        close(from);
        from = -1;
        return;
      }
      Head head{sizeof(Head), NodeWhat::output, static_cast<uint8_t>(stream)};
      head.local = local;
      tell(head, {bytes, static_cast<int>(size)});
    }
  }

  static void copy_bytes(void* to, const void* from, int size) {
    for (int i = 0; i < size; ++i) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  }

  void tell(Head head, Text bytes) {
    head.size += static_cast<uint32_t>(bytes.size);
    if (!listens_ || out_size_ + static_cast<int>(head.size) > kRoom) return;
    copy_bytes(out_ + out_size_, &head, sizeof head);
    copy_bytes(out_ + out_size_ + sizeof head, bytes.at, bytes.size);
    out_size_ += static_cast<int>(head.size);
  }

  void flush() {
    int done = 0;
    while (done < out_size_) {
      const long part = call(SYS_write, 1, out_ + done, out_size_ - done);
      if (part == -EINTR) continue;
      if (part == -EAGAIN) break;
      if (part < 0) return lose();
      done += static_cast<int>(part);
    }
    if (done > 0) copy_bytes(out_, out_ + done, out_size_ - done);
    out_size_ -= done;
  }

  static constexpr int kMostWords = 65536;
  static constexpr int kRoom = 256 * 1024;
  static constexpr int kReserve = (node::kMostRanks + 1) * static_cast<int>(sizeof(Head));
  static constexpr int kPiece = node::kMostOutput + static_cast<int>(sizeof(Head));
  static constexpr int kMostKills = 10;

  node::Job job_;
  char* job_bytes_ = nullptr;
  inline static const char* words_[kMostWords + 1];
  inline static const char* variables_[kMaxEnvironment + 64];
  int variable_count_ = 0;
  rlimit files_ = {};
  SignalSet before_;
  int signals_ = -1;
  constinit inline static NodeRank ranks_[node::kMostRanks];
  inline static pollfd wanted_[3 + 2 * node::kMostRanks];
  int alive_ = 0;
  bool childless_ = false;
  bool listens_ = true;
  long long kill_at_ = -1;
  int kills_ = 0;
  char heard_[sizeof(Head)] = {};
  int heard_size_ = 0;
  inline static char out_[kRoom];
  int out_size_ = 0;
};

}  // namespace hpclaunch::shim
