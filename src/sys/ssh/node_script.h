#pragma once

namespace hpclaunch::sys {

extern const char* const kNodeScript;  ///< src/sys/ssh/node.sh

}  // namespace hpclaunch::sys
