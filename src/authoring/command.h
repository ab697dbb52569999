#pragma once
// What the actions of `hpclaunch profile` share.
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/authoring.h"
#include "hpclaunch/diagnostic.h"
#include "hpclaunch/prepared.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/render.h"
#include "hpclaunch/session.h"
#include "hpclaunch/site_profiles.h"

namespace hpclaunch::authoring {

using job::line_style;
using job::list_profiles;
using job::load_profile;
using job::profile_text;
using job::ProfileEntry;
using job::Session;
using render::printable;

// ---- which profiles ----------------------------------------------------------------------------------

/// Where names are looked up: the files among the arguments first, then every scope.
struct Shelf {
  std::vector<ProfileEntry> entries;
  std::map<std::string, std::string> given;  ///< name -> file among the arguments
};

/// Errors: as list_profiles.
Result<Shelf> open_shelf(const std::vector<std::string>& refs, const EnvSnapshot& env);

struct LoadedProfile {
  std::string name;  ///< its own, or the file's stem
  std::string file;
  std::string text = {};
  Profile own = {};                              ///< without what it extends
  std::shared_ptr<const Profile> resolved = {};  ///< nullptr when there are problems
  std::vector<Error> problems = {};  ///< of the file, or else the first of what it extends

  /// With the line and column that its pointer leads to; as it is in another file.
  SourceRef place(const SourceRef& where) const;
};

/// One name or file. A file may extend what is named beside it, or is in its directory or in `part` and
/// `site` next to that; a name only what a launch finds.
/// Errors: `not_found`, `system`; what is wrong with the text is in `problems`.
Result<LoadedProfile> load_for_review(const std::string& ref, const Shelf& shelf);

/// Loads each of `args.names`, or every profile without names. Errors: of the shelf. A profile that cannot be
/// read is reported to the session, and `status` becomes its exit status.
Result<std::vector<LoadedProfile>> load_all(const Args& args, Session& session, int& status);

// ---- results -----------------------------------------------------------------------------------------

/// One question; failed when a diagnostic is more than a note.
struct Check {
  std::string kind;  ///< "validate", "case", "invariant"
  std::string name;
  SourceRef where;
  std::vector<Diagnostic> diagnostics = {};
  /// Of a case: what its keys that differ would have to be, as JSON; "set/NAME" for a variable.
  std::map<std::string, std::string> now = {};

  bool failed() const;
};

/// All questions about one profile.
struct Suite {
  std::string name;
  std::string file;
  std::string summary;  ///< "17 cases, 5616 invariants checked"
  long cases = 0;
  long invariants = 0;
  long plans = 0;    ///< for the invariants
  long refused = 0;  ///< of them, with a reason
  long far = 0;      ///< of them, with ranks far from their devices, and they say so
  std::vector<Check> checks = {};
};

/// Prints the suites as args.format; returns the exit status. Notes do not fail a check.
int print_suites(const Args& args, const std::vector<Suite>& suites, const std::string& totals,
                 Session& session);

/// The check "the profile can be read", failed with its problems.
Check unreadable(const LoadedProfile& loaded, const std::string& kind, const std::string& id);

// ---- text ----------------------------------------------------------------------------------------------

/// "2 packages, 4 NUMA nodes, 104 cores, ..."
std::string node_text(const NodeModel& node);

/// "12 cores, 126976 MiB with each device"; "" for none.
std::string share_text(const std::optional<Share>& share);

/// What a program on this rank reads, where its launcher sets nothing; nullopt: the variable is not there.
std::optional<std::string> value_at(const Plan& plan, const EnvSnapshot& env, std::string_view name,
                                    const RankPlace& place);

/// The CPUs of each rank of the plan's first kind of node, and the driver's number of its device; "" for none.
struct Placement {
  std::vector<std::string> cpus, units;
};
Placement placement_of(const Plan& plan);

/// A JSON document with a final newline.
std::string json_document(const char* key, nlohmann::ordered_json list);

// ---- the questions -------------------------------------------------------------------------------------

/// Semantics, the catalogue and the age of sources. `today` is YYYY-MM-DD.
std::vector<Check> review(const LoadedProfile& loaded, const std::string& today);

/// The plan of a golden case, in its world. Errors: `usage` for its options; as job::prepare.
Result<job::Prepared> plan_case(const std::shared_ptr<const Profile>& profile, const Case& expected,
                                const Args& args);

/// One golden case.
Check run_case(const std::shared_ptr<const Profile>& profile, const Case& expected,
               const Args& args);

/// Writes into the profile's file what its cases that differ would have to expect, and prints the changes.
/// Errors: `usage` for a builtin profile or a file that cannot be written; `system`.
Status update_cases(const LoadedProfile& loaded, const Args& args, Session& session);

/// Adds the invariants of docs/reference/profile-format.md for every plan that the profile allows on one
/// node, and for the node counts at which its rules change: one check per invariant, and the numbers.
void check_invariants(const std::shared_ptr<const Profile>& shared, Suite& suite);

}  // namespace hpclaunch::authoring
