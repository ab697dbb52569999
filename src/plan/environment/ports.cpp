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

// The ports from `from` up that the kernel does not hand out.
std::vector<int> outside(int from, int ephemeral_first, int ephemeral_last) {
  std::vector<int> ports;
  for (int port = from; port <= 65535; ++port)
    if (port < ephemeral_first || port > ephemeral_last) ports.push_back(port);
  return ports;
}

}  // namespace

std::vector<int> candidate_ports(std::string_view key, int ephemeral_first, int ephemeral_last) {
  constexpr int kUnregistered = 10000;  // below are the ports that services have by registration
  constexpr int kUnprivileged = 1024;
  constexpr std::size_t kTries = 64;
  std::vector<int> ports = outside(kUnregistered, ephemeral_first, ephemeral_last);
  if (ports.size() < kTries) ports = outside(kUnprivileged, ephemeral_first, ephemeral_last);
  if (ports.size() < kTries) ports = outside(kUnregistered, kUnregistered + 1024, 65535);
  std::vector<int> tries;
  const std::uint64_t start = spread(key);
  for (std::uint64_t i = 0; i < kTries; ++i) tries.push_back(ports[(start + i) % ports.size()]);
  return tries;
}

}  // namespace hpclaunch
