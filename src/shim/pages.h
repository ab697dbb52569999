#pragma once
// The memory of another process, a page at a time.
#include "kernel.h"

namespace hpclaunch::shim {

constexpr int kPageBytes = 4096;  // what is mapped is mapped in multiples of it

/// `Source` has page(address, to): 0, or -errno. As many pages are kept as 16 stacks usually touch.
template <class Source>
class Pages {
 public:
  /// Before anything else.
  void restart(Source source) {
    source_ = source;
    error_ = 0;
    for (unsigned& one : ages_) one = 0;
    age_ = 1;
  }

  /// From now on, what is asked for as `fresh` is read again.
  void forget() { ++age_; }

  /// False: not all of it is there.
  bool read(unsigned long at, void* to, int size, bool fresh = true) {
    auto* out = static_cast<char*>(to);
    while (size > 0) {
      const char* page = find(at / kPageBytes, fresh);
      if (page == nullptr) return false;
      const int from = static_cast<int>(at % kPageBytes);
      const int part = size < kPageBytes - from ? size : kPageBytes - from;
      for (int i = 0; i < part; ++i) out[i] = page[from + i];
      out += part;
      at += static_cast<unsigned long>(part);
      size -= part;
    }
    return true;
  }

  template <class T>
  T get(unsigned long at, bool fresh = true) {
    T value = {};
    return read(at, &value, sizeof value, fresh) ? value : T();
  }

  /// Of the last page that could not be read; 0: all could.
  int error() const { return error_; }

 private:
  static constexpr unsigned kSlots = 256;
  const char* find(unsigned long number, bool fresh) {
    const auto slot = static_cast<unsigned>(number ^ number >> 8) % kSlots;
    unsigned& age = ages_[slot];
    if (numbers_[slot] == number && age > 0 && (!fresh || age == age_)) return bytes_[slot];
    age = 0;
    const long result = source_.page(number * kPageBytes, bytes_[slot]);
    if (result != 0) return error_ = static_cast<int>(-result), nullptr;
    numbers_[slot] = number;
    age = age_;
    return bytes_[slot];
  }

  Source source_ = {};
  unsigned age_ = 0;
  int error_ = 0;
  unsigned long numbers_[kSlots] = {};
  unsigned ages_[kSlots] = {};  ///< 0: empty
  char bytes_[kSlots][kPageBytes] = {};
};

}  // namespace hpclaunch::shim
