#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "hpclaunch/secret.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  Request launch;
  bool json = false;
  bool verbose = false;
  PictureArgs picture;
};

}  // namespace

std::string plan_document(const Prepared& prepared) {
  auto document = nlohmann::ordered_json::parse(plan_to_json(prepared.plan));
  document["argv"] = without_secrets(prepared.argv);
  document["diagnostics"] = json_of(prepared.diagnostics);
  constexpr int kIndent = 2;
  return document.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

namespace {

std::string as_text(const Args& args, const Prepared& prepared, const Style& style, int above) {
  if (args.json) return plan_document(prepared);
  if (args.picture.terminal)
    return plan_picture(prepared.plan, prepared.node, prepared.marks, style);
  return plan_table(prepared.plan, prepared.node, prepared.argv, style, args.verbose, above);
}

int plan(const Args& args, Session& session) {
  if (const Status good = check_picture(args.picture, args.json ? 1 : 0); !good)
    return report(session, good.error());
  const Result<Prepared> prepared =
      job::prepare(args.launch, job::this_world(session.env), Purpose::show);
  if (!prepared) return report(session, prepared.error());
  const int above = args.json ? 0 : report(session, prepared->diagnostics);
  const int status =
      args.picture.svg.empty()
          ? print_all(session, as_text(args, *prepared, session.style, above))
          : write_svg(args.picture, plan_svg(prepared->plan, prepared->node, prepared->marks),
                      session);
  if (status != 0) return status;
  return any_from(Severity::warning, prepared->diagnostics) ? 1 : 0;
}

}  // namespace

Runner declare_plan(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Output");
  parser.flag("-v,--verbose", args->verbose, "Show all variables with reasons, the whole command");
  parser.flag("--json", args->json, "Print the plan as JSON, with every decision");
  declare_picture(parser, args->picture);
  parser.group("Output", false, true);
  declare_later_job(parser, args->launch);
  parser.takes_program(args->launch.command);
  parser.footer("Exit status: 0 no warnings, 1 warnings or errors, 2 no plan.");
  return [args](Session& session) { return plan(*args, session); };
}

}  // namespace hpclaunch::cli
