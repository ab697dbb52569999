// hpclaunch's end of the channel against connections of the test's own, which do right and wrong.
#include "sys/supervised/channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/events.h"
#include "hpclaunch/text.h"
#include "support/catch.h"

namespace channel_test {
namespace {

using namespace hpclaunch::channel;
using hpclaunch::sys::ChannelPlace;
using hpclaunch::sys::supervised::Channel;
using hpclaunch::sys::supervised::Event;

constexpr int kRanks = 6, kNodes = 3;  // two on each

template <class T>
std::string bytes_of(const T& frame) {
  return {reinterpret_cast<const char*>(&frame), sizeof frame};
}

template <class T>
T as(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

ChannelPlace place(const std::vector<std::string>& addresses, int first = 0, int last = 0) {
  ChannelPlace place;
  place.addresses = addresses;
  place.first_port = first;
  place.last_port = last;
  return place;
}

/// "1.ID.KEY.PORT.ADDRESS"
std::vector<std::string> words_of(const Channel& channel) {
  std::vector<std::string> words;
  for (const std::string_view word : hpclaunch::split(channel.variable(), '.'))
    words.emplace_back(word);
  REQUIRE(words.size() >= 5);
  return words;
}

struct Server {
  explicit Server(std::size_t most_strangers = hpclaunch::sys::supervised::kMostStrangers) {
    REQUIRE(channel.open(place({"127.0.0.1"}), kRanks, kNodes, 30, most_strangers));
    const std::vector<std::string> words = words_of(channel);
    std::array<unsigned char, sizeof key> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<unsigned char>(std::stoi(words[2].substr(2 * i, 2), nullptr, 16));
    std::memcpy(&key, bytes.data(), sizeof key);
    port = static_cast<std::uint16_t>(std::stoi(words[3], nullptr, 16));
  }
  void turn() {
    for (Event& event : channel.turn()) events.push_back(std::move(event));
  }
  /// Without a deadline: ctest ends a test that hangs.
  void until(const std::function<bool()>& done) {
    for (turn(); !done(); turn()) {
      hpclaunch::sys::Wait wait;
      wait.on(channel.fd());
      wait.until(hpclaunch::sys::clock_ms() + 5);  // for what the test's own end waits for
      wait.run();
    }
  }
  Event next() {
    until([&] { return !events.empty(); });
    Event event = events.front();
    events.pop_front();
    return event;
  }

  Channel channel;
  Key key;
  std::uint16_t port = 0;
  std::deque<Event> events;
};

class Client {
 public:
  explicit Client(Server& server) : server_(server), fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    REQUIRE(fd_ >= 0);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { leave(); }

  Client& connect() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(server_.port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    return *this;
  }
  /// What hello must have after the challenge, which it waits for.
  Hello hello(int node, const Key& key) {
    const auto challenge = next<Challenge>();
    CHECK(challenge.head.what == What::challenge);
    theirs_ = challenge.nonce;
    Hello hello;
    hello.node = node;
    for (unsigned char& byte : hello.nonce.bytes) byte = static_cast<unsigned char>(fd_);
    hello.tag = tag_of(key, theirs_, hello.nonce, node);
    return hello;
  }
  Client& greet(int node) {
    const Hello mine = hello(node, server_.key);
    tell(mine);
    const auto welcome = next<Welcome>();
    CHECK(welcome.head.what == What::welcome);
    CHECK(welcome.node == node);
    CHECK(welcome.tag == tag_of(server_.key, mine.nonce, theirs_, node));
    return *this;
  }
  void send(std::string_view bytes) {
    REQUIRE(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes));
  }
  template <class T>
  void tell(const T& frame) {
    send(bytes_of(frame));
  }
  template <class T>
  T next() {
    server_.until([&] { return ended() || in_.size() >= sizeof(T); });
    REQUIRE(in_.size() >= sizeof(T));
    const T frame = as<T>(in_);
    in_.erase(0, sizeof(T));
    return frame;
  }
  /// Until hpclaunch has ended the connection.
  void expect_end() {
    server_.until([&] { return ended(); });
  }
  bool ended() {
    std::array<char, 4096> more{};
    for (;;) {
      const ssize_t size = recv(fd_, more.data(), more.size(), MSG_DONTWAIT);
      if (size < 0) return errno != EAGAIN;
      if (size == 0) return true;
      in_.append(more.data(), static_cast<std::size_t>(size));
    }
  }
  const std::string& unread() const { return in_; }
  void leave() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int fd() const { return fd_; }

 private:
  Server& server_;
  int fd_;
  std::string in_;
  Nonce theirs_;
};

Begun begun(int rank, const std::string& host = "n1") {
  Begun frame;
  frame.head.rank = rank;
  frame.pid = 100 + rank;
  std::copy_n(host.begin(), std::min(host.size(), sizeof frame.host), frame.host);
  return frame;
}

hpclaunch::channel::Ended ended(int rank, int status = 0, bool by_signal = false) {
  hpclaunch::channel::Ended frame;
  frame.head.rank = rank;
  frame.pid = 100 + rank;
  frame.status = static_cast<std::uint8_t>(status);
  frame.by_signal = by_signal ? 1 : 0;
  return frame;
}

std::string with(hpclaunch::channel::Ended frame, std::string_view output) {
  frame.head.size += static_cast<std::uint32_t>(output.size());
  return bytes_of(frame) + std::string(output);
}

Head head(What what, int rank, unsigned size = sizeof(Head)) {
  return {size, kVersion, what, 0, rank};
}

std::string shown(const Event& event) {
  const std::string rank = std::to_string(event.end.rank);
  if (event.gone) return rank + " gone";
  const std::string number = std::to_string(event.number);
  switch (event.what) {
    case What::begun:
      return rank + " begun " + std::to_string(event.end.pid) + " on " + event.text;
    case What::log:
      return rank + " log " + number;
    case What::signalled:
      return rank + " signalled " + number;
    case What::ended:
      return rank + " ended " + std::to_string(event.end.status()) +
             (event.end.sent == 0 ? "" : " sent " + std::to_string(event.end.sent)) +
             (event.end.core ? " core" : "") + (event.text.empty() ? "" : ": " + event.text);
    default:
      return "another";
  }
}

// SipHash-2-4's paper, appendix A.
constexpr std::uint64_t of_the_paper() {
  std::uint8_t input[15] = {};
  for (std::uint8_t i = 0; i < 15; ++i) input[i] = i;
  return siphash({{0x0706050403020100, 0x0f0e0d0c0b0a0908}}, input, sizeof input);
}
static_assert(of_the_paper() == 0xa129ca6149be45e5);

// Of the reference implementation's vectors those whose input ends at and behind a whole word.
TEST_CASE("SipHash of whole words and of nothing", "[supervised][channel]") {
  constexpr Key kKey{{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
  std::uint8_t input[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(siphash(kKey, input, 0) == 0x726fdb47dd0e0e31);
  CHECK(siphash(kKey, input, 1) == 0x74f839c593dc67fd);
  CHECK(siphash(kKey, input, 8) == 0x93f5f5799a932462);
}

TEST_CASE("what the shims are told of the channel", "[supervised][channel]") {
  const Server one;
  const Server other;
  const std::vector<std::string> words = words_of(one.channel);
  REQUIRE(words.size() == 5);
  CHECK(words[0] == "1");
  CHECK(words[1].size() == 16);
  CHECK(words[2].size() == 32);
  CHECK(words[4] == "7F000001");
  CHECK(words[1] != words_of(other.channel)[1]);
  CHECK(words[2] != words_of(other.channel)[2]);
  CHECK(one.channel.where() == "127.0.0.1 port " + std::to_string(one.port));
}

TEST_CASE("no address, no channel", "[supervised][channel]") {
  for (const std::vector<std::string>& addresses :
       {std::vector<std::string>{}, std::vector<std::string>{"a.name"}}) {
    Channel channel;
    const hpclaunch::Status opened = channel.open(place(addresses), kRanks, kNodes, 30);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().hint.find("--no-supervise") != std::string::npos);
    CHECK(channel.fd() == -1);
  }
}

TEST_CASE("the first free port of a range", "[supervised][channel]") {
  const Server taken;
  ChannelPlace range = place({"127.0.0.1"}, taken.port, std::min(taken.port + 200, 65535));
  Channel next;
  REQUIRE(next.open(range, kRanks, kNodes, 30));
  const int port = std::stoi(words_of(next)[3], nullptr, 16);
  CHECK(port > range.first_port);
  CHECK(port <= range.last_port);
  Channel none;
  range.last_port = range.first_port;
  const hpclaunch::Status opened = none.open(range, kRanks, kNodes, 30);
  REQUIRE_FALSE(opened);
  CHECK(none.fd() == -1);
}

TEST_CASE("of several addresses it listens on all", "[supervised][channel]") {
  Server server;
  Channel channel;
  REQUIRE(channel.open(place({"127.0.0.1", "10.0.0.1"}), kRanks, kNodes, 30));
  CHECK(words_of(channel)[4] == "7F000001");
  CHECK(words_of(channel)[5] == "0A000001");
  server.port = static_cast<std::uint16_t>(std::stoi(words_of(channel)[3], nullptr, 16));
  Client(server).connect();
}

TEST_CASE("what monitors tell", "[supervised][channel]") {
  Server server;
  Client client(server);
  client.connect().greet(1);
  client.tell(begun(2, "n2.site"));
  client.tell(begun(3, std::string(kHostBytes, 'h')));  // no NUL behind it
  Log log;
  log.head.rank = 3;
  log.error = 28;
  client.tell(log);
  Signalled signalled;
  signalled.head.rank = 2;
  signalled.signal = SIGTERM;
  client.tell(signalled);
  hpclaunch::channel::Ended crash = ended(2, SIGSEGV, true);
  crash.core = 1;
  crash.sent = SIGTERM;
  crash.peak_kib = 4096;
  crash.oom_kills = 0xffffffff;  // of a monitor that nobody can trust
  client.send(with(crash, "last\nwords"));
  client.tell(ended(3, 255));
  for (const std::string& expected :
       {std::string("2 begun 102 on n2.site"), "3 begun 103 on " + std::string(kHostBytes, 'h'),
        std::string("3 log 28"), std::string("2 signalled 15"),
        std::string("2 ended 139 sent 15 core: last\nwords"), std::string("3 ended 255")}) {
    const Event event = server.next();
    CHECK(shown(event) == expected);
    if (event.end.signal == SIGSEGV) {
      CHECK(event.end.peak_kib == 4096);
      CHECK(event.end.oom_kills > 0);
    }
  }
  const double now = hpclaunch::sys::wall_clock();
  client.tell(begun(2));
  CHECK(server.next().end.seconds >= now - 1);  // this machine's clock, not the node's
}

TEST_CASE("frames in pieces", "[supervised][channel]") {
  Server server;
  Client client(server);
  client.connect();
  const std::string hello = bytes_of(client.hello(0, server.key));
  const std::string output(kMostLastBytes, 'x');
  for (const char byte : hello) {
    client.send({&byte, 1});
    server.turn();
  }
  CHECK(client.next<Welcome>().head.what == What::welcome);
  const std::string frames =
      bytes_of(begun(0)) + with(ended(0, 1), "out") + bytes_of(begun(1)) + bytes_of(ended(1));
  for (const char byte : frames) {
    client.send({&byte, 1});
    server.turn();
  }
  for (const char* expected :
       {"0 begun 100 on n1", "0 ended 1: out", "1 begun 101 on n1", "1 ended 0"})
    CHECK(shown(server.next()) == expected);
  client.send(bytes_of(begun(0)) + with(ended(0, 1), output));  // as long as there may be
  CHECK(shown(server.next()) == "0 begun 100 on n1");
  CHECK(server.next().text == output);
}

TEST_CASE("who has another key is not heard", "[supervised][channel]") {
  Server server;
  Client stranger(server);
  stranger.connect();
  Key other = server.key;
  other.words[1] ^= 1;
  stranger.tell(stranger.hello(0, other));
  stranger.expect_end();
  CHECK(stranger.unread().empty());  // no welcome
  CHECK(server.events.empty());
}

TEST_CASE("a hello counts for its challenge and its node", "[supervised][channel]") {
  Server server;
  Client one(server), other(server), third(server);
  one.connect();
  const Hello good = one.hello(0, server.key);
  one.tell(good);
  CHECK(one.next<Welcome>().node == 0);
  other.connect();
  CHECK(other.next<Challenge>().head.what == What::challenge);
  other.tell(good);  // overheard
  other.expect_end();
  third.connect();
  Hello renamed = third.hello(0, server.key);
  renamed.node = 1;
  third.tell(renamed);
  third.expect_end();
  one.tell(begun(0));
  CHECK(shown(server.next()) == "0 begun 100 on n1");
}

TEST_CASE("a node that there is not", "[supervised][channel]") {
  Server server;
  for (const int node : {-1, kNodes, 1 << 30}) {
    INFO(node);
    Client client(server);
    client.connect();
    client.tell(client.hello(node, server.key));
    client.expect_end();
    CHECK(client.unread().empty());
  }
}

TEST_CASE("before its hello nobody is heard", "[supervised][channel]") {
  Server server;
  for (const std::string& first : {bytes_of(begun(0)), with(ended(0), "x"), bytes_of(Challenge{}),
                                   std::string("GET / HTTP/1.1\r\n\r\n"), std::string(1000, '\0'),
                                   std::string(1000, '\xff')}) {
    Client client(server);
    client.connect();
    client.send(first);
    client.expect_end();
  }
  CHECK(server.events.empty());
  CHECK(server.channel.deadline() == hpclaunch::sys::kNever);
}

TEST_CASE("a frame that is wrong ends its connection, and no other", "[supervised][channel]") {
  Server server;
  Client good(server);
  good.connect().greet(0);
  std::vector<std::string> wrong = {
      bytes_of(head(What::begun, 2, sizeof(Begun) + 1)),
      bytes_of(head(What::begun, 2, sizeof(Begun) - 1)),
      bytes_of(head(What::ended, 2, kMostFrame + 1)),
      bytes_of(head(What::ended, 2, sizeof(hpclaunch::channel::Ended) - 1)),
      bytes_of(head(What::ended, 2, 0xffffffff)),
      bytes_of(head(What::log, 2, 0)),
      bytes_of(head(What{0}, 2)),
      bytes_of(head(What{100}, 2)),
      bytes_of(head(What{255}, 2)),
      bytes_of(head(What::alone, 2)),
      bytes_of(release(2)),
      bytes_of(Signal{}),
      bytes_of(Hello{}),
      bytes_of(Challenge{}),
      bytes_of(Welcome{}),
      bytes_of(begun(-1)),
      bytes_of(begun(kRanks)),
      bytes_of(begun(1 << 30)),
      bytes_of(ended(3)),  // never begun
      bytes_of(ended(0)),  // begun on another connection
  };
  Begun newer = begun(2);
  newer.head.version = kVersion + 1;
  wrong.push_back(bytes_of(newer));
  for (const auto& [pid, by_signal, status] : std::vector<std::array<int, 3>>{
           {0, 0, 0}, {-1, 0, 0}, {1 << 23, 0, 0}, {5, 2, 9}, {5, 1, 0}, {5, 1, 65}}) {
    hpclaunch::channel::Ended end = ended(2);
    end.pid = pid;
    end.by_signal = static_cast<std::uint8_t>(by_signal);
    end.status = static_cast<std::uint8_t>(status);
    wrong.push_back(bytes_of(end));
  }
  good.tell(begun(0));
  CHECK(shown(server.next()) == "0 begun 100 on n1");
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    INFO(i);
    Client bad(server);
    bad.connect().greet(1);
    bad.tell(begun(2));
    CHECK(shown(server.next()) == "2 begun 102 on n1");
    bad.send(wrong[i]);
    bad.expect_end();
    CHECK(shown(server.next()) == "2 gone");
    CHECK(server.events.empty());
  }
  good.tell(ended(0));
  CHECK(shown(server.next()) == "0 ended 0");
}

TEST_CASE("of silent strangers the oldest are dropped", "[supervised][channel]") {
  constexpr std::size_t kMost = 2;  // and one for each node
  Server server(kMost);
  CHECK(server.channel.deadline() == hpclaunch::sys::kNever);
  Client known(server);
  known.connect().greet(0);
  CHECK(server.channel.deadline() == hpclaunch::sys::kNever);
  std::deque<Client> strangers;
  for (std::size_t i = 0; i < kMost + kNodes; ++i) {
    strangers.emplace_back(server).connect();
    CHECK(strangers.back().next<Challenge>().head.what == What::challenge);
  }
  CHECK(server.channel.deadline() > 0);
  for (Client& stranger : strangers) CHECK_FALSE(stranger.ended());
  strangers.emplace_back(server).connect();
  strangers.front().expect_end();
  strangers.emplace_back(server).connect();
  strangers[1].expect_end();
  for (std::size_t i = 2; i < strangers.size(); ++i) CHECK_FALSE(strangers[i].ended());
  strangers.back().greet(1);  // it only was slow
  strangers.clear();
  server.until([&] { return server.channel.deadline() == hpclaunch::sys::kNever; });
  known.tell(begun(0));
  CHECK(shown(server.next()) == "0 begun 100 on n1");
}

TEST_CASE("a flood of connections leaves those alone that are known", "[supervised][channel]") {
  Server server(4);
  Client known(server);
  known.connect().greet(0);
  known.tell(begun(0));
  CHECK(shown(server.next()) == "0 begun 100 on n1");
  for (int i = 0; i < 500; ++i) {
    Client stranger(server);
    stranger.connect();
    if (i % 3 == 0) stranger.send(std::string(100, static_cast<char>(i)));
    if (i % 7 == 0) server.turn();
  }
  server.channel.send_signal(SIGUSR1, kAllRanks);
  CHECK(known.next<Signal>().signal == SIGUSR1);
  known.tell(ended(0));
  CHECK(shown(server.next()) == "0 ended 0");
  CHECK(server.events.empty());
}

// Connections that cannot be accepted would be announced for ever.
TEST_CASE("without a free descriptor connections are refused", "[supervised][channel]") {
  Server server;
  Client known(server), refused(server), later(server);
  known.connect().greet(0);
  refused.connect();
  const int first_free = dup(0);
  close(first_free);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit small = before;
  small.rlim_cur = static_cast<rlim_t>(first_free);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &small) == 0);
  server.turn();
  server.turn();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  refused.expect_end();
  CHECK(refused.unread().empty());
  later.connect().greet(1);
  known.tell(begun(0));
  CHECK(shown(server.next()) == "0 begun 100 on n1");
}

TEST_CASE("a peer that reads nothing is dropped, and nobody waits for it",
          "[supervised][channel]") {
  Server server;
  Client stuck(server), good(server);
  const int small = 4096;
  REQUIRE(setsockopt(stuck.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
  stuck.connect().greet(0);
  good.connect().greet(1);
  stuck.tell(begun(0));
  CHECK(shown(server.next()) == "0 begun 100 on n1");
  for (long sent = 0; server.events.empty(); ++sent) {
    REQUIRE(sent < 100'000'000);
    server.channel.send_signal(SIGUSR1, 0);
    if (sent % 1024 == 0) server.turn();
  }
  CHECK(shown(server.next()) == "0 gone");
  server.channel.send_signal(SIGUSR2, kAllRanks);
  CHECK(good.next<Signal>().signal == SIGUSR2);
}

TEST_CASE("a peer that reads late gets all, in order", "[supervised][channel]") {
  Server server;
  Client slow(server);
  const int small = 4096;
  REQUIRE(setsockopt(slow.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
  slow.connect().greet(0);
  slow.tell(begun(0));
  CHECK(shown(server.next()) == "0 begun 100 on n1");
  constexpr int kMany = 4000;  // 64,000 bytes
  for (int i = 1; i <= kMany; ++i) server.channel.send_signal(i, 0);
  for (int i = 1; i <= kMany; ++i) REQUIRE(slow.next<Signal>().signal == i);
}

TEST_CASE("signals and releases go to whom they are for", "[supervised][channel]") {
  Server server;
  Client one(server), other(server), stranger(server);
  stranger.connect();
  one.connect().greet(0);
  other.connect().greet(1);
  one.send(bytes_of(begun(0)) + bytes_of(begun(1)));
  other.tell(begun(2));
  server.until([&] { return server.events.size() == 3; });
  server.channel.send_signal(SIGTERM, kAllRanks);
  server.channel.send_signal(SIGUSR1, 1);
  server.channel.send_signal(SIGUSR2, 5);  // of no connection
  server.channel.release(2);
  server.channel.release(5);
  const auto all = one.next<Signal>();
  CHECK(all.head.rank == kAllRanks);
  CHECK(all.signal == SIGTERM);
  const auto single = one.next<Signal>();
  CHECK(single.head.rank == 1);
  CHECK(single.signal == SIGUSR1);
  CHECK(other.next<Signal>().signal == SIGTERM);
  const auto released = other.next<Head>();
  CHECK(released.what == What::release);
  CHECK(released.rank == 2);
  CHECK(stranger.next<Challenge>().head.what == What::challenge);
  for (Client* client : {&one, &other, &stranger}) {
    CHECK_FALSE(client->ended());
    CHECK(client->unread().empty());
  }
}

TEST_CASE("ranks without an end are gone with their connection", "[supervised][channel]") {
  Server server;
  Client client(server), other(server);
  client.connect().greet(0);
  other.connect().greet(1);
  client.send(bytes_of(begun(0)) + bytes_of(begun(1)) + bytes_of(ended(1)));
  other.tell(begun(2));
  server.until([&] { return server.events.size() == 4; });
  server.events.clear();
  client.leave();
  CHECK(shown(server.next()) == "0 gone");
  REQUIRE(shutdown(other.fd(), SHUT_WR) == 0);
  CHECK(shown(server.next()) == "2 gone");
  server.channel.send_signal(SIGTERM, 0);  // to nobody
  server.channel.release(1);
  server.turn();
  CHECK(server.events.empty());
}

TEST_CASE("what a monitor told before it left is heard", "[supervised][channel]") {
  Server server;
  {
    Client client(server);
    client.connect().greet(0);
    client.send(bytes_of(begun(0)) + bytes_of(ended(0, 3)) + bytes_of(begun(1)));
  }
  for (const char* expected : {"0 begun 100 on n1", "0 ended 3", "1 begun 101 on n1", "1 gone"})
    CHECK(shown(server.next()) == expected);
}

TEST_CASE("a hub tells that the monitor of another rank is gone", "[supervised][channel]") {
  Server server;
  Client hub(server), other(server);
  hub.connect().greet(0);
  hub.send(bytes_of(begun(0)) + bytes_of(begun(1)) + bytes_of(head(What::gone, 1)));
  for (const char* expected : {"0 begun 100 on n1", "1 begun 101 on n1", "1 gone"})
    CHECK(shown(server.next()) == expected);
  other.connect().greet(1);  // not its rank
  other.send(bytes_of(head(What::gone, 0)) + bytes_of(begun(2)) + bytes_of(ended(2)) +
             bytes_of(head(What::gone, 2)) + bytes_of(begun(3)));
  for (const char* expected : {"2 begun 102 on n1", "2 ended 0", "3 begun 103 on n1"})
    CHECK(shown(server.next()) == expected);
  hub.leave();
  CHECK(shown(server.next()) == "0 gone");  // and 1 no second time
  server.turn();
  CHECK(server.events.empty());
}

TEST_CASE("another monitor of a node takes over its ranks", "[supervised][channel]") {
  Server server;
  Client first(server), second(server);
  first.connect().greet(0);
  first.send(bytes_of(begun(0)) + bytes_of(begun(1)));
  second.connect().greet(0);
  server.until([&] { return server.events.size() == 2; });
  second.tell(begun(1));
  server.until([&] { return server.events.size() == 3; });
  server.events.clear();
  first.leave();
  CHECK(shown(server.next()) == "0 gone");
  CHECK(server.events.empty());
  server.channel.send_signal(SIGTERM, 1);
  CHECK(second.next<Signal>().signal == SIGTERM);
  second.send(bytes_of(begun(0)) + with(ended(0, 1), "again"));
  CHECK(shown(server.next()) == "0 begun 100 on n1");
  CHECK(shown(server.next()) == "0 ended 1: again");
  second.leave();
  CHECK(shown(server.next()) == "1 gone");
  server.turn();
  CHECK(server.events.empty());
}

}  // namespace
}  // namespace channel_test
