#pragma once
// The questions of `profile validate`. Each looks at the profile's own entries only: those of a part are
// validated with the part.
#include <string>
#include <vector>

#include "authoring/command.h"

namespace hpclaunch::authoring {

/// An entry of the profile itself, such as "rule x". Stacks may have several conditions, notes none.
struct OwnEntry {
  std::string what;
  std::vector<const When*> conditions;
  const Origin* origin;
};
std::vector<OwnEntry> own_entries(const Profile& profile);

void review_variables(const Profile& profile, std::vector<Diagnostic>& diagnostics);
void review_age(const Profile& profile, const std::string& today,
                std::vector<Diagnostic>& diagnostics);
void review_conditions(const Profile& profile, std::vector<Diagnostic>& diagnostics);
void review_roles(const Profile& profile, std::vector<Diagnostic>& diagnostics);
void review_signals(const Profile& profile, std::vector<Diagnostic>& diagnostics);
void review_safety(const Profile& profile, std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch::authoring
