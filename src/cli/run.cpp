#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/command.h"
#include "hpclaunch/launches.h"
#include "hpclaunch/run_record.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/verify.h"

namespace hpclaunch::cli {

namespace {

constexpr double kPreflightSeconds = 120;

// On a terminal one line that changes; else those that stay.
job::StageLines stage_lines(const Session& session) {
  return [&session](std::string_view line, bool last) {
    if (!session.err_columns && !last) return;
    const auto width = static_cast<std::size_t>(session.err_columns.value_or(0));
    constexpr std::size_t kLead = 12;  // "hpclaunch: ", and the cursor
    if (!last && width > kLead) line = line.substr(0, width - kLead);
    fmt::print(session.err, "{}{}{}{}", session.err_columns ? "\r\x1b[K" : "",
               line.empty() ? "" : "hpclaunch: ", line, last ? "\n" : "");
    std::fflush(session.err);
  };
}

// What the exports and the launch line do not show.
std::vector<std::string> script_notes(const Plan& plan, const Request& request, bool measures) {
  std::vector<std::string> notes;
  if (plan.hosts.own >= 0)
    notes.push_back(fmt::format("Node {} of {}, {}: each node starts its own ranks", plan.hosts.own,
                                plan.nodes(), plan.hosts.own_why));
  for (const std::string& directive : plan.launch.batch)
    notes.push_back("Submit the job with: " + directive);
  if (!plan.environment.core_limit.empty())
    notes.push_back("Core limit of every rank: ulimit -S -c " + plan.environment.core_limit);
  if (!request.stage.method.empty())
    notes.push_back("Staging is left out: hpclaunch run --stage does it");
  if (request.mps == "on")
    notes.push_back("NVIDIA's MPS is left out: hpclaunch run --mps on starts it");
  if (measures) notes.push_back("Nothing is measured: hpclaunch run --profile-start does it");
  for (const std::string& directory : plan.environment.make_dirs)
    notes.push_back("Directory created by the ranks on every node: " + directory);
  if (!plan.supervision.output.report.empty())
    notes.push_back("hpclaunch run writes a report to: " + plan.supervision.output.report);
  if (request.max_restarts.value_or(0) > 0)
    notes.push_back("Restarts are left out: hpclaunch run --max-restarts does them");
  if (plan.supervision.supervise)
    notes.push_back("hpclaunch run monitors the job: first failure, exact status");
  return notes;
}

int dry_run(const RunArgs& args, const Prepared& prepared, Session& session) {
  const Result<job::ShellChanges> made = job::shell_changes(prepared, {true, args.show_secrets});
  if (!made) return report(session, made.error());
  std::vector<std::string> notes =
      script_notes(prepared.plan, args.launch, !args.profile_start.empty());
  for (std::string& note : job::late_notes(prepared)) notes.push_back(std::move(note));
  const Result<std::string> script =
      render_script(made->changes, made->argv, args.verbose, notes, made->preamble, made->words);
  if (!script) return report(session, script.error());
  return print_all(session, *script);
}

// Reports an error and returns the status for it.
int fail(job::RunRecord& record, const Error& error, Session& session) {
  record.error = error;
  return report(session, error);
}

// Errors: the file cannot be written.
Status measure(const RunArgs& args, const Prepared& prepared, job::RunRecord& record,
               Session& session) {
  record.start = job::start_profile(prepared, record.attempts.back().ending, other_lines(session));
  fmt::print(session.err, "{}", job::start_profile_text(*record.start, prepared.plan));
  report(session, record.start->diagnostics);
  if (args.profile_start == "-") return Done{};
  return job::write_file("--profile-start", args.profile_start,
                         job::start_profile_json(*record.start, prepared.plan));
}

// The job's own failure counts for more than a file that is lacking.
int status_with(int status, const Status& written, Session& session) {
  if (written) return status;
  const int failed = report(session, written.error());
  return status == 0 ? failed : status;
}

Result<Prepared> prepared_for(const RunArgs& args, const Session& session) {
  const Purpose purpose = args.dry_run ? Purpose::show : Purpose::start;
  Request request = args.launch;
  request.profile_start = !args.profile_start.empty();
  if (!args.dry_run && !(request.job_id.empty() && request.user.empty()))
    return Error{ErrorKind::usage, "--job-id and --user are for texts: they need --dry-run",
                 "--dry-run, or omit them"};
  if (args.dry_run) {
    request.stage = {};
    request.mps = "off";
    request.profile_start = false;
  }
  std::optional<job::LaunchTurn> turn;
  if (!args.dry_run) turn.emplace();
  Result<Prepared> made = job::prepare(request, job::this_world(session.env), purpose);
  const bool starts = made && turn && !any_from(Severity::error, made->diagnostics);
  if (starts || (made && turn && request.force))
    made->launch_lock = job::LaunchTurn::announce(made->plan, made->job);
  turn.reset();
  if (made && !args.dry_run && !any_from(Severity::error, made->diagnostics))
    made = job::with_container_tried(*std::move(made));
  if (made && args.compare) {
    const std::vector<Diagnostic> found = args.compare(*made);
    made->diagnostics.insert(made->diagnostics.begin(), found.begin(), found.end());
  }
  return made;
}

// Of --report. Errors: the file cannot be written.
Status write_report(const RunArgs& args, const job::RunRecord& record) {
  constexpr unsigned kOwnerOnly = 0600;  // last lines of a program may have secrets
  const std::string& file = args.launch.output.report;
  if (file.empty() || args.dry_run) return Done{};
  return job::write_file("--report", file, job::run_record_json(record), kOwnerOnly);
}

// Until the job has ended; fills `record` on the way.
int launch(const RunArgs& args, Session& session, const Prepared& prepared,
           job::RunRecord& record) {
  record.plan = &prepared.plan;
  record.command = prepared.plan.launch.command;
  record.argv = prepared.argv;
  record.job = prepared.job;
  report(session, prepared.diagnostics);
  if (any_from(Severity::error, prepared.diagnostics) && !args.launch.force)
    return fail(record, stopped(args.dry_run ? "no script" : "not started"), session);
  if (args.dry_run) return dry_run(args, prepared, session);
  if (args.preflight) {
    const Result<std::vector<Diagnostic>> found =
        job::preflight(prepared, kPreflightSeconds, other_lines(session));
    if (!found) return fail(record, found.error(), session);
    report(session, *found);
    if (any_from(Severity::error, *found) && !args.launch.force)
      return fail(record, stopped("not started"), session);
  }
  if (args.verbose) fmt::print(session.err, "{}", launch_text(prepared.plan, prepared.argv));
  const auto unfinished = [&](const job::Attempt& so_far) {
    job::RunRecord now = record;
    now.ended = so_far.ended;
    now.status = so_far.ending.status;
    now.finished = false;
    now.attempts.push_back(so_far);
    job::keep_run_record(now);
    if (!write_report(args, now)) return;  // the end says so
  };
  const Result<sys::Ending> ending =
      job::start(prepared, stage_lines(session), record.attempts, unfinished);
  if (!ending) return fail(record, ending.error(), session);
  if (args.profile_start.empty() || record.attempts.empty()) return ending->status;
  return status_with(ending->status, measure(args, prepared, record, session), session);
}

}  // namespace

int run(const RunArgs& args, Session& session) {
  const std::string& file = args.launch.output.report;
  const bool reports = !file.empty() && !args.dry_run;
  if (const Status good = reports ? job::check_file("--report", file) : Done{}; !good)
    return report(session, good.error());
  const std::string& times = args.profile_start;
  if (!times.empty() && times != "-" && !args.dry_run)
    if (const Status good = job::check_file("--profile-start", times); !good)
      return report(session, good.error());
  job::RunRecord record;
  record.command = args.launch.command;
  record.typed = session.words;
  record.started = sys::wall_clock();
  record.pid = getpid();
  const Result<Prepared> prepared = prepared_for(args, session);
  const int status = record.status =
      prepared ? launch(args, session, *prepared, record) : fail(record, prepared.error(), session);
  record.ended = sys::wall_clock();
  if (prepared && prepared->launch_lock >= 0) job::withdraw_launch();
  const int last = status_with(status, write_report(args, record), session);
  if (args.dry_run) return last;
  job::keep_run_record(record);
  // Without any destructor: after a fork each page that they touch would be copied first.
  std::fflush(nullptr);
  std::_Exit(last);
}

void declare_run_options(Parser& parser, RunArgs& args) {
  declare_launch_options(parser, args.launch);
  parser.group("Run");
  parser.flag("--dry-run", args.dry_run, "Print the equivalent shell script and exit");
  parser.flag("-v,--verbose", args.verbose, "Print the launch command; with --dry-run: reasons");
  parser.flag("--preflight", args.preflight, "Check every node first; start only without errors");
  parser.group("Run", false, true);
  parser.text("--profile-start", args.profile_start, "FILE",
              "Measure exec, import torch, rendezvous on every rank; JSON to FILE", "-");
  parser.flag("--force", args.launch.force, "Start, or print the script, in spite of errors");
  parser.flag("--show-secrets", args.show_secrets,
              "With --dry-run: print tokens, keys and passwords");
  declare_later_job(parser, args.launch);
  parser.footer(
      "Exit status: the program's (128+n for signal n); 125 hpclaunch failed before the start, 126 "
      "program not executable, 127 program not found.");
}

Runner declare_run(Parser& parser) {
  auto args = std::make_shared<RunArgs>();
  declare_run_options(parser, *args);
  parser.takes_program(args->launch.command, true);
  return [args](Session& session) { return run(*args, session); };
}

}  // namespace hpclaunch::cli
