#pragma once
// What hpclaunch and the rank monitors tell each other: docs/reference/channel.md. For programs with and without a C
// library; both ends are little-endian.
//
//   hpclaunch -> monitor   challenge                  release, signal, ask
//   monitor -> hpclaunch            hello -> welcome  begun, log, signalled, ended, stacks
//
// Between the monitors of a node the same frames go over a local socket, without challenge and hello.
#include <stdint.h>

namespace hpclaunch::channel {

constexpr uint8_t kVersion = 1;
constexpr int kMostLastBytes =
    16 * 1024;                  ///< of the last output in an `ended`, of text in a `stacks`
constexpr int kHostBytes = 64;  ///< HOST_NAME_MAX

enum class What : uint8_t {
  challenge = 1,
  hello,
  welcome,
  begun,
  log,        ///< a file of --log-dir was given up
  signalled,  ///< somebody else has sent the rank a signal that ends programs
  ended,
  signal,   ///< for the program of one rank, or of all of the node
  release,  ///< the record of the rank's end has arrived, and its monitor may exit
  alone,    ///< from a node's first monitor: hpclaunch cannot be reached
  gone,     ///< from it too: the rank's monitor has ended without saying more
  ask,      ///< for the stacks of one rank, or of all of the node
  stacks,   ///< a piece of what hpclaunch-stacks has written of the rank
};

constexpr int kAllRanks = -1;

struct Head {
  uint32_t size = sizeof(Head);  ///< of the whole frame
  uint8_t version = kVersion;
  What what = What::challenge;
  uint16_t zero = 0;
  int32_t rank = kAllRanks;  ///< whom it is about, or for
};

struct Nonce {
  uint8_t bytes[16] = {};
};

/// Drawn by hpclaunch for each start; it never crosses the network.
struct Key {
  uint64_t words[2] = {};
};

struct Challenge {
  Head head = {sizeof(Challenge), kVersion, What::challenge};
  uint32_t zero = 0;
  Nonce nonce = {};
};

struct Hello {
  Head head = {sizeof(Hello), kVersion, What::hello};
  int32_t node = 0;
  Nonce nonce = {};
  uint64_t tag = 0;  ///< tag_of(key, challenge's nonce, hello's nonce, node)
};

struct Welcome {
  Head head = {sizeof(Welcome), kVersion, What::welcome};
  int32_t node = 0;
  uint64_t tag = 0;  ///< tag_of(key, hello's nonce, challenge's nonce, node)
};

struct Begun {
  Head head = {sizeof(Begun), kVersion, What::begun};
  int32_t pid = 0;             ///< of the program
  char host[kHostBytes] = {};  ///< as uname(2) has it
};

struct Log {
  Head head = {sizeof(Log), kVersion, What::log};
  int32_t error = 0;  ///< errno
};

struct Signalled {
  Head head = {sizeof(Signalled), kVersion, What::signalled};
  int32_t signal = 0;
};

struct Ended {
  Head head = {sizeof(Ended), kVersion, What::ended};  ///< and the last bytes of stderr behind it
  int32_t pid = 0;
  uint8_t by_signal = 0;  ///< `status` is a signal, 1 to 64; else an exit status, 0 to 255
  uint8_t status = 0;
  uint8_t core = 0;        ///< with a core dump
  uint8_t sent = 0;        ///< last signal that ends programs which was sent to the rank; 0: none
  uint32_t peak_kib = 0;   ///< the most memory that it, or a process it waited for, had
  uint32_t oom_kills = 0;  ///< processes of its control group that the kernel killed for memory
};

struct Signal {
  Head head = {sizeof(Signal), kVersion, What::signal};
  int32_t signal = 0;
};

struct Ask {
  Head head = {sizeof(Ask), kVersion, What::ask};
  uint32_t number = 0;    ///< for the answers
  uint16_t ras_port = 0;  ///< of NCCL's RAS on the node; 0: it is not asked
  uint8_t all_threads = 0;
  uint8_t zero = 0;
  int32_t ras_rank = 0;  ///< who asks it: the answer is of the whole job
};

struct Stacks {
  Head head = {sizeof(Stacks), kVersion, What::stacks};  ///< and text behind it
  uint32_t number = 0;                                   ///< of the Ask
  uint8_t last = 0;                                      ///< nothing follows
  uint8_t zero[3] = {};
};

/// `release`, `alone` and `gone` are a Head.
constexpr Head release(int rank) { return {sizeof(Head), kVersion, What::release, 0, rank}; }

constexpr unsigned kMostFrame =
    (sizeof(Ended) > sizeof(Stacks) ? sizeof(Ended) : sizeof(Stacks)) + kMostLastBytes;

/// The size that a frame of this kind must have; 0: there is none.
constexpr unsigned size_of(What what) {
  switch (what) {
    case What::challenge:
      return sizeof(Challenge);
    case What::hello:
      return sizeof(Hello);
    case What::welcome:
      return sizeof(Welcome);
    case What::begun:
      return sizeof(Begun);
    case What::log:
      return sizeof(Log);
    case What::signalled:
      return sizeof(Signalled);
    case What::ended:
      return sizeof(Ended);
    case What::signal:
      return sizeof(Signal);
    case What::ask:
      return sizeof(Ask);
    case What::stacks:
      return sizeof(Stacks);
    case What::release:
    case What::alone:
    case What::gone:
      return sizeof(Head);
  }
  return 0;
}

/// Can a frame begin so? An `ended` and a `stacks` may have more behind them.
constexpr bool is_good(const Head& head) {
  const unsigned size = size_of(head.what);
  if (head.version != kVersion || size == 0) return false;
  if (head.what == What::ended || head.what == What::stacks)
    return head.size >= size && head.size <= size + kMostLastBytes;
  return head.size == size;
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012).
constexpr uint64_t siphash(const Key& key, const uint8_t* bytes, unsigned size) {
  uint64_t v[4] = {key.words[0] ^ 0x736f6d6570736575, key.words[1] ^ 0x646f72616e646f6d,
                   key.words[0] ^ 0x6c7967656e657261, key.words[1] ^ 0x7465646279746573};
  const auto rotate = [](uint64_t x, int by) { return x << by | x >> (64 - by); };
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      v[0] += v[1], v[2] += v[3];
      v[1] = rotate(v[1], 13) ^ v[0], v[3] = rotate(v[3], 16) ^ v[2];
      v[0] = rotate(v[0], 32);
      v[2] += v[1], v[0] += v[3];
      v[1] = rotate(v[1], 17) ^ v[2], v[3] = rotate(v[3], 21) ^ v[0];
      v[2] = rotate(v[2], 32);
    }
  };
  uint64_t word = 0;
  for (unsigned at = 0; at < size; ++at) {
    word |= static_cast<uint64_t>(bytes[at]) << (at % 8 * 8);
    if (at % 8 != 7) continue;
    v[3] ^= word;
    rounds(2);
    v[0] ^= word;
    word = 0;
  }
  word |= static_cast<uint64_t>(size & 0xff) << 56;
  v[3] ^= word;
  rounds(2);
  v[0] ^= word;
  v[2] ^= 0xff;
  rounds(4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/// By which the one who has drawn `second` knows that the other one has the key.
constexpr uint64_t tag_of(const Key& key, const Nonce& first, const Nonce& second, int node) {
  uint8_t all[36] = {};
  for (int i = 0; i < 16; ++i) all[i] = first.bytes[i], all[16 + i] = second.bytes[i];
  for (int i = 0; i < 4; ++i) all[32 + i] = static_cast<uint8_t>(node >> (8 * i));
  return siphash(key, all, sizeof all);
}

}  // namespace hpclaunch::channel
