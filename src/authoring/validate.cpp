#include <fmt/format.h>

#include <ctime>

#include "authoring/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

std::string this_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  if (gmtime_r(&now, &parts) == nullptr) return "1970-01-01";
  constexpr int kFirstYear = 1900;
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + kFirstYear, parts.tm_mon + 1,
                     parts.tm_mday);
}

std::string tally(long errors, long warnings, long notes) {
  if (errors + warnings + notes == 0) return "clean";
  std::string text;
  const auto add = [&](long number, const char* noun) {
    if (number > 0) text += (text.empty() ? "" : ", ") + counted(number, noun);
  };
  add(errors, "error");
  add(warnings, "warning");
  add(notes, "note");
  return text;
}

Suite reviewed(const LoadedProfile& loaded, const std::string& today) {
  Suite suite{loaded.name, loaded.file, ""};
  suite.checks = review(loaded, today);
  suite.summary = tally(count(suite, Severity::error), count(suite, Severity::warning),
                        count(suite, Severity::note));
  return suite;
}

std::string totals(const std::vector<Suite>& suites) {
  long errors = 0;
  long warnings = 0;
  long notes = 0;
  for (const Suite& suite : suites) {
    errors += count(suite, Severity::error);
    warnings += count(suite, Severity::warning);
    notes += count(suite, Severity::note);
  }
  return fmt::format("{}: {}", counted(static_cast<long>(suites.size()), "profile"),
                     tally(errors, warnings, notes));
}

}  // namespace

int profile_validate(const ProfileArgs& args, Session& session) {
  const Result<Shelf> shelf = open_shelf(args.names, session.env);
  if (!shelf) return report(session, shelf.error());
  std::vector<std::string> refs = args.names;
  if (refs.empty())
    for (const ProfileEntry& entry : shelf->entries) refs.push_back(entry.name);
  const std::string today = args.today.empty() ? this_day() : args.today;
  std::vector<Suite> suites;
  int status = 0;
  for (const std::string& ref : refs) {
    const Result<LoadedProfile> loaded = load_for_review(ref, *shelf);
    if (loaded)
      suites.push_back(reviewed(*loaded, today));
    else
      status = report(session, loaded.error());
  }
  if (suites.empty() && status != 0) return status;  // the errors have been said
  if (!print(session, as_format(args.format, "validate", suites, totals(suites))))
    return exit_status(ErrorKind::system, session.exit_rules);
  if (status != 0) return status;
  return clean(suites) ? 0 : 1;
}

}  // namespace hpclaunch::cli
