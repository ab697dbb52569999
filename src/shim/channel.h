#pragma once
// The monitor's end of the channel to hpclaunch; src/shared/frames.h has what travels on it.
//
// The first monitor of a node to bind the node's local socket, the hub, connects to hpclaunch and passes on what the
// others of its node say; when it is killed, another one takes its place. Nothing here blocks. Where hpclaunch cannot
// be reached, each monitor is alone, and does as if nobody listened.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "channel_name.h"
#include "hub.h"
#include "say.h"

namespace hpclaunch::shim {

using channel::What;

class Channel {
 public:
  /// `variable`: of HPCLAUNCH_CHANNEL. Without a good one there is no channel.
  constexpr void read(Text variable, const Place& place) {
    place_ = &place;
    if (variable.size > 0 && name_.read(variable)) role_ = Role::closed;
  }
  bool planned() const { return role_ != Role::none; }

  /// Connects. `passing`: for one record, so that it is no hub for others.
  void open(bool passing = false) {
    if (role_ != Role::closed) return;
    passing_ = passing;
    events_ = static_cast<int>(call(SYS_epoll_create1, EPOLL_CLOEXEC));
    join();
  }
  /// hpclaunch hears, or may hear soon, what is told.
  bool on() const { return role_ == Role::client || role_ == Role::hub || role_ == Role::guest; }
  bool released() const { return released_; }              ///< the end has been taken
  bool is_needed() const { return clients_.count() > 0; }  ///< by other monitors
  int fd() const { return on() ? events_ : -1; }
  /// Until turn() has something to do; -1: only when fd() is readable.
  long long ms_left() const {
    if (!on() || give_up_at_ < 0) return -1;
    const long long left = give_up_at_ - clock_ms();
    return left < 0 ? 0 : left;
  }

  void tell_begun(int pid) {
    begun_.head.rank = place_->rank;
    begun_.pid = pid;
    const Text host = host_name();
    for (int i = 0; i < host.size && i < channel::kHostBytes; ++i) begun_.host[i] = host.at[i];
    send(begun_.head);
  }
  void tell_log(int error) {
    channel::Log log;
    log.head.rank = place_->rank;
    log.error = error;
    send(log.head);
  }
  void tell_signalled(int signal) {
    channel::Signalled told;
    told.head.rank = place_->rank;
    told.signal = signal;
    send(told.head);
  }
  /// `lines`: what the rank wrote last.
  void tell_ended(channel::Ended end, Text lines) {
    end.head.rank = place_->rank;
    end.head.size += static_cast<uint32_t>(lines.size);
    copy(ended_, &end, sizeof end);
    copy(ended_ + sizeof end, lines.at, lines.size);
    has_ended_ = true;
    send(*reinterpret_cast<const channel::Head*>(ended_));
  }

  bool has_room() const { return queue_.has_room(); }
  /// A piece of what hpclaunch asked for. False: there is no room now, and a later turn() makes some.
  bool tell_stacks(channel::Stacks& piece) {
    if (!on() || !queue_.has_room()) return !on();
    piece.head.rank = place_->rank;
    send(piece.head);
    return true;
  }

  /// Does what can be done now. `program`: of this rank, with deliver(SIGNAL) and ask(channel::Ask).
  template <class Program>
  void turn(Program& program) {
    if (ms_left() == 0) next_address();
    epoll_event ready[16];
    const long count = on() ? call(SYS_epoll_pwait, events_, ready, 16, 0, nullptr, 0) : 0;
    for (long i = 0; i < count && on(); ++i) {
      const unsigned long long which = ready[i].data.u64;
      if (which == kLocal && role_ == Role::hub)
        clients_.accept(local_, events_);
      else if (which == kLocal)
        read_hub(program);
      else if (which == kServer)
        read_server(program);
      else
        clients_.read(static_cast<int>(which - Clients::kFirst), queue_);
    }
    flush();
  }

 private:
  enum class Role { none, closed, client, hub, guest, alone };
  static constexpr unsigned long long kLocal = 0, kServer = 1;
  static constexpr long long kPatience = 3000;  // ms for an address
  static constexpr int kPasses = 2;             // over all addresses
  static constexpr int kAtOnce = 20;            // tries without a pause

  void want(int fd, unsigned long long which, unsigned what, int how) const {
    watch(events_, fd, which, what, how);
  }
  void drop(int& fd) const {
    if (fd >= 0) close(fd);
    fd = -1;
  }

  // ---- joining ----

