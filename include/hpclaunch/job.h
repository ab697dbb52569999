#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {

/// One node and the ranks that the list gives it.
struct HostSlots {
  std::string name;
  int slots = 0;  ///< 0: the list does not say
  friend bool operator==(const HostSlots&, const HostSlots&) = default;
};

/// Reads a host file: a host per line, as "host", "host:4" (Hydra) or "host slots=4" (Open MPI). Blank
/// lines and what follows '#' do not count. A host that comes again, as in a PBS node file, adds its
/// slots (one per line where none is written) and keeps its first place.
/// Errors: `invalid` with file and line; also when there is no host at all.
Result<std::vector<HostSlots>> parse_host_file(std::string_view text, const std::string& file);

/// True when both name the same machine as far as names tell: letter case and what follows the first
/// dot do not count, unless both have a domain and the domains differ. Addresses must be equal.
bool same_host(std::string_view a, std::string_view b);

}  // namespace hpclaunch
