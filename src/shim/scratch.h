#pragma once
// What --stall has ranks write on their node: it goes with the last monitor of the node.
#include <fcntl.h>
#include <sys/file.h>

#include "report.h"
#include "say.h"

namespace hpclaunch::shim {

class Scratch {
 public:
  /// `directories`: of the plan. Each monitor locks the folder while its program may write there.
  void hold(Text directories) {
    constexpr Text kOurs("/tmp/hpclaunch-stall-");  // --stall, src/plan/environment/stall.cpp
    each_piece(directories, [&](Text item) {
      if (fd_ >= 0) return;
      read_path(item, path_);
      if (!(Text(Text(path_).at, kOurs.size) == kOurs)) return;
      constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
      fd_ = above_standard(call(SYS_openat, AT_FDCWD, path_, kFlags));
      if (fd_ >= 0) call(SYS_flock, fd_, LOCK_SH | LOCK_NB);
    });
  }
  /// The program has ended. Nobody else has the lock: all files, and the folder.
  void leave() {
    if (fd_ < 0) return;
    if (call(SYS_flock, fd_, LOCK_EX | LOCK_NB) == 0) {
      each_name(path_, [&](Text name) { call(SYS_unlinkat, fd_, name.at, 0); });
      call(SYS_unlinkat, AT_FDCWD, path_, AT_REMOVEDIR);
    }
    close(fd_);
    fd_ = -1;
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  inline static char path_[kMaxPath];
};

}  // namespace hpclaunch::shim
