#include <array>

#include "authoring/command.h"
#include "cli/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

struct Action {
  const char* name;
  int (*run)(const ProfileArgs&, Session&);
};

constexpr std::array kActions = {
    Action{"list", profile_list},         Action{"show", profile_show},
    Action{"validate", profile_validate}, Action{"test", profile_test},
    Action{"new", profile_new},           Action{"schema", profile_schema},
    Action{"page", profile_page},
};

// Options that an action has no use for are mistakes, not decoration.
std::optional<std::string> out_of_place(const ProfileArgs& args) {
  const bool is_new = args.action == "new";
  const bool judges = args.action == "validate" || args.action == "test";
  if (!args.topology.empty() && !is_new) return "--topology";
  if (!args.name.empty() && !is_new) return "--name";
  if (!args.today.empty() && args.action != "validate") return "--today";
  if ((args.format == "junit" || args.format == "github") && !judges)
    return "--format " + args.format;
  if (args.format == "json" && (is_new || args.action == "page")) return "--format json";
  return std::nullopt;
}

bool is_day(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, '-');
  constexpr int kLastMonth = 12;
  constexpr int kLastDay = 31;
  if (parts.size() != 3 || parts[0].size() != 4 || parts[1].size() != 2 || parts[2].size() != 2)
    return false;
  return parse_natural(parts[0]).has_value() &&
         parse_natural(parts[1], kLastMonth).value_or(0) > 0 &&
         parse_natural(parts[2], kLastDay).value_or(0) > 0;
}

int profile(const ProfileArgs& args, Session& session) {
  if (const auto option = out_of_place(args))
    return report(session, Error{ErrorKind::usage, args.action + " takes no " + *option,
                                 "hpclaunch profile --help"});
  if (!args.today.empty() && !is_day(args.today))
    return report(session,
                  Error{ErrorKind::usage, "--today: \"" + plain(args.today) + "\" is no day",
                        "write YYYY-MM-DD"});
  const bool takes_names = args.action != "list" && args.action != "new" && args.action != "schema";
  if (!takes_names && !args.names.empty())
    return report(
        session, Error{ErrorKind::usage,
                       args.action + ": \"" + plain(args.names.front()) + "\" is one word too many",
                       args.action == "new" ? "hpclaunch profile new --name NAME"
                                            : "hpclaunch profile show NAME"});
  for (const Action& action : kActions)
    if (args.action == action.name) return action.run(args, session);
  return exit_status(ErrorKind::usage, session.exit_rules);
}

}  // namespace

Runner declare_profile(Parser& parser) {
  auto args = std::make_shared<ProfileArgs>();
  std::vector<std::string> names;
  names.reserve(kActions.size());
  for (const Action& action : kActions) names.emplace_back(action.name);
  parser.word(
      args->action, "ACTION", names,
      "list what there is; show one with the origin of each line; validate; test; write a new "
      "one; print the schema; print a page of documentation");
  parser.words(
      args->names, "NAME",
      "Names of profiles, or files (with a '/' or ending in .json); validate and test take "
      "all there are when none is named");
  parser.choice("--format", args->format, "FORMAT", {"text", "json", "junit", "github"},
                "junit and github (annotations) for validate and test");
  parser.text(
      "--topology", args->topology, "FILE",
      "new: describe this node instead of the live one: hwloc XML, or JSON of hpclaunch topo");
  parser.text("--name", args->name, "NAME", "new: name of the profile; else from the host's name");
  parser.text("--today", args->today, "DATE",
              "validate: judge the age of sources as on this day, YYYY-MM-DD");
  parser.footer(
      "Exit status: 0 done and nothing to remark (notes do not count), 1 diagnostics, 2 not done.");
  return [args](Session& session) { return profile(*args, session); };
}

}  // namespace hpclaunch::cli
