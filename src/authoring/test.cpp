// `profile validate` and `profile test`: one suite of checks per profile.
#include <fmt/format.h>

#include <ctime>

#include "authoring/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

std::string this_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  if (gmtime_r(&now, &parts) == nullptr) return "1970-01-01";
  constexpr int kFirstYear = 1900;
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + kFirstYear, parts.tm_mon + 1,
                     parts.tm_mday);
}

// "2 errors, 1 note" of these suites.
std::string tally(const std::vector<Suite>& suites) {
  constexpr std::pair<Severity, const char*> kNouns[] = {
      {Severity::error, "error"}, {Severity::warning, "warning"}, {Severity::note, "note"}};
  std::string text;
  for (const auto& [severity, noun] : kNouns) {
    long number = 0;
    for (const Suite& suite : suites) number += count(suite, severity);
    if (number > 0) text += (text.empty() ? "" : ", ") + counted(number, noun);
  }
  return text.empty() ? "clean" : text;
}

std::string profiles_text(const std::vector<Suite>& suites) {
  return counted(static_cast<long>(suites.size()), "profile");
}

std::string summary(const Suite& suite, const InvariantCount& found) {
  std::string text = fmt::format("{}, {} invariants checked", counted(suite.cases, "case"),
                                 grouped(suite.invariants));
  if (found.plans == 0) text += " (no node model to plan for)";
  if (found.plans > 0)
    text += fmt::format(
        " on {} plans ({} refused with a reason{})", grouped(found.plans), grouped(found.refused),
        found.far == 0
            ? ""
            : fmt::format(", {} report ranks far from their devices", grouped(found.far)));
  for (const auto& [kind, verb] :
       {std::pair("case", "failed"), std::pair("invariant", "violated")}) {
    long failed = 0;
    for (const Check& check : suite.checks) failed += check.kind == kind && check.failed() ? 1 : 0;
    if (failed > 0) text += fmt::format("; {} {}", counted(failed, kind), verb);
  }
  return text;
}

Suite tested(const LoadedProfile& loaded, const Args& args) {
  Suite suite{loaded.name, loaded.file, "not tested: cannot be read"};
  if (!loaded.resolved) {
    suite.checks = {unreadable(loaded, "load", "unusable")};
    return suite;
  }
  const Profile& profile = *loaded.resolved;
  suite.name = profile.name;
  suite.summary = "a part, tested with the profiles that extend it";
  if (profile.part) return suite;
  for (const Case& expected : profile.expect)
    suite.checks.push_back(run_case(profile, expected, args));
  suite.cases = static_cast<long>(profile.expect.size());
  const InvariantCount found = check_invariants(profile);
  suite.invariants = found.checked;
  suite.checks.insert(suite.checks.end(), found.checks.begin(), found.checks.end());
  suite.summary = summary(suite, found);
  return suite;
}

std::string test_totals(const std::vector<Suite>& suites) {
  long cases = 0;
  long invariants = 0;
  long failed = 0;
  for (const Suite& suite : suites) {
    cases += suite.cases;
    invariants += suite.invariants;
    for (const Check& check : suite.checks) failed += check.failed() ? 1 : 0;
  }
  return fmt::format("{}: {} {}, {} invariants checked, {} failed", profiles_text(suites),
                     grouped(cases), cases == 1 ? "case" : "cases", grouped(invariants),
                     grouped(failed));
}

}  // namespace

Check unreadable(const LoadedProfile& loaded, const std::string& kind, const std::string& id) {
  Check check{kind, "the file and what it extends can be read", SourceRef{loaded.file}};
  for (const Error& error : loaded.problems)
    check.diagnostics.push_back({id, Severity::error, error.message, error.hint,
                                 error.where.value_or(SourceRef{loaded.file})});
  return check;
}

int profile_validate(const Args& args, Session& session) {
  int status = 0;
  const Result<std::vector<LoadedProfile>> loaded = load_all(args, session, status);
  if (!loaded) return report(session, loaded.error());
  std::vector<Suite> suites;
  for (const LoadedProfile& one : *loaded) {
    suites.push_back({one.name, one.file, ""});
    suites.back().checks = review(one, args.today.empty() ? this_day() : args.today);
    suites.back().summary = tally({suites.back()});
  }
  if (suites.empty() && status != 0) return status;  // the errors are printed already
  const int judged = print_suites(
      args, suites, fmt::format("{}: {}", profiles_text(suites), tally(suites)), session);
  return status != 0 ? status : judged;
}

int profile_test(const Args& args, Session& session) {
  int status = 0;
  const Result<std::vector<LoadedProfile>> loaded = load_all(args, session, status);
  if (!loaded) return report(session, loaded.error());
  std::vector<Suite> suites;
  for (const LoadedProfile& one : *loaded) suites.push_back(tested(one, args));
  const int judged = print_suites(args, suites, test_totals(suites), session);
  return status != 0 ? status : judged;
}

}  // namespace hpclaunch::authoring
