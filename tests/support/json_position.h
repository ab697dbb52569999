#pragma once
#include <string_view>

namespace hpclaunch {

/// A place in a text, both counted from 1; the column is in bytes.
struct TextPosition {
  int line = 1;
  int column = 1;
};

/// The place of the byte at `offset` (from 0; the end of the text when beyond it).
TextPosition position_of(std::string_view text, std::size_t offset);

/// Where the member that an RFC 6901 pointer names begins in a text that is known to be good JSON
/// (`//` and `/* */` comments are skipped): at its key for a member of an object, at the value for
/// an array's element. For a missing member: the innermost existing value.
TextPosition position_of_pointer(std::string_view text, std::string_view pointer);

}  // namespace hpclaunch
