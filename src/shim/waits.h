#pragma once
// What a thread waits for in a system call: /proc/PID/task/TID/syscall has the call and its arguments, /proc/PID/fd what a
// descriptor is, /proc/PID/net who is at the other end. No file of the process is opened or asked for: its file system may
// be what does not answer.
#include "facts.h"
#include "locate.h"

namespace hpclaunch::shim {

enum class Wait {
  unknown,
  file,
  path,
  path_at,
  lock,
  control,
  poll,
  select,
  futex,
  sleep,
  child,
  child_id,
  epoll
};

struct WaitingCalls {
  Wait what;
  long numbers[24];  ///< to the first 0 but the first
};

constexpr WaitingCalls kWaitingCalls[] = {
    {Wait::file,
     {SYS_read,      SYS_write,     SYS_readv,     SYS_writev,  SYS_pread64,   SYS_pwrite64,
      SYS_recvfrom,  SYS_recvmsg,   SYS_sendto,    SYS_sendmsg, SYS_connect,   SYS_accept,
      SYS_accept4,   SYS_fsync,     SYS_fdatasync, SYS_ioctl,   SYS_sendfile,  SYS_splice,
      SYS_ftruncate, SYS_fallocate, SYS_close,     SYS_fstat,   SYS_getdents64}},
    {Wait::path_at,
     {SYS_openat, SYS_newfstatat, SYS_statx, SYS_mkdirat, SYS_unlinkat, SYS_faccessat,
      SYS_readlinkat}},
    {Wait::path, {SYS_statfs, SYS_chdir}},
    {Wait::lock, {SYS_flock}},
    {Wait::control, {SYS_fcntl}},
    {Wait::poll, {SYS_ppoll}},
    {Wait::select, {SYS_pselect6}},
    {Wait::futex, {SYS_futex}},
    {Wait::sleep, {SYS_nanosleep, SYS_clock_nanosleep}},
    {Wait::child, {SYS_wait4}},
    {Wait::child_id, {SYS_waitid}},
    {Wait::epoll, {SYS_epoll_pwait}},
#ifdef __x86_64__  // newer machines lack these
    {Wait::path,
     {SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_mkdir, SYS_unlink, SYS_rename, SYS_rmdir,
      SYS_readlink}},
    {Wait::poll, {SYS_poll}},
    {Wait::select, {SYS_select}},
    {Wait::epoll, {SYS_epoll_wait}},
#endif
};

constexpr Wait wait_of(long number) {
  for (const WaitingCalls& one : kWaitingCalls)
    for (int i = 0; i == 0 || one.numbers[i] != 0; ++i)
      if (one.numbers[i] == number) return one.what;
  return Wait::unknown;
}

using Target = Buffer<kMaxPath + 64>;

/// A line of /proc/PID/task/TID/syscall: "7 0x7ffc5a 0x1 ...", "running", or "-1 ..." outside of calls.
struct Blocked {
  static constexpr long kUnknown = -1, kRunning = -2;
  long number = kUnknown;
  unsigned long argument[6] = {};

