// Proxies: what goes there by mistake, and, when asked, whether they answer.
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "doctor/examination.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

constexpr int kSeconds =
    2;  // for a proxy to be found, and for one address of it to accept a connection

struct Endpoint {
  std::string host, port;
};

// "http://user:secret@proxy.example.org:3128/" is "proxy.example.org", "3128".
Endpoint endpoint_of(std::string_view url) {
  std::string_view port = "80";
  if (const std::size_t scheme = url.find("://"); scheme != url.npos) {
    if (url.starts_with("https")) port = "443";
    if (url.starts_with("socks")) port = "1080";
    url.remove_prefix(scheme + 3);
  }
  url = url.substr(0, url.find('/'));
  if (const std::size_t user = url.rfind('@'); user != url.npos) url.remove_prefix(user + 1);
  const std::size_t close = url.starts_with('[') ? url.find(']') : url.npos;
  const std::size_t colon = url.find(':', close == url.npos ? 0 : close);
  if (colon != url.npos) port = url.substr(colon + 1);
  std::string_view host = url.substr(0, colon);
  if (close != url.npos) host = url.substr(1, close - 1);
  return {std::string(host), std::string(port)};
}

// Addresses of a host, by getent, whose patience can be limited: that of the resolver in this process cannot.
std::vector<std::string> addresses_of(const std::string& host, const EnvSnapshot& env) {
  std::vector<std::string> found;
  const auto program = sys::find_program("getent", env.get("PATH"));
  if (!program) return {host};
  const auto answer = sys::capture({*program, "ahosts", host}, kSeconds, &env);
  if (!answer) return found;
  for (const std::string_view line : split(answer->out, '\n'))
    if (line.find("STREAM") != line.npos) found.emplace_back(line.substr(0, line.find(' ')));
  return found;
}

// 0, or errno.
int try_address(const std::string& address, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* one = nullptr;
  if (getaddrinfo(address.c_str(), port.c_str(), &hints, &one) != 0) return EINVAL;
  const int link = socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int failed = link < 0 || connect(link, one->ai_addr, one->ai_addrlen) != 0 ? errno : 0;
  if (failed == EINPROGRESS) {
    pollfd ready{link, POLLOUT, 0};
    socklen_t size = sizeof failed;
    if (poll(&ready, 1, kSeconds * 1000) != 1)
      failed = ETIMEDOUT;
    else
      getsockopt(link, SOL_SOCKET, SO_ERROR, &failed, &size);
  }
  if (link >= 0) close(link);
  freeaddrinfo(one);
  return failed;
}

// "" when it accepts a connection, else why not.
std::string answer_of(const Endpoint& to, const EnvSnapshot& env) {
  std::string why = "the host has no address";
  for (const std::string& address : addresses_of(to.host, env)) {
    const int failed = try_address(address, to.port);
    if (failed == 0) return "";
    why = std::strerror(failed);
  }
  return why;
}

}  // namespace

void examine_proxies(Examination& doctor, bool network) {
  const EnvSnapshot& env = doctor.env();
  std::string proxies;
  bool sound = true;
  for (const char* name :
       {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    const std::string url = env.get(name);
    if (url.empty()) continue;
    proxies += fmt::format("{}{}", proxies.empty() ? "" : ", ", name);
    const Endpoint to = endpoint_of(url);
    const std::string why = network ? answer_of(to, env) : "";
    if (why.empty()) continue;
    sound = false;
    doctor.fault("proxies", Severity::error, "proxy-silent",
                 fmt::format("{}: {} port {}: {}: downloads wait until their time-out", name,
                             to.host, to.port, why),
                 fmt::format("unset {}, or download on a login node", name));
  }
  if (proxies.empty() || !sound) return;
  if (env.get("no_proxy").empty() && env.get("NO_PROXY").empty())
    return doctor.fault(
        "proxies", Severity::note, "proxy-for-all",
        fmt::format("{} set, and no_proxy is not: gRPC and HTTP between nodes go there", proxies),
        "export no_proxy=localhost,127.0.0.1 and the nodes' domain");
  doctor.sound("proxies", fmt::format("{} set, with no_proxy", proxies));
}

}  // namespace hpclaunch::job
