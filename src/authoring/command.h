#pragma once
// What the actions of `hpclaunch profile` share.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "hpclaunch/profile.h"
#include "job/profiles.h"

namespace hpclaunch::cli {

struct ProfileArgs {
  std::string action;
  std::vector<std::string> names;  ///< names and files
  std::string format = "text";
  std::string topology;  ///< of `new`
  std::string name;      ///< of `new`
  std::string today;     ///< YYYY-MM-DD; "" for the clock's
};

// ---- which profiles ----------------------------------------------------------------------------------

/// Where names are looked up: what was typed first, then every scope.
struct Shelf {
  std::vector<ProfileEntry> entries;
  std::map<std::string, std::string> given;  ///< name -> file among the arguments
};

/// Errors: as list_profiles.
Result<Shelf> open_shelf(const std::vector<std::string>& refs, const EnvSnapshot& env);

struct LoadedProfile {
  std::string name;  ///< its own, or what its file is called
  std::string file;
  ParsedProfile parsed;
  std::optional<Profile> resolved;  ///< nothing when there are problems
  std::vector<Error> problems;      ///< of the file, or else the first of what it extends
  std::string text;                 ///< of the file; "" when it could not be trusted
};

/// One name or file. A file may extend what is named beside it, or lies in its directory or in `part` and
/// `site` next to that; a name only what a launch would find.
/// Errors: only where there is nothing to judge (`not_found`, `system`).
Result<LoadedProfile> load_for_review(const std::string& ref, const Shelf& shelf);

// ---- what was found ----------------------------------------------------------------------------------

/// One thing to say about a profile.
struct Remark {
  std::string rule;  ///< kebab-case
  Severity severity = Severity::warning;
  std::string message;
  std::string fix;
  SourceRef where;
};

/// One question that was asked; failed when a remark is more than a note.
struct Check {
  std::string kind;  ///< "validate", "case", "law"
  std::string name;
  SourceRef where;
  std::vector<Remark> remarks = {};

  bool failed() const;
};

/// All questions about one profile.
struct Suite {
  std::string name;
  std::string file;
  std::string summary;  ///< for people: "17 cases, 5616 laws checked"
  long cases = 0;
  long laws = 0;
  std::vector<Check> checks = {};
};

long count(const Suite& suite, Severity severity);
bool clean(const std::vector<Suite>& suites);  ///< notes do not count

/// As text, json, junit or github.
std::string as_format(const std::string& format, const std::string& action,
                      const std::vector<Suite>& suites, const std::string& totals);

/// "1,234,567"
std::string grouped(long number);

/// One line that cannot move the cursor.
std::string plain(const std::string& text);

/// "PATH:12:3", as far as it is known.
std::string place_text(const SourceRef& where);

// ---- the actions; each returns the exit status -----------------------------------------------------------

int profile_list(const ProfileArgs& args, Session& session);
int profile_show(const ProfileArgs& args, Session& session);
int profile_validate(const ProfileArgs& args, Session& session);
int profile_test(const ProfileArgs& args, Session& session);
int profile_new(const ProfileArgs& args, Session& session);
int profile_schema(const ProfileArgs& args, Session& session);
int profile_page(const ProfileArgs& args, Session& session);

// ---- what they are made of -------------------------------------------------------------------------------

/// Semantics, the catalogue and staleness. `today` is YYYY-MM-DD.
std::vector<Check> review(const LoadedProfile& loaded, const std::string& today);

/// One golden case.
Check run_case(const Profile& profile, const Case& expected);

/// The laws of docs/profiles.md for every plan that the profile can be asked for on one node, and for the
/// sizes at which its rules change.
struct LawCount {
  long plans = 0;
  long refused = 0;  ///< with a reason
  long far = 0;      ///< plans with ranks far from their devices, which say so
  long laws = 0;
  std::vector<Check> checks = {};  ///< one per law
};
LawCount hold_laws(const Profile& profile);

/// "nodes > 16, stack = a or b"; "" for no tests.
std::string when_text(const When& when);

/// What a profile sets, in one line.
std::string template_text(const Template& value);

/// profiles/schema.json.
extern const char* const kProfileSchema;

}  // namespace hpclaunch::cli
