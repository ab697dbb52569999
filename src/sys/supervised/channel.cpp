#include "sys/supervised/channel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "hpclaunch/events.h"
#include "sys/start.h"
#include "sys/supervised/listening.h"

namespace hpclaunch::sys::supervised {
namespace {

using channel::What;

constexpr long kHelloLimit = 10'000;         // ms for a stranger to prove that it has the key
constexpr std::size_t kMostUnsent = 65'536;  // bytes; a peer that reads nothing is dropped
constexpr long kMostPids = 1L << 22;         // PID_MAX_LIMIT
constexpr uint32_t kMostKills = 1U << 30;
constexpr int kMostSignals = 64;

template <class T>
std::string_view bytes_of(const T& frame) {
  return {reinterpret_cast<const char*>(&frame), sizeof frame};
}

template <class T>
T as(std::string_view frame) {
  T value;
  std::memcpy(&value, frame.data(), sizeof value);
  return value;
}

bool draw(void* to, std::size_t size) {
  return getrandom(to, size, 0) == static_cast<ssize_t>(size);
}

std::string hex(const void* bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i)
    text += fmt::format("{:02X}", static_cast<const unsigned char*>(bytes)[i]);
  return text;
}

// Of the address in network order: "0A000001"; "" where it is none.
std::string packed(const std::string& address) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, address.c_str(), bytes) == 1) return hex(bytes, 4);
  return inet_pton(AF_INET6, address.c_str(), bytes) == 1 ? hex(bytes, 16) : std::string();
}

}  // namespace

Channel::~Channel() {
  flush();
  for (const auto& [fd, peer] : peers_) close(fd);
  for (const int fd : {listening_, events_, spare_})
    if (fd >= 0) close(fd);
}

Status Channel::open(const ChannelPlace& place, int ranks, int nodes, int lost_seconds,
                     std::size_t most_strangers) {
  place_ = place;
  ranks_ = ranks;
  nodes_ = nodes;
  lost_seconds_ = lost_seconds;
  most_strangers_ = most_strangers + static_cast<std::size_t>(nodes);  // all nodes may come at once
  of_rank_.assign(static_cast<std::size_t>(ranks), -1);
  ended_.assign(static_cast<std::size_t>(ranks), false);
  released_.assign(static_cast<std::size_t>(ranks), false);
  if (const Status files = allow_files(nodes, kMostStrangers); !files) return files.error();
  std::string addresses;
  for (const std::string& one : place.addresses)
    if (const std::string text = packed(one); !text.empty()) addresses += "." + text;
  if (addresses.empty())
    return Error{ErrorKind::system, "this host has no address that the ranks could reach",
                 "--no-supervise"};
  const std::string only = place.addresses.size() == 1 ? place.addresses.front() : "";
  for (int port = place.first_port; port <= place.last_port && listening_ < 0; ++port)
    listening_ = listen_on(only, port);
  std::uint64_t id = 0;
  if (listening_ >= 0) place_.first_port = port_of(listening_);
  events_ = epoll_create1(EPOLL_CLOEXEC);
  spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (listening_ < 0 || events_ < 0 || !draw(&key_, sizeof key_) || !draw(&id, sizeof id)) {
    const Error why =
        system_error(fmt::format("cannot listen on {}", only.empty() ? "any address" : only));
    if (events_ >= 0) close(events_);
    events_ = -1;
    return why;
  }
  epoll_event event{EPOLLIN, {.fd = listening_}};
  epoll_ctl(events_, EPOLL_CTL_ADD, listening_, &event);
  variable_ = fmt::format("1.{:016X}.{}.{:04X}{}", id, hex(&key_, sizeof key_), place_.first_port,
                          addresses);
  return Done{};
}

std::string Channel::where() const {
  return fmt::format("{} port {}", place_.addresses.front(), place_.first_port);
}

long Channel::deadline() const {
  return strangers_.empty() ? kNever : peers_.at(strangers_.front()).since + kHelloLimit;
}

