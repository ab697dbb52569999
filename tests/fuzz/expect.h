#pragma once
// How a fuzz target says what does not hold: libFuzzer keeps the input of a program that aborts.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace hpclaunch::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// `found` is what was there instead.
inline void expect(bool holds, const char* what, const std::string& found = {}) {
  if (holds) return;
  std::fprintf(stderr, "expected: %s\n%s%s\n", what, found.empty() ? "" : "found: ", found.c_str());
  std::abort();
}

}  // namespace hpclaunch::fuzz