  void join() {
    role_ = Role::closed;
    queue_.clear();
    released_ = false;
    sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    Buffer<64> name(Text("hpclaunch-"));
    name.add(name_.id).add("-").add(place_->node);
    copy(at.sun_path + 1, name.text().at, name.text().size);
    const auto size = static_cast<long>(sizeof at.sun_family) + 1 + name.text().size;
    constexpr int kKind = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;
    // A hub may have bound the name and not listen yet, or be about to end.
    for (int tries = 0; tries < 1000; ++tries) {
      local_ = above_standard(call(SYS_socket, AF_UNIX, kKind, 0));
      if (local_ < 0) break;
      long result = passing_ ? -EADDRINUSE : call(SYS_bind, local_, &at, size);
      if (result == 0 && call(SYS_listen, local_, Clients::kMost) == 0) {
        role_ = Role::hub;
        want(local_, kLocal, EPOLLIN, EPOLL_CTL_ADD);
        break;
      }
      result = call(SYS_connect, local_, &at, size);
      if (result == 0 && is_ours(local_)) {
        role_ = Role::client;
        want(local_, kLocal, EPOLLIN, EPOLL_CTL_ADD);
        return tell_again();
      }
      drop(local_);
      if (result == 0 || passing_) break;  // a stranger's, or nobody's
      if (tries < kAtOnce) {
        call(SYS_sched_yield);
        continue;
      }
      constexpr timespec kPause = {0, 1'000'000};
      call(SYS_nanosleep, &kPause, nullptr);
    }
    if (role_ != Role::hub) role_ = Role::guest;
    tell_again();
    attempt_ = -1;
    next_address();
  }

