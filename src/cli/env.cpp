
#include "cli/command.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  Request launch;
  std::string format = "sh";
  bool verbose = false;
};

int env(const Args& args, Session& session) {
  const Result<Prepared> prepared = job::prepare(args.launch, session.env, Purpose::show);
  if (!prepared) return report(session, prepared.error());
  report(session, prepared->diagnostics);
  const Result<job::ShellChanges> made = job::shell_changes(*prepared, false);
  if (!made) return report(session, made.error());
  const Result<std::string> text =
      render_env(*env_format_from(args.format), made->changes, args.verbose);
  if (!text) return report(session, text.error());
  return print_all(session, made->preamble + *text);
}

}  // namespace

Runner declare_env(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Output");
  parser.choice("--format", args->format, "FORMAT", {"sh", "csh", "fish", "dotenv", "json", "lmod"},
                "Output format");
  parser.flag("-v,--verbose", args->verbose, "Add the reason of each variable as a comment");
  parser.takes_program(args->launch.command);
  parser.footer(
      "hpclaunch-shim sets the variables that differ by rank, from HPCLAUNCH_PLAN.\n"
      "Exit status: 0 printed, 2 no plan, or a value that the format cannot express.");
  return [args](Session& session) { return env(*args, session); };
}

}  // namespace hpclaunch::cli
