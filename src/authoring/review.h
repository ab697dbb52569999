#pragma once
// What the questions of `profile validate` share.
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/profile.h"

namespace hpclaunch::authoring {

/// An entry of the profile itself, such as "rule x". Stacks may have several conditions, notes none.
struct OwnEntry {
  std::string what;
  std::vector<std::pair<std::string, const When*>> conditions;  ///< with where they stand: "/when"
  const Origin* origin;
  FactInfo::Known step = FactInfo::Known::rule;  ///< the facts that the conditions find
};

std::vector<OwnEntry> own_entries(const Profile& profile);

/// `below`: pointer from the entry to what is wrong: "/default/NCCL_DEBUG".
Diagnostic about(const std::string& what, const Origin& origin, const char* id, Severity severity,
                 const std::string& message, std::string fix, const std::string& below = {});

bool is_constant(const Template& value);

/// The questions that need the site's nodes or its programs. `whole`: with what the profile extends.
void review_conditions(const Profile& own, const Profile& whole, std::vector<Diagnostic>&);
void review_options(const Profile& own, const Profile& whole, std::vector<Diagnostic>&);
void review_interfaces(const Profile& own, const Profile& whole, std::vector<Diagnostic>&);

}  // namespace hpclaunch::authoring
