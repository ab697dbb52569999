#pragma once
// What hpclaunch-stacks read of a process, kept by scripts/record-stacks: the bytes, where the interpreter was mapped, and
// what Python itself said of its frames.
//
//   image 7f21a0000000 3 11           first byte of libpython or of the program; version in its name
//   thread 4711 gil                   gettid(), pthread_self() is not needed; "gil" or "-"
//   frame 12 inner /home/user/a.py    of the thread above, the innermost first, between tabs
//   memory 7f21a0000010 0f3a...
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shim/locate.h"
#include "shim/pages.h"

namespace hpclaunch::test {

/// Pages of which some bytes are known; the others are 0.
class RecordedPages {
 public:
  using Page = std::string;
  long page(unsigned long at, char* to) const {
    ++reads;
    const auto found = pages->find(at);
    if (found == pages->end()) return -EFAULT;
    found->second.copy(to, shim::kPageBytes);
    return 0;
  }
  void poke(unsigned long at, std::string_view bytes) const {
    for (const char byte : bytes) {
      Page& page = (*pages)[at / shim::kPageBytes * shim::kPageBytes];
      page.resize(shim::kPageBytes);
      page[at++ % shim::kPageBytes] = byte;
    }
  }
  template <class T>
  void set(unsigned long at, T value) const {
    poke(at, {reinterpret_cast<const char*>(&value), sizeof value});
  }

  std::map<unsigned long, Page>* pages = nullptr;
  inline static long reads = 0;
};

struct Recording {
  struct Frame {
    int line = 0;
    std::string function, file;
    friend bool operator==(const Frame&, const Frame&) = default;
  };
  struct Thread {
    int native = 0;
    bool has_gil = false;
    std::vector<Frame> frames;
  };
  shim::Image image;
  std::vector<Thread> threads;
  std::map<unsigned long, std::string> pages;

  /// Of any text: lines that make no sense are left out.
  explicit Recording(std::string_view text) {
    const RecordedPages memory{&pages};
    for (shim::Text rest(text.data(), static_cast<int>(text.size())), line; rest.size > 0;) {
      shim::cut(rest, '\n', line);
      shim::Text kind, word;
      shim::cut(line, ' ', kind);
      unsigned long at = 0;
      int number = 0;
      if (kind == "image" && shim::take_hex(line, at)) {
        image.start = at;
        line = line.from(line.size > 0 ? 1 : 0);
        shim::cut(line, ' ', word);
        shim::is_number(word, image.major);
        shim::is_number(line, image.minor);
      } else if (kind == "thread" && shim::take_number(line, number)) {
        threads.push_back({number, line == " gil", {}});
      } else if (kind == "frame" && !threads.empty() && shim::take_number(line, number)) {
        shim::cut(line, '\t', word);
        shim::cut(line, '\t', word);
        threads.back().frames.push_back({number, string(word), string(line)});
      } else if (kind == "memory" && shim::take_hex(line, at)) {
        std::string bytes;
        for (int i = 1; i + 1 < line.size; i += 2)
          bytes.push_back(static_cast<char>(hex(line.at[i]) * 16 + hex(line.at[i + 1])));
        if (at < ~0UL - bytes.size()) memory.poke(at, bytes);
      }
    }
  }

  static std::string string(shim::Text text) {
    return {text.at, static_cast<std::size_t>(text.size)};
  }

 private:
  static int hex(char c) {
    const int digit = c >= 'a' && c <= 'f' ? c - 'a' + 10 : shim::hex_digit(c);
    return digit < 0 ? 0 : digit;
  }
};

}  // namespace hpclaunch::test
