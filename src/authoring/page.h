#pragma once
// What the sections of `hpclaunch profile page` share. Each section is Markdown that ends with a
// newline, or "" when the profile has nothing for it. Equal profiles give equal bytes.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hpclaunch/job.h"
#include "hpclaunch/profile.h"

namespace hpclaunch::authoring::page {

/// What is typed; "" is the default.
struct Ask {
  std::string stack = {};
  std::string mode = {};
  std::string node_type = {};
};

/// The plan for two nodes, user "user", an empty environment.
Result<job::Prepared> plan_of(const Profile& profile, const Ask& ask);

/// The stack and the device mode used when none is typed; "" without any.
std::string default_stack(const Profile& profile);
std::string default_mode(const Profile& profile);

/// The first statement of a longer text, up to one of `stops`. `profile show` has the rest.
std::string gist(const std::string& text, const char* stops = ".;");

/// The stacks that a condition names; none: it applies to all, or excludes some.
std::vector<std::string> stacks_of(const When& when);

/// Whether it applies to the default stack.
bool is_default(const Profile& profile, const When& when);

/// `elsewhere`: sites that the profile extends. Their entries are on their own pages.
std::string placement(const Profile& profile, const std::set<std::string>& elsewhere);

}  // namespace hpclaunch::authoring::page
