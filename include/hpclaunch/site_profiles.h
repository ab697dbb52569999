#pragma once
// Profiles of this machine: builtin, of the site, of the user, and files.
#include <string>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/result.h"

namespace hpclaunch::job {

/// A profile that exists somewhere, not read yet.
struct ProfileEntry {
  std::string name;
  std::string scope;  ///< "builtin", "site", "user", "file"
  std::string file;   ///< path, or "builtin:..."
  const BuiltinProfile* builtin = nullptr;
  std::vector<std::string> shadows;  ///< files of weaker scopes that have the same name
};

/// Every profile, ascending name; the strongest scope of each name. `diagnostics` gets a note for a folder
/// of the user's that cannot be read. Errors: `system` when a folder of the site cannot be read.
Result<std::vector<ProfileEntry>> list_profiles(const EnvSnapshot& env,
                                                std::vector<Diagnostic>* diagnostics = nullptr);

/// Where a profile for this user, or for everybody, is installed. Errors: `usage` where no folder is known.
Result<std::string> profile_folder(const EnvSnapshot& env, bool everybody);

/// The text of an entry. Errors: as sys::read_trusted_file.
Result<std::string> profile_text(const ProfileEntry& entry);

/// True for a path: it has a '/' or ends in ".json".
bool is_profile_file(const std::string& ref);

/// The profile that `file` extends as `name`: beside it, or in `part` or `site` next to its directory, else one
/// of `entries`, as where `file` is "". Errors: `not_found` with a suggestion.
Result<ProfileEntry> find_profile(const std::string& name, const std::string& file,
                                  const std::vector<ProfileEntry>& entries);

/// Parsed, not resolved. Errors: as profile_text; `invalid` with the first problem, and for a name that is not
/// the entry's.
Result<Profile> read_profile(const ProfileEntry& entry);

/// Parsed and resolved. `ref` is a name, or a path (is_profile_file). Errors:
/// `not_found` with a suggestion; `invalid` with the first problem, and how many more there are.
Result<Profile> load_profile(const std::string& ref, const EnvSnapshot& env);

}  // namespace hpclaunch::job
