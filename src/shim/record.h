#pragma once
// Lines of a snapshot, and what /proc says of a process or a thread.
#include "walk.h"

namespace hpclaunch::shim {

/// How many bytes the first character of `text` has in UTF-8; 0: it is no character.
constexpr int character_size(Text text) {
  const auto byte = [&](int i) {
    return i < text.size ? static_cast<unsigned>(static_cast<unsigned char>(text.at[i])) : 0U;
  };
  const unsigned first = byte(0);
  const int size = first < 0x80   ? 1
                   : first < 0xc2 ? 0
                   : first < 0xe0 ? 2
                   : first < 0xf0 ? 3
                   : first < 0xf5 ? 4
                                  : 0;
  for (int i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) > 0x9f;
  return too_long || surrogate || (first == 0xf4 && byte(1) > 0x8f) ? 0 : size;
}

/// Writes whole lines to stdout, at most a number of bytes: then "cut bytes", and nothing but "end".
class Output {
 public:
  void limit(long bytes) { left_ = bytes - kLast.size; }

  Output& begin(Text word) {
    line_.cut_to(0);
    line_.add(word);
    return *this;
  }
  Output& field(Text text) {
    line_.add_bytes("\t");
    if (text.size == 0) line_.add("-");
    if (text == "-") return line_.add_bytes("\\x2d"), *this;
    while (text.size > 0) {
      const auto byte = static_cast<unsigned char>(text.at[0]);
      int size = character_size(text);
      if (byte < ' ' || byte == 0x7f || byte == '\\') size = 0;
      if (size > 0) line_.add_bytes({text.at, size});
      if (size == 0) line_.add_bytes("\\x").add_digits(byte, 2, 16);
      text = text.from(size > 0 ? size : 1);
    }
    return *this;
  }
  Output& number(unsigned long long value, bool known = true) {
    line_.add_bytes("\t");
    if (known) line_.add_wide(value);
    if (!known) line_.add("-");
    return *this;
  }
  /// One of few words of our own; null or empty: absent.
  Output& word(const char* text) {
    line_.add_bytes("\t").add(text == nullptr ? "-" : text);
    return *this;
  }
  void end() {
    line_.add_bytes("\n");
    if (left_ < 0) return;
    left_ -= line_.text().size;
    if (left_ < 0) return add("cut\tbytes\n");
    add(line_.text());
  }
  void finish() {
    add("end\n");
    flush();
  }
  void flush() {
    write_all(1, all_.text());
    all_.cut_to(0);
  }

 private:
  static constexpr Text kLast = "cut\tbytes\nend\n";
  void add(Text text) {
    if (all_.text().size + text.size > kRoom) flush();
    if (text.size > kRoom) return static_cast<void>(write_all(1, text));
    all_.add_bytes(text);
  }

  static constexpr int kRoom = 65536;
  Buffer<17 * kRoom> line_;  // of RAS: 256 KiB, each byte of which is four when it is escaped
  Buffer<kRoom> all_;
  long left_ = 0;
};

inline bool starts_with(Text text, Text with) {
  return text.size >= with.size && Text(text.at, with.size) == with;
}
inline bool ends_with(Text text, Text with) {
  return text.size >= with.size && text.from(text.size - with.size) == with;
}

/// /proc/PID/stat, or of a thread.
struct Stat {
  char state = '\0';
  int parent = 0;
  unsigned long long cpu_ms = 0;
  Buffer<64> name;

  bool read(Text text) {
    constexpr unsigned long long kTick = 10;  // ms of USER_HZ, which is 100 on every machine
    constexpr int kUser = 11, kSystem = 12;   // words behind the name
    int open = 0;
    int close = text.size - 1;
    while (open < text.size && text.at[open] != '(') ++open;
    while (close > open && text.at[close] != ')') --close;
    if (close <= open) return false;
    name.cut_to(0);
    name.add_bytes(Text(text.at + open + 1, close - open - 1));
    Text rest = text.from(close + 2 < text.size ? close + 2 : text.size);
    Text word;
    for (int i = 0; i <= kSystem; ++i) {
      cut(rest, ' ', word);
      unsigned long long number = 0;
      is_bytes(word, number);
      if (i == 0 && word.size == 1) state = word.at[0];
      if (i == 1) parent = static_cast<int>(number);
      if (i == kUser || i == kSystem) cpu_ms += number * kTick;
    }
    return true;
  }
};

}  // namespace hpclaunch::shim
