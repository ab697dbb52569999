// `profile validate` and `profile test`: one suite of checks per profile.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

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
  std::map<Severity, long, std::greater<>> numbers;
  for (const Suite& suite : suites)
    for (const Check& check : suite.checks)
      for (const Diagnostic& one : check.diagnostics) ++numbers[one.severity];
  std::string text;
  for (const auto& [severity, number] : numbers)
    text += (text.empty() ? "" : ", ") + counted(number, to_string(severity));
  return text.empty() ? "clean" : text;
}

std::string profiles_text(const std::vector<Suite>& suites) {
  return counted(suites.size(), "profile");
}

std::string summary(const Suite& suite) {
  std::string text = fmt::format("{}, {} invariants checked", counted(suite.cases, "case"),
                                 with_separators(suite.invariants));
  if (suite.plans == 0) text += " (no node model to plan for)";
  if (suite.plans > 0)
    text += fmt::format(" on {} plans ({} refused with a reason{})", with_separators(suite.plans),
                        with_separators(suite.refused),
                        suite.far == 0 ? ""
                                       : fmt::format(", {} report ranks far from their devices",
                                                     with_separators(suite.far)));
  for (const auto& [kind, verb] :
       {std::pair("case", "failed"), std::pair("invariant", "violated")}) {
    const long failed = std::ranges::count_if(suite.checks, [&, kind = kind](const Check& one) {
      return one.kind == kind && one.failed();
    });
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
    suite.checks.push_back(run_case(loaded.resolved, expected, args));
  suite.cases = static_cast<long>(profile.expect.size());
  check_invariants(loaded.resolved, suite);
  suite.summary = summary(suite);
  return suite;
}

std::string test_totals(const std::vector<Suite>& suites) {
  long cases = 0;
  long invariants = 0;
  long failed = 0;
  for (const Suite& suite : suites) {
    cases += suite.cases;
    invariants += suite.invariants;
    failed += std::ranges::count_if(suite.checks, &Check::failed);
  }
  return fmt::format("{}: {} {}, {} invariants checked, {} failed", profiles_text(suites),
                     with_separators(cases), cases == 1 ? "case" : "cases",
                     with_separators(invariants), with_separators(failed));
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

Result<job::Prepared> plan_of_case(const Args& args, Session& session) {
  if (args.names.size() != 1)
    return Error{ErrorKind::usage, "--plan takes one profile",
                 fmt::format("hpclaunch profile test NAME --plan \"{}\"", shown(args.plan))};
  const Result<Shelf> shelf = open_shelf(args.names, session.env);
  if (!shelf) return shelf.error();
  const Result<LoadedProfile> loaded = load_for_review(args.names.front(), *shelf);
  if (!loaded) return loaded.error();
  if (!loaded->resolved) return loaded->problems.front();
  const std::vector<Case>& cases = loaded->resolved->expect;
  if (const Case* found = find_named(cases, args.plan))
    return plan_case(loaded->resolved, *found, args);
  const auto near = nearest(args.plan, names_of(cases));
  return Error{
      ErrorKind::not_found,
      fmt::format("{} has no golden case \"{}\"", loaded->name, shown(args.plan)),
      near ? fmt::format("--plan \"{}\"", *near)
           : fmt::format("hpclaunch profile test {} --format json lists them", loaded->name)};
}

int profile_test(const Args& args, Session& session) {
  int status = 0;
  if (args.update && args.names.empty())
    return report(session, Error{ErrorKind::usage, "--update needs the profiles to change",
                                 "hpclaunch profile test --update ./my-site.json"});
  Result<std::vector<LoadedProfile>> loaded = load_all(args, session, status);
  if (loaded && args.update) {
    for (const LoadedProfile& one : *loaded)
      if (one.resolved)
        if (Status ok = update_cases(one, args, session); !ok) return report(session, ok.error());
    loaded = load_all(args, session, status);
  }
  if (!loaded) return report(session, loaded.error());
  std::vector<Suite> suites;
  for (const LoadedProfile& one : *loaded) suites.push_back(tested(one, args));
  const int judged = print_suites(args, suites, test_totals(suites), session);
  return status != 0 ? status : judged;
}

}  // namespace hpclaunch::authoring
