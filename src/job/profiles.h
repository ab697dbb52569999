#pragma once
// Which profile holds for this launch: the four scopes, --profile, and the site's signals.
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "hpclaunch/profile.h"

namespace hpclaunch::cli {

/// A profile that exists somewhere, not read yet.
struct ProfileEntry {
  std::string name;
  std::string scope;  ///< "builtin", "site", "user", "file"
  std::string file;   ///< path, or "builtin:..."
  const BuiltinProfile* builtin = nullptr;
  std::vector<std::string> shadows;  ///< files of weaker scopes that have the same name
};

/// All there are, ascending name; the strongest scope of each name.
/// Errors: `system` when a directory cannot be read.
Result<std::vector<ProfileEntry>> list_profiles(const EnvSnapshot& env);

/// The text of an entry. Errors: as sys::read_file; `invalid` for a file that others may write.
Result<std::string> profile_text(const ProfileEntry& entry);

/// Parsed and resolved. `ref` is a name, or a path when it has a '/' or ends in ".json".
/// Errors: `not_found` with a suggestion; `invalid` with the first problem, and how many more there are.
Result<Profile> load_profile(const std::string& ref, const EnvSnapshot& env);

struct ChosenProfile {
  std::optional<Profile> profile;
  std::string why;  ///< for the plan's "profile" choice
};

/// `ref` is what --profile says, "" for nothing. `hosts`: this machine's and the job's.
/// Errors: as load_profile; `usage` when two sites are proved.
Result<ChosenProfile> choose_profile(const std::string& ref, const EnvSnapshot& env,
                                     const std::vector<std::string>& hosts, bool in_job,
                                     std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch::cli
