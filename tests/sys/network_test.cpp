// By which address others reach this host, of interfaces made up.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <deque>
#include <string>

#include "support/catch.h"
#include "sys/outward.h"

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

TEST_CASE("the address of a card, IPv4 where it has one", "[network]") {
  CHECK(Host().outward() == "(none)");
  CHECK(Host().has("docker0", "172.17.0.1").has("eth0", "10.0.0.1").outward() == "10.0.0.1");
  CHECK(Host().has("eth0", "10.0.0.1").has("eth1", "10.1.0.1").outward() == "10.0.0.1");
  CHECK(Host().has("eth0", "fd00::1").has("eth0", "10.0.0.1").outward() == "10.0.0.1");
  CHECK(Host().has("docker0", "172.17.0.1").outward() == "172.17.0.1");
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
