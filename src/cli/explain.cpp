#include <fmt/format.h>

#include "cli/catalogue.h"
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

bool decided(const Plan& plan, const std::string& name) {
  return plan.find_env(name) != nullptr || plan.find_choice(name) != nullptr;
}

void say_unknown(const Plan& plan, const std::string& name, Session& session) {
  std::vector<std::string> known;
  for (const Setting& setting : plan.choices) known.push_back(setting.name);
  for (const Setting& setting : plan.env) known.push_back(setting.name);
  const std::string meant = nearest(name, known).value_or(catalogue_doubt(name));
  fmt::print(session.err, "hpclaunch: {}: hpclaunch decides nothing about it{}\n", name,
             meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

// What was decided and what is known about one name; "" when that is nothing.
std::string one_name(const Plan& plan, const std::string& name, const Style& style) {
  std::string text;
  if (decided(plan, name)) text = explain(plan, {name}, style);
  const std::string facts = catalogue_text(name, style);
  if (facts.empty()) return text;
  return text.empty() ? fmt::format("{}\n  not decided by hpclaunch\n{}", name, facts)
                      : text + facts;
}

int explain_names(const Args& args, Session& session) {
  const Result<Prepared> prepared = prepare(args.launch, session, Purpose::show);
  if (!prepared) return report(session, prepared.error());
  report(session, prepared->findings);
  const Plan& plan = prepared->plan;
  std::string text;
  int unknown = 0;
  for (const std::string& name : args.names) {
    const std::string block = one_name(plan, name, session.style);
    if (block.empty()) say_unknown(plan, name, session);
    if (block.empty())
      ++unknown;
    else
      text += (text.empty() ? "" : "\n") + block;
  }
  if (args.names.empty()) text = explain(plan, {}, session.style);
  if (!text.empty() && !print(session, text))
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
  parser.footer(
      "Exit status: 0 shown, 1 nothing is decided or known about one of the names, 2 no plan.");
  return [args](Session& session) { return explain_names(*args, session); };
}

}  // namespace hpclaunch::cli
