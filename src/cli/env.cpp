#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/pipeline.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  LaunchArgs launch;
  std::string format = "sh";
  bool verbose = false;
};

int env(Args& args, const CLI::App& app, Session& session) {
  Result<std::vector<std::string>> program = program_of(app, false);
  if (!program) return report(session, program.error());
  args.launch.command = std::move(*program);
  const Result<Prepared> prepared = prepare(args.launch, session, Purpose::show);
  if (!prepared) return report(session, prepared.error());
  report(session, prepared->findings);
  const Result<std::string> text =
      render_env(*env_format_from(args.format), environment_changes(prepared->plan), args.verbose);
  if (!text) return report(session, text.error());
  return print(session, *text) ? 0 : exit_status(ErrorKind::system, session.exit_rules);
}

}  // namespace

Runner declare_env(CLI::App& app) {
  auto args = std::make_shared<Args>();
  declare_launch_options(app, args->launch);
  app.add_option("--format", args->format, "sh, csh, fish, dotenv, json or lmod")
      ->check(CLI::IsMember({"sh", "csh", "fish", "dotenv", "json", "lmod"}))->type_name("FORMAT")->capture_default_str();
  app.add_flag("-v,--verbose", args->verbose, "Each variable's reason as a comment");
  declare_program(app);
  app.footer("Variables that differ by rank are in HPCLAUNCH_PLAN; start the program through hpclaunch-shim to set them.\n"
             "Exit status: 0 printed, 2 no plan, or the format cannot hold a value.");
  return [args, &app](Session& session) { return env(*args, app, session); };
}

}  // namespace hpclaunch::cli
