#pragma once
// verify=report: what is the same for all ranks of a node, which its first rank reports. Each fact costs one call that
// names a file.
#include <net/if.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include "report.h"

namespace hpclaunch::shim {

/// Of the planned accelerators those that are on PCI.
inline void add_gpus(Json& out, Text planned) {
  static char address[kMaxPath];
  if (planned.size == 0) return;
  List all(out, ",\"gpus\":[", "]");
  each_name("/sys/bus/pci/devices", [&](Text name) {
    each_piece(planned, [&](Text item) {
      read_path(item, address);
      if (name == Text(address).from(1)) add_text(all.next(), name);
    });
  });
  all.end();
}

// ---- network ---------------------------------------------------------------------------------------

// From linux/netlink.h and linux/rtnetlink.h, which musl's compiler does not find.
struct Message {
  unsigned size;
  unsigned short type, flags;
  unsigned sequence, port;
};
struct Attribute {
  unsigned short size, type;
};
struct LinkMessage {
  unsigned char family, unused;
  unsigned short type;
  int index;
  unsigned flags, change;
};
struct AddressMessage {
  unsigned char family, prefix, flags, scope;
  int index;
};
constexpr int kError = 2, kDone = 3, kNewLink = 16, kGetLink = 18, kNewAddress = 20;
constexpr int kGetAddress = 22, kDump = 0x301;
constexpr int kLinkName = 3, kAddress = 1, kLocalAddress = 2;  ///< attributes

/// Gives `use` the items of netlink(7), each with its size before it: messages, and the attributes in them.
template <class Head, class Use>
void each_item(Text rest, Use use) {
  constexpr int kHead = sizeof(Head);
  while (rest.size >= kHead) {
    const auto* const head = reinterpret_cast<const Head*>(rest.at);
    const int size = static_cast<int>(head->size);
    if (size < kHead || size > rest.size) return;
    use(*head, Text(rest.at + kHead, size - kHead));
    const int step = (size + 3) & ~3;
    rest = rest.from(step < rest.size ? step : rest.size);
  }
}

/// All that the kernel has of a kind, as rtnetlink(7) messages.
template <int kRoom>
Text ask_network(int what, char (&answer)[kRoom]) {
  const struct {
    Message head;
    int family;
  } request = {{sizeof request, static_cast<unsigned short>(what), kDump, 0, 0}, AF_UNSPEC};
  const int fd = static_cast<int>(call(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
  long part = fd < 0 ? fd : call(SYS_sendto, fd, &request, sizeof request, 0, nullptr, 0);
  int size = 0;
  for (bool done = false; part > 0 && !done;) {
    part = call(SYS_recvfrom, fd, answer + size, kRoom - size, 0, nullptr, nullptr);
    if (part <= 0) break;
    each_item<Message>({answer + size, static_cast<int>(part)}, [&](const Message& head, Text) {
      done |= head.type == kDone || head.type == kError;
    });
    size += static_cast<int>(part);
  }
  if (fd >= 0) close(fd);
  return {answer, size};
}

/// As inet_ntop(3) writes it: of IPv6 the longest run of several zeros is "::" (RFC 5952).
template <class Out>
void add_address(Out& out, Text bytes) {
  const auto part = [&](int i) { return static_cast<unsigned char>(bytes.at[i]); };
  if (bytes.size == 4) {
    for (int i = 0; i < 4; ++i) out.add(i > 0 ? "." : "").add(part(i));
    return;
  }
  const auto group = [&](int i) { return part(2 * i) << 8 | part(2 * i + 1); };
  int first = 8;
  int last = 9;
  for (int i = 0; i < 8; ++i) {
    int end = i;
    while (end < 8 && group(end) == 0) ++end;
    if (end - i > last - first) first = i, last = end;
  }
  for (int i = 0; i < 8; ++i) {
    if (i == first) out.add("::");
    if (i >= first && i < last) continue;
    out.add(i > 0 && i != last ? ":" : "").add_wide(static_cast<unsigned>(group(i)), 16);
  }
}

/// Those of an interface, without link-local ones of IPv6.
inline void add_addresses(Json& out, Text messages, int interface) {
  List all(out, "", "");
  each_item<Message>(messages, [&](const Message& head, Text body) {
    const auto* const one = reinterpret_cast<const AddressMessage*>(body.at);
    if (head.type != kNewAddress || one->index != interface) return;
    Text address;
    each_item<Attribute>(body.from(sizeof *one), [&](const Attribute& what, Text value) {
      // Of a point-to-point link, kAddress is the other end.
      if (what.type == kLocalAddress || (what.type == kAddress && address.size == 0))
        address = value;
    });
    const auto part = [&](int i) { return static_cast<unsigned char>(address.at[i]); };
    const bool local = address.size == 16 && part(0) == 0xfe && part(1) >> 6 == 2;  // fe80::/10
    if ((address.size != 4 && address.size != 16) || local) return;
    add_address(all.next().add("\""), address);
    out.add("\"");
  });
}

inline void add_interfaces(Json& out) {
  static char links[256 * 1024];
  static char addresses[256 * 1024];
  const Text known = ask_network(kGetAddress, addresses);
  List all(out, ",\"interfaces\":[", "]");
  each_item<Message>(ask_network(kGetLink, links), [&](const Message& head, Text body) {
    const auto* const link = reinterpret_cast<const LinkMessage*>(body.at);
    if (head.type != kNewLink || (link->flags & IFF_LOOPBACK) != 0) return;
    all.next().add("{\"up\":").add((link->flags & IFF_UP) != 0 ? "true" : "false");
    each_item<Attribute>(body.from(sizeof *link), [&](const Attribute& what, Text value) {
      if (what.type == kLinkName) add_text(out.add(",\"name\":"), Text(value.at));
    });
    out.add(",\"addresses\":[");
    add_addresses(out, known, link->index);
    out.add("]}");
  });
  all.end();
}

/// What `getent ahosts NAME` prints: the node's own name service, which needs a C library. `status`: its exit status.
inline Text look_up(Text name, int& status) {
  constexpr const char* kGetent = "/usr/bin/getent";
  static char answer[16 * 1024];
  int ends[2];
  if (call(SYS_pipe2, ends, O_CLOEXEC) != 0) return {};
  const int child = fork();
  if (child == 0) {
    const char* const words[] = {kGetent, "ahosts", name.at, nullptr};
    call(SYS_dup3, ends[1], 1, 0);
    call(SYS_execve, kGetent, words, words + 3);
    leave(kNotFound);
  }
  close(ends[1]);
  const Text printed = read_all(ends[0], answer);
  siginfo_t end = {};
  call(SYS_waitid, P_PID, child, &end, WEXITED, nullptr);
  close(ends[0]);
  status = end.si_status;
  return printed;
}

/// What a name leads to on this node, as a list. False: the name service does not know it.
inline bool add_resolved(Json& out, const char* key, Text name) {
  constexpr int kUnknownName = 2;  // getent's exit status
  List all(out, key, "]");
  int status = 0;
  Text line;
  Text address;
  Text last;
  Text rest = look_up(name, status);
  const bool unknown = rest.size == 0 && status == kUnknownName;
  while (rest.size > 0) {  // a line for each type of socket
    cut(rest, '\n', line);
    cut(line, ' ', address);
    if (!(address == last)) add_text(all.next(), address);
    last = address;
  }
  all.end();
  return !unknown;
}

/// MASTER_ADDR, and what it leads to on this node.
inline void add_master(Json& out, Text name) {
  if (name.size == 0) return;
  add_text(out.add(",\"master\":"), name);
  bool numeric = true;
  for (int i = 0; i < name.size; ++i) numeric &= is_digit(name.at[i]) || name.at[i] == '.';
  for (int i = 0; i < name.size; ++i) numeric |= name.at[i] == ':';
  constexpr const char* kKey = ",\"master_resolves\":[";
  if (numeric) {
    List all(out, kKey, "]");
    add_text(all.next(), name);
    return all.end();
  }
  if (!add_resolved(out, kKey, name))
    add_text(out.add(",\"master_problem\":"),
             Line("\"").add(name).add("\": Name or service not known").text());
}

// ---- files -----------------------------------------------------------------------------------------

/// 0, or -errno. Before Linux 5.8, and where a container's filter does not know the call, the path is looked up again.
inline long may_use(int fd, const char* path, int how) {
  constexpr long kFaccessat2 = 439;
  const long result = call(kFaccessat2, fd, "", how, AT_EMPTY_PATH);
  const bool unknown = result == -ENOSYS || result == -EPERM;
  return unknown ? call(SYS_faccessat, AT_FDCWD, path, how) : result;
}

/// Space in a directory.
inline void add_room(Json& out, const char* path) {
  constexpr int kToWrite = 3;  // W_OK | X_OK
  struct statfs info = {};
  const int fd = open_file(path, O_PATH);
  long problem = fd < 0 ? fd : call(SYS_fstatfs, fd, &info);
  if (problem == 0) problem = may_use(fd, path, kToWrite);
  if (fd >= 0) close(fd);
  add_text(out.add("{\"path\":"), path).add(",\"errno\":").add(static_cast<int>(-problem));
  out.add(",\"free_bytes\":");
  out.add_wide(static_cast<unsigned long long>(info.f_bavail) *
               static_cast<unsigned long long>(info.f_frsize));
  out.add("}");
}

/// `name` by PATH, as a shell finds it; one with a '/' as it is. An empty path, which execve(2) refuses, where it is
/// nowhere.
inline const char* find_program(const char* name, const char* const* environment) {
  static char path[kMaxPath];
  constexpr int kToExecute = 1;  // X_OK
  Text word;
  Text rest(name);
  if (cut(rest, '/', word)) return name;
  rest = find(environment, "PATH");
  if (rest.at == nullptr) rest = "/usr/local/bin:/usr/bin:/bin";
  while (rest.size > 0) {
    Text folder;
    cut(rest, ':', folder);
    if (folder.size == 0 || folder.size + word.size + 2 > kMaxPath) continue;
    int size = 0;
    for (int i = 0; i < folder.size; ++i) path[size++] = folder.at[i];
    path[size++] = '/';
    for (int i = 0; i <= word.size; ++i) path[size++] = word.at[i];  // with its zero
    struct stat info = {};
    if (call(SYS_newfstatat, AT_FDCWD, path, &info, 0) == 0 && S_ISREG(info.st_mode) &&
        call(SYS_faccessat, AT_FDCWD, path, kToExecute) == 0)
      return path;
  }
  path[0] = '\0';
  return path;
}

inline void add_program(Json& out, const char* const* environment, const char* path) {
  constexpr int kToExecute = 1;  // X_OK
  struct stat info = {};
  Line line("program \"");
  line.add(path).add("\" ");
  path = find_program(path, environment);
  const int fd = open_file(path, O_PATH);
  const long known = fd < 0 ? fd : call(SYS_newfstatat, fd, "", &info, AT_EMPTY_PATH);
  const bool runs = known == 0 && S_ISREG(info.st_mode) && may_use(fd, path, kToExecute) == 0;
  if (fd >= 0) close(fd);
  if (runs) return;
  line.add(known != 0              ? "does not exist"
           : S_ISDIR(info.st_mode) ? "is a directory"
                                   : "is not executable");
  add_text(out.add(",\"program_problem\":"), line.text());
}

inline void add_port(Json& out, Text port) {
  int number = 0;
  if (port.at == nullptr || !is_number(port, number) || number < 1 || number > kMaxPort) return;
  long problem = try_listen(AF_INET, number);
  if (problem == 0) problem = try_listen(AF_INET6, number);
  if (problem == 0 || problem == -EADDRNOTAVAIL) return;  // IPv6 is switched off
  out.add(",\"port\":{\"errno\":").add(static_cast<int>(-problem)).add("}");
}

/// `program`: what would be started.
inline void add_facts(Json& out, const char* const* environment, const Plan& plan,
                      const Place& place, const char* program) {
  static char line[4096];
  add_text(out.add(",\"facts\":{\"online\":"), first_line("/sys/devices/system/cpu/online", line));
  add_text(out.add(",\"numa\":"), first_line("/sys/devices/system/node/has_cpu", line));
  add_gpus(out, plan.gpus);
  List fabrics(out, ",\"fabrics\":[", "]");
  constexpr const char* kFabrics[] = {"/sys/class/cxi", "/sys/class/infiniband"};
  for (const char* const kind : kFabrics)
    each_name(kind, [&](Text name) {
      if (name.at[0] != '.') add_text(fabrics.next(), name);
    });
  fabrics.end();
  add_interfaces(out);
  add_master(out, find(environment, "MASTER_ADDR"));
  static utsname host;  // Gloo meets the other nodes where it leads to
  if (call(SYS_uname, &host) == 0) add_resolved(out, ",\"host_resolves\":[", host.nodename);
  if (place.node == 0) add_port(out, find(environment, "MASTER_PORT"));
  add_program(out, environment, program);
  const Text temporary = find(environment, "TMPDIR");
  add_room(out.add(",\"rooms\":["), "/dev/shm");
  add_room(out.add(","), temporary.size > 0 ? temporary.at : "/tmp");
  out.add("]}");
}

}  // namespace hpclaunch::shim
