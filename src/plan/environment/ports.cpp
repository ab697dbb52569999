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

// The ports from `from` up that the kernel does not hand out, counted from 0.
class Outside {
 public:
  Outside(int from, int ephemeral_first, int ephemeral_last)
      : from_(from),
        below_(std::clamp(ephemeral_first, from, kHighest + 1) - from),
        above_from_(std::clamp(ephemeral_last + 1, from + below_, kHighest + 1)) {}

  int count() const { return below_ + kHighest + 1 - above_from_; }
  int at(int index) const { return index < below_ ? from_ + index : above_from_ + index - below_; }

 private:
  static constexpr int kHighest = 65535;
  int from_;
  int below_;
  int above_from_;
};

}  // namespace

std::vector<int> candidate_ports(std::string_view key, int ephemeral_first, int ephemeral_last) {
  constexpr int kUnregistered = 10000;  // below are the ports that services have by registration
  constexpr int kUnprivileged = 1024;
  constexpr int kTries = 64;
  Outside ports(kUnregistered, ephemeral_first, ephemeral_last);
  if (ports.count() < kTries) ports = Outside(kUnprivileged, ephemeral_first, ephemeral_last);
  if (ports.count() < kTries)
    ports = Outside(kUnregistered, kUnregistered + 1024, 65535);  // it takes all
  std::vector<int> tries;
  const std::uint64_t start = spread(key);
  for (std::uint64_t i = 0; i < kTries; ++i)
    tries.push_back(
        ports.at(static_cast<int>((start + i) % static_cast<std::uint64_t>(ports.count()))));
  return tries;
}

}  // namespace hpclaunch
