#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>

#include "hpclaunch/hosts.h"
#include "hpclaunch/sys.h"
#include "sys/addresses.h"

namespace hpclaunch::sys {

std::pair<int, int> ephemeral_ports() {
  constexpr std::pair<int, int> kLinuxDefault{32768, 60999};
  const Result<std::string> text = read_file("/proc/sys/net/ipv4/ip_local_port_range", 4096);
  std::pair<int, int> range;
  const bool read = text && std::sscanf(text->c_str(), "%5d %5d", &range.first, &range.second) == 2;
  return read ? range : kLinuxDefault;
}

namespace {

// Locks the byte of the file that stands for the port: another launch of this user takes another port. The
// lock ends with the last descriptor, also after an exec, and leaves the port itself free. Ports belong to
// one network namespace, or to `host` where that is another one. False: another launch has it.
bool lock_port(int locks, const std::string& host, int port) {
  struct stat info {};
  stat("/proc/self/ns/net", &info);
  const std::size_t where =
      host.empty() ? std::hash<ino_t>{}(info.st_ino) : std::hash<std::string>{}(host);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_start = static_cast<off_t>(where & 0x7fff'ffff) << 16 | port;
  lock.l_len = 1;
  return fcntl(locks, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

// As a server does it: SO_REUSEADDR, bind, listen. 0, or errno.
int try_listen(int family, int port) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno == EAFNOSUPPORT ? 0 : errno;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);  // no option of IPv4: without effect
  sockaddr_in6
      address{};  // IPv4 has family and port in the same places, and zero is any address too
  address.sin6_family = static_cast<sa_family_t>(family);
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  const socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  int why = 0;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(fd, 1) != 0)
    why = errno;
  close(fd);
  return family == AF_INET6 && why == EADDRNOTAVAIL ? 0 : why;  // IPv6 switched off
}

int try_listen(int port) {
  const int why = try_listen(AF_INET, port);
  return why != 0 ? why : try_listen(AF_INET6, port);
}

}  // namespace

// Others may write to these directories, so that what is there already need not be ours.
int open_private(const std::string& name) {
  const std::string user = std::to_string(geteuid());
  for (const std::string& path : {fmt::format("/run/user/{}/hpclaunch-{}", user, name),
                                  fmt::format("/dev/shm/hpclaunch-{}-{}", name, user),
                                  fmt::format("/tmp/hpclaunch-{}-{}", name, user)}) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    struct stat info {};
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & (S_IRWXG | S_IRWXO)) == 0)
      return fd;
    if (fd >= 0) close(fd);
  }
  return -1;
}

Result<PortClaim> claim_port(const std::vector<int>& candidates, const std::string& host) {
  std::string first_reason;
  const int locks = open_private("ports");
  for (const int port : candidates) {
    std::string reason = fmt::format("port {} is reserved by another hpclaunch", port);
    if (locks < 0 || lock_port(locks, host, port)) {
      const int why = host.empty() ? try_listen(port) : 0;
      if (why == 0) return PortClaim{port, locks};
      if (why == EMFILE || why == ENFILE)
        return Error{ErrorKind::system,
                     fmt::format("cannot look for a free port: {}", std::strerror(why)),
                     "raise the limit of open files (ulimit -n)"};
      reason = fmt::format("port {}: {}", port, std::strerror(why));
    }
    if (first_reason.empty()) first_reason = reason;
  }
  if (locks >= 0) close(locks);
  return Error{ErrorKind::system,
               candidates.size() == 1
                   ? first_reason
                   : fmt::format("no free port among {}: {}", candidates.size(), first_reason),
               "choose another port with --master-port"};
}

namespace {

// nullptr when the kernel does not answer.
std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) all = nullptr;
  return {all, freeifaddrs};
}

// A card's interface, or a bond, VLAN or bridge above one.
bool is_on_card(const std::string& name, int depth = 0) {
  constexpr int kMostLayers = 4;
  const std::filesystem::path folder = "/sys/class/net/" + name;
  std::error_code failed;
  if (std::filesystem::exists(folder / "device", failed)) return true;
  if (depth == kMostLayers) return false;
  constexpr std::string_view kLower = "lower_";
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string below = entry.path().filename();
    if (below.starts_with(kLower) && is_on_card(below.substr(kLower.size()), depth + 1))
      return true;
  }
  return false;
}

}  // namespace

std::string address_text(const sockaddr* address) {
  constexpr std::string_view kMapped = "::ffff:";  // of an IPv4 address
  std::array<char, NI_MAXHOST> text{};
  const bool is_4 = address != nullptr && address->sa_family == AF_INET;
  getnameinfo(address, is_4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6), text.data(), text.size(),
              nullptr, 0, NI_NUMERICHOST);
  const std::string_view all = text.data();
  const bool mapped = all.starts_with(kMapped) && all.find('.') != all.npos;
  return std::string(mapped ? all.substr(kMapped.size()) : all);
}

std::optional<std::string> outward_of(const ifaddrs* all,
                                      const std::function<bool(const std::string&)>& on_card) {
  std::optional<std::string> found;
  std::pair<bool, bool> best;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    std::string text = address_text(one->ifa_addr);
    if (text.empty() || is_link_local(text)) continue;
    const std::pair rank{on_card(one->ifa_name), one->ifa_addr->sa_family == AF_INET};
    if (found && rank <= best) continue;
    found = std::move(text);
    best = rank;
  }
  return found;
}

Result<std::vector<std::string>> resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  const int why = getaddrinfo(name.c_str(), nullptr, &hints, &all);
  if (why != 0) return Error{ErrorKind::system, fmt::format("\"{}\": {}", name, gai_strerror(why))};
  std::vector<std::string> found;
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next) {
    std::string text = address_text(one->ai_addr);
    if (!text.empty() && std::find(found.begin(), found.end(), text) == found.end())
      found.push_back(std::move(text));
  }
  freeaddrinfo(all);
  return found;
}

std::optional<std::string> outward_address(const std::string& name) {
  const Result<std::vector<std::string>> found = resolve(name);
  if (!found || found->empty() || !std::ranges::all_of(*found, is_loopback)) return std::nullopt;
  return outward_of(all_addresses().get(),
                    [](const std::string& interface) { return is_on_card(interface); })
      .value_or(name);
}

std::vector<std::string> own_addresses() {
  const auto all = all_addresses();
  std::vector<std::string> found;
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next)
    if (std::string text = address_text(one->ifa_addr); !text.empty())
      found.push_back(std::move(text));
  return found;
}

std::vector<Interface> interfaces() {
  const auto all = all_addresses();
  std::vector<Interface> found;
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    auto at = std::find_if(found.begin(), found.end(),
                           [&](const Interface& known) { return known.name == one->ifa_name; });
    if (at == found.end())
      at = found.insert(found.end(), Interface{one->ifa_name, (one->ifa_flags & IFF_UP) != 0, {}});
    std::string text = address_text(one->ifa_addr);
    if (!text.empty() && !text.starts_with("fe80:")) at->addresses.push_back(std::move(text));
  }
  return found;
}

}  // namespace hpclaunch::sys
