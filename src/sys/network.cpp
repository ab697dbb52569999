#include <arpa/inet.h>
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
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "sys/outward.h"

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

bool is_link_local(const sockaddr& address) {
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// Numeric text of an address, "fe80::1%eth0" of a link-local one; "" for other families.
std::string address_text(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN];
  const void* bytes = nullptr;
  if (address.sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  else if (address.sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (bytes == nullptr || inet_ntop(address.sa_family, bytes, text, sizeof text) == nullptr)
    return "";
  char interface[IF_NAMESIZE];
  const bool scoped = is_link_local(address) &&
                      if_indextoname(reinterpret_cast<const sockaddr_in6&>(address).sin6_scope_id,
                                     interface) != nullptr;
  return scoped ? fmt::format("{}%{}", text, interface) : text;
}

// 169.254.0.0/16, which a service processor's interface has.
bool is_link_local_4(const sockaddr& address) {
  return address.sa_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 16 == 0xa9fe;
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

std::optional<std::string> outward_of(const ifaddrs* all,
                                      const std::function<bool(const std::string&)>& on_card) {
  std::optional<std::string> found;
  std::pair<bool, bool> best;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (is_link_local(*one->ifa_addr) || is_link_local_4(*one->ifa_addr)) continue;
    std::string text = address_text(*one->ifa_addr);
    const std::pair rank{on_card(one->ifa_name), one->ifa_addr->sa_family == AF_INET};
    if (text.empty() || (found && rank <= best)) continue;
    found = std::move(text);
    best = rank;
  }
  return found;
}

std::optional<std::string> outward_address() {
  return outward_of(all_addresses().get(),
                    [](const std::string& name) { return is_on_card(name); });
}

Result<std::vector<std::string>> resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  const int why = getaddrinfo(name.c_str(), nullptr, &hints, &all);
  if (why != 0) return Error{ErrorKind::system, fmt::format("\"{}\": {}", name, gai_strerror(why))};
  std::vector<std::string> found;
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next) {
    std::string text = address_text(*one->ai_addr);
    if (!text.empty() && std::find(found.begin(), found.end(), text) == found.end())
      found.push_back(std::move(text));
  }
  freeaddrinfo(all);
  return found;
}

bool is_loopback(const std::string& address) {
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view text = address;
  const bool mapped = text.starts_with(kMapped);
  return text == "::1" || (mapped ? text.substr(kMapped.size()) : text).starts_with("127.");
}

bool resolves_to_loopback(const std::string& name) {
  const Result<std::vector<std::string>> found = resolve(name);
  return found && !found->empty() && std::all_of(found->begin(), found->end(), is_loopback);
}

std::vector<std::string> own_addresses() {
  const auto all = all_addresses();
  std::vector<std::string> found;
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr) found.push_back(address_text(*one->ifa_addr));
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
    if (one->ifa_addr == nullptr || is_link_local(*one->ifa_addr)) continue;
    std::string text = address_text(*one->ifa_addr);
    if (!text.empty()) at->addresses.push_back(std::move(text));
  }
  return found;
}

}  // namespace hpclaunch::sys
