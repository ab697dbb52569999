#pragma once
// The profile format as it is read, for editors and the manual: both follow from src/profile/fields.h.
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace hpclaunch {

struct Profile;

/// The profile without its golden cases, as parse_profile reads it, and for each entry with an "origin" beside its keys:
/// where it was written. Nodes are topologies.
nlohmann::ordered_json profile_json(const Profile& profile);

/// A JSON Schema (draft 7) of a profile. What only the reader can tell, such as names that occur twice, it accepts.
std::string profile_schema();

}  // namespace hpclaunch
