#pragma once
// The shim's messages and records on stderr, and how it stops.
#include <sys/utsname.h>
#include <time.h>

#include "decode.h"
#include "kernel.h"

namespace hpclaunch::shim {

constexpr int kStderr = 2;
constexpr int kFailed = 125;
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

/// One line on stderr, in one write(2), so that lines of different ranks do not mix.
class Line {
 public:
  explicit Line(Text start) { add(start); }

  /// Control characters become '?', and other bytes than ASCII unless `utf8`: text of a program, with its
  /// tabs. What does not fit is cut, visibly.
  Line& add(Text text, bool utf8 = false) {
    for (int i = 0; i < text.size && size_ < kRoom; ++i) {
      const auto byte = static_cast<unsigned char>(text.at[i]);
      const bool prints = byte >= ' ' && byte <= '~';
      const bool keep = prints || (utf8 && (byte > 0x7f || byte == '\t'));
      bytes_[size_++] = keep ? text.at[i] : '?';
    }
    return *this;
  }
  Line& add(int number) {
    if (number >= 10) add(number / 10);
    const char digit = static_cast<char>('0' + number % 10);
    return add(Text{&digit, 1});
  }
  Line& add(const Mask& mask) {
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
  Line& quote(Text text) { return add(" '").add(text).add("'"); }

  Text text() const { return {bytes_, size_}; }

  void print() {
    if (size_ == kRoom) {
      for (int i = 1; i <= 3; ++i) bytes_[kRoom - i] = '.';
    }
    bytes_[size_] = '\n';
    call(SYS_write, kStderr, bytes_, size_ + 1);
  }

 private:
  static constexpr int kRoom = 1023;
  char bytes_[kRoom + 1] = {};
  int size_ = 0;
};

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

/// HPCLAUNCH_RECORDS, drawn by hpclaunch for this job: by it a record is known from what a program prints.
/// The program's environment does not have it, so that a log of another job, a job inside this one or a rank
/// that prints what it knows cannot end or excuse the job by accident. It keeps no secret from a program that
/// reads /proc/PPID/environ on purpose.
inline Text record_key = {};

inline Line record(const Place& place, int pid) {
  Line line("@hpclaunch ");
  line.add(record_key).add(" rank=").add(place.rank).add(" node=").add(place.node);
  return line.add(" host=").add(host_name()).add(" pid=").add(pid);
}

/// `how` is " exit=" or " signal="; `sent`: the last signal to end that came from outside, 0 for none.
inline void write_end(const Place& place, int pid, const char* how, int status, bool core,
                      int sent = 0) {
  const auto digits = [](long number, char* out, int count) {
    for (int i = count - 1; i >= 0; --i, number /= 10)
      out[i] = static_cast<char>('0' + number % 10);
  };
  const timespec now = wall_clock();
  // Seconds since 1970 leave int in 2038; as two numbers they never do.
  constexpr long kBillion = 1'000'000'000;
  char micro[7] = {};
  char low[10] = {};
  digits(now.tv_nsec / 1000, micro, 6);
  digits(static_cast<long>(now.tv_sec % kBillion), low, 9);
  Line line = record(place, pid);
  line.add(" at=").add(static_cast<int>(now.tv_sec / kBillion)).add(low).add(".").add(micro);
  line.add(how).add(status);
  if (core) line.add(" core=1");
  if (sent != 0) line.add(" sent=").add(sent);
  line.print();
}

/// This rank, where hpclaunch reads a record of its end; nullptr: elsewhere.
inline const Place* recorded = nullptr;

/// Many launchers kill all ranks as soon as one has failed. A rank that lets another one print the line
/// therefore waits a little, so that the other one lives to print it.
constexpr timespec kSilentPause = {0, 200'000'000};

[[noreturn]] inline void stop(int status, Line& line, bool speak = true, bool late = false) {
  if (!speak) {
    call(SYS_nanosleep, &kSilentPause, nullptr);
    speak = late;  // still alive: the fault was of this rank alone
  }
  if (speak) line.print();
  if (recorded != nullptr) {
    if (speak) record(*recorded, own_pid()).add(" tail=").add(line.text()).print();
    write_end(*recorded, own_pid(), " exit=", status, false);
  }
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