  explicit Blocked(Text line) {
    Text piece;
    unsigned long long call = 0;
    if (line == "running") number = kRunning;
    cut(line, ' ', piece);
    if (!is_bytes(piece, call)) return;
    number = static_cast<long>(call);
    for (unsigned long& one : argument) {
      cut(line, ' ', piece);
      Text digits = starts_with(piece, "0x") ? piece.from(2) : Text();
      take_hex(digits, one);
    }
  }
};

/// Of "0100007F:A1B2", as /proc/net/tcp has it: words of 32 bits, as numbers of this machine.
inline void add_peer(Target& to, Text from) {
  constexpr int kDigits = 8;
  unsigned words[4] = {};
  int count = 0;
  Text address;
  cut(from, ':', address);
  for (; address.size >= kDigits && count < 4; address = address.from(kDigits)) {
    Text word(address.at, kDigits);
    unsigned long number = 0;
    take_hex(word, number);
    words[count++] = static_cast<unsigned>(number);
  }
  const auto* const bytes = reinterpret_cast<const char*>(words);
  const Text middle(bytes + 8, 4);
  const bool mapped =
      count == 4 && words[0] == 0 && words[1] == 0 && middle == Text("\0\0\377\377", 4);
  const bool wide = count == 4 && !mapped;
  if (wide) to.add("[");
  add_address(to, mapped ? Text(bytes + 12, 4) : Text(bytes, 4 * count));
  unsigned long port = 0;
  take_hex(from, port);
  to.add(wide ? "]:" : ":").add_wide(port);
}

/// A line of /proc/PID/net/tcp or tcp6.
struct TcpLine {
  Text local, remote, state, inode;
  explicit TcpLine(Text line) {
    constexpr int kLocal = 1, kRemote = 2, kState = 3, kInode = 9;
    Text word[kInode + 1];
    for (Text& one : word) {
      while (starts_with(line, " ")) line = line.from(1);
      cut(line, ' ', one);
    }
    local = word[kLocal], remote = word[kRemote], state = word[kState], inode = word[kInode];
  }
  bool listens() const { return state == "0A"; }
};

/// Finds a socket in a file of /proc/PID/net. False: it is not there.
inline bool add_tcp(Target& to, int pid, const char* file, Text inode) {
  bool found = false;
  each_line(process_path(pid, file).text().at, [&](Text text) {
    const TcpLine line(text);
    if (!(line.inode == inode)) return true;
    add_peer(to.add(line.listens() ? "listen " : "tcp "),
             line.listens() ? line.local : line.remote);
    found = true;
    return false;
  });
  return found;
}

inline void add_socket(Target& to, int pid, const char* path, Text inode) {
  static char name[32];
  const long size = call(SYS_getxattr, path, "system.sockprotoname", name, sizeof name);
  Text protocol(name, size > 0 ? static_cast<int>(size) : 0);
  while (protocol.size > 0 && protocol.at[protocol.size - 1] == '\0') --protocol.size;
  if (starts_with(protocol, "UNIX")) return static_cast<void>(to.add("unix"));
  if (size <= 0 || starts_with(protocol, "TCP"))
    if (add_tcp(to, pid, "net/tcp", inode) || add_tcp(to, pid, "net/tcp6", inode)) return;
  for (int i = 0; i < protocol.size; ++i)
    if (name[i] >= 'A' && name[i] <= 'Z') name[i] = static_cast<char>(name[i] - 'A' + 'a');
  to.add(size > 0 ? protocol : Text("socket"));
}

/// What stands between the brackets of "socket:[4711]".
inline Text in_brackets(Text link) {
  Text inside;
  cut(link, '[', inside);
  cut(link, ']', inside);
  return inside;
}

inline void add_descriptor(Target& to, int pid, unsigned long number, Text wchan, bool lock) {
  static char bytes[kMaxPath];
  Line path = process_path(pid, "fd/");
  path.add_wide(number & 0x7fffffff);
  const long size = call(SYS_readlinkat, AT_FDCWD, path.text().at, bytes, sizeof bytes);
  const Text link(bytes, size > 0 ? static_cast<int>(size) : 0);
  if (starts_with(link, "socket:[")) return add_socket(to, pid, path.text().at, in_brackets(link));
  if (starts_with(link, "pipe:[")) return static_cast<void>(to.add("pipe"));
  if (starts_with(link, "anon_inode:[")) return static_cast<void>(to.add(in_brackets(link)));
  const bool fifo = starts_with(wchan, "pipe_") || starts_with(wchan, "anon_pipe_");
  if (starts_with(link, "/")) to.add(lock ? "lock " : fifo ? "fifo " : "file ");
  to.add_bytes(link);
}

template <class Memory>
void add_path(Target& to, Memory& memory, unsigned long at, Text wchan) {
  const bool fifo = starts_with(wchan, "wait_for_partner") || starts_with(wchan, "fifo_open");
  const int before = to.text().size;
  to.add(fifo ? "fifo " : "file ");
  const int start = to.text().size;
  char byte = 0;
  for (int i = 0; i < kMaxPath && memory.read(at + static_cast<unsigned long>(i), &byte, 1); ++i) {
    if (byte == '\0') break;
    to.add_bytes({&byte, 1});
  }
  if (to.text().size == start) to.cut_to(before);
}

/// The first of the descriptors that select(2) was given; -1: none.
template <class Memory>
int first_selected(Memory& memory, const Blocked& call) {
  for (int set = 1; set <= 2; ++set)
    for (unsigned long fd = 0; call.argument[set] != 0 && fd < call.argument[0] && fd < 1024; ++fd)
      if ((memory.template get<unsigned char>(call.argument[set] + fd / 8, fd > 0) >> fd % 8 & 1) !=
          0)
        return static_cast<int>(fd);
  return -1;
}

/// Nothing where it is not known.
template <class Memory>
void add_wait(Target& to, Memory& memory, int pid, const Blocked& call, Text wchan) {
  constexpr unsigned long kSetLockWait = 7, kSetOpenLockWait = 38, kOnePid = 1;
  const unsigned long first = call.argument[0], second = call.argument[1];
  const Wait what = wait_of(call.number);
  switch (what) {
    case Wait::unknown:
      return;
    case Wait::file:
      return add_descriptor(to, pid, first, wchan, false);
    case Wait::lock:
      return add_descriptor(to, pid, first, wchan, true);
    case Wait::control:
      return add_descriptor(to, pid, first, wchan,
                            second == kSetLockWait || second == kSetOpenLockWait);
    case Wait::path:
      return add_path(to, memory, first, wchan);
    case Wait::path_at:
      return add_path(to, memory, second, wchan);
    case Wait::futex:
      to.add("futex");
      return;
    case Wait::sleep:
      to.add("sleep");
      return;
    case Wait::epoll:
      to.add("epoll");
      return;
    case Wait::poll:
      if (second == 0) return static_cast<void>(to.add("sleep"));
      if (int fd = -1; memory.read(first, &fd, sizeof fd) && fd >= 0)
        return add_descriptor(to, pid, static_cast<unsigned>(fd), wchan, false);
      return;
    case Wait::select:
      if (first == 0) return static_cast<void>(to.add("sleep"));
      if (const int fd = first_selected(memory, call); fd >= 0)
        return add_descriptor(to, pid, static_cast<unsigned>(fd), wchan, false);
      return;
    case Wait::child:
    case Wait::child_id: {
      const bool by_id = what == Wait::child_id;
      const auto child = static_cast<int>(by_id ? second : first);
      to.add("child");
      if (child > 0 && (!by_id || first == kOnePid)) to.add(" ").add(child);
      return;
    }
  }
}

/// The TCP sockets of a process, by which is seen who waits for whom: its own address, and the other end's, "-" where it
/// listens.
inline void write_sockets(int pid, Output& out) {
  constexpr int kMost = 64;
  static unsigned long long inodes[kMost];
  static Target own, peer;
  int count = 0;
  each_name(process_path(pid, "fd").text().at, [&](Text name) {
    char bytes[64];
    Line path = process_path(pid, "fd/");
    path.add_bytes(name);
    const long size = call(SYS_readlinkat, AT_FDCWD, path.text().at, bytes, sizeof bytes);
    const Text link(bytes, size > 0 ? static_cast<int>(size) : 0);
    if (count < kMost && starts_with(link, "socket:[") &&
        is_bytes(in_brackets(link), inodes[count]))
      ++count;
  });
  constexpr const char* kFiles[] = {"net/tcp", "net/tcp6"};
  for (const char* const file : kFiles) {
    if (count == 0) return;
    each_line(process_path(pid, file).text().at, [&](Text text) {
      const TcpLine line(text);
      unsigned long long inode = 0;
      is_bytes(line.inode, inode);
      for (int i = 0; i < count && inode != 0; ++i) {
        if (inodes[i] != inode) continue;
        own.cut_to(0);
        peer.cut_to(0);
        add_peer(own, line.local);
        if (!line.listens()) add_peer(peer, line.remote);
        out.begin("socket").field(own.text()).field(peer.text()).end();
      }
      return true;
    });
  }
}

}  // namespace hpclaunch::shim
