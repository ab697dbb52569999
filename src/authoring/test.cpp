#include <fmt/format.h>

#include "authoring/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

Suite unusable(const LoadedProfile& loaded) {
  Suite suite{loaded.name, loaded.file, "not tested, since it cannot be read"};
  Check check{"load", "the profile can be used", SourceRef{loaded.file}};
  const Error& error = loaded.problems.front();
  check.remarks.push_back({"unusable", Severity::error, error.message, error.hint,
                           error.where.value_or(SourceRef{loaded.file})});
  suite.checks.push_back(std::move(check));
  return suite;
}

Suite tested(const LoadedProfile& loaded) {
  if (!loaded.resolved) return unusable(loaded);
  const Profile& profile = *loaded.resolved;
  Suite suite{profile.name, loaded.file, ""};
  if (profile.part) {
    suite.summary = "a part, tested with the profiles that extend it";
    return suite;
  }
  long failed = 0;
  for (const Case& expected : profile.expect) {
    suite.checks.push_back(run_case(profile, expected));
    if (suite.checks.back().failed()) ++failed;
  }
  suite.cases = static_cast<long>(profile.expect.size());
  LawCount laws = hold_laws(profile);
  suite.laws = laws.laws;
  long broken = 0;
  for (Check& check : laws.checks) {
    if (check.failed()) ++broken;
    suite.checks.push_back(std::move(check));
  }
  suite.summary =
      fmt::format("{}, {} laws checked", counted(suite.cases, "case"), grouped(suite.laws));
  if (laws.plans > 0)
    suite.summary += fmt::format(" on {} plans ({} refused with a reason{})", grouped(laws.plans),
                                 grouped(laws.refused),
                                 laws.far == 0 ? ""
                                               : fmt::format(", {} say that ranks are far from "
                                                             "their devices",
                                                             grouped(laws.far)));
  else
    suite.summary += " (no node model to plan for)";
  if (failed > 0) suite.summary += fmt::format("; {} failed", counted(failed, "case"));
  if (broken > 0) suite.summary += fmt::format("; {} broken", counted(broken, "law"));
  return suite;
}

std::string totals(const std::vector<Suite>& suites) {
  long cases = 0;
  long laws = 0;
  long failed = 0;
  for (const Suite& suite : suites) {
    cases += suite.cases;
    laws += suite.laws;
    for (const Check& check : suite.checks) failed += check.failed() ? 1 : 0;
  }
  return fmt::format("{}: {} {}, {} laws checked, {} failed",
                     counted(static_cast<long>(suites.size()), "profile"), grouped(cases),
                     cases == 1 ? "case" : "cases", grouped(laws), grouped(failed));
}

}  // namespace

int profile_test(const ProfileArgs& args, Session& session) {
  const Result<Shelf> shelf = open_shelf(args.names, session.env);
  if (!shelf) return report(session, shelf.error());
  std::vector<std::string> refs = args.names;
  if (refs.empty())
    for (const ProfileEntry& entry : shelf->entries) refs.push_back(entry.name);
  std::vector<Suite> suites;
  int status = 0;
  for (const std::string& ref : refs) {
    const Result<LoadedProfile> loaded = load_for_review(ref, *shelf);
    if (loaded)
      suites.push_back(tested(*loaded));
    else
      status = report(session, loaded.error());
  }
  if (!print(session, as_format(args.format, "test", suites, totals(suites))))
    return exit_status(ErrorKind::system, session.exit_rules);
  if (status != 0) return status;
  return clean(suites) ? 0 : 1;
}

}  // namespace hpclaunch::cli
