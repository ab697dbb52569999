#pragma once
// Where hpclaunch listens, as HPCLAUNCH_CHANNEL has it.
#include "../shared/frames.h"
#include "text.h"

namespace hpclaunch::shim {

/// HPCLAUNCH_CHANNEL, "1.ID.KEY.PORT.ADDRESS.ADDRESS": all but the first in hexadecimal digits. ID names the nodes' local
/// sockets, which everybody can see.
struct ChannelName {
  static constexpr int kMostAddresses = 4;
  Text id;
  channel::Key key;
  int port = 0;
  int addresses = 0;
  struct Address {
    unsigned char bytes[16] = {};
    int size = 0;  ///< 4 or 16
  } address[kMostAddresses];

  constexpr bool read(Text text) {
    Text word;
    if (!cut(text, '.', word) || !(word == "1") || !cut(text, '.', id) || id.size != 16)
      return false;
    unsigned char bytes[16] = {};
    if (!cut(text, '.', word) || !hex(word, bytes, 16)) return false;
    for (int i = 0; i < 16; ++i) key.words[i / 8] |= static_cast<uint64_t>(bytes[i]) << (i % 8 * 8);
    if (!cut(text, '.', word) || !hex(word, bytes, 2)) return false;
    port = bytes[0] * 256 + bytes[1];
    for (bool more = true; more && addresses < kMostAddresses; ++addresses) {
      more = cut(text, '.', word);
      Address& one = address[addresses];
      one.size = word.size / 2;
      if ((one.size != 4 && one.size != 16) || !hex(word, one.bytes, one.size)) return false;
    }
    return true;
  }

 private:
  static constexpr bool hex(Text word, unsigned char* to, int size) {
    if (word.size != 2 * size) return false;
    for (int i = 0; i < size; ++i) {
      const int high = hex_digit(word.at[2 * i]), low = hex_digit(word.at[2 * i + 1]);
      if (high < 0 || low < 0) return false;
      to[i] = static_cast<unsigned char>(high * 16 + low);
    }
    return true;
  }
};

}  // namespace hpclaunch::shim
