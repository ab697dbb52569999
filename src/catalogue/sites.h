#pragma once
// Profiles of sites and parts, compiled on the building machine.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::catalogue {

/// Profiles by name: C++ texts, and the row of each.
using Sites = std::map<std::string, std::pair<std::string, std::string>>;

/// Errors with file, line and column, as `profile validate` has them; two profiles of one name.
std::vector<Error> read_site(const std::string& file, const std::string& text, Sites& sites);
/// The C++ file. Equal sites give equal bytes.
std::string emit_sites(const Sites& sites);

}  // namespace hpclaunch::catalogue
