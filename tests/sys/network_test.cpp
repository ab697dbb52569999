// By which address others reach this host, of interfaces made up.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "hpclaunch/sys.h"
#include "support/catch.h"
#include "sys/addresses.h"

namespace {

/// Addresses as getifaddrs lists them; those of "eth..." and "bond..." are on cards.
class Host {
 public:
  Host& has(const char* name, const char* address, unsigned flags = IFF_UP) {
    Entry& one = entries_.emplace_back();
    one.name = name;
    auto* in = reinterpret_cast<sockaddr_in*>(&one.address);
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&one.address);
    if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
      one.address.ss_family = AF_INET;
    } else {
      REQUIRE(inet_pton(AF_INET6, address, &in6->sin6_addr) == 1);
      one.address.ss_family = AF_INET6;
    }
    one.listed.ifa_name = one.name.data();
    one.listed.ifa_flags = flags;
    one.listed.ifa_addr = reinterpret_cast<sockaddr*>(&one.address);
    if (entries_.size() > 1) entries_[entries_.size() - 2].listed.ifa_next = &one.listed;
    return *this;
  }

  std::string outward() const {
    const auto on_card = [](const std::string& name) {
      return name.rfind("eth", 0) == 0 || name.rfind("bond", 0) == 0;
    };
    const ifaddrs* first = entries_.empty() ? nullptr : &entries_.front().listed;
    return hpclaunch::sys::outward_of(first, on_card).value_or("(none)");
  }

 private:
  struct Entry {
    std::string name;
    sockaddr_storage address{};
    ifaddrs listed{};
  };
  std::deque<Entry> entries_;  // their addresses stay
};

}  // namespace

TEST_CASE("a port is claimed once, by this user alone", "[network]") {
  using hpclaunch::sys::claim_port;
  const auto [low, high] = hpclaunch::sys::ephemeral_ports();
  std::vector<int> ports;
  for (int port = low - 40; port < low; ++port) ports.push_back(port);
  const auto first = claim_port(ports);
  const auto second = claim_port(ports);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->port != second->port);
  CHECK_FALSE(claim_port({first->port}));
  // A port of another host is another one, and claimed as well: two launches for that host from here differ.
  const auto there = claim_port({first->port}, "n7");
  REQUIRE(there);
  CHECK_FALSE(claim_port({first->port}, "n7"));
  CHECK(claim_port({first->port}, "n8"));
  close(first->lock);
  CHECK(claim_port({first->port}));

  // What any user may bind, an abstract name, is no lock.
  const int squatter = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "hpclaunch-port-" + std::to_string(ports.back());
  text.copy(name.sun_path + 1, text.size());
  bind(squatter, reinterpret_cast<sockaddr*>(&name),
       static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size()));
  CHECK(claim_port({ports.back()}));
  close(squatter);
  close(second->lock);
  close(there->lock);
}

TEST_CASE("a failing socket is not reported as a port in use", "[network]") {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_NOFILE, &none);
  const auto claim = hpclaunch::sys::claim_port({20'000, 20'001});
  setrlimit(RLIMIT_NOFILE, &before);
  REQUIRE_FALSE(claim);
  CHECK(claim.error().message == "cannot look for a free port: Too many open files");
}

TEST_CASE("the address of a card, IPv4 where it has one", "[network]") {
  CHECK(Host().outward() == "(none)");
  CHECK(Host().has("docker0", "172.17.0.1").has("eth0", "10.0.0.1").outward() == "10.0.0.1");
  CHECK(Host().has("eth0", "10.0.0.1").has("eth1", "10.1.0.1").outward() == "10.0.0.1");
  CHECK(Host().has("eth0", "fd00::1").has("eth0", "10.0.0.1").outward() == "10.0.0.1");
  CHECK(Host().has("docker0", "172.17.0.1").outward() == "172.17.0.1");
}

TEST_CASE("interfaces without an IP address are none of this host's addresses", "[network]") {
  for (const std::string& address : hpclaunch::sys::own_addresses()) CHECK(!address.empty());
}

TEST_CASE("an IPv4 address written as one of IPv6", "[network]") {
  CHECK(Host().has("eth0", "::ffff:192.0.2.7").outward() == "192.0.2.7");
}

TEST_CASE("a host of IPv6 alone has an address too", "[network]") {
  CHECK(Host().has("eth0", "fe80::1").has("eth0", "2001:db8::7").outward() == "2001:db8::7");
  CHECK(Host().has("docker0", "172.17.0.1").has("bond0", "fd00::7").outward() == "fd00::7");
}

TEST_CASE("what leads nowhere is no address", "[network]") {
  CHECK(Host()
            .has("lo", "127.0.0.1", IFF_UP | IFF_LOOPBACK)
            .has("lo", "::1", IFF_UP | IFF_LOOPBACK)
            .has("eth0", "fe80::1")
            .has("eth1", "169.254.3.1")
            .has("eth2", "10.0.0.1", 0)
            .outward() == "(none)");
}
