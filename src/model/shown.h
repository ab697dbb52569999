#pragma once
#include <string>
#include <string_view>

namespace hpclaunch {

/// A piece of somebody's input as an error shows it: `most` bytes at most, "..." for the rest, '?' for what is
/// no ASCII that prints.
inline std::string shown(std::string_view piece, std::size_t most) {
  std::string text(piece.substr(0, most));
  if (piece.size() > most) text += "...";
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace hpclaunch
