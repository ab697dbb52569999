#pragma once
// The parts of `profile validate`. Each appends what it finds in the profile's own entries; what a part
// brings in is judged with the part.
#include <functional>
#include <string>
#include <vector>

#include "authoring/command.h"

namespace hpclaunch::cli {

/// The entries that say who says so: "rule x", its origin. Own ones only.
void each_origin(const Profile& profile,
                 const std::function<void(const std::string& what, const Origin& origin)>& visit);

/// The conditions of nodes, stacks, bindings and rules. Own ones only.
void each_when(
    const Profile& profile,
    const std::function<void(const std::string& what, const When& when, const Origin&)>& visit);

void review_variables(const Profile& profile, std::vector<Remark>& remarks);
void review_age(const Profile& profile, const std::string& today, std::vector<Remark>& remarks);
void review_conditions(const Profile& profile, std::vector<Remark>& remarks);
void review_roles(const Profile& profile, std::vector<Remark>& remarks);
void review_signals(const Profile& profile, std::vector<Remark>& remarks);
void review_safety(const Profile& profile, std::vector<Remark>& remarks);

}  // namespace hpclaunch::cli
