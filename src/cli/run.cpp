
#include "cli/command.h"
#include "cli/options.h"
#include "cli/pipeline.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  LaunchArgs launch;
  bool dry_run = false;
  bool verbose = false;
  bool force = false;
};

// What the exports and the launch line do not show: the first is the job's, the others are the shim's.
std::vector<std::string> script_notes(const Plan& plan) {
  std::vector<std::string> notes;
  for (const std::string& directive : plan.batch)
    notes.push_back("The job must have been submitted with: " + directive);
  if (!plan.core_limit.empty()) notes.push_back("Every rank gets: ulimit -S -c " + plan.core_limit);
  for (const std::string& directory : plan.make_dirs)
    notes.push_back("The ranks make on every node: " + directory);
  return notes;
}

int dry_run(const Args& args, const Prepared& prepared, Session& session) {
  const Result<std::string> script = render_script(
      environment_changes(prepared.plan), prepared.argv, args.verbose, script_notes(prepared.plan));
  if (!script) return report(session, script.error());
  return print(session, *script) ? 0 : 1;
}

bool refused(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings)
    if (finding.severity == Severity::error) return true;
  return false;
}

int start(const Prepared& prepared, Session& session) {
  const EnvSnapshot env = launch_environment(prepared.plan, session.env);
  if (prepared.plan.launcher == "local") {
    const Result<int> status = sys::run_local(prepared.plan, env, prepared.shim);
    return status ? *status : report(session, status.error());
  }
  std::vector<int> keep;
  if (prepared.port_lock >= 0) keep.push_back(prepared.port_lock);
  return report(session, sys::exec(prepared.argv, env, keep));
}

int run(Args& args, const Parser& parser, Session& session) {
  Result<std::vector<std::string>> program = parser.program(true);
  if (!program) return report(session, program.error());
  args.launch.command = std::move(*program);
  const Purpose purpose = args.dry_run ? Purpose::show : Purpose::start;
  Result<Prepared> prepared = prepare(args.launch, session, purpose);
  if (!prepared) return report(session, prepared.error());
  report(session, prepared->findings);
  if (args.dry_run) return dry_run(args, *prepared, session);
  if (refused(prepared->findings) && !args.force)
    return report(session, Error{ErrorKind::usage, "not started",
                                 "mend the errors above, or go on with --force"});
  return start(*prepared, session);
}

}  // namespace

Runner declare_run(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.flag("--dry-run", args->dry_run,
              "Print a shell script that does what run would do, and stop");
  parser.flag("-v,--verbose", args->verbose, "With --dry-run: each variable's reason as a comment");
  parser.flag("--force", args->force, "Start in spite of errors that a check found");
  parser.takes_program();
  parser.footer(
      "Exit status: the program's own (128+n for signal n); 125 hpclaunch failed before the start, "
      "126 the program\n"
      "cannot be executed, 127 it is not there.");
  return [args, &parser](Session& session) { return run(*args, parser, session); };
}

}  // namespace hpclaunch::cli
