#pragma once
// `hpclaunch profile`: profiles listed, shown, validated, tested, created and documented. One function per action.
#include <functional>
#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {
struct Request;
}
namespace hpclaunch::job {
struct Prepared;
struct Session;
}  // namespace hpclaunch::job

namespace hpclaunch::authoring {

/// What follows `hpclaunch profile`, as typed.
struct Args {
  std::string action;
  std::vector<std::string> names;  ///< names and files
  std::string format = "text";     ///< text, json, junit or github
  std::string topology;            ///< of `new`: a file, "" for this node
  std::string name;                ///< of `new`; "" for one made from the host's
  std::string today;               ///< YYYY-MM-DD; "" for the clock's
  bool update = false;             ///< of `test`: cases that differ are written anew
  bool system = false;             ///< of `install`: for everybody
  bool user = false;               ///< of `install`: for this user
  std::string plan;                ///< of `test`: name of the case whose plan is printed

  /// Reads the options of a golden case as `hpclaunch run` does.
  std::function<Result<Request>(const std::vector<std::string>&)> parse_options;
};

// Each prints to the session and returns the exit status: 0 done and clean, 1 diagnostics, 2 not done.
int profile_list(const Args& args, job::Session& session);
int profile_show(const Args& args, job::Session& session);
int profile_validate(const Args& args, job::Session& session);
int profile_test(const Args& args, job::Session& session);
int profile_new(const Args& args, job::Session& session);
int profile_schema(const Args& args, job::Session& session);
int profile_page(const Args& args, job::Session& session);
int profile_install(const Args& args, job::Session& session);

/// The plan of the golden case `args.plan` of the one profile that is named. Errors: `usage`; `not_found`; as job::prepare.
Result<job::Prepared> plan_of_case(const Args& args, job::Session& session);

}  // namespace hpclaunch::authoring
