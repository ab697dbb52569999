#pragma once
#include <string>
#include <string_view>

namespace hpclaunch {

inline constexpr int kTopologySchema = 1;

/// A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

}  // namespace hpclaunch
