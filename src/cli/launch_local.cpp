// The local launcher as a command line: what a dry run prints in place of mpiexec.
#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  int ranks = 1;
  OutputOptions output;
};

int launch(const Args& args, const CLI::App& app, Session& session) {
  Result<std::vector<std::string>> words = program_of(app, true);
  if (!words) return report(session, words.error());
  if (words->size() < 2)
    return report(session, Error{ErrorKind::usage, "launch-local: SHIM and PROGRAM are needed",
                                 "take the line that hpclaunch run --dry-run prints"});
  Plan plan;
  plan.hosts = {sys::host_name()};
  plan.classes = {NodeClass{std::vector<RankPlan>(static_cast<std::size_t>(args.ranks))}};
  plan.layout = {NodeRun{}};
  plan.launcher = "local";
  plan.output = args.output;
  plan.command.assign(words->begin() + 1, words->end());
  const Result<int> status = sys::run_local(plan, session.env, words->front());
  return status ? *status : report(session, status.error());
}

}  // namespace

Runner declare_launch_local(CLI::App& app) {
  auto args = std::make_shared<Args>();
  app.add_option("-n,--ranks", args->ranks, "Ranks to start")->check(CLI::Range(1, 1'000'000))->type_name("N");
  app.add_flag("--label", args->output.label, "Begin each line of output with its rank");
  app.add_option("--log-dir", args->output.log_dir, "Also write one file per rank there")->type_name("DIR");
  app.add_option("--grace", args->output.grace_seconds, "Seconds between TERM and KILL")->check(CLI::Range(0.0, 86400.0));
  declare_program(app);
  return [args, &app](Session& session) { return launch(*args, app, session); };
}

}  // namespace hpclaunch::cli
