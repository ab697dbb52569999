#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/picture.h"
#include "job/prepare.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  Request launch;
  bool json = false;
  PictureArgs picture;
};

std::string as_json(const Prepared& prepared) {
  auto document = nlohmann::ordered_json::parse(plan_to_json(prepared.plan));
  document["argv"] = prepared.argv;
  auto diagnostics = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : prepared.diagnostics)
    diagnostics.push_back({{"rule", diagnostic.id},
                           {"severity", to_string(diagnostic.severity)},
                           {"message", diagnostic.message},
                           {"fix", diagnostic.fix}});
  document["findings"] = std::move(diagnostics);
  constexpr int kIndent = 2;
  return document.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

std::string as_text(const Args& args, const Prepared& prepared, const Style& style) {
  if (args.json) return as_json(prepared);
  if (args.picture.terminal)
    return plan_picture(prepared.plan, prepared.node, prepared.marks, style);
  return plan_table(prepared.plan, prepared.node, prepared.argv, style);
}

int plan(Args& args, const Parser& parser, Session& session) {
  Result<std::vector<std::string>> program = parser.program(false);
  if (!program) return report(session, program.error());
  if (const Status good = check_picture(args.picture, args.json); !good)
    return report(session, good.error());
  args.launch.command = std::move(*program);
  const Result<Prepared> prepared = prepare(args.launch, session, Purpose::show);
  if (!prepared) return report(session, prepared.error());
  if (!args.json) report(session, prepared->diagnostics);
  if (!args.picture.svg.empty()) {
    const std::string document = plan_svg(prepared->plan, prepared->node, prepared->marks);
    if (const int status = put_svg(args.picture, document, session); status != 0) return status;
  } else if (!print(session, as_text(args, *prepared, session.style))) {
    return exit_status(ErrorKind::system, session.exit_rules);
  }
  const bool remarks = std::any_of(
      prepared->diagnostics.begin(), prepared->diagnostics.end(),
      [](const Diagnostic& diagnostic) { return diagnostic.severity != Severity::note; });
  return remarks ? 1 : 0;
}

}  // namespace

Runner declare_plan(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Output");
  parser.flag("--json", args->json, "Everything that was decided, for programs");
  declare_picture(parser, args->picture);
  parser.takes_program();
  parser.footer(
      "Exit status: 0 a plan with nothing to remark, 1 a plan with warnings or errors, 2 no\n"
      "plan.");
  return [args, &parser](Session& session) { return plan(*args, parser, session); };
}

}  // namespace hpclaunch::cli
