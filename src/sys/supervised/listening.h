#pragma once
// A socket that listens for other nodes, and connections whose loss is found out.
#include <cstddef>
#include <string>

#include "hpclaunch/result.h"

namespace hpclaunch::sys::supervised {

/// Listens on `address`, or on all where it is "". The descriptor; -1 with errno.
int listen_on(const std::string& address, int port);
int port_of(int fd);

/// A peer that is silent for so long is lost: the connection ends.
void keep_alive(int fd, int seconds);

/// Raises the limit of open files: one for each node, and for strangers as many as can be had. Errors: `system`.
Status allow_files(int nodes, std::size_t strangers);

}  // namespace hpclaunch::sys::supervised
