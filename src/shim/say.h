#pragma once
// The shim's messages and records on stderr, and how it stops.
#include <fcntl.h>
#include <sys/utsname.h>
#include <time.h>

#include "decode.h"
#include "kernel.h"

namespace hpclaunch::shim {

constexpr int kStderr = 2;
constexpr int kFailed = 125;
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

/// Text of at most kRoom bytes; zero-terminated until it is printed.
template <int kRoom>
class Buffer {
 public:
  constexpr Buffer() = default;
  explicit Buffer(Text start) { add(start); }

  /// Control characters become '?', and other bytes than ASCII unless `utf8`: text of a program, with its
  /// tabs. What does not fit is cut, visibly.
  Buffer& add(Text text, bool utf8 = false) {
    for (int i = 0; i < text.size && size_ < kRoom; ++i) {
      const auto byte = static_cast<unsigned char>(text.at[i]);
      const bool prints = byte >= ' ' && byte <= '~';
      const bool keep = prints || (utf8 && (byte > 0x7f || byte == '\t'));
      bytes_[size_++] = keep ? text.at[i] : '?';
    }
    return *this;
  }
  Buffer& add(int number) { return add_wide(static_cast<unsigned long long>(number)); }
  Buffer& add_wide(unsigned long long number, unsigned base = 10) {
    if (number >= base) add_wide(number / base, base);
    return add_digits(static_cast<long>(number % base), 1, static_cast<int>(base));
  }
  /// With zeros in front.
  Buffer& add_digits(long number, int count, int base = 10) {
    if (count > 1) add_digits(number / base, count - 1, base);
    return add(Text(&"0123456789abcdef"[number % base], 1));
  }
  /// UNIX time, with up to nine digits after the point: ten before it until the year 2286.
  Buffer& add_time(const timespec& time, int digits) {
    long unit = 1'000'000'000;
    for (int i = 0; i < digits; ++i) unit /= 10;
    return add_digits(time.tv_sec, 10).add(".").add_digits(time.tv_nsec / unit, digits);
  }
  Buffer& add(const Mask& mask) {
    const char* separator = "";
    for (int cpu = 0; cpu < kMaskBits; ++cpu) {
      if (!mask.has(cpu)) continue;
      int last = cpu;
      while (last + 1 < kMaskBits && mask.has(last + 1)) ++last;
      add(separator).add(cpu);
      if (last > cpu) add("-").add(last);
      separator = ",";
      cpu = last;
    }
    return *this;
  }
  Buffer& quote(Text text) { return add(" '").add(text).add("'"); }
  Buffer& add_bytes(Text text) {
    for (int i = 0; i < text.size && size_ < kRoom; ++i) bytes_[size_++] = text.at[i];
    return *this;
  }

  Text text() const { return {bytes_, size_}; }
  void cut_to(int size) {
    while (size_ > size) bytes_[--size_] = '\0';
  }

  /// One write(2) to stderr, so that lines of different ranks do not mix.
  void print() {
    if (size_ == kRoom) {
      for (int i = 1; i <= 3; ++i) bytes_[kRoom - i] = '.';
    }
    bytes_[size_] = '\n';
    call(SYS_write, kStderr, bytes_, size_ + 1);
  }

 private:
  char bytes_[kRoom + 1] = {};
  int size_ = 0;
};
using Line = Buffer<1023>;

/// errno; 0: all is written.
inline int write_all(int to, Text bytes) {
  while (bytes.size > 0) {
    const long part = call(SYS_write, to, bytes.at, bytes.size);
    if (part < 0 && part != -EINTR) return static_cast<int>(-part);
    if (part > 0) bytes = bytes.from(static_cast<int>(part));
  }
  return 0;
}

/// 0, 1 or 2 may have been closed before. The descriptor or an error.
inline int above_standard(long fd) {
  if (fd < 0 || fd > kStderr) return static_cast<int>(fd);
  const long above = call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kStderr + 1);
  close(static_cast<int>(fd));
  return static_cast<int>(above);
}

inline long long clock_ms() {
  timespec now = {};
  call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

/// As uname(2) has it; "?" when it does not answer.
inline Text host_name() {
  static utsname host;
  return call(SYS_uname, &host) == 0 ? Text(host.nodename) : Text("?");
}

inline timespec wall_clock() {
  timespec now = {};
  call(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return now;
}

/// Tells hpclaunch that the shim stops instead of the program, and why; nullptr: hpclaunch does not listen.
inline void (*tell_stop)(int status, Text why) = nullptr;

/// Many launchers kill all ranks as soon as one has failed. A rank that lets another one print the line
/// therefore waits a little, so that the other one lives to print it.
constexpr timespec kSilentPause = {0, 200'000'000};

[[noreturn]] inline void stop(int status, Line& line, bool speak = true, bool late = false) {
  if (!speak) {
    call(SYS_nanosleep, &kSilentPause, nullptr);
    speak = late;  // still alive: the fault was of this rank alone
  }
  if (speak) line.print();
  if (tell_stop != nullptr) tell_stop(status, speak ? line.text() : Text());
  leave(status);
}

/// Something is not as planned: the end where verification is strict, else a line. Only the node's first
/// rank reports what all ranks of a node share.
inline void differs(Line& line, Verify verify, const Place& place, bool shared) {
  const bool speak = !shared || place.local == 0;
  if (verify == Verify::strict) stop(kFailed, line, speak, true);
  if (speak) line.print();
}

inline Line rank_line(const Place& place) {
  Line line("hpclaunch: rank ");
  line.add(place.rank).add(" on ").add(host_name()).add(": ");
  return line;
}

}  // namespace hpclaunch::shim
