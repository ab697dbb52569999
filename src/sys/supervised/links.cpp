#include "sys/supervised/links.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "sys/addresses.h"

namespace hpclaunch::sys::supervised {
namespace {

// A node that has been silent for two minutes is lost: one minute without data, then four probes. Data that it does
// not acknowledge counts as well.
constexpr std::array<std::array<int, 3>, 5> kOptions = {{{SOL_SOCKET, SO_KEEPALIVE, 1},
                                                         {IPPROTO_TCP, TCP_KEEPIDLE, 60},
                                                         {IPPROTO_TCP, TCP_KEEPINTVL, 15},
                                                         {IPPROTO_TCP, TCP_KEEPCNT, 4},
                                                         {IPPROTO_TCP, TCP_USER_TIMEOUT, 120'000}}};

// The other end of a TCP connection, which is probed from now on; "" for any other descriptor.
std::string probe(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  auto* address = reinterpret_cast<sockaddr*>(&peer);
  if (getpeername(fd, address, &size) != 0) return {};
  for (const auto& [level, name, value] : kOptions)
    if (setsockopt(fd, level, name, &value, sizeof value) != 0) return {};
  constexpr std::string_view kMapped = "::ffff:";
  const std::string text = address_text(address);
  return text.starts_with(kMapped) ? text.substr(kMapped.size()) : text;
}

}  // namespace

void Links::watch(pid_t pid) {
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_getfd)
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  const auto names = list_directory("/proc/" + std::to_string(pid) + "/fd");
  events_ = epoll_create1(EPOLL_CLOEXEC);
  rlimit files{};  // nothing is started any more that would inherit it
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  for (std::size_t i = 0; process >= 0 && names && i < names->size(); ++i) {
    const int number = static_cast<int>(parse_natural((*names)[i]).value_or(-1));
    const auto copy = static_cast<int>(syscall(SYS_pidfd_getfd, process, number, 0));
    if (copy < 0) continue;
    links_.push_back({copy, probe(copy)});
    epoll_event wanted{EPOLLRDHUP | EPOLLONESHOT, {.u64 = links_.size() - 1}};
    if (!links_.back().address.empty() && epoll_ctl(events_, EPOLL_CTL_ADD, copy, &wanted) == 0)
      continue;
    close(copy);
    links_.pop_back();
  }
  if (process >= 0) close(process);
#else
  static_cast<void>(pid);
#endif
}

void Links::take_ended() {
  epoll_event event{};
  while (events_ >= 0 && epoll_wait(events_, &event, 1, 0) > 0)
    ended_.push_back({links_[event.data.u64].address, wall_clock()});
}

// A look-up may take long where no name service answers, so their time is limited.
const SilentRanks* Links::lost_among(const std::vector<SilentRanks>& silent, double& at) const {
  constexpr long kMost = 5000;  // ms
  const long start = clock_ms();
  for (const Ended& link : left_ ? ended_ : std::vector<Ended>())
    for (const SilentRanks& node : silent) {
      if (!node.whole_node || clock_ms() - start > kMost) continue;
      const auto addresses = resolve(node.host);
      if (!addresses || std::ranges::count(*addresses, link.address) == 0) continue;
      at = link.at;
      return &node;
    }
  return nullptr;
}

void Links::drop() {
  left_ = left_ || links_.size() > ended_.size();
  for (const Link& one : links_) close(one.fd);
  links_.clear();
  if (events_ >= 0) close(events_);
  events_ = -1;
}

const SilentRanks* first_lost(const LostNode& named, const Links& links,
                              const std::vector<SilentRanks>& silent, double& at) {
  at = named.at();
  const SilentRanks* node = named.among(silent);
  return node != nullptr ? node : links.lost_among(silent, at);
}

}  // namespace hpclaunch::sys::supervised
