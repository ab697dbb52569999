#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "hpclaunch/profile.h"

namespace hpclaunch::authoring {

/// The flattened profile for programs: the keys of a profile file where an entry has them, an "origin" in
/// every entry, and each node's topology as `hpclaunch topo --json` writes it.
nlohmann::ordered_json profile_object(const Profile& profile, const std::string& file);

}  // namespace hpclaunch::authoring
