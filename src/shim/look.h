#pragma once
// What a rank looks at before it starts the program: its CPUs, its memory policy, its host, what has
// become of the environment on the way, and the port where all will meet.
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "environment.h"
#include "say.h"

namespace hpclaunch::shim {

// The C libraries disagree about cpu_set_t and the result; the kernel's own calls do not.
inline bool read_affinity(Mask& mask) {
  mask = {};
  return syscall(SYS_sched_getaffinity, 0, sizeof mask, &mask) > 0;
}
inline bool write_affinity(const Mask& mask) {
  return syscall(SYS_sched_setaffinity, 0, sizeof mask, &mask) == 0;
}

inline Line& add_found(Line& line, const Mask& mask, bool known) {
  return known ? line.add(mask) : line.add("(unknown)");
}

// From linux/mempolicy.h, which no C library has.
constexpr long kDefaultPolicy = 0;
constexpr int kLocalPolicy = 4;
constexpr const char* kPolicies[] = {
    "default", "preferred", "bind", "interleave", "local", "preferred-many", "weighted-interleave"};
constexpr int kPolicyCount = static_cast<int>(sizeof kPolicies / sizeof *kPolicies);
constexpr int kPolicyModeBits = 0xff;  // above are flags

/// Memory goes where it is first touched, unless somebody has said otherwise around the launcher.
inline void check_memory(const Plan& plan, const Place& place) {
  int mode = kDefaultPolicy;
  static Mask nodes;
  if (plan.verify == Verify::off) return;
  if (syscall(SYS_get_mempolicy, &mode, &nodes, static_cast<unsigned long>(kMaskBits), 0, 0) != 0)
    return;  // a container may forbid the question
  mode &= kPolicyModeBits;
  if (mode == kDefaultPolicy || mode == kLocalPolicy) return;
  Line line = rank_line(place);
  line.add("memory policy is ").add(mode < kPolicyCount ? kPolicies[mode] : "unknown");
  if (nodes.count() > 0) line.add(" of NUMA nodes ").add(nodes);
  line.add(", planned is the kernel's own (first touch)");
  if (plan.verify == Verify::strict) stop(kFailed, line, place.local == 0, true);
  if (place.local == 0) line.print();
}

/// Hosts call themselves what they like: only a host that is another node of the plan is a fault.
inline void check_host(const Plan& plan, const Place& place) {
  if (plan.hosts.size == 0 || plan.verify == Verify::off) return;
  static char name[sizeof(utsname::nodename)];
  Text full = host_name();
  Text own;
  cut(full, '.', own);
  for (int i = 0; i < own.size; ++i) {
    const char c = own.at[i];
    name[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  own = {name, own.size};
  const auto mark = [&](int node) { return Text(plan.hosts.at + node * kHostMark, kHostMark); };
  if (mark(place.node) == "..." || is_mark_of(mark(place.node), own)) return;
  int here = 0;
  const int nodes = plan.hosts.size / kHostMark;
  while (here < nodes && !is_mark_of(mark(here), own)) ++here;
  if (here == nodes) return;
  Line line = rank_line(place);
  line.add("this host is node ").add(here).add(" of the plan, the rank belongs to node ");
  line.add(place.node).add(": the launcher orders the nodes otherwise");
  if (plan.verify == Verify::strict) stop(kFailed, line, place.local == 0, true);
  if (place.local == 0) line.print();
}

/// Adds a name with what is wrong with it.
inline void add_fault(Line& line, int& faults, Text name, const char* what) {
  line.add(faults++ > 0 ? ", " : "").add(name).add(" (").add(what).add(")");
}

/// Constants travel by inheritance: what a launcher or a prolog of the job has made of them is seen here.
inline void check_environment(char** environment, const Plan& plan, const Place& place) {
  if (plan.verify == Verify::off) return;
  Line line = rank_line(place);
  line.add("the environment is not as planned: ");
  int faults = 0;
  Text item;
  Text name;
  Text rest = plan.same;
  for (bool more = rest.size > 0; more;) {
    more = cut(rest, '/', item);
    cut(item, '*', name);
    const Text value = find(environment, name);
    if (value.at == nullptr)
      add_fault(line, faults, name, "not passed on");
    else if (!is_mark_of(item, value))
      add_fault(line, faults, name, "changed on the way");
  }
  rest = plan.absent;
  for (bool more = rest.size > 0; more;) {
    more = cut(rest, '/', name);
    if (find(environment, name).at != nullptr)
      add_fault(line, faults, name, "set again on the way; removed");
  }
  if (faults == 0) return;
  if (plan.verify == Verify::strict) stop(kFailed, line, place.local == 0, true);
  if (place.local == 0) line.print();
}

/// Rank 0 will listen there; whoever listens now makes the job fail a minute later.
inline void check_port(const Plan& plan, const Place& place) {
  if (plan.port == 0 || place.rank != 0 || plan.verify == Verify::off) return;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<unsigned short>(plan.port));
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    listen(fd, 1) == 0;
  const bool taken = !free && errno == EADDRINUSE;
  close(fd);
  if (!taken) return;
  Line line = rank_line(place);
  line.add("MASTER_PORT ").add(plan.port);
  line.add(" is in use on this host, the ranks cannot meet there; --master-port takes another");
  if (plan.verify == Verify::strict) stop(kFailed, line);
  line.print();
}

}  // namespace hpclaunch::shim