  void next_address() {
    drop(server_);
    open_ = false;
    received_ = 0;
    while (++attempt_ < kPasses * name_.addresses) {
      const ChannelName::Address& one = name_.address[attempt_ % name_.addresses];
      constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
      server_ = above_standard(call(SYS_socket, one.size == 4 ? AF_INET : AF_INET6, kKind, 0));
      if (server_ < 0) continue;
      constexpr int kOn = 1;
      call(SYS_setsockopt, server_, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
      const long result = connect_to(one);
      if (result != 0 && result != -EINPROGRESS) {
        drop(server_);
        continue;
      }
      want(server_, kServer, EPOLLIN, EPOLL_CTL_ADD);
      give_up_at_ = clock_ms() + kPatience;
      return;
    }
    be_alone();
  }

  long connect_to(const ChannelName::Address& one) const {
    const auto port = static_cast<unsigned short>(name_.port << 8 | name_.port >> 8);
    if (one.size == 4) {
      sockaddr_in at = {};
      at.sin_family = AF_INET;
      at.sin_port = port;
      copy(&at.sin_addr, one.bytes, 4);
      return call(SYS_connect, server_, &at, sizeof at);
    }
    sockaddr_in6 at = {};
    at.sin6_family = AF_INET6;
    at.sin6_port = port;
    copy(&at.sin6_addr, one.bytes, 16);
    return call(SYS_connect, server_, &at, sizeof at);
  }

  /// Nobody listens. Other monitors of the node need not find that out themselves.
  void be_alone() {
    clients_.leave_alone();
    drop(server_);
    drop(local_);
    drop(events_);
    role_ = Role::alone;
  }

  // ---- telling ----

  void send(const channel::Head& frame) {
    if (on() && queue_.put(&frame, static_cast<int>(frame.size))) flush();
  }
  /// What a hub before this one may not have passed on.
  void tell_again() {
    if (begun_.pid != 0) queue_.put(&begun_, sizeof begun_);
    if (has_ended_)
      queue_.put(ended_, static_cast<int>(reinterpret_cast<const channel::Head*>(ended_)->size));
    flush();
  }

  void flush() {
    if (!on()) return;
    const bool client = role_ == Role::client;
    if (!client && !open_) return;
    const int fd = client ? local_ : server_;
    bool more = false;
    while (queue_.size() > 0) {
      channel::Head head;
      copy(&head, queue_.at(), sizeof head);
      const int size = client ? static_cast<int>(head.size) : queue_.size();
      const long sent = call(SYS_sendto, fd, queue_.at(), size, kNow, nullptr, 0);
      more = sent == -EAGAIN;
      if (sent <= 0) break;  // an error is read as the end of the connection
      queue_.drop(static_cast<int>(sent));
    }
    if (more != waits_) {
      want(fd, client ? kLocal : kServer, more ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
      waits_ = more;
    }
    clients_.read_again(queue_);
  }

  // ---- hearing ----

  template <class Program>
  void obey(const char* at, Program& program) {
    channel::Head head;
    copy(&head, at, sizeof head);
    if (head.rank != channel::kAllRanks && head.rank != place_->rank) return;
    if (head.what == What::release && head.rank == place_->rank) released_ = true;
    if (head.what == What::signal) {
      channel::Signal signal;
      copy(&signal, at, sizeof signal);
      program.deliver(signal.signal);
    }
    if (head.what == What::ask) {
      channel::Ask ask;
      copy(&ask, at, sizeof ask);
      program.ask(ask);
    }
  }

  template <class Program>
  void read_hub(Program& program) {
    for (;;) {
      const long size = call(SYS_recvfrom, local_, in_, sizeof in_, kNow, nullptr, nullptr);
      if (size == -EAGAIN) return;
      if (size <= 0) {
        drop(local_);
        waits_ = false;
        return join();
      }
      channel::Head head;
      copy(&head, in_, sizeof head);
      if (head.what == What::alone) return be_alone();
      if (channel::is_good(head) && size == static_cast<long>(head.size)) obey(in_, program);
    }
  }

  template <class Program>
  void read_server(Program& program) {
    int error = 0;
    unsigned length = sizeof error;
    call(SYS_getsockopt, server_, SOL_SOCKET, SO_ERROR, &error, &length);
    for (;;) {
      const long size =
          error != 0 ? -error
                     : call(SYS_recvfrom, server_, in_ + received_,
                            sizeof in_ - static_cast<unsigned>(received_), kNow, nullptr, nullptr);
      if (size == -EAGAIN) return;
      if (size <= 0) return lose_server();
      received_ += static_cast<int>(size);
      int used = 0;
      channel::Head head;
      for (; received_ - used >= static_cast<int>(sizeof head);
           used += static_cast<int>(head.size)) {
        copy(&head, in_ + used, sizeof head);
        if (!channel::is_good(head) || head.size > sizeof in_) return lose_server();
        if (received_ - used < static_cast<int>(head.size)) break;
        if (!take(head, in_ + used, program)) return lose_server();
      }
      received_ -= used;
      copy(in_, in_ + used, received_);
    }
  }

  /// Before the welcome, another address may be the right one; after it, hpclaunch has ended or cannot be reached.
  void lose_server() {
    if (open_)
      be_alone();
    else
      next_address();
  }

  template <class Program>
  bool take(const channel::Head& head, const char* at, Program& program) {
    if (head.what == What::challenge) {
      channel::Challenge challenge;
      copy(&challenge, at, sizeof challenge);
      theirs_ = challenge.nonce;
      if (call(SYS_getrandom, &ours_, sizeof ours_, 0) != sizeof ours_) return false;
      channel::Hello hello;
      hello.node = place_->node;
      hello.nonce = ours_;
      hello.tag = channel::tag_of(name_.key, theirs_, ours_, hello.node);
      return call(SYS_sendto, server_, &hello, sizeof hello, kNow, nullptr, 0) == sizeof hello;
    }
    if (head.what == What::welcome) {
      channel::Welcome welcome;
      copy(&welcome, at, sizeof welcome);
      if (welcome.tag != channel::tag_of(name_.key, ours_, theirs_, place_->node)) return false;
      open_ = true;
      give_up_at_ = -1;
      keep_alive();
      return true;
    }
    if (!open_ ||
        (head.what != What::signal && head.what != What::release && head.what != What::ask))
      return false;
    obey(at, program);
    clients_.pass(head, at);
    return true;
  }

  /// So that a node which is cut off finds out.
  void keep_alive() const {
    constexpr int kOptions[][3] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                                   {IPPROTO_TCP, TCP_KEEPIDLE, 60},
                                   {IPPROTO_TCP, TCP_KEEPINTVL, 15},
                                   {IPPROTO_TCP, TCP_KEEPCNT, 4}};
    for (const auto& [level, option, value] : kOptions)
      call(SYS_setsockopt, server_, level, option, &value, sizeof value);
  }

  ChannelName name_;
  const Place* place_ = nullptr;
  Role role_ = Role::none;
  bool passing_ = false;
  int events_ = -1;
  int local_ = -1;   // the hub's listening socket, or a client's connection to the hub
  int server_ = -1;  // a hub's or guest's connection to hpclaunch
  int attempt_ = 0;  // of all addresses, several times
  long long give_up_at_ = -1;
  bool open_ = false;  // hpclaunch has proved that it is the one
  channel::Nonce ours_, theirs_;
  channel::Begun begun_;
  bool has_ended_ = false;
  bool released_ = false;
  bool waits_ = false;  // for room in the socket
  int received_ = 0;
  Queue queue_;
  Clients clients_;
  // No page of these is touched before it is needed.
  alignas(8) inline static char in_[256];
  alignas(8) inline static char ended_[channel::kMostFrame];
};

}  // namespace hpclaunch::shim