std::vector<Event> Channel::turn() {
  std::vector<Event> found;
  std::array<epoll_event, 256> ready{};
  const int count =
      events_ < 0 ? 0 : epoll_wait(events_, ready.data(), static_cast<int>(ready.size()), 0);
  more_ = count == std::ssize(ready);
  for (int i = 0; i < count; ++i) {
    const int fd = ready[i].data.fd;
    if (fd == listening_) {
      accept_all();
      continue;
    }
    const auto peer = peers_.find(fd);
    if (peer == peers_.end()) continue;
    if ((ready[i].events & EPOLLOUT) != 0 && !flush(fd, peer->second))
      drop(fd, found);
    else if ((ready[i].events & ~static_cast<unsigned>(EPOLLOUT)) != 0)
      read(fd, found);
  }
  limit_strangers(found);
  flush();
  return found;
}

void Channel::accept_all() {
  for (;;) {
    int fd = accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && spare_ >= 0) {
      // Refused with the spare descriptor, or it would be announced for ever.
      close(spare_);
      fd = accept(listening_, nullptr, nullptr);
      if (fd >= 0) close(fd);
      spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (fd >= 0) continue;
    }
    if (fd < 0) return;
    keep_alive(fd, lost_seconds_);
    Peer& peer = peers_[fd];
    peer.since = clock_ms();
    channel::Challenge challenge;
    draw(&peer.nonce, sizeof peer.nonce);
    challenge.nonce = peer.nonce;
    epoll_event event{EPOLLIN | EPOLLRDHUP, {.fd = fd}};
    epoll_ctl(events_, EPOLL_CTL_ADD, fd, &event);
    strangers_.push_back(fd);
    send(fd, peer, bytes_of(challenge));
  }
}

void Channel::limit_strangers(std::vector<Event>& to) {
  while (!strangers_.empty() && (strangers_.size() > most_strangers_ ||
                                 clock_ms() >= peers_.at(strangers_.front()).since + kHelloLimit))
    drop(strangers_.front(), to);
}

void Channel::read(int fd, std::vector<Event>& to) {
  static std::array<char, 65'536> buffer;
  Peer& peer = peers_.at(fd);
  for (;;) {
    const ssize_t size = recv(fd, buffer.data(), buffer.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) return drop(fd, to);
    peer.in.append(buffer.data(), static_cast<std::size_t>(size));
    std::size_t used = 0;
    while (peer.in.size() - used >= sizeof(channel::Head)) {
      const auto rest = std::string_view(peer.in).substr(used);
      const auto head = as<channel::Head>(rest);
      if (!channel::is_good(head) || peer.known == (head.what == What::hello)) return drop(fd, to);
      if (rest.size() < head.size) break;
      if (!take(fd, peer, head, rest.substr(0, head.size), to)) return drop(fd, to);
      used += head.size;
    }
    peer.in.erase(0, used);
    if (peer.in.empty()) peer.in.shrink_to_fit();
    if (!peer.known && !peer.in.empty() && peer.in.size() > sizeof(channel::Hello))
      return drop(fd, to);
  }
}

bool Channel::greet(int fd, Peer& peer, std::string_view frame) {
  const auto hello = as<channel::Hello>(frame);
  if (hello.node < 0 || hello.node >= nodes_ ||
      hello.tag != channel::tag_of(key_, peer.nonce, hello.nonce, hello.node))
    return false;
  peer.known = true;
  peer.node = hello.node;
  std::erase(strangers_, fd);
  channel::Welcome welcome;
  welcome.node = hello.node;
  welcome.tag = channel::tag_of(key_, hello.nonce, peer.nonce, hello.node);
  send(fd, peer, bytes_of(welcome));
  return true;
}

