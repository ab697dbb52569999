#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "cli/command.h"
#include "hpclaunch/authoring.h"

namespace hpclaunch::cli {

namespace {

using authoring::Args;

struct Action {
  const char* name;
  int (*run)(const Args&, Session&);
};

constexpr std::array kActions = {
    Action{"list", authoring::profile_list},         Action{"show", authoring::profile_show},
    Action{"validate", authoring::profile_validate}, Action{"test", authoring::profile_test},
    Action{"new", authoring::profile_new},           Action{"schema", authoring::profile_schema},
    Action{"page", authoring::profile_page},         Action{"install", authoring::profile_install},
};

// Options that an action has no use for are mistakes, not decoration.
std::optional<std::string> out_of_place(const Args& args) {
  const bool is_new = args.action == "new";
  const bool judges = args.action == "validate" || args.action == "test";
  if (!args.topology.empty() && !is_new) return "--topology";
  if (!args.name.empty() && !is_new) return "--name";
  if (!args.today.empty() && args.action != "validate") return "--today";
  if (args.update && args.action != "test") return "--update";
  if (!args.plan.empty() && args.action != "test") return "--plan";
  if ((args.system || args.user) && args.action != "install")
    return args.system ? "--system" : "--user";
  if (args.update && args.format != "text") return "--format " + args.format + " with --update";
  if ((args.format == "junit" || args.format == "github") && !judges)
    return "--format " + args.format;
  if (args.format == "json" && (is_new || args.action == "page" || args.action == "install"))
    return "--format json";
  return std::nullopt;
}

bool is_day(const std::string& text) {
  std::tm day{};
  const char* end = strptime(text.c_str(), "%Y-%m-%d", &day);
  return text.size() == std::string_view("2026-01-31").size() && end != nullptr && *end == '\0';
}

// The options of a golden case, read as those of `hpclaunch run`.
Result<Request> case_options(const std::vector<std::string>& words) {
  const auto run = std::find_if(commands().begin(), commands().end(), [](const Command& command) {
    return std::string_view(command.name) == "run";
  });
  Parser parser(*run);
  RunArgs args;
  declare_run_options(parser, args);
  const Result<std::string> parsed = parser.parse(words);
  if (!parsed) return parsed.error();
  for (const auto& [typed, option] : {std::pair(!parsed->empty(), "--help"),
                                      {args.dry_run, "--dry-run"},
                                      {args.preflight, "--preflight"},
                                      {args.verbose, "--verbose"},
                                      {args.show_secrets, "--show-secrets"}})
    if (typed)
      return Error{ErrorKind::usage, fmt::format("{} decides nothing about the plan", option),
                   "remove it from \"options\""};
  args.launch.profile_start = !args.profile_start.empty();
  return args.launch;
}

int print_plan(const Args& args, Session& session) {
  const Result<Prepared> prepared = authoring::plan_of_case(args, session);
  if (!prepared) return report(session, prepared.error());
  if (args.format == "json") return print_all(session, plan_document(*prepared));
  report(session, prepared->diagnostics);
  return print_all(
      session, plan_table(prepared->plan, prepared->node, prepared->argv, session.style, true, 0));
}

int profile(const Args& args, Session& session) {
  if (const auto option = out_of_place(args))
    return report(session, Error{ErrorKind::usage, args.action + " takes no " + *option,
                                 "hpclaunch profile --help"});
  if (!args.today.empty() && !is_day(args.today))
    return report(session, Error{ErrorKind::usage,
                                 "--today must be a date YYYY-MM-DD, not \"" +
                                     render::printable(args.today) + "\"",
                                 "--today 2026-01-31"});
  const bool takes_names = args.action != "list" && args.action != "new" && args.action != "schema";
  if (!takes_names && !args.names.empty())
    return report(session, Error{ErrorKind::usage,
                                 args.action + " takes no argument \"" +
                                     render::printable(args.names.front()) + "\"",
                                 args.action == "new" ? "hpclaunch profile new --name NAME"
                                                      : "hpclaunch profile show NAME"});
  if (!args.plan.empty()) return print_plan(args, session);
  for (const Action& action : kActions)
    if (args.action == action.name) return action.run(args, session);
  return exit_status(ErrorKind::usage, session.exit_rules);
}

}  // namespace

Runner declare_profile(Parser& parser) {
  auto args = std::make_shared<Args>();
  args->parse_options = case_options;
  std::vector<std::string> names;
  names.reserve(kActions.size());
  for (const Action& action : kActions) names.emplace_back(action.name);
  parser.word(
      args->action, "ACTION", names,
      "list all; show one with the origin of each entry; validate; test; write a new one; print "
      "the JSON schema; print a page of documentation; install a file");
  parser.words(
      args->names, "NAME",
      "Profile names, or files (with a '/' or ending in .json); validate and test take all "
      "profiles when none is named");
  parser.choice("--format", args->format, "FORMAT", {"text", "json", "junit", "github"},
                "Output format; junit and github (annotations) for validate and test only");
  parser.text("--topology", args->topology, "FILE",
              "new: node to describe (hwloc XML, or JSON of hpclaunch topo)");
  parser.text("--name", args->name, "NAME", "new: name of the profile");
  parser.flag("--update", args->update,
              "test: write into the files what their golden cases give now");
  parser.text("--plan", args->plan, "CASE", "test: print the plan of this golden case");
  parser.flag("--user", args->user, "install: for you");
  parser.flag("--system", args->system, "install: for everybody on this machine");
  parser.text("--today", args->today, "DATE", "validate: date for the age of sources, YYYY-MM-DD");
  parser.footer("Exit status: 0 no errors or warnings, 1 errors or warnings, 2 not done.");
  return [args](Session& session) { return profile(*args, session); };
}

}  // namespace hpclaunch::cli
