#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace hpclaunch::cli {

/// An indented label and, from `column` on, the words of `text` in lines of at most `width` columns; below
/// the label where that leaves no two blanks between them. ASCII.
std::string entry(const std::string& label, std::string_view text, std::size_t column,
                  std::size_t width);

}  // namespace hpclaunch::cli
