#pragma once
#include <ifaddrs.h>

#include <functional>
#include <optional>
#include <string>

namespace hpclaunch::sys {

/// outward_address (hpclaunch/sys.h), of these; `on_card` says whether an interface of this name is a card's
/// or above one. A bridge for containers is neither, and has an address too.
std::optional<std::string> outward_of(const ifaddrs* all,
                                      const std::function<bool(const std::string&)>& on_card);

}  // namespace hpclaunch::sys
