#pragma once
#include "lint/script.h"

namespace hpclaunch::lint {

/// The launches in the words of a command, outermost first; each `outer` counts from `first`, the number of launches
/// before. Empty: it is no launch.
std::vector<Launch> find_launches(const std::vector<Text>& words, std::string_view text,
                                  std::size_t first);

}  // namespace hpclaunch::lint
