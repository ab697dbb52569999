#include "sys/supervised/listening.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace hpclaunch::sys::supervised {

int listen_on(const std::string& address, int port) {
  const bool six = address.empty() || address.find(':') != std::string::npos;
  const int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 && address.empty()) return listen_on("0.0.0.0", port);
  const int off = 0;
  sockaddr_in6 large{};
  sockaddr_in small{};
  large.sin6_family = AF_INET6;
  small.sin_family = AF_INET;
  large.sin6_port = small.sin_port = htons(static_cast<uint16_t>(port));
  if (address.empty()) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (!address.empty()) {
    if (six)
      inet_pton(AF_INET6, address.c_str(), &large.sin6_addr);
    else
      inet_pton(AF_INET, address.c_str(), &small.sin_addr);
  }
  const auto* at =
      six ? reinterpret_cast<const sockaddr*>(&large) : reinterpret_cast<const sockaddr*>(&small);
  if (fd >= 0 && bind(fd, at, six ? sizeof large : sizeof small) == 0 && listen(fd, SOMAXCONN) == 0)
    return fd;
  const int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

int port_of(int fd) {
  sockaddr_in6 at{};  // the port stands at the same place in both
  socklen_t size = sizeof at;
  getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin6_port);
}

// The kernel probes a connection after half of the time in which it must not be silent, and gives up at its end; data
// that is not acknowledged counts as well.
void keep_alive(int fd, int seconds) {
  constexpr int kProbes = 3;
  const int interval = std::max(1, seconds / (2 * kProbes));
  const int idle = std::max(1, seconds - kProbes * interval);
  const std::array<std::array<int, 3>, 6> options = {
      {{SOL_SOCKET, SO_KEEPALIVE, 1},
       {IPPROTO_TCP, TCP_KEEPIDLE, idle},
       {IPPROTO_TCP, TCP_KEEPINTVL, interval},
       {IPPROTO_TCP, TCP_KEEPCNT, kProbes},
       {IPPROTO_TCP, TCP_USER_TIMEOUT, seconds * 1000},
       {IPPROTO_TCP, TCP_NODELAY, 1}}};
  for (const auto& [level, name, value] : options)
    setsockopt(fd, level, name, &value, sizeof value);
}

Status allow_files(int nodes, std::size_t strangers) {
  constexpr rlim_t kOthers = 64;
  const rlim_t needed = static_cast<rlim_t>(nodes) + kOthers;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed + strangers) return Done{};
  limit.rlim_cur = std::min(limit.rlim_max, needed + strangers);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return Done{};
  return Error{
      ErrorKind::system,
      fmt::format("{} nodes need {} open files, {} are allowed", nodes, needed, limit.rlim_cur),
      "raise the hard limit (ulimit -Hn)"};
}

}  // namespace hpclaunch::sys::supervised
