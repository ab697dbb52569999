#pragma once
// NCCL's RAS (2.24 and later; RCCL has the same): what one process of the job knows of all. Asked over TCP; says nothing
// where nothing answers.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "record.h"

namespace hpclaunch::shim {

/// A conversation of lines, bounded in time and bytes.
class Ras {
 public:
  /// "localhost:28028", "10.0.0.2:28028", "[::1]:28028". No names are looked up.
  bool open(Text where) {
    sockaddr_in6 address = {};  // family and port are at the same places in sockaddr_in
    int size = 0;
    if (!read_address(where, address, size)) return false;
    fd_ = static_cast<int>(
        call(SYS_socket, address.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd_ < 0) return false;
    const long result = call(SYS_connect, fd_, &address, size);
    return result == 0 || (result == -EINPROGRESS && wait(POLLOUT));
  }
  void close_it() {
    if (fd_ >= 0) close(fd_);
  }

  bool send(Text line) { return write_all(fd_, line) == 0; }
  bool ask(Text line, Text& answer) { return send(line) && next(answer); }

  /// The next line, without its end. False: the answer or the time is over.
  bool next(Text& line) {
    for (;;) {
      Text rest(bytes_ + from_, size_ - from_);
      const int before = rest.size;
      if (cut(rest, '\n', line)) return from_ += before - rest.size, true;
      if (ended_) return from_ = size_, line.size > 0;
      if (size_ == kRoom || !wait(POLLIN)) {
        ended_ = true;
        continue;
      }
      const long part = call(SYS_read, fd_, bytes_ + size_, kRoom - size_);
      if (part > 0) size_ += static_cast<int>(part);
      if (part <= 0 && part != -EINTR && part != -EAGAIN) ended_ = true;
    }
  }

 private:
  static bool read_address(Text where, sockaddr_in6& to, int& size) {
    int end = where.size;
    while (end > 0 && where.at[end - 1] != ':') --end;
    int port = 0;
    if (end == 0 || !is_number(where.from(end), port) || port > 65535) return false;
    Text host(where.at, end - 1);
    auto* const bytes = reinterpret_cast<unsigned char*>(&to);
    bytes[2] = static_cast<unsigned char>(port >> 8);  // the port: the high byte first
    bytes[3] = static_cast<unsigned char>(port);
    if (host == "[::1]") {
      to.sin6_family = AF_INET6;
      to.sin6_addr.s6_addr[15] = 1;
      return size = sizeof(sockaddr_in6), true;
    }
    if (host == "localhost") host = "127.0.0.1";
    to.sin6_family = AF_INET;
    size = sizeof(sockaddr_in);
    for (int i = 0; i < 4; ++i) {
      Text part;
      int number = 0;
      if (cut(host, '.', part) != (i < 3) || !is_number(part, number) || number > 255) return false;
      bytes[4 + i] = static_cast<unsigned char>(number);
    }
    return true;
  }

  bool wait(short what) {
    const long long left = end_ - clock_ms();
    if (left <= 0) return false;
    const timespec limit = {static_cast<long>(left / 1000),
                            static_cast<long>(left % 1000 * 1'000'000)};
    pollfd one = {fd_, what, 0};
    return call(SYS_ppoll, &one, 1, &limit, nullptr, 0) == 1 &&
           (what == POLLIN || (one.revents & POLLERR) == 0);
  }

  static constexpr int kRoom = 256 * 1024;
  static constexpr int kMostMs = 2000;
  inline static char bytes_[kRoom];
  int fd_ = -1;
  int size_ = 0;
  int from_ = 0;
  bool ended_ = false;
  long long end_ = clock_ms() + kMostMs;
};

/// In JSON where this version has that, else in text.
inline void ask_ras(Text where, Output& out) {
  Ras ras;
  Text line;
  // A second for each leg, where a process of the job does not answer: five are usual.
  const bool answers = ras.open(where) && ras.ask("client protocol 2\n", line) &&
                       starts_with(line, "SERVER PROTOCOL") && ras.ask("timeout 1\n", line) &&
                       ras.ask("set format json\n", line) && ras.send("verbose status\n");
  while (answers && ras.next(line))
    if (line.size > 0) out.begin("ras").field(line).end();
  ras.close_it();
}

}  // namespace hpclaunch::shim
