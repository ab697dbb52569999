#include <fmt/format.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/pipeline.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  LaunchArgs launch;
  std::vector<std::string> names;
};

// Names that the plan has nothing to say about are an answer too: said, and exit status 1.
int unknown_names(const Plan& plan, const std::vector<std::string>& names, Session& session) {
  std::vector<std::string> known;
  for (const Setting& setting : plan.choices) known.push_back(setting.name);
  for (const Setting& setting : plan.env) known.push_back(setting.name);
  int unknown = 0;
  for (const std::string& name : names) {
    if (plan.find_env(name) != nullptr || plan.find_choice(name) != nullptr) continue;
    ++unknown;
    const auto near = nearest(name, known);
    fmt::print(session.err, "hpclaunch: {}: hpclaunch decides nothing about it{}\n", name,
               near ? fmt::format("; did you mean {}?", *near) : "");
  }
  return unknown;
}

int explain_names(const Args& args, Session& session) {
  const Result<Prepared> prepared = prepare(args.launch, session, Purpose::show);
  if (!prepared) return report(session, prepared.error());
  report(session, prepared->findings);
  const int unknown = unknown_names(prepared->plan, args.names, session);
  std::vector<std::string> names;
  for (const std::string& name : args.names)
    if (prepared->plan.find_env(name) != nullptr || prepared->plan.find_choice(name) != nullptr) names.push_back(name);
  if (names.empty() && !args.names.empty()) return 1;
  if (!print(session, explain(prepared->plan, names, session.style)))
    return exit_status(ErrorKind::system, session.exit_rules);
  return unknown > 0 ? 1 : 0;
}

}  // namespace

Runner declare_explain(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Names");
  parser.words(args->names, "NAME",
               "Variables, or choices such as cpu-bind, launcher and ranks; all if absent");
  parser.footer("Exit status: 0 shown, 1 nothing is decided about one of the names, 2 no plan.");
  return [args](Session& session) { return explain_names(*args, session); };
}

}  // namespace hpclaunch::cli
