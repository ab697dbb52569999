#include <algorithm>
#include <cstdint>

#include "hpclaunch/make_plan.h"

namespace hpclaunch {

namespace {

// FNV-1a and the finalizer of MurmurHash3: short keys that differ in one digit land far apart.
std::uint64_t spread(std::string_view key) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdull;
  hash ^= hash >> 33;
  hash *= 0xc4ceb9fe1a85ec53ull;
  return hash ^ (hash >> 33);
}

/// Ports that the kernel does not hand out: those from `from` up and below its range, then those above it.
struct FreePorts {
  static constexpr int kEnd = 65536;

  FreePorts(int from, int ephemeral_first, int ephemeral_last)
      : first(from),
        below(std::clamp(ephemeral_first, from, kEnd) - from),
        above(std::clamp(ephemeral_last + 1, from + below, kEnd)),
        count(static_cast<std::uint64_t>(below + kEnd - above)) {}
  int at(std::uint64_t number) const {
    const auto place = static_cast<int>(number % count);
    return place < below ? first + place : above + place - below;
  }

  int first, below, above;
  std::uint64_t count;
};

}  // namespace

std::vector<int> candidate_ports(std::string_view key, int ephemeral_first, int ephemeral_last) {
  constexpr int kUnregistered = 10000;  // below are the ports that services have by registration
  constexpr int kUnprivileged = 1024;
  constexpr std::uint64_t kTries = 64;
  FreePorts ports(kUnregistered, ephemeral_first, ephemeral_last);
  if (ports.count < kTries) ports = {kUnprivileged, ephemeral_first, ephemeral_last};
  if (ports.count < kTries) ports = {kUnregistered, kUnregistered + 1024, 65535};
  std::vector<int> tries;
  const std::uint64_t start = spread(key);
  for (std::uint64_t i = 0; i < kTries; ++i) tries.push_back(ports.at(start + i));
  return tries;
}

}  // namespace hpclaunch
