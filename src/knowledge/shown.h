#pragma once
#include <string>
#include <string_view>

namespace hpclaunch::knowledge {

/// A value for a message: one line, no bytes that move a cursor, and not endless.
std::string shown(std::string_view value);

}  // namespace hpclaunch::knowledge
