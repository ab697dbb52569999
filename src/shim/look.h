#pragma once
// What a rank checks before it starts the program: its CPUs, memory policy, host, environment and the
// rendezvous port.
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "environment.h"
#include "say.h"

namespace hpclaunch::shim {

inline bool read_affinity(Mask& mask) {
  mask = {};
  return call(SYS_sched_getaffinity, 0, sizeof mask, &mask) > 0;
}
inline bool write_affinity(const Mask& mask) {
  return call(SYS_sched_setaffinity, 0, sizeof mask, &mask) == 0;
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

/// Memory is allocated where it is first touched, unless a command around the launcher set a policy.
inline void check_memory(const Plan& plan, const Place& place) {
  int mode = kDefaultPolicy;
  static Mask nodes;
  if (call(SYS_get_mempolicy, &mode, &nodes, kMaskBits, 0, 0) != 0)
    return;  // a container may forbid the call
  mode &= kPolicyModeBits;
  if (mode == kDefaultPolicy || mode == kLocalPolicy) return;
  Line line = rank_line(place);
  line.add("memory policy is ").add(mode < kPolicyCount ? kPolicies[mode] : "unknown");
  if (nodes.count() > 0) line.add(" of NUMA nodes ").add(nodes);
  line.add(", planned is the kernel's own (first touch)");
  differs(line, plan.verify, place, true);
}

/// Host names vary: only a host that is another node of the plan is a fault; by `order`, any that is not the planned one.
inline void check_host(const Plan& plan, const Place& place) {
  if (plan.hosts.size == 0 && plan.order.size == 0) return;
  static char name[sizeof(utsname::nodename)];
  Text full = host_name();
  Text own;
  cut(full, '.', own);
  for (int i = 0; i < own.size; ++i) {
    const char c = own.at[i];
    name[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  own = {name, own.size};
  if (plan.order.size > place.node) {
    const Text planned(plan.order.at + place.node, 1);
    if (planned == "." || is_mark_of(planned, own)) return;
    Line line = rank_line(place);
    line.add("this host is not node ").add(place.node);
    line.add(" of the plan: the launcher uses another node order");
    return differs(line, plan.verify, place, true);
  }
  const auto mark = [&](int node) { return Text(plan.hosts.at + node * kHostMark, kHostMark); };
  const int nodes = plan.hosts.size / kHostMark;
  if (place.node >= nodes || mark(place.node) == "..." || is_mark_of(mark(place.node), own)) return;
  int here = 0;
  while (here < nodes && !is_mark_of(mark(here), own)) ++here;
  if (here == nodes) return;
  Line line = rank_line(place);
  line.add("this host is node ").add(here).add(" of the plan, the rank belongs to node ");
  line.add(place.node).add(": the launcher uses another node order");
  differs(line, plan.verify, place, true);
}

/// The IPv4 address of the first interface in "hsn0,hsn1", in static memory; empty without one.
inline Text address_of(Text interfaces) {
  static char text[sizeof "255.255.255.255"];
  ifreq asked = {};
  int size = 0;
  while (size < interfaces.size && interfaces.at[size] != ',' && size < IFNAMSIZ - 1) {
    asked.ifr_name[size] = interfaces.at[size];
    ++size;
  }
  const int fd = static_cast<int>(call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd < 0) return {};
  const bool found = size > 0 && call(SYS_ioctl, fd, SIOCGIFADDR, &asked) == 0;
  close(fd);
  if (!found) return {};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&asked.ifr_addr) + 4;
  int used = 0;
  for (int i = 0; i < 4; ++i) {
    if (i > 0) text[used++] = '.';
    if (bytes[i] >= 100) text[used++] = static_cast<char>('0' + bytes[i] / 100);
    if (bytes[i] >= 10) text[used++] = static_cast<char>('0' + bytes[i] / 10 % 10);
    text[used++] = static_cast<char>('0' + bytes[i] % 10);
  }
  return {text, used};
}

/// Gives `use` each variable that the plan fixes, its value (null: it is not set), and what is wrong with it; null:
/// nothing.
template <class Use>
void each_planned(const char* const* environment, const Plan& plan, const Task& task, Use use) {
  constexpr const char* kLost = "not passed on";
  constexpr const char* kChanged = "changed by the launcher or the job";
  const auto compare = [&](Text name, bool (*good)(Text, Text), Text planned) {
    const Text value = find(environment, name);
    use(name, value, value.at == nullptr ? kLost : good(planned, value) ? nullptr : kChanged);
  };
  each_piece(plan.same, [&](Text mark) {
    Text name;
    cut(mark, '*', name);
    compare(name, is_mark_of, mark);
  });
  each_piece(plan.present, [&](Text name) { compare(name, [](Text, Text) { return true; }, {}); });
  for (int i = 0; i < task.count; ++i) {
    const Text name(task.set[i], task.name_size[i]);
    compare(
        name, [](Text a, Text b) { return a == b; }, Text(task.set[i]).from(name.size + 1));
  }
  if (plan.image.size > 0) return;  // an image may set what the plan removes
  each_piece(plan.absent, [&](Text name) {
    const Text value = find(environment, name);
    use(name, value, value.at == nullptr ? nullptr : "set again; removed");
  });
}

/// Variables that are equal for all ranks are inherited; a launcher or a prolog may change them.
inline void check_environment(char** environment, const Plan& plan, const Place& place) {
  static const Task none;
  Line line = rank_line(place);
  line.add("environment differs from the plan: ");
  int faults = 0;
  each_planned(environment, plan, none, [&](Text name, Text, const char* fault) {
    if (fault == nullptr) return;
    line.add(faults++ > 0 ? ", " : "").add(name).add(" (").add(fault).add(")");
  });
  if (faults > 0) differs(line, plan.verify, place, true);
}

/// As a server does it. 0 or -errno.
inline long try_listen(int family, int port) {
  const int fd = static_cast<int>(call(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd < 0) return 0;
  const int on = 1;
  call(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) call(SYS_setsockopt, fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  sockaddr_in6 address = {};  // family and port are at the same places in sockaddr_in
  address.sin6_family = static_cast<sa_family_t>(family);
  const auto bytes = reinterpret_cast<unsigned char*>(&address.sin6_port);  // the high byte first
  bytes[0] = static_cast<unsigned char>(port >> 8);
  bytes[1] = static_cast<unsigned char>(port);
  long result =
      call(SYS_bind, fd, &address, family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  if (result == 0) result = call(SYS_listen, fd, 1);
  close(fd);
  return result;
}

/// Rank 0 will listen there.
inline void check_port(const Plan& plan, const Place& place) {
  if (plan.port == 0 || place.rank != 0) return;
  if (try_listen(AF_INET, plan.port) != -EADDRINUSE) return;
  Line line = rank_line(place);
  line.add("MASTER_PORT ").add(plan.port);
  line.add(" is in use on this host; choose another port with --master-port");
  differs(line, plan.verify, place, false);
}

}  // namespace hpclaunch::shim
