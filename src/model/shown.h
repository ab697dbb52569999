#pragma once
#include <string>
#include <string_view>

namespace hpclaunch {

/// Input as an error shows it: at most `most` bytes, "..." for the rest, '?' for other than printable ASCII.
inline std::string shown(std::string_view piece, std::size_t most) {
  std::string text(piece.substr(0, most));
  if (piece.size() > most) text += "...";
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace hpclaunch
