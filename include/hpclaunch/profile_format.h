#pragma once
// The profile format as it is read, for editors and the manual: both follow from src/profile/fields.h.
#include <string>

namespace hpclaunch {

/// A JSON Schema (draft 7) of a profile. What only the reader can tell, such as names that occur twice, it accepts.
std::string profile_schema();

}  // namespace hpclaunch
