#pragma once
// What the first monitor of a node has beside its connection to hpclaunch: the other monitors of the node.
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../shared/frames.h"
#include "say.h"

namespace hpclaunch::shim {

constexpr int kNow = MSG_DONTWAIT | MSG_NOSIGNAL;

inline void copy(void* to, const void* from, int size) {
  for (int i = 0; i < size; ++i) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
}

/// `how`: one of EPOLL_CTL_...; `which` comes with its events.
inline void watch(int events, int fd, unsigned long long which, unsigned what, int how) {
  epoll_event event = {};
  event.events = what;
  event.data.u64 = which;
  call(SYS_epoll_ctl, events, how, fd, &event);
}

/// Only this user's processes have a say.
inline bool is_ours(int fd) {
  struct {
    int pid;
    unsigned uid, gid;
  } peer = {};
  unsigned size = sizeof peer;
  return call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == static_cast<unsigned>(call(SYS_geteuid));
}

/// Frames that wait to be sent.
class Queue {
 public:
  bool put(const void* frame, int size) {
    if (begin_ > 0) {  // to the front
      copy(bytes_, bytes_ + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ + size > kRoom) return false;
    copy(bytes_ + end_, frame, size);
    end_ += size;
    return true;
  }
  /// For a frame of another monitor. The hub's own are few, and there is no second try for them.
  bool has_room() const { return kRoom - size() >= static_cast<int>(channel::kMostFrame) + kOwn; }
  int size() const { return end_ - begin_; }
  const char* at() const { return bytes_ + begin_; }
  void drop(int size) { begin_ += size; }
  void clear() { begin_ = end_ = 0; }

 private:
  static constexpr int kRoom = 128 * 1024;
  static constexpr int kOwn =
      static_cast<int>(channel::kMostFrame) + 1024;  // `ended`, and shorter ones
  int begin_ = 0, end_ = 0;
  alignas(8) inline static char bytes_[kRoom];  // no page of it is touched before it is needed
};

class Clients {
 public:
  static constexpr int kMost = 2048;
  static constexpr unsigned long long kFirst = 2;  ///< of what comes with their events

  int count() const { return count_; }

  void accept(int listening, int events) {
    events_ = events;
    for (;;) {
      constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
      const int fd = above_standard(call(SYS_accept4, listening, nullptr, nullptr, kFlags));
      if (fd < 0) return;
      int free = 0;
      while (free < last_ && client_[free].fd >= 0) ++free;
      if (free == kMost || !is_ours(fd)) {
        close(fd);
        continue;
      }
      if (free == last_) ++last_;
      client_[free] = {fd, -1, false};
      ++count_;
      watch(events, fd, kFirst + static_cast<unsigned>(free), EPOLLIN, EPOLL_CTL_ADD);
    }
  }

  /// To `queue`, while it has room.
  void read(int which, Queue& queue) {
    Client& client = client_[which];
    static char frame[channel::kMostFrame];
    while (client.fd >= 0) {
      if (!queue.has_room()) {
        watch(events_, client.fd, kFirst + static_cast<unsigned>(which), 0, EPOLL_CTL_MOD);
        held_ = true;
        return;
      }
      const long size = call(SYS_recvfrom, client.fd, frame, sizeof frame, kNow, nullptr, nullptr);
      if (size == -EAGAIN) return;
      channel::Head head;
      if (size >= static_cast<long>(sizeof head)) copy(&head, frame, sizeof head);
      if (size < static_cast<long>(sizeof head) || !channel::is_good(head) || head.size != size) {
        close(client.fd);
        client.fd = -1;
        --count_;
        channel::Head gone;
        gone.what = channel::What::gone;
        gone.rank = client.rank;
        if (client.rank >= 0 && !is_here(client.rank)) queue.put(&gone, sizeof gone);
        return;
      }
      if (head.what == channel::What::begun) client.rank = head.rank;
      queue.put(frame, static_cast<int>(size));
    }
  }
  void read_again(const Queue& queue) {
    if (!held_ || !queue.has_room()) return;
    held_ = false;
    for (int i = 0; i < last_; ++i)
      if (client_[i].fd >= 0)
        watch(events_, client_[i].fd, kFirst + static_cast<unsigned>(i), EPOLLIN, EPOLL_CTL_MOD);
  }

  /// A frame of hpclaunch, to whom it is for. One that has not read for long, as a stopped one, gets no more here: it
  /// reads the end, connects again, and says again what hpclaunch has to answer.
  void pass(const channel::Head& head, const char* frame) const {
    for (int i = 0; i < last_; ++i) {
      Client& client = client_[i];
      if (client.fd < 0 || client.deaf) continue;
      if (head.rank != channel::kAllRanks && head.rank != client.rank) continue;
      if (call(SYS_sendto, client.fd, frame, head.size, kNow, nullptr, 0) != -EAGAIN) continue;
      client.deaf = true;
      call(SYS_shutdown, client.fd, SHUT_WR);
    }
  }

  /// hpclaunch cannot be reached; they need not find that out themselves.
  void leave_alone() {
    channel::Head word;
    word.what = channel::What::alone;
    for (int i = 0; i < last_; ++i) {
      if (client_[i].fd < 0) continue;
      call(SYS_sendto, client_[i].fd, &word, sizeof word, kNow, nullptr, 0);
      close(client_[i].fd);
    }
    count_ = last_ = 0;
  }

 private:
  struct Client {
    int fd;
    int rank;
    bool deaf;
  };
  bool is_here(int rank) const {
    for (int i = 0; i < last_; ++i)
      if (client_[i].fd >= 0 && client_[i].rank == rank) return true;
    return false;
  }
  int events_ = -1;
  int count_ = 0, last_ = 0;
  bool held_ = false;  // some are not read
  inline static Client client_[kMost];
};

}  // namespace hpclaunch::shim
