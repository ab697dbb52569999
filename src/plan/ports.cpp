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

}  // namespace

std::vector<int> candidate_ports(std::string_view key, int ephemeral_first, int ephemeral_last) {
  constexpr int kLowest = 10000;  // below are the ports that services have by registration
  constexpr int kFirst = 1024;
  constexpr int kHighest = 65535;
  constexpr int kTries = 64;
  std::vector<int> outside;
  for (const int from : {kLowest, kFirst}) {
    outside.clear();
    for (int port = from; port <= kHighest; ++port)
      if (port < ephemeral_first || port > ephemeral_last) outside.push_back(port);
    if (static_cast<int>(outside.size()) >= kTries) break;
  }
  if (static_cast<int>(outside.size()) < kTries) {  // a kernel that takes everything for itself
    outside.clear();
    for (int port = kLowest; port < kLowest + 1024; ++port) outside.push_back(port);
  }
  std::vector<int> tries;
  const std::uint64_t start = spread(key);
  for (std::uint64_t i = 0; i < kTries; ++i)
    tries.push_back(outside[static_cast<std::size_t>((start + i) % outside.size())]);
  return tries;
}

}  // namespace hpclaunch
