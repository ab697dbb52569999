#pragma once
// The memory of a running process, whatever forbids one of the ways to it.
#include <fcntl.h>
#include <sys/uio.h>

#include "pages.h"
#include "threads.h"

namespace hpclaunch::shim {

/// The file of a process's memory: inherited from an ancestor of it, else opened; -1: that is forbidden.
inline int memory_of(int pid) {
  const Line path = process_path(pid, "mem");
  int found = -1;
  each_name("/proc/self/fd", [&](Text name) {
    char bytes[64];
    Line link("/proc/self/fd/");
    link.add_bytes(name);
    const long size = call(SYS_readlinkat, AT_FDCWD, link.text().at, bytes, sizeof bytes);
    if (size > 0 && Text(bytes, static_cast<int>(size)) == path.text()) is_number(name, found);
  });
  return found >= 0 ? found : open_file(path.text().at, O_RDONLY);
}

/// Of a process, with process_vm_readv(2), else by its file: it is neither stopped nor told.
struct LiveProcess {
  int pid = 0;
  int memory = -2;  ///< not asked for
  long page(unsigned long at, char* to) {
    const iovec own = {to, kPageBytes};
    const iovec other = {reinterpret_cast<void*>(at), kPageBytes};
    long size = call(SYS_process_vm_readv, pid, &own, 1, &other, 1, 0);
    if (size == -EPERM || size == -ENOSYS) {
      if (memory == -2) memory = memory_of(pid);
      if (memory >= 0) size = call(SYS_pread64, memory, to, kPageBytes, at);
    }
    return size == kPageBytes ? 0 : size < 0 ? size : -EFAULT;
  }
};

}  // namespace hpclaunch::shim
