#pragma once
// HPCLAUNCH_PLAN of these fields, for tests of the shim, by the shim's own checksum: tests/plan has the encoder's.
#include <string>

#include "shim/text.h"

namespace hpclaunch::test {

inline std::string wire_of(const std::string& fields) {
  unsigned hash = shim::fnv1a({fields.data(), static_cast<int>(fields.size())});
  hash ^= hash >> 17;
  std::string wire = "hl2.";
  for (int i = 0; i < 5; ++i, hash >>= 6) wire += shim::mark_digit(hash);
  return wire + fields;
}

}  // namespace hpclaunch::test