bool Channel::take(int fd, Peer& peer, const channel::Head& head, std::string_view frame,
                   std::vector<Event>& to) {
  if (head.what == What::hello) return greet(fd, peer, frame);
  if (head.rank < 0 || head.rank >= ranks_) return false;
  if (head.what == What::gone) {
    if (of_rank_[head.rank] == fd) lose(head.rank, to);
    return true;
  }
  Event event;
  event.what = head.what;
  event.end.rank = head.rank;
  event.end.seconds = wall_clock();
  switch (head.what) {
    case What::begun: {
      const auto begun = as<channel::Begun>(frame);
      event.end.pid = begun.pid;
      event.text = std::string(begun.host, strnlen(begun.host, sizeof begun.host));
      if (of_rank_[head.rank] != fd) peer.ranks.push_back(head.rank);
      of_rank_[head.rank] = fd;
      released_[head.rank] = false;
      break;
    }
    case What::log:
      event.number = as<channel::Log>(frame).error;
      break;
    case What::signalled:
      event.number = as<channel::Signalled>(frame).signal;
      break;
    case What::ended: {
      const auto ended = as<channel::Ended>(frame);
      if (ended.by_signal > 1 ||
          (ended.by_signal == 1 && (ended.status < 1 || ended.status > kMostSignals)) ||
          ended.pid < 1 || ended.pid > kMostPids || of_rank_[head.rank] != fd)
        return false;
      event.end.pid = ended.pid;
      (ended.by_signal == 1 ? event.end.signal : event.end.exit_status) = ended.status;
      event.end.core = ended.core != 0;
      event.end.sent = ended.sent;
      event.end.peak_kib = ended.peak_kib;
      event.end.oom_kills = static_cast<int>(std::min(ended.oom_kills, kMostKills));
      event.text = frame.substr(sizeof ended);
      ended_[head.rank] = true;
      break;
    }
    case What::stacks: {
      const auto piece = as<channel::Stacks>(frame);
      event.number = static_cast<int>(piece.number);
      event.last = piece.last != 0;
      event.text = frame.substr(sizeof piece);
      break;
    }
    default:
      return false;
  }
  to.push_back(std::move(event));
  return true;
}

void Channel::send(int fd, Peer& peer, std::string_view bytes) {
  peer.out += bytes;
  unsent_.push_back(fd);
}

void Channel::flush() {
  for (const int fd : std::exchange(unsent_, {})) {
    const auto peer = peers_.find(fd);
    if (peer == peers_.end()) continue;
    if (!flush(fd, peer->second) || peer->second.out.size() > kMostUnsent)
      shutdown(fd, SHUT_RDWR);  // the next turn finds its end
  }
}

// False: it is lost.
bool Channel::flush(int fd, Peer& peer) {
  while (!peer.out.empty()) {
    const ssize_t size = ::send(fd, peer.out.data(), peer.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size < 0) return false;
    peer.out.erase(0, static_cast<std::size_t>(size));
  }
  if (peer.out.empty()) peer.out.shrink_to_fit();
  if (std::exchange(peer.waits, !peer.out.empty()) == peer.waits) return true;
  epoll_event event{EPOLLIN | EPOLLRDHUP | (peer.waits ? unsigned{EPOLLOUT} : 0U), {.fd = fd}};
  epoll_ctl(events_, EPOLL_CTL_MOD, fd, &event);
  return true;
}

void Channel::drop(int fd, std::vector<Event>& to) {
  const auto found = peers_.find(fd);
  for (const int rank : found->second.ranks) {
    if (of_rank_[rank] == fd) lose(rank, to);  // else another connection has it
  }
  if (!found->second.known) std::erase(strangers_, fd);
  peers_.erase(found);
  close(fd);
}

void Channel::lose(int rank, std::vector<Event>& to) {
  of_rank_[rank] = -1;
  if (ended_[rank]) return;
  Event event;
  event.gone = true;
  event.end.rank = rank;
  event.end.seconds = wall_clock();
  to.push_back(std::move(event));
}

void Channel::send_signal(int signal, int rank) {
  channel::Signal frame;
  frame.head.rank = rank;
  frame.signal = signal;
  if (rank != channel::kAllRanks) {
    if (const int fd = of_rank_[rank]; fd >= 0) send(fd, peers_.at(fd), bytes_of(frame));
    return;
  }
  send_to_all(bytes_of(frame));
}

void Channel::ask(int number, bool all_threads, int ras_port, int ras_rank) {
  channel::Ask frame;
  frame.number = static_cast<uint32_t>(number);
  frame.ras_port = static_cast<uint16_t>(ras_port);
  frame.all_threads = all_threads;
  frame.ras_rank = ras_rank;
  send_to_all(bytes_of(frame));
}

void Channel::send_to_all(std::string_view bytes) {
  for (auto& [fd, peer] : peers_)
    if (peer.known) send(fd, peer, bytes);
}

void Channel::release(int rank) {
  const int fd = of_rank_[rank];
  if (fd < 0 || released_[rank]) return;
  released_[rank] = true;
  send(fd, peers_.at(fd), bytes_of(channel::release(rank)));
}

}  // namespace hpclaunch::sys::supervised
