// How a job went, from what `run` has left.
#include "cli/command.h"
#include "hpclaunch/run_record.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  std::vector<std::string> what;
  bool json = false;
};

int show(const Args& args, Session& session) {
  if (args.what.size() > 1)
    return report(session, Error{ErrorKind::usage, "report takes one file or job",
                                 "hpclaunch report " + args.what.front()});
  const Result<job::FoundRecord> found =
      job::find_run_record(args.what.empty() ? "" : args.what.front());
  if (!found) return report(session, found.error());
  const Result<job::JobReport> read = job::read_run_record(found->json, found->path);
  if (!read) return report(session, read.error());
  return print_all(session, args.json ? job::job_report_json(*read) : job::job_report_text(*read));
}

}  // namespace

Runner declare_report(Parser& parser) {
  auto args = std::make_shared<Args>();
  parser.group("Options");
  parser.words(args->what, "FILE|JOB",
               "File of run --report, or id of a batch job; without it the last run");
  parser.flag("--json", args->json, "Print the same as JSON");
  parser.footer(
      "The last 8 runs of this user on this machine are kept.\n"
      "Exit status: 0 shown, 2 no such report.");
  return [args](Session& session) { return show(*args, session); };
}

}  // namespace hpclaunch::cli
