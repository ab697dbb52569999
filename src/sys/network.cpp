#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::sys {

std::pair<int, int> ephemeral_ports() {
  constexpr std::pair<int, int> kLinuxDefault{32768, 60999};
  const Result<std::string> text = read_file("/proc/sys/net/ipv4/ip_local_port_range", 4096);
  if (!text) return kLinuxDefault;
  const std::string_view line = trim(*text);
  const std::size_t blank = line.find_first_of(" \t");
  if (blank == std::string_view::npos) return kLinuxDefault;
  const std::optional<long> low = parse_natural(line.substr(0, blank), 65535);
  const std::optional<long> high = parse_natural(trim(line.substr(blank)), 65535);
  if (!low || !high) return kLinuxDefault;
  return {static_cast<int>(*low), static_cast<int>(*high)};
}

namespace {

// An address in the abstract name space belongs to one network namespace, as ports do, leaves no file
// and is given up with the last descriptor. It stands for the port without occupying it.
// -1: somebody else holds it.
int lock_port(int port) {
  const int lock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (lock < 0) return -1;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = fmt::format("hpclaunch-port-{}", port);
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (bind(lock, reinterpret_cast<const sockaddr*>(&name), size) == 0) return lock;
  close(lock);
  return -1;
}

// As a server does it: SO_REUSEADDR, bind, listen. 0, or errno.
int try_listen(int family, int port) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno == EAFNOSUPPORT ? 0 : errno;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_in);
  if (family == AF_INET6) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&address);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(static_cast<std::uint16_t>(port));
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    size = sizeof(sockaddr_in6);
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&address);
    in->sin_family = AF_INET;
    in->sin_port = htons(static_cast<std::uint16_t>(port));
  }
  int why = 0;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(fd, 1) != 0)
    why = errno;
  close(fd);
  return family == AF_INET6 && why == EADDRNOTAVAIL ? 0 : why;  // IPv6 switched off
}

}  // namespace

Result<PortClaim> claim_port(const std::vector<int>& candidates) {
  std::string first_reason;
  for (const int port : candidates) {
    const int lock = lock_port(port);
    int why = EADDRINUSE;
    if (lock >= 0) {
      why = try_listen(AF_INET, port);
      if (why == 0) why = try_listen(AF_INET6, port);
      if (why == 0) return PortClaim{port, lock};
      close(lock);
    }
    if (first_reason.empty())
      first_reason = lock < 0 ? fmt::format("port {} is held by another hpclaunch", port)
                              : fmt::format("port {}: {}", port, std::strerror(why));
  }
  return Error{ErrorKind::system,
               candidates.size() == 1
                   ? first_reason
                   : fmt::format("no free port among {}: {}", candidates.size(), first_reason),
               "name another one with --master-port"};
}

std::optional<std::string> outward_address() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return std::nullopt;
  std::optional<std::string> found;
  for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN];
    const auto* in = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (inet_ntop(AF_INET, &in->sin_addr, text, sizeof text) != nullptr) found = text;
  }
  freeifaddrs(all);
  return found;
}

bool resolves_to_loopback(const std::string& name) {
  addrinfo* all = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, nullptr, &all) != 0) return false;
  bool loopback = all != nullptr;
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) {
      const auto* in = reinterpret_cast<const sockaddr_in*>(one->ai_addr);
      loopback = loopback && (ntohl(in->sin_addr.s_addr) >> 24) == 127;
    } else if (one->ai_family == AF_INET6) {
      const auto* in6 = reinterpret_cast<const sockaddr_in6*>(one->ai_addr);
      loopback = loopback && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    }
  }
  freeaddrinfo(all);
  return loopback;
}

}  // namespace hpclaunch::sys
