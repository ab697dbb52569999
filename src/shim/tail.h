#pragma once
#include "../shared/frames.h"
#include "text.h"

namespace hpclaunch::shim {

/// The last bytes of what the program wrote on stderr.
class Tail {
 public:
  void add(Text text) {
    for (int i = 0; i < text.size; ++i)
      bytes_[static_cast<unsigned>(total_++) % kRoom] = text.at[i];
  }
  bool ends_line() const { return total_ == 0 || at(total_ - 1) == '\n'; }
  Text text() const {
    static char bytes[kRoom];
    int size = 0;
    for (long long i = total_ > kRoom ? total_ - kRoom : 0; i < total_; ++i) bytes[size++] = at(i);
    return {bytes, size};
  }

 private:
  static constexpr int kRoom = channel::kMostLastBytes;
  char at(long long position) const { return bytes_[static_cast<unsigned>(position) % kRoom]; }
  inline static char bytes_[kRoom];  // no page of it is touched before the program writes
  long long total_ = 0;
};

}  // namespace hpclaunch::shim
