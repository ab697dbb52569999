#pragma once
// The parts of `hpclaunch profile page`, in the order in which they stand. Each is Markdown that ends with
// a newline, or "" when the profile has nothing for it. Equal profiles give equal bytes.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/profile.h"
#include "job/prepare.h"

namespace hpclaunch::cli::page {

// ---- words -------------------------------------------------------------------------------------------

/// "on more than 16 nodes, 12 ranks per node"; "always" for no tests. `leave_out`: a fact that the reader
/// knows already.
std::string when(const When& tests, std::string_view leave_out = "");

/// The rule's name as a link to its source, and the day of the last comparison.
std::string origin(const std::string& id, const Origin& origin);

/// "1-11, 13, 16, 18 ... 46"
std::string number_ranges(const std::vector<int>& ascending);

// ---- parts -------------------------------------------------------------------------------------------

/// What is typed; "" stands for the default.
struct Ask {
  std::string stack = {};
  std::string mode = {};
  std::string view = {};
  std::string node_type = {};
  std::optional<int> ranks_per_node = {};
  int nodes = 2;
};

/// What is planned then, by a user "user" who has exported nothing.
Result<Prepared> plan_of(const Profile& profile, const Ask& ask);

std::string nodes(const Profile& profile);
std::string placements(const Profile& profile);
std::string bindings(const Profile& profile);
std::string settings(const Profile& profile);
std::string requests(const Profile& profile);  ///< flags, directives, limits, directories
std::string warnings(const Profile& profile);
std::string corrections(const Profile& profile);
std::string disputes(const Profile& profile);

}  // namespace hpclaunch::cli::page
