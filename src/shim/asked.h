#pragma once
// hpclaunch asks for the stacks of a rank: hpclaunch-stacks reads them, beside the monitor, and the monitor passes on what
// it writes. Nothing here blocks.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "channel.h"
#include "tree.h"

namespace hpclaunch::shim {

/// Memory that the reader inherits, where Yama's ptrace_scope is 1: of what the program has started, only an ancestor may
/// open it.
class Memories {
 public:
  explicit Memories(int program) {
    char scope[8] = {};
    if (!(first_line("/proc/sys/kernel/yama/ptrace_scope", scope) == "1")) return;
    static int queue[kMost];
    const int found = tree_of(program, queue, kMost, [](int) { return true; });
    for (int i = 0; i < found; ++i) {
      const Line path = process_path(queue[i], "mem");
      const long fd = call(SYS_openat, AT_FDCWD, path.text().at, O_RDONLY);
      if (fd >= 0) open_[count_++] = static_cast<int>(fd);
    }
  }
  Memories(const Memories&) = delete;
  Memories& operator=(const Memories&) = delete;
  ~Memories() {
    for (int i = 0; i < count_; ++i) close(open_[i]);
  }

 private:
  static constexpr int kMost = 64;
  int open_[kMost];
  int count_ = 0;
};

class Asked {
 public:
  explicit Asked(Channel& channel) : channel_(channel) {}

  /// `of_job`: the one that asks NCCL, whose answer is of the whole job. For the answer to the last question. A reader that is still at work on the one before is stuck.
  void begin(channel::Ask ask, int program, bool of_job) {
    if (!of_job) ask.ras_port = 0;
    stop();
    number_ = ask.number;
    if (reader_ > 0) return answer(true);  // it hangs in the kernel: not one more
    int ends[2];
    if (call(SYS_pipe2, ends, O_CLOEXEC) < 0) return answer(true);
    const int from = above_standard(ends[0]), into = above_standard(ends[1]);
    const Memories memories(program);
    reader_ = fork();
    if (reader_ == 0) read(ask, program, into);
    close(into);
    from_ = from;
    call(SYS_fcntl, from_, F_SETFL, O_NONBLOCK);
    if (reader_ < 0) return stop(), answer(true);
    answer(false);  // that we are here, however long it takes
  }
  /// A piece has waited for room, and there is some.
  bool ready() const { return waiting_ > 0 && channel_.has_room(); }
  /// Readable when turn() has something to do; -1: it waits for the channel, or for nothing.
  int fd() const { return waiting_ > 0 ? -1 : from_; }
  void turn() {
    reap();
    while (from_ >= 0) {
      if (waiting_ == 0) {
        const long size = call(SYS_read, from_, piece_ + sizeof(channel::Stacks),
                               static_cast<long>(channel::kMostLastBytes));
        if (size == -EAGAIN) return;
        channel::Stacks head;
        head.number = number_;
        head.head.size += static_cast<uint32_t>(size > 0 ? size : 0);
        head.last = size <= 0;
        copy(piece_, &head, sizeof head);
        waiting_ = static_cast<int>(head.head.size);
      }
      auto& piece = *reinterpret_cast<channel::Stacks*>(piece_);
      if (!channel_.tell_stacks(piece)) return;
      waiting_ = 0;
      if (piece.last != 0) stop();
    }
  }

 private:
  [[noreturn]] void read(const channel::Ask& ask, int program, int into) {
    call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    call(SYS_dup3, into, 1, 0);
    Buffer<kMaxPath + 32> path;
    static char own[kMaxPath];
    const long size = call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", own, sizeof own - 1);
    int folder = static_cast<int>(size);
    while (folder > 0 && own[folder - 1] != '/') --folder;
    if (folder <= 0) leave(kFailed);
    path.add_bytes(Text(own, folder)).add("hpclaunch-stacks");
    Buffer<32> ras(Text("localhost:")), pid;
    ras.add(ask.ras_port);
    pid.add(program);
    const char* words[8] = {"hpclaunch-stacks"};
    int count = 1;
    if (ask.all_threads != 0) words[count++] = "--all-threads";
    if (ask.ras_port != 0) {
      const char* const more[] = {"--ras", ras.text().at, "--most", "524288"};
      for (const char* word : more) words[count++] = word;
    }
    words[count++] = pid.text().at;
    const char* const none[] = {nullptr};
    call(SYS_execve, path.text().at, words, none);
    leave(kFailed);
  }

  void stop() {
    if (from_ >= 0) close(from_);
    from_ = -1;
    waiting_ = 0;
    if (reader_ > 0) call(SYS_kill, reader_, SIGKILL);
    reap();
  }
  /// One that hangs in the kernel is left behind.
  void reap() {
    if (reader_ > 0 && call(SYS_wait4, reader_, nullptr, WNOHANG, nullptr) != 0) reader_ = -1;
  }

  void answer(bool last) {
    channel::Stacks head;
    head.number = number_;
    head.last = last;
    channel_.tell_stacks(head);
  }

  Channel& channel_;
  uint32_t number_ = 0;
  int reader_ = -1;
  int from_ = -1;    // what it writes
  int waiting_ = 0;  // bytes of the piece that the channel has no room for
  alignas(8) inline static char piece_[sizeof(channel::Stacks) + channel::kMostLastBytes];
};

}  // namespace hpclaunch::shim
