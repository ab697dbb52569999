#pragma once
// The questions of `profile validate`. Each looks at the profile's own entries only: those of a part are
// validated with the part.
#include <functional>
#include <string>
#include <vector>

#include "authoring/command.h"

namespace hpclaunch::authoring {

/// Entries with an origin, as "rule x". Own ones only.
void each_origin(const Profile& profile,
                 const std::function<void(const std::string& what, const Origin& origin)>& visit);

/// The conditions of nodes, stacks, bindings and rules. Own ones only.
void each_when(
    const Profile& profile,
    const std::function<void(const std::string& what, const When& when, const Origin&)>& visit);

void review_variables(const Profile& profile, std::vector<Diagnostic>& diagnostics);
void review_age(const Profile& profile, const std::string& today,
                std::vector<Diagnostic>& diagnostics);
void review_conditions(const Profile& profile, std::vector<Diagnostic>& diagnostics);
void review_roles(const Profile& profile, std::vector<Diagnostic>& diagnostics);
void review_signals(const Profile& profile, std::vector<Diagnostic>& diagnostics);
void review_safety(const Profile& profile, std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch::authoring
