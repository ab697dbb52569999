#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "hpclaunch/profile.h"

namespace hpclaunch::cli {

/// "in each package: base 0 + 8 * i, cores base + 2-4".
std::string binding_text(const Binding& binding);

/// The flattened profile for programs: the keys of a profile file where an entry has them, an "origin" in
/// every entry, and each node's topology as `hpclaunch topo --json` writes it.
nlohmann::ordered_json profile_object(const Profile& profile, const std::string& file);

}  // namespace hpclaunch::cli
