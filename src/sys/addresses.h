#pragma once
#include <ifaddrs.h>

#include <functional>
#include <optional>
#include <string>

namespace hpclaunch::sys {

/// Numeric text, "fe80::1%eth0" of a link-local address; "" for other families, and for nullptr.
std::string address_text(const sockaddr* address);

/// outward_address (hpclaunch/sys.h), of these; `on_card` says whether an interface of this name is a card's
/// or above one. A bridge for containers is neither, and has an address too.
std::optional<std::string> outward_of(const ifaddrs* all,
                                      const std::function<bool(const std::string&)>& on_card);

}  // namespace hpclaunch::sys
