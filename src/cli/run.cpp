
#include "cli/command.h"
#include "cli/options.h"
#include "hpclaunch/sys.h"
#include "job/preflight.h"
#include "job/prepare.h"
#include "job/run_record.h"
#include "job/write_file.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  Request launch;
  bool dry_run = false;
  bool verbose = false;
  bool force = false;
  bool preflight = false;
};

constexpr double kPreflightSeconds = 120;

// What the exports and the launch line do not show: the first is the job's, the others are the shim's.
std::vector<std::string> script_notes(const Plan& plan) {
  std::vector<std::string> notes;
  for (const std::string& directive : plan.batch)
    notes.push_back("The job must have been submitted with: " + directive);
  if (!plan.core_limit.empty()) notes.push_back("Every rank gets: ulimit -S -c " + plan.core_limit);
  for (const std::string& directory : plan.make_dirs)
    notes.push_back("The ranks make on every node: " + directory);
  if (!plan.output.report.empty())
    notes.push_back("hpclaunch run would write: " + plan.output.report);
  if (plan.supervise)
    notes.push_back("hpclaunch run would stay beside the launcher: first failure, exact status");
  return notes;
}

int dry_run(const Args& args, const Prepared& prepared, Session& session) {
  const Result<std::string> script = render_script(
      environment_changes(prepared.plan), prepared.argv, args.verbose, script_notes(prepared.plan));
  if (!script) return report(session, script.error());
  return print(session, *script) ? 0 : exit_status(ErrorKind::system, session.exit_rules);
}

bool refused(const std::vector<Diagnostic>& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics)
    if (diagnostic.severity == Severity::error) return true;
  return false;
}

Result<sys::Ending> start(const Prepared& prepared, const EnvSnapshot& env) {
  if (prepared.plan.launcher == "local") return sys::run_local(prepared.plan, env, prepared.shim);
  return sys::run_supervised(prepared.plan, prepared.argv, env);
}

Error become(const Prepared& prepared, const EnvSnapshot& env) {
  std::vector<int> keep;
  if (prepared.port_lock >= 0) keep.push_back(prepared.port_lock);
  return sys::exec(prepared.argv, env, keep);
}

// Reports an error and returns the status for it.
int fail(RunRecord& record, const Error& error, Session& session) {
  record.error = error;
  return report(session, error);
}

Error not_started() {
  return Error{ErrorKind::usage, "not started", "mend the errors above, or go on with --force"};
}

// Until the job has ended; fills `record` on the way.
int launch(const Args& args, Session& session, Prepared& prepared, RunRecord& record) {
  const Purpose purpose = args.dry_run ? Purpose::show : Purpose::start;
  Result<Prepared> made = prepare(args.launch, session, purpose);
  if (!made) return fail(record, made.error(), session);
  prepared = std::move(*made);
  record.plan = &prepared.plan;
  record.command = prepared.plan.command;
  record.argv = prepared.argv;
  report(session, prepared.diagnostics);
  if (args.dry_run) return dry_run(args, prepared, session);
  if (refused(prepared.diagnostics) && !args.force) return fail(record, not_started(), session);
  if (args.preflight) {
    const Result<std::vector<Diagnostic>> said = preflight(prepared, session, kPreflightSeconds);
    if (!said) return fail(record, said.error(), session);
    report(session, *said);
    if (refused(*said) && !args.force) return fail(record, not_started(), session);
  }
  const EnvSnapshot env = launch_environment(prepared.plan, session.env);
  if (prepared.plan.launcher != "local" && !prepared.plan.supervise)
    return fail(record, become(prepared, env), session);
  Result<sys::Ending> ending = start(prepared, env);
  if (!ending) return fail(record, ending.error(), session);
  record.ending = std::move(*ending);
  return record.ending->status;
}

// The job's status stays what it is: a report that cannot be written is said.
int with_report(const Args& args, Session& session) {
  if (const Status good = check_file("--report", args.launch.output.report); !good)
    return report(session, good.error());
  RunRecord record;
  Prepared prepared;
  record.command = args.launch.command;
  record.started = sys::wall_clock();
  const int status = record.status = launch(args, session, prepared, record);
  record.ended = sys::wall_clock();
  const Status written = write_file("--report", args.launch.output.report, run_record_json(record));
  if (!written) report(session, written.error());
  return status;
}

int run(Args& args, const Parser& parser, Session& session) {
  Result<std::vector<std::string>> program = parser.program(true);
  if (!program) return report(session, program.error());
  args.launch.command = std::move(*program);
  if (!args.launch.output.report.empty() && !args.dry_run) return with_report(args, session);
  RunRecord record;
  Prepared prepared;
  return launch(args, session, prepared, record);
}

}  // namespace

Runner declare_run(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.flag("--dry-run", args->dry_run,
              "Print a shell script that does what run would do, and stop");
  parser.flag("-v,--verbose", args->verbose, "With --dry-run: each variable's reason as a comment");
  parser.flag("--preflight", args->preflight,
              "Look at every node first, and start only when all is well there");
  parser.flag("--force", args->force, "Start in spite of errors that a check found");
  parser.takes_program();
  parser.footer(
      "Exit status: the program's own (128+n for signal n); 125 hpclaunch failed before the start, "
      "126 the program\n"
      "cannot be executed, 127 it is not there.");
  return [args, &parser](Session& session) { return run(*args, parser, session); };
}

}  // namespace hpclaunch::cli
