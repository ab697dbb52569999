
#include "cli/command.h"
#include "cli/options.h"
#include "job/prepare.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  Request launch;
  std::string format = "sh";
  bool verbose = false;
};

int env(Args& args, const Parser& parser, Session& session) {
  Result<std::vector<std::string>> program = parser.program(false);
  if (!program) return report(session, program.error());
  args.launch.command = std::move(*program);
  const Result<Prepared> prepared = prepare(args.launch, session, Purpose::show);
  if (!prepared) return report(session, prepared.error());
  report(session, prepared->diagnostics);
  const Result<std::string> text =
      render_env(*env_format_from(args.format), environment_changes(prepared->plan), args.verbose);
  if (!text) return report(session, text.error());
  return print(session, *text) ? 0 : exit_status(ErrorKind::system, session.exit_rules);
}

}  // namespace

Runner declare_env(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Output");
  parser.choice("--format", args->format, "FORMAT", {"sh", "csh", "fish", "dotenv", "json", "lmod"},
                "What to write");
  parser.flag("-v,--verbose", args->verbose, "Each variable's reason as a comment");
  parser.takes_program();
  parser.footer(
      "Variables that differ by rank are in HPCLAUNCH_PLAN; start the program through "
      "hpclaunch-shim to set them.\n"
      "Exit status: 0 printed, 2 no plan, or the format cannot hold a value.");
  return [args, &parser](Session& session) { return env(*args, parser, session); };
}

}  // namespace hpclaunch::cli
